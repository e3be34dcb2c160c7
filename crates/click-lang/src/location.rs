//! Locations in a source text.

use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

/// A location in a source text, as messages print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file's name, as given by the caller or by a `# LINE "FILE"` directive.
    pub file: Arc<str>,
    /// Line, counted from 1; 0 if there is none, for objects that were not read from a text.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// The byte range in the source text.
    pub span: Range<usize>,
}

impl fmt::Display for Location {
    /// Writes `file:line`. If the file name ends in a colon or a space, no colon is added.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            f.write_str(&self.file)
        } else if self.file.ends_with(|c: char| c == ':' || c.is_ascii_whitespace()) {
            write!(f, "{}{}", self.file, self.line)
        } else {
            write!(f, "{}:{}", self.file, self.line)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn prints_as_file_and_line() {
        let check = |file: &str, line, expected: &str| {
            let location = Location { file: file.into(), line, column: 1, span: 0..0 };
            assert_eq!(location.to_string(), expected);
        };
        check("config", 3, "config:3");
        check("line ", 3, "line 3");
        check("x:", 3, "x:3");
        check("<generated>", 0, "<generated>");
    }
}
