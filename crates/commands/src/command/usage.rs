//! Option errors of the `click` command, in the wording of Click's program.

use std::io::Write;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use crate::configuration;

/// The footer of every error.
const USAGE: &str = "Usage: click [OPTION]... [ROUTERFILE]\nTry 'click --help' for more information.";

/// Prints on standard error what is wrong with the arguments `given`.
pub(super) fn print_error(error: &Error, command: &Command, given: &[String]) {
    let text = format!("click: {}\n{USAGE}", explain(error, command, given));
    // If standard error is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "{}", configuration::quoted_by_language(&text));
}

fn explain(error: &Error, command: &Command, given: &[String]) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (argument, value) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue));
    let option = typed(argument, command, given);
    match error.kind() {
        ErrorKind::UnknownArgument => format!("unrecognized option ‘{argument}’"),
        ErrorKind::InvalidValue if value.is_empty() => format!("‘{option}’ requires an argument"),
        ErrorKind::TooManyValues => format!("‘{option}’ can’t take an argument"),
        ErrorKind::ValueValidation => {
            format!("‘{option}’ expects {}, not ‘{value}’", expected_value(argument))
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_string()
        }
    }
}

/// The long form of an option that is described as `--file <FILE>` or `--simtime[=<T>]`.
fn long(argument: &str) -> &str {
    argument.split([' ', '[', '=']).next().unwrap_or_default()
}

/// The option as given, with abbreviations expanded: `-f` or `--file`.
fn typed(argument: &str, command: &Command, given: &[String]) -> String {
    let long = long(argument);
    let is_long =
        |text: &String| text.len() > 2 && long.starts_with(text.split('=').next().unwrap_or_default());
    let name = long.trim_start_matches("--");
    let option = command.get_arguments().find(|option| option.get_long() == Some(name));
    match option.and_then(|option| option.get_short()) {
        Some(letter) if !given.iter().any(is_long) => format!("-{letter}"),
        _ => long.to_string(),
    }
}

/// The kind of value that an option needs.
fn expected_value(argument: &str) -> &'static str {
    match long(argument) {
        "--simtime" => "a real number",
        "--port" => "a TCP port number",
        _ => "an integer",
    }
}
