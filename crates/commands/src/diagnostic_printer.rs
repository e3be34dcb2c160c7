//! Renders diagnostics: source line, caret, related locations, hint.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use click_lang::{Diagnostic, Severity};
use serde::Serialize;

use crate::source::SourceText;

/// Limit on the bytes of source text that are searched for source lines. Each snippet takes time linear in the whole
/// text, so a long text with thousands of errors would take minutes.
const MAX_SEARCHED_BYTES: usize = 16 << 20;

/// Renders diagnostics within [`MAX_SEARCHED_BYTES`] bytes.
pub(crate) struct DiagnosticPrinter {
    color: bool,
    /// The remaining bytes that may be searched.
    left: usize,
}

impl DiagnosticPrinter {
    /// Creates a printer.
    pub(crate) fn new(color: bool) -> Self {
        Self { color, left: MAX_SEARCHED_BYTES }
    }

    /// Renders a diagnostic with its source line, or on one line once the limit is used up.
    pub(crate) fn render(&mut self, diagnostic: &Diagnostic, text: &SourceText) -> String {
        match self.left.checked_sub(text.text.len()) {
            Some(left) => {
                self.left = left;
                with_source(diagnostic, text, self.color)
            }
            None => {
                let hint = diagnostic.hint.iter().map(|hint| format!("\n  help: {hint}"));
                diagnostic.to_string() + &hint.collect::<String>()
            }
        }
    }
}

fn with_source(diagnostic: &Diagnostic, text: &SourceText, color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let (title, detail) = headline(&diagnostic.message);
    let mut group = Group::with_title(level.primary_title(title));
    if let Some(location) = &diagnostic.location {
        let here = |file: &str| file == text.name;
        if here(&location.file) {
            let mut snippet = Snippet::source(&*text.text).path(&*text.name);
            let span = clip(&location.span, &text.text);
            snippet = snippet
                .annotation(AnnotationKind::Primary.span(span).label((!detail.is_empty()).then_some(detail)));
            for (location, message) in diagnostic.related.iter().filter(|(location, _)| here(&location.file))
            {
                snippet = snippet.annotation(
                    AnnotationKind::Context.span(clip(&location.span, &text.text)).label(&**message),
                );
            }
            group = group.element(snippet);
        } else {
            group = group.element(Level::NOTE.message(format!("at {location}")));
            if !detail.is_empty() {
                group = group.element(Level::NOTE.message(detail));
            }
        }
    } else if !detail.is_empty() {
        group = group.element(Level::NOTE.message(detail));
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(&**hint));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// Splits a message into title and detail. A single line below ‘While …:’ becomes the title.
fn headline(message: &str) -> (&str, &str) {
    let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
    let (first, rest) = (first.trim_end_matches(':'), rest.trim());
    match rest.contains('\n') {
        false if first.starts_with("While ") && !rest.is_empty() => (rest, first),
        _ => (first, rest),
    }
}

/// Clips a span to the text, at character boundaries.
fn clip(span: &std::ops::Range<usize>, text: &str) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.clamp(start, text.len()));
    start..end
}

/// A diagnostic as JSON.
#[derive(Serialize)]
pub(crate) struct JsonDiagnostic<'a> {
    severity: &'static str,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    message: &'a str,
    hint: Option<&'a str>,
    related: Vec<Related<'a>>,
}

#[derive(Serialize)]
struct Related<'a> {
    file: &'a str,
    line: u32,
    message: &'a str,
}

impl<'a> JsonDiagnostic<'a> {
    /// From a diagnostic.
    pub(crate) fn new(diagnostic: &'a Diagnostic) -> JsonDiagnostic<'a> {
        let location = diagnostic.location.as_ref();
        JsonDiagnostic {
            severity: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            },
            file: location.map(|location| &*location.file),
            line: location.map(|location| location.line),
            column: location.map(|location| location.column),
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
            related: diagnostic
                .related
                .iter()
                .map(|(location, message)| Related { file: &location.file, line: location.line, message })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_is_printed_with_and_without_the_source_line() {
        let text = SourceText { name: "f".into(), text: "Idle -> Disard;".into() };
        let location = click_lang::Location { file: "f".into(), line: 1, column: 9, span: 8..14 };
        let hint = Some("did you mean ‘Discard’?".into());
        let diagnostic = Diagnostic::error(location, "unknown element class ‘Disard’").with_hint(hint);
        let mut printer = DiagnosticPrinter { color: false, left: text.text.len() };
        assert!(printer.render(&diagnostic, &text).contains("= help: did you mean"));
        assert_eq!(
            printer.render(&diagnostic, &text),
            "f:1: unknown element class ‘Disard’\n  help: did you mean ‘Discard’?"
        );
    }
}
