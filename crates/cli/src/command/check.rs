//! `clickbox check`: everything that is wrong with a configuration, at once.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::rc::Rc;

use clap::Args;
use click_lang::Severity;

use crate::configuration::{self, ConfigurationArguments, registry};
use crate::environment::Process;
use crate::live::count;
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
    let (text, parameters) = match arguments.configuration.read() {
        Ok(read) => read,
        Err(code) => return code,
    };
    let compiled = configuration::compile(&text, &parameters, &[]);
    let elements = compiled.graph.elements.len();
    let found = router::check(compiled, registry(), Rc::new(Process::new()));
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
        let [elements, errors, warnings] = [(elements, "element"), (errors, "error"), (warnings, "warning")]
            .map(|(number, what)| count(number as u64, what));
        eprintln!("{}: {elements}, {errors}, {warnings}", text.name);
    }
    ExitCode::from(u8::from(errors > 0))
}
