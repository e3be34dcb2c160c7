//! `clickbox fmt`: formats configurations.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::error::{CommandError, FileError};
use crate::source::{Source, SourceText};
use crate::{diagnostic_printer, output};

/// Format configurations.
///
/// Rewrites the files in place and keeps comments. With `-`, formats standard input to standard output.
#[derive(Args)]
#[command(after_help = "Example: clickbox fmt --check examples/*.click")]
pub(crate) struct Arguments {
    /// Configuration files, or `-` for standard input.
    #[arg(required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<String>,
    /// List the files that are not formatted, change none, and exit with 1 if there is one.
    #[arg(long)]
    check: bool,
    /// Print JSON: a list of {"file", "changed"}, with the "text" of standard input.
    #[arg(long)]
    json: bool,
}

/// The result for one file.
#[derive(Serialize)]
struct Formatted<'a> {
    file: &'a str,
    /// Whether the text changed, or would change.
    changed: bool,
    /// The formatted text of standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let mut status = 0;
    let mut done = Vec::new();
    for path in &arguments.files {
        match format(path, arguments.check) {
            Ok(formatted) => {
                if arguments.check && formatted.changed {
                    status = status.max(1);
                }
                done.push(formatted);
            }
            Err(error) => {
                error.print();
                status = 2;
            }
        }
    }
    if arguments.json {
        output::json(&done);
        return Ok(ExitCode::from(status));
    }
    for formatted in &done {
        match &formatted.text {
            Some(text) => output::text(text),
            None if arguments.check && formatted.changed => output::text(&format!("{}\n", formatted.file)),
            None => {}
        }
    }
    Ok(ExitCode::from(status))
}

/// Formats one file, or only finds out whether it would change.
fn format(path: &str, check: bool) -> Result<Formatted<'_>, CommandError> {
    let SourceText { name, text } = Source::File(path.to_string()).read()?;
    let formatted = match click_lang::format(&text, &name) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            let source = SourceText { name, text };
            let mut printer = diagnostic_printer::DiagnosticPrinter::new(false);
            for diagnostic in &diagnostics {
                eprintln!("{}", printer.render(diagnostic, &source));
            }
            return Err(CommandError::Configuration);
        }
    };
    let changed = formatted != text;
    if changed && !check && path != "-" {
        std::fs::write(path, &formatted).map_err(|error| FileError::new(Path::new(path), error))?;
    }
    Ok(Formatted { file: path, changed, text: (path == "-" && !check).then_some(formatted) })
}
