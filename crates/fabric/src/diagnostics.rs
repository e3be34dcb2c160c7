//! Diagnostics that a box reports about a configuration, as the protocol carries them: without the name of a file, which the daemon knows.

use crate::limits::MOST_DIAGNOSTIC_BYTES;
use model::escape;
use model::{Diagnostic, Severity};

/// Diagnostics of a box that accepted a configuration.
pub(crate) fn remarks(reply: &[u8]) -> Vec<Diagnostic> {
    // A reply that cannot be decoded has no diagnostics.
    diagnostics(boundary::Diagnostic::decode(reply).unwrap_or_default())
}

/// A box's diagnostics of a configuration, escaped for display.
pub(crate) fn diagnostics(found: Vec<boundary::Diagnostic>) -> Vec<Diagnostic> {
    let diagnostic = |diagnostic: boundary::Diagnostic| Diagnostic {
        severity: match diagnostic.severity {
            boundary::Severity::Error => Severity::Error,
            boundary::Severity::Warning => Severity::Warning,
            boundary::Severity::Note => Severity::Note,
        },
        file: None,
        line: Some(diagnostic.line).filter(|line| *line != 0),
        column: Some(diagnostic.column).filter(|column| *column != 0),
        message: escape::text(diagnostic.message.as_bytes()),
        hint: Some(escape::text(diagnostic.hint.as_bytes())).filter(|hint| !hint.is_empty()),
        related: Vec::new(),
    };
    let mut bytes = 0;
    let fits = |diagnostic: &Diagnostic| {
        bytes += diagnostic.message.len() + diagnostic.hint.as_ref().map_or(0, String::len);
        bytes <= MOST_DIAGNOSTIC_BYTES
    };
    found.into_iter().map(diagnostic).take_while(fits).collect()
}

/// An error about a configuration of which only a text is known.
pub(crate) fn refusal(reason: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        file: None,
        line: None,
        column: None,
        message: escape::text(reason.as_bytes()),
        hint: None,
        related: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_of_a_box_are_bounded() {
        let diagnostic = |length| boundary::Diagnostic {
            severity: boundary::Severity::Error,
            line: 1,
            column: 0,
            message: "\u{1b}".repeat(length),
            hint: String::new(),
        };
        let found = diagnostics(vec![diagnostic(1); 1000]);
        assert_eq!((found.len(), found[0].message.as_str()), (1000, "\\u{1b}"));
        let found = diagnostics(vec![diagnostic(1 << 20); 1000]);
        let bytes: usize = found.iter().map(|diagnostic| diagnostic.message.len()).sum();
        assert!(!found.is_empty() && bytes <= MOST_DIAGNOSTIC_BYTES, "{} of {bytes} bytes", found.len());
    }
}
