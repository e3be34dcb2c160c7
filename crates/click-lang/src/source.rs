//! Locations of bytes in a source text: file, line, column.

use crate::Location;
use crate::lexer::Directive;
use crate::tree::{Span, Tree};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Line numbers are recorded once per this many bytes. A table of all line starts could be larger than a text that
/// consists of line ends.
const BLOCK: usize = 1024;

/// Columns are counted in characters up to here, in bytes beyond: a line may have many megabytes.
const COLUMN_WINDOW: usize = 4096;

/// A source text with the tables to locate spans in it.
pub(crate) struct Source {
    /// The name that it was read under.
    pub(crate) name: Arc<str>,
    text: String,
    /// For each block: the number of line ends before it, and the start of the line that contains the block's start.
    blocks: Vec<(u32, u32)>,
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
    /// The source of a tree; `name` is the file's name.
    pub(crate) fn new(name: &str, tree: &Tree<'_>) -> Self {
        let name: Arc<str> = if name.is_empty() { "config".into() } else { name.into() };
        let text = String::from(tree.text());
        let mut source = Self { name, text, blocks: Vec::new(), marks: Vec::new() };
        source.count_lines();
        for directive in tree.directives() {
            source.mark(directive);
        }
        source
    }

    fn count_lines(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut lines, mut start) = (0_u32, 0_u32);
        for block in 0..=bytes.len() / BLOCK {
            self.blocks.push((lines, start));
            for at in block * BLOCK..bytes.len().min((block + 1) * BLOCK) {
                if ends_line(bytes, at) {
                    lines += 1;
                    start = at as u32 + 1;
                }
            }
        }
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
        let text_line = self.line_and_start(directive.at).0 + 1;
        self.marks.push(Mark { at: directive.at, text_line, line: directive.line, file });
    }

    /// The line of an offset, counted from 0 in the text itself, and the start of that line.
    fn line_and_start(&self, offset: usize) -> (u32, usize) {
        let bytes = self.text.as_bytes();
        let offset = offset.min(bytes.len());
        let (mut lines, start) = self.blocks[offset / BLOCK];
        let mut start = start as usize;
        for at in offset / BLOCK * BLOCK..offset {
            if ends_line(bytes, at) {
                lines += 1;
                start = at + 1;
            }
        }
        (lines, start)
    }

    /// The location of a span.
    pub(crate) fn location(&self, span: Span) -> Location {
        let offset = (span.start as usize).min(self.text.len());
        let (line, start) = self.line_and_start(offset);
        let before = &self.text.as_bytes()[start..offset];
        let characters = before.iter().take(COLUMN_WINDOW).filter(|&&byte| byte & 0xc0 != 0x80).count();
        let column = characters + before.len().saturating_sub(COLUMN_WINDOW) + 1;
        let index = self.marks.partition_point(|mark| mark.at <= offset);
        let (file, line) = match index.checked_sub(1).map(|index| &self.marks[index]) {
            // A position on the directive's own line counts back by one, consistent with the following lines.
            Some(mark) => (&mark.file, mark.line.saturating_add(line).saturating_sub(mark.text_line)),
            None => (&self.name, line + 1),
        };
        Location {
            file: file.clone(),
            line,
            column: column as u32,
            span: offset..(span.end as usize).clamp(offset, self.text.len()),
        }
    }

    /// The text of a span.
    pub(crate) fn slice(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }
}

/// Whether this byte ends a line; `\r\n` ends at its second byte.
fn ends_line(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn places_are_said_as_the_directives_want() {
        let check = |text: &str, what: &str, expected: &str, column: u32| {
            let tree = Tree::parse(text);
            let source = Source::new("f", &tree);
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
    }
}
