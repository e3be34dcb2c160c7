//! Diagnostics: errors and warnings about a configuration, with locations.

use crate::Location;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration can't run.
    Error,
    /// The configuration can run, but probably not as intended.
    Warning,
    /// Further information about the previous diagnostic.
    Note,
}

/// One message about a configuration.
///
/// Names in messages are in typographic quotes, as on a UTF-8 terminal; [`plain_quotes`] converts them for other
/// outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// Its location; absent if it concerns the whole configuration.
    pub location: Option<Location>,
    /// The message; it may have several lines, separated by `\n`. Lines that start with a space are introduced by a
    /// first line ‘While …:’.
    pub message: String,
    /// Further lines of the message: related locations with their text.
    pub related: Vec<(Location, String)>,
    /// A hint, such as the nearest name; not part of Click's message format.
    pub hint: Option<String>,
    /// Whether location and related lines are omitted in Click's message format, as in Click.
    pub bare: bool,
    /// The location in Click's message format, if it differs.
    pub printed: Option<Location>,
    /// The location in a data file, `FILE:LINE`, that starts the lines after the first. Click's message format has it
    /// before the indentation of these lines.
    pub data_location: Option<String>,
    /// Whether it probably only follows from an earlier error, such as an unused port whose connection has a syntax
    /// error. Click reports it; other outputs should omit it.
    pub is_consequence: bool,
    /// The same in our own words, for outputs other than Click's message format: a diagnostic for each problem, at the
    /// argument that it is about. Empty if the message is in our own words already.
    pub parts: Vec<Diagnostic>,
}

impl Diagnostic {
    /// An error at `location`.
    pub fn error(location: Location, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, location, message)
    }

    /// A diagnostic of any severity at `location`.
    pub fn new(severity: Severity, location: Location, message: impl Into<String>) -> Self {
        Self { severity, location: Some(location), ..Self::without_location(message) }
    }

    /// An error that concerns the whole configuration.
    pub fn without_location(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            location: None,
            message: message.into(),
            related: Vec::new(),
            hint: None,
            bare: false,
            printed: None,
            data_location: None,
            is_consequence: false,
            parts: Vec::new(),
        }
    }

    /// The last diagnostic, if `count` more are not shown.
    fn omitted(severity: Severity, count: usize) -> Self {
        let kind = if severity == Severity::Error { "errors" } else { "warnings" };
        let message = format!("too many {kind}: {count} more not shown");
        Self { severity, ..Self::without_location(message) }
    }

    /// Adds a line about a related location.
    #[must_use]
    pub fn with_related(mut self, location: Location, message: impl Into<String>) -> Self {
        self.related.push((location, message.into()));
        self
    }

    /// Omits the locations in Click's message format.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// Sets a different location for Click's message format.
    #[must_use]
    pub fn printed_at(mut self, location: Location) -> Self {
        self.printed = Some(location);
        self
    }

    /// Sets the data file location that starts the lines after the first.
    #[must_use]
    pub fn with_data_location(mut self, data_location: Option<String>) -> Self {
        self.data_location = data_location;
        self
    }

    /// Marks it as a consequence of an earlier error if `is_consequence`.
    #[must_use]
    pub fn following(mut self, is_consequence: bool) -> Self {
        self.is_consequence = is_consequence;
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
    /// Writes the lines in Click's message format, `file:line: message`, without a final line end. Hints are omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = self.printed.as_ref().or(self.location.as_ref()).filter(|_| !self.bare);
        let prefix = location.map(|location| format!("{location}: ")).unwrap_or_default();
        let kind = if self.severity == Severity::Warning { "warning: " } else { "" };
        let introduced = self.message.contains("\n ");
        for (index, line) in self.message.split('\n').enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let split = |line| self.split_data_location(line);
            match line.strip_prefix("  ").map(|detail| split(detail).unwrap_or(("", detail))) {
                Some((data_location, detail)) if index > 0 => write!(f, "{data_location}  {kind}{detail}")?,
                _ if introduced => write!(f, "{prefix}{line}")?,
                _ => write!(f, "{prefix}{kind}{line}")?,
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
    /// Splits a line into the leading data file location and the rest.
    fn split_data_location<'l>(&self, line: &'l str) -> Option<(&'l str, &'l str)> {
        let location = self.data_location.as_ref()?;
        let rest = line.strip_prefix(location.as_str())?.strip_prefix(": ")?;
        Some((line.get(..location.len() + 2)?, rest))
    }
}

/// The diagnostics in our own words.
pub fn in_parts(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut found = Vec::with_capacity(diagnostics.len());
    for mut diagnostic in diagnostics {
        if diagnostic.parts.is_empty() {
            found.push(diagnostic);
            continue;
        }
        let parts = core::mem::take(&mut diagnostic.parts);
        found.extend(parts.into_iter().map(|part| {
            let follows = part.is_consequence || diagnostic.is_consequence;
            part.following(follows)
        }));
    }
    found
}

