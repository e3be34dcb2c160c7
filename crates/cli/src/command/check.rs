//! `clickbox check`: everything that is wrong with a configuration, at once.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::rc::Rc;

use clap::Args;
use click_lang::{Diagnostic, Severity};

use crate::configuration::{self, ConfigurationArguments, REGISTRY};
use crate::environment::Process;
use crate::report;

/// Check a configuration without running it.
///
/// Prints every error and warning with its source line. Exits with 1 if there is an error.
#[derive(Args)]
#[command(after_help = "Example: clickbox check examples/firewall.click")]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: ConfigurationArguments,
    /// Print JSON: a list of diagnostics.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let Some((text, parameters)) = arguments.configuration.read() else { return ExitCode::from(2) };
    let compiled = configuration::compile(&text, &parameters, &[]);
    let mut found: Vec<Diagnostic> = compiled.diagnostics;
    // What compiled is checked further even if something else did not; what was said already is not said again.
    let place =
        |problem: &Diagnostic| problem.location.clone().map(|location| (location.file, location.span));
    let errors = found.iter().filter(|known| known.severity == Severity::Error);
    let places: Vec<_> = errors.filter_map(place).collect();
    for problem in router::check(&compiled.graph, REGISTRY, Rc::new(Process::new())) {
        let is_said = found.iter().any(|known| known.message == problem.message)
            || place(&problem).is_some_and(|place| places.contains(&place));
        if !is_said {
            found.push(problem);
        }
    }
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    if arguments.json {
        let entries: Vec<_> = found.iter().map(report::Entry::new).collect();
        crate::output::json(&entries);
    } else {
        let color = std::io::stderr().is_terminal();
        for diagnostic in &found {
            eprintln!("{}\n", report::render(diagnostic, &text, color));
        }
        let warnings = found.len() - errors;
        let elements = compiled.graph.elements.len();
        let count = |number: usize, what| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let (elements, errors) = (count(elements, "element"), count(errors, "error"));
        eprintln!("{}: {elements}, {errors}, {}", text.name, count(warnings, "warning"));
    }
    ExitCode::from(u8::from(errors > 0))
}
