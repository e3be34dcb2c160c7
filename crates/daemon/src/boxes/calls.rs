//! What a box is asked, and what its answers mean.

use super::instance::Instance;
use crate::escape;
use crate::limits::{MOST_DIAGNOSTIC_BYTES, STATS_TIMEOUT};
use api::{ConfigurationName, Diagnostic, Severity};
use boundary::{Request, Stats};

/// A configuration's name as a box has it: the main one's is empty.
pub(crate) fn in_box(name: &ConfigurationName) -> &str {
    if *name == ConfigurationName::main() { "" } else { name.as_str() }
}

/// What a box that is content with a configuration says of it.
pub(crate) fn remarks(reply: &[u8], source: Option<&str>) -> Vec<Diagnostic> {
    // A reply that means nothing says nothing.
    diagnostics(boundary::Diagnostic::decode(reply).unwrap_or_default(), source)
}

/// What a box found in a configuration, fit to be shown.
pub(crate) fn diagnostics(found: Vec<boundary::Diagnostic>, source: Option<&str>) -> Vec<Diagnostic> {
    let diagnostic = |diagnostic: boundary::Diagnostic| Diagnostic {
        severity: match diagnostic.severity {
            boundary::Severity::Error => Severity::Error,
            boundary::Severity::Warning => Severity::Warning,
            boundary::Severity::Note => Severity::Note,
        },
        file: source.map(str::to_string),
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

/// An error about a configuration of which no more is known than a text.
pub(crate) fn refusal(reason: &str, source: Option<&str>) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        file: source.map(str::to_string),
        line: None,
        column: None,
        message: escape::text(reason.as_bytes()),
        hint: None,
        related: Vec::new(),
    }
}

impl Instance {
    /// The box's own counters, if it tells them soon.
    pub(crate) fn stats(&self) -> Option<Stats> {
        let reply = self.call(&Request::Stats, STATS_TIMEOUT).ok()?;
        Stats::decode(&reply).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_box_finds_is_bounded() {
        let diagnostic = |length| boundary::Diagnostic {
            severity: boundary::Severity::Error,
            line: 1,
            column: 0,
            message: "\u{1b}".repeat(length),
            hint: String::new(),
        };
        let found = diagnostics(vec![diagnostic(1); 1000], None);
        assert_eq!((found.len(), found[0].message.as_str()), (1000, "\\u{1b}"));
        let found = diagnostics(vec![diagnostic(1 << 20); 1000], None);
        let bytes: usize = found.iter().map(|diagnostic| diagnostic.message.len()).sum();
        assert!(!found.is_empty() && bytes <= MOST_DIAGNOSTIC_BYTES, "{} of {bytes} bytes", found.len());
    }
}
