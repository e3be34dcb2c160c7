//! What is wrong with a configuration, and where.

use crate::Location;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration can't run.
    Error,
    /// It can run, but probably doesn't do what was meant.
    Warning,
    /// More about the diagnostic before it.
    Note,
}

/// One message about a configuration.
///
/// Names in messages stand in typographic quotes, as on a UTF-8 terminal; [`plain_quotes`] turns them for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where; absent when it is about the whole.
    pub location: Option<Location>,
    /// The message; several lines when it contains `\n`. Lines that begin with a space are what a first line ‘While …:’
    /// introduces.
    pub message: String,
    /// Lines that belong to the message: other places with what they have to do with it.
    pub related: Vec<(Location, String)>,
    /// A hint, e.g. the nearest name; not part of the message as Click prints it.
    pub hint: Option<String>,
    /// Whether place and related lines are left out of the message as Click prints it, which has none in this case.
    pub bare: bool,
    /// The place that stands in the message as Click prints it, where that is another one.
    pub printed: Option<Location>,
    /// The place in a file of data that the lines below the first begin with, `FILE:LINE`. In the message as Click prints
    /// it this stands before the space that these lines begin with.
    pub within: Option<String>,
}

impl Diagnostic {
    /// Makes an error at `location`.
    pub fn error(location: Location, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, location, message)
    }

    /// Makes a diagnostic of any severity at `location`.
    pub fn new(severity: Severity, location: Location, message: impl Into<String>) -> Self {
        Self {
            severity,
            location: Some(location),
            message: message.into(),
            related: Vec::new(),
            hint: None,
            bare: false,
            printed: None,
            within: None,
        }
    }

    /// Adds a line about another place.
    #[must_use]
    pub fn with_related(mut self, location: Location, message: impl Into<String>) -> Self {
        self.related.push((location, message.into()));
        self
    }

    /// Leaves the places out of the message as Click prints it.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// Puts another place into the message as Click prints it.
    #[must_use]
    pub fn printed_at(mut self, location: Location) -> Self {
        self.printed = Some(location);
        self
    }

    /// Says which place in a file of data the lines below the first begin with.
    #[must_use]
    pub fn within(mut self, place: Option<String>) -> Self {
        self.within = place;
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Diagnostic {
    /// Writes the lines as Click prints them, `file:line: message`, without a line end after the last. Hints are left
    /// out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = self.printed.as_ref().or(self.location.as_ref()).filter(|_| !self.bare);
        let place = location.map(|location| format!("{location}: ")).unwrap_or_default();
        let kind = if self.severity == Severity::Warning { "warning: " } else { "" };
        let introduced = self.message.contains("\n ");
        for (index, line) in self.message.split('\n').enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let placed = |line| self.place_within(line);
            match line.strip_prefix("  ").map(|detail| placed(detail).unwrap_or(("", detail))) {
                Some((place, detail)) if index > 0 => write!(f, "{place}  {kind}{detail}")?,
                _ if introduced => write!(f, "{place}{line}")?,
                _ => write!(f, "{place}{kind}{line}")?,
            }
        }
        for (location, message) in self.related.iter().filter(|_| !self.bare) {
            for line in message.split('\n') {
                write!(f, "\n{location}: {line}")?;
            }
        }
        Ok(())
    }
}

impl Diagnostic {
    /// The place that a line begins with, and the rest of it.
    fn place_within<'l>(&self, line: &'l str) -> Option<(&'l str, &'l str)> {
        let place = self.within.as_ref()?;
        let rest = line.strip_prefix(place.as_str())?.strip_prefix(": ")?;
        Some((line.get(..place.len() + 2)?, rest))
    }
}

/// Replaces typographic quotes by apostrophes, for outputs that are not UTF-8 terminals.
pub fn plain_quotes(message: &str) -> String {
    message.replace(['‘', '’'], "'")
}

/// Collects diagnostics up to a limit.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    limit: usize,
    dropped: usize,
}

impl Diagnostics {
    /// Makes an empty collection for at most `limit` diagnostics; what comes after is counted only.
    pub(crate) fn new(limit: usize) -> Self {
        Self { list: Vec::new(), limit, dropped: 0 }
    }

    /// Adds one.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < self.limit {
            self.list.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds an error.
    pub(crate) fn error(&mut self, location: Location, message: impl Into<String>) {
        self.push(Diagnostic::error(location, message));
    }

    /// Whether there is room for another one; work done only for a message can be saved when not.
    pub(crate) fn has_room(&self) -> bool {
        self.list.len() < self.limit
    }

    /// Returns all, with a last line that counts those left out.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        if self.dropped > 0 {
            self.list.push(Diagnostic {
                severity: Severity::Error,
                location: None,
                message: format!("too many errors: {} more not shown", self.dropped),
                related: Vec::new(),
                hint: None,
                bare: false,
                printed: None,
                within: None,
            });
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn at(line: u32) -> Location {
        Location { file: "f".into(), line, column: 1, span: 0..0 }
    }

    #[test]
    fn each_line_has_its_place() {
        let diagnostic = Diagnostic::error(at(2), "one\ntwo").with_related(at(1), "here");
        assert_eq!(diagnostic.to_string(), "f:2: one\nf:2: two\nf:1: here");
        assert_eq!(diagnostic.bare().to_string(), "one\ntwo");
        let warning = Diagnostic::new(Severity::Warning, at(3), "careful");
        assert_eq!(warning.to_string(), "f:3: warning: careful");
        let inner = Diagnostic::new(Severity::Warning, at(3), "While doing:\n  careful\n  indeed");
        assert_eq!(inner.to_string(), "f:3: While doing:\n  warning: careful\n  warning: indeed");
        let inner = Diagnostic::new(Severity::Warning, at(3), "While doing:\n  d:0: careful\n  indeed");
        let inner = inner.within(Some("d:0".into()));
        assert_eq!(inner.to_string(), "f:3: While doing:\nd:0:   warning: careful\n  warning: indeed");
    }

    #[test]
    fn a_flood_is_counted() {
        let mut diagnostics = Diagnostics::new(2);
        for line in 0..5 {
            diagnostics.error(at(line), "x");
        }
        let list = diagnostics.finish();
        assert_eq!(list.len(), 3);
        assert_eq!(list[2].message, "too many errors: 3 more not shown");
    }

    #[test]
    fn quotes_can_be_plain() {
        assert_eq!(plain_quotes("undeclared element ‘x’"), "undeclared element 'x'");
    }
}
