//! `clickbox fmt`: lays configurations out anew.

use std::process::ExitCode;

use clap::Args;

use crate::configuration::{Source, Text, system_words};
use crate::{output, report};

/// Lay out configurations anew; comments stay.
///
/// Writes the files, or with `-` reads standard input and prints. With --check only says which would change.
#[derive(Args)]
#[command(after_help = "Example: clickbox fmt --check examples/*.click")]
pub(crate) struct Arguments {
    /// Files; `-` for standard input.
    #[arg(required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<String>,
    /// Change nothing; exit with 1 if a file would change.
    #[arg(long)]
    check: bool,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut status = 0;
    for path in &arguments.files {
        match format(path, arguments.check) {
            Ok(true) => {}
            Ok(false) => status = status.max(1),
            Err(text) => {
                eprintln!("{text}");
                status = 2;
            }
        }
    }
    ExitCode::from(status)
}

/// Formats one file; whether it was in order, or is now.
fn format(path: &str, check: bool) -> Result<bool, String> {
    let complaint = |error: std::io::Error| format!("clickbox: {path}: {}", system_words(&error));
    let Text { name, text } = Source::File(path.to_string()).read().map_err(complaint)?;
    let formatted = match click_lang::format(&text, &name) {
        Ok(formatted) => formatted,
        Err(problems) => {
            let source = Text { name, text };
            let mut painter = report::Painter::new(false);
            let rendered: Vec<String> =
                problems.iter().map(|problem| painter.render(problem, &source)).collect();
            return Err(rendered.join("\n"));
        }
    };
    if check {
        if formatted != text {
            println!("{path}");
        }
        return Ok(formatted == text);
    }
    if path == "-" {
        output::text(&formatted);
    } else if formatted != text {
        std::fs::write(path, formatted).map_err(complaint)?;
    }
    Ok(true)
}
