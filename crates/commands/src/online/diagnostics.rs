//! Prints a daemon's diagnostics in the format of `clickbox check`.

use api::{Diagnostic, Severity};
use click_lang::Location;

use super::escape;
use crate::color;
use crate::diagnostic_printer;
use crate::source::SourceText;

/// Prints diagnostics on standard error, with source lines from the available texts.
pub(crate) fn print(diagnostics: &[Diagnostic], texts: &[SourceText]) {
    let mut printer = diagnostic_printer::DiagnosticPrinter::new(color::is_enabled(&std::io::stderr()));
    let no_text = SourceText { name: String::new(), text: String::new() };
    for diagnostic in diagnostics {
        let file = diagnostic.file.as_deref().unwrap_or_default();
        let text = texts.iter().find(|text| text.name == file).unwrap_or(&no_text);
        eprintln!("{}\n", printer.render(&local(diagnostic, text), text));
    }
}

/// Converts a diagnostic to the language's own type.
fn local(diagnostic: &Diagnostic, text: &SourceText) -> click_lang::Diagnostic {
    let severity = match diagnostic.severity {
        Severity::Error => click_lang::Severity::Error,
        Severity::Warning => click_lang::Severity::Warning,
        Severity::Note => click_lang::Severity::Note,
    };
    let locate = |file: &str, line: Option<u32>, column: Option<u32>| Location {
        file: file.into(),
        line: line.unwrap_or(0),
        column: column.unwrap_or(1),
        span: span(&text.text, line.unwrap_or(0), column.unwrap_or(1)),
    };
    let location = diagnostic.file.as_deref().map(|file| locate(file, diagnostic.line, diagnostic.column));
    let related = diagnostic.related.iter();
    click_lang::Diagnostic {
        severity,
        message: escape::lines(&diagnostic.message),
        location,
        related: related
            .map(|other| (locate(&other.file, Some(other.line), None), escape::line(&other.message)))
            .collect(),
        hint: diagnostic.hint.as_deref().map(escape::line),
        bare: false,
        printed: None,
        data_location: None,
        is_consequence: false,
        parts: Vec::new(),
    }
}

/// The byte range of the word at a line and a column, both counted from 1.
fn span(text: &str, line: u32, column: u32) -> std::ops::Range<usize> {
    let above = text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum::<usize>();
    let rest = text.get(above..).unwrap_or_default();
    let before: usize = rest.chars().take(column.saturating_sub(1) as usize).map(char::len_utf8).sum();
    let start = (above + before).min(text.len());
    let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '@' | '/');
    let word: usize = text
        .get(start..)
        .unwrap_or_default()
        .chars()
        .take_while(|letter| is_word(*letter))
        .map(char::len_utf8)
        .sum();
    start..start + word.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_maps_to_the_word_there() {
        let text = "a :: Idle;\nb :: Cuonter -> Discard;\n";
        assert_eq!(text.get(span(text, 2, 6)), Some("Cuonter"));
        assert_eq!(text.get(span(text, 1, 1)), Some("a"));
        for (line, column) in [(0, 0), (9, 9), (2, 999), (u32::MAX, u32::MAX)] {
            assert!(span(text, line, column).start <= text.len());
        }
    }
}
