//! Diagnostics as the mailbox carries them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use click_lang::{Diagnostic, Severity};
use core::fmt::Write;

/// What the mailbox carries of diagnostics about the text called `file`.
pub(crate) fn to_wire(diagnostics: &[Diagnostic], file: &str) -> Vec<boundary::Diagnostic> {
    diagnostics.iter().map(|diagnostic| one_to_wire(diagnostic, file)).collect()
}

fn one_to_wire(diagnostic: &Diagnostic, file: &str) -> boundary::Diagnostic {
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
    boundary::Diagnostic {
        severity: match diagnostic.severity {
            Severity::Error => boundary::Severity::Error,
            Severity::Warning => boundary::Severity::Warning,
            Severity::Note => boundary::Severity::Note,
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
