//! Locations of bytes in a source text: file, line, column.

use crate::Location;
use crate::lexer::Directive;
use crate::lines::{Lines, Position};
use crate::tree::{Span, Tree};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A source text with the tables to locate spans in it.
pub(crate) struct Source {
    /// The name that it was read under.
    pub(crate) name: Arc<str>,
    text: String,
    lines: Lines,
    /// Line directives: offset, line in the text, line to report, file to report.
    marks: Vec<Mark>,
}

struct Mark {
    at: usize,
    text_line: u32,
    line: u32,
    file: Arc<str>,
}

impl Source {
    /// The source of a tree, read in steps; `name` is the file's name.
    pub(crate) async fn new(name: &str, tree: &Tree<'_>) -> Self {
        let name: Arc<str> = if name.is_empty() { "config".into() } else { name.into() };
        let text = String::from(tree.text());
        let mut source = Self { name, lines: Lines::new(&text).await, text, marks: Vec::new() };
        for directive in tree.directives() {
            source.mark(directive);
        }
        source
    }

    fn mark(&mut self, directive: Directive) {
        let previous = self.marks.last().map_or(&self.name, |mark| &mark.file);
        let file = match directive.file.as_deref() {
            None => previous.clone(),
            // An empty name restores the file's own name.
            Some("") => self.name.clone(),
            Some(name) if **previous == *name => previous.clone(),
            Some(name) => name.into(),
        };
        let text_line = self.lines.position(&self.text, directive.at).line + 1;
        self.marks.push(Mark { at: directive.at, text_line, line: directive.line, file });
    }

    /// The location of a span.
    pub(crate) fn location(&self, span: Span) -> Location {
        let offset = (span.start as usize).min(self.text.len());
        let Position { line, column } = self.lines.position(&self.text, offset);
        let index = self.marks.partition_point(|mark| mark.at <= offset);
        let (file, line) = match index.checked_sub(1).map(|index| &self.marks[index]) {
            // A position on the directive's own line counts back by one, consistent with the following lines.
            Some(mark) => (&mark.file, mark.line.saturating_add(line).saturating_sub(mark.text_line)),
            None => (&self.name, line + 1),
        };
        Location {
            file: file.clone(),
            line,
            column: column + 1,
            span: offset..(span.end as usize).clamp(offset, self.text.len()),
        }
    }

    /// The text of a span.
    pub(crate) fn slice(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::complete;
    use alloc::string::ToString;

    #[test]
    fn places_are_said_as_the_directives_want() {
        let check = |text: &str, what: &str, expected: &str, column: u32| {
            let tree = Tree::parse(text);
            let source = complete(Source::new("f", &tree));
            let start = text.find(what).expect("is in the text") as u32;
            let location = source.location(Span { start, end: start + 1 });
            assert_eq!((location.to_string().as_str(), location.column), (expected, column), "{text:?}");
        };
        check("a;\nx", "x", "f:2", 1);
        check("a;\r\n\r x", "x", "f:3", 2);
        check("# 100 \"g\"\na\nx", "x", "g:101", 1);
        check("# 100\nx", "x", "f:100", 1);
        check("a(\n# 7 \"g\"\n) ; x", "x", "g:7", 5);
        check("# 1 \"g\"\na;\n# 4 \"\"\nx", "x", "f:4", 1);
        check("ééx", "x", "f:1", 3);
        check(&("\n".repeat(5000) + "x"), "x", "f:5001", 1);
        check(&(" ".repeat(5000) + "x"), "x", "f:1", 5001);
        check(&("é".repeat(5000) + "\n" + &"é".repeat(5000) + "x"), "x", "f:2", 5001);
    }
}
