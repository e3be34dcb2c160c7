//! Printing to standard output, where a closed pipe is the end and no failure.

use std::io::Write;

use serde::Serialize;

/// Prints text.
pub(crate) fn text(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints a value as JSON, for people too.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(out) => text(&(out + "\n")),
        Err(error) => eprintln!("clickbox: {error}"),
    }
}
