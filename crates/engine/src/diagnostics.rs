//! Compiler diagnostics in the form that the mailbox carries.

use alloc::string::String;
use alloc::vec::Vec;
use click_lang::{Diagnostic, Severity};
use core::fmt::Write;

/// Converts diagnostics about the text called `file` for the mailbox, except for consequences of others.
pub(crate) fn for_mailbox(diagnostics: &[Diagnostic], file: &str) -> Vec<boundary::Diagnostic> {
    let mut shown = click_lang::in_parts(diagnostics.to_vec());
    shown.retain(|diagnostic| !diagnostic.is_consequence);
    let shown = click_lang::limited(shown, MAX_DIAGNOSTICS);
    shown.iter().map(|diagnostic| convert(diagnostic, file)).collect()
}

/// The maximum number of diagnostics in a reply. Stops: a hundred thousand elements with the same error.
const MAX_DIAGNOSTICS: usize = 1000;

fn convert(diagnostic: &Diagnostic, file: &str) -> boundary::Diagnostic {
    let mut message = String::new();
    let location = diagnostic.location.as_ref().filter(|location| &*location.file == file);
    // The mailbox has no file names: a location in a library becomes part of the message.
    if let Some(elsewhere) = diagnostic.location.as_ref().filter(|_| location.is_none()) {
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
        line: location.map_or(0, |location| location.line),
        column: location.map_or(0, |location| location.column),
        message,
        hint: diagnostic.hint.clone().unwrap_or_default(),
    }
}
