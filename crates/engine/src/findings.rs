//! Diagnostics as the mailbox carries them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use boundary::{Finding, Gravity};
use click_lang::{Diagnostic, Severity};
use core::fmt::Write;

/// What the mailbox carries of diagnostics about the text called `file`.
pub(crate) fn findings(diagnostics: &[Diagnostic], file: &str) -> Vec<Finding> {
    diagnostics.iter().map(|diagnostic| finding(diagnostic, file)).collect()
}

fn finding(diagnostic: &Diagnostic, file: &str) -> Finding {
    let mut message = String::new();
    let place = diagnostic.location.as_ref().filter(|place| &*place.file == file);
    // A place in a library is told in words.
    if let Some(elsewhere) = diagnostic.location.as_ref().filter(|_| place.is_none()) {
        let _ = write!(message, "{elsewhere}: ");
    }
    message.push_str(&diagnostic.message);
    for (location, text) in &diagnostic.related {
        let _ = write!(message, "\n{location}: {text}");
    }
    Finding {
        gravity: match diagnostic.severity {
            Severity::Error => Gravity::Error,
            Severity::Warning => Gravity::Warning,
            Severity::Note => Gravity::Note,
        },
        line: place.map_or(0, |place| place.line),
        column: place.map_or(0, |place| place.column),
        message,
        hint: diagnostic.hint.clone().unwrap_or_default(),
    }
}

/// Diagnostics as one text, in the shape in which Click prints them.
pub(crate) fn text(diagnostics: &[Diagnostic]) -> String {
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