/// At most `limit` diagnostics and a last one that gives the number omitted. If some are omitted, errors come first.
pub fn limited(mut diagnostics: Vec<Diagnostic>, limit: usize) -> Vec<Diagnostic> {
    if diagnostics.len() <= limit {
        return diagnostics;
    }
    sorting::sort_by_key(&mut diagnostics, |diagnostic| diagnostic.severity);
    let omitted = diagnostics.split_off(limit);
    if let Some(first) = omitted.first() {
        diagnostics.push(Diagnostic::omitted(first.severity, omitted.len()));
    }
    diagnostics
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
    /// Whether errors kept parts of the text out of the graph.
    is_partial: bool,
}

impl Diagnostics {
    /// A collection of at most `limit` diagnostics; further ones are only counted.
    pub(crate) fn new(limit: usize) -> Self {
        Self { list: Vec::new(), limit, dropped: 0, is_partial: false }
    }

    /// Adds a diagnostic.
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

    /// Records that an error kept a part of the text out of the graph.
    pub(crate) fn set_partial(&mut self) {
        self.is_partial = true;
    }

    /// Whether errors kept parts of the text out of the graph.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// The number of diagnostics so far.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Marks as consequences the errors from number `start` on that are in one of the `segments` of a file, after the
    /// segment's first syntax error or directly before it. The segments are in order; each has its byte range and the
    /// start of that error.
    pub(crate) fn mark_segments(
        &mut self,
        start: usize,
        (file, text): (&str, &str),
        segments: &[(Range<usize>, usize)],
    ) {
        let mut is_past_error = alloc::vec![false; segments.len()];
        for diagnostic in self.list.iter_mut().skip(start) {
            let Some(location) = diagnostic.location.as_ref().filter(|location| *location.file == *file)
            else {
                continue;
            };
            let at = location.span.start;
            let index = segments.partition_point(|(range, _)| range.end < at);
            if let Some(((range, error), is_past)) = segments.get(index).zip(is_past_error.get_mut(index))
                && range.contains(&at)
            {
                // An undeclared name before an unexpected character is not what the parser took it for.
                let between = text.get(location.span.end..*error);
                let is_undeclared = diagnostic.message.starts_with("undeclared element");
                let is_before = is_undeclared
                    && between.is_some_and(|between| between.bytes().all(crate::config::is_space));
                diagnostic.is_consequence |= *is_past || is_before || at > *error;
                *is_past |= at == *error;
            }
        }
    }

    /// Marks the errors from number `start` on as consequences of the one at the start of `misread`, if they are in the
    /// rest of that text, or in braces around it that are not closed either.
    pub(crate) fn mark_misread(&mut self, start: usize, misread: &Location) {
        for diagnostic in self.list.iter_mut().skip(start) {
            let Some(location) =
                diagnostic.location.as_ref().filter(|location| location.file == misread.file)
            else {
                continue;
            };
            let is_cause = location.span.start == misread.span.start;
            let is_unclosed = diagnostic.printed.is_some();
            let is_in_rest = location.span.start > misread.span.start;
            diagnostic.is_consequence = !is_cause && (is_in_rest || is_unclosed || diagnostic.is_consequence);
        }
    }

    /// Marks the errors from number `start` on as consequences.
    pub(crate) fn mark_consequences(&mut self, start: usize) {
        self.list.iter_mut().skip(start).for_each(|diagnostic| diagnostic.is_consequence = true);
    }

    /// Explains the errors from number `start` on by a misspelt keyword, without which what follows it is misread.
    pub(crate) fn explain_misspelt(&mut self, start: usize, keyword: &str) {
        self.set_partial();
        self.mark_consequences(start);
        if let Some(first) = self.list.get_mut(start) {
            first.is_consequence = false;
            first.hint = Some(format!("did you mean the keyword ‘{keyword}’?"));
        }
    }

    /// Whether another diagnostic fits. If not, the caller can skip the work for its message.
    pub(crate) fn has_room(&self) -> bool {
        self.list.len() < self.limit
    }

    /// Returns all diagnostics, with a last one that gives the number omitted.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        if self.dropped > 0 {
            self.list.push(Diagnostic::omitted(Severity::Error, self.dropped));
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
    fn each_line_starts_with_its_location() {
        let diagnostic = Diagnostic::error(at(2), "one\ntwo").with_related(at(1), "here");
        assert_eq!(diagnostic.to_string(), "f:2: one\nf:2: two\nf:1: here");
        assert_eq!(diagnostic.bare().to_string(), "one\ntwo");
        let warning = Diagnostic::new(Severity::Warning, at(3), "careful");
        assert_eq!(warning.to_string(), "f:3: warning: careful");
        let inner = Diagnostic::new(Severity::Warning, at(3), "While doing:\n  careful\n  indeed");
        assert_eq!(inner.to_string(), "f:3: While doing:\n  warning: careful\n  warning: indeed");
        let inner = Diagnostic::new(Severity::Warning, at(3), "While doing:\n  d:0: careful\n  indeed");
        let inner = inner.with_data_location(Some("d:0".into()));
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
