//! `clickbox check`: reports every error in configurations without running them.

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use clap::Args;
use click_lang::{ArgumentFinder, Diagnostic, Element, Severity};

use crate::color;
use crate::configuration::{self, registry};
use crate::diagnostic_printer;
use crate::environment::{self, Binding, ProcessEnvironment};
use crate::error::CommandError;
use crate::number_format::count;
use crate::output;
use crate::source::{Source, SourceText};

/// Check configurations for errors.
///
/// Prints every error and warning with its source line. A file that the configuration reads must exist. Opens no such
/// files and no devices. Exits with 1 if there is an error.
#[derive(Args)]
#[command(after_help = "Example: clickbox check examples/firewall.click examples/nat.click")]
pub(crate) struct Arguments {
    /// Configuration files, and parameters for all of them. Without a file, or with `-`, read standard input.
    #[arg(value_name = "FILE | NAME=VALUE", value_hint = clap::ValueHint::FilePath)]
    operands: Vec<String>,
    /// Use EXPR as the configuration.
    #[arg(short = 'e', long, value_name = "EXPR", allow_hyphen_values = true)]
    expression: Option<String>,
    /// Use the addresses of an interface for a device name of the configuration, as `run` does. May be repeated.
    #[arg(long, value_name = "NAME=DRIVER:INTERFACE")]
    device: Vec<Binding>,
    /// Print a line for each configuration: whether it is accepted, or which classes and what else it lacks.
    #[arg(long, conflicts_with = "json")]
    brief: bool,
    /// Print JSON: a list of diagnostics.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// The sources of the configurations, and their parameters.
    fn sources(&self) -> (Vec<Source>, Vec<(String, String)>) {
        let mut sources: Vec<Source> = self.expression.iter().cloned().map(Source::Expression).collect();
        let mut parameters = Vec::new();
        for operand in &self.operands {
            match configuration::parameter(operand) {
                Ok(parameter) => parameters.push(parameter),
                Err(_) => sources.push(Source::File(operand.clone())),
            }
        }
        if sources.is_empty() {
            sources.push(Source::File("-".into()));
        }
        (sources, parameters)
    }
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    environment::bind(&arguments.device).map_err(CommandError::Devices)?;
    let (sources, parameters) = arguments.sources();
    let (mut worst, mut all) = (0, Vec::new());
    for source in sources {
        let text = match source.read() {
            Ok(text) => text,
            Err(error) => {
                CommandError::File(error).print();
                worst = 2;
                continue;
            }
        };
        let (elements, found) = check(&text, &parameters);
        let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
        worst = worst.max(u8::from(errors > 0));
        if arguments.brief {
            output::text(&format!("{}: {}\n", text.name, brief(&found)));
        } else if !arguments.json {
            print(&text, elements, &found, errors);
        }
        all.extend(found);
    }
    if arguments.json {
        let entries: Vec<_> = all.iter().map(diagnostic_printer::JsonDiagnostic::new).collect();
        output::json(&entries);
    }
    Ok(ExitCode::from(worst))
}

/// What keeps a configuration from running, in a line.
fn brief(found: &[Diagnostic]) -> String {
    let (mut classes, mut others) = (Vec::new(), Vec::new());
    for diagnostic in found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error) {
        let message = diagnostic.message.as_str();
        let undeclared = message.strip_prefix("undeclared element ");
        // Classes begin with a capital letter.
        let class = message.strip_prefix("unknown element class ").or(undeclared);
        let class = class.map(|name| name.trim_matches(['‘', '’']));
        match class.filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase())) {
            Some(class) => classes.push(class),
            None => others.push(message.lines().next().unwrap_or_default()),
        }
    }
    sorting::sort(&mut classes);
    classes.dedup();
    let mut parts = Vec::new();
    if !classes.is_empty() {
        parts.push(format!("no class {}", classes.join(", ")));
    }
    if let Some((first, rest)) = others.split_first() {
        parts.push((*first).to_string());
        if !rest.is_empty() {
            parts.push(count(rest.len() as u64, "other error"));
        }
    }
    if parts.is_empty() { "accepted".into() } else { parts.join("; ") }
}

/// The number of elements in a configuration, and its diagnostics.
fn check(text: &SourceText, parameters: &[(String, String)]) -> (usize, Vec<Diagnostic>) {
    let compiled = configuration::compile(text, parameters, &[]);
    let elements = compiled.graph.elements.len();
    let missing: Vec<_> = compiled.graph.elements.iter().flat_map(missing_files).collect();
    let writers = duplicate_writers(&compiled.graph.elements);
    let mut found = router::check(compiled, registry(), Rc::new(ProcessEnvironment::new()));
    found.extend(missing);
    found.extend(writers);
    found.retain(|diagnostic| !diagnostic.is_consequence);
    (elements, found)
}

/// One error for each element that writes to a device of an earlier one: they find out only when they run.
fn duplicate_writers(elements: &[Element]) -> Vec<Diagnostic> {
    let mut devices = Vec::new();
    let mut found = Vec::new();
    for element in elements {
        // A variable without a value keeps its name.
        let Some(name) = configuration::written_device(element).filter(|name| !name.contains('$')) else {
            continue;
        };
        if devices.contains(&name) {
            let message = format!(
                "{}: duplicate writer for device ‘{name}’: join the paths before one ToDevice, for example at a Queue",
                element.class
            );
            found.push(Diagnostic::error(element.location.clone(), message));
        } else {
            devices.push(name);
        }
    }
    found
}

/// One error for each file that an element reads and that does not exist.
fn missing_files(element: &Element) -> Vec<Diagnostic> {
    // A variable without a value keeps its name.
    let names = configuration::input_files(element).into_iter().filter(|name| !name.contains('$'));
    let missing = names.filter(|name| name != "-" && !Path::new(name).try_exists().unwrap_or(true));
    let mut finder = ArgumentFinder::new(element);
    let error = |name: String| {
        let named = finder.find(&name);
        let message = format!("the file ‘{name}’ does not exist");
        let hint = "relative paths start at the current folder";
        let hint = Path::new(&name).is_relative().then(|| hint.to_string());
        Diagnostic::error(named.unwrap_or_else(|| element.location.clone()), message).with_hint(hint)
    };
    missing.map(error).collect()
}

/// Prints the diagnostics on standard error.
fn print(text: &SourceText, elements: usize, found: &[Diagnostic], errors: usize) {
    let mut printer = diagnostic_printer::DiagnosticPrinter::new(color::is_enabled(&std::io::stderr()));
    for diagnostic in found {
        eprintln!("{}\n", printer.render(diagnostic, text));
    }
    let warnings = found.len() - errors;
    let [elements, errors, warnings] = [(elements, "element"), (errors, "error"), (warnings, "warning")]
        .map(|(number, what)| count(number as u64, what));
    eprintln!("{}: {elements}, {errors}, {warnings}", text.name);
}
