//! Escapes texts from boxes for display.

use std::fmt;

/// Maximum characters kept of a box's text; the rest is cut off. A box must not fill the daemon's memory with one line.
const MAX_CHARACTERS: usize = 16 << 10;

/// Escapes a box's text for display: control characters, escape sequences and invalid UTF-8 are written out. Line
/// breaks are kept if `lines` is true.
fn escape(bytes: &[u8], lines: bool) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut escaped = String::with_capacity(text.len().min(MAX_CHARACTERS));
    for (count, letter) in text.chars().enumerate() {
        if count == MAX_CHARACTERS {
            escaped.push('…');
            break;
        }
        match letter {
            '\n' if lines => escaped.push('\n'),
            '\t' => escaped.push('\t'),
            _ if letter.is_control() || changes_direction(letter) => escaped.extend(letter.escape_default()),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Marks that change the direction of text. Unicode does not classify them as control characters.
fn changes_direction(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of a box, escaped for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscapedText(String);

impl EscapedText {
    /// Escapes a text of one or more lines.
    pub fn new(bytes: &[u8]) -> Self {
        Self(text(bytes))
    }
}

impl fmt::Display for EscapedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Escapes one line of a box.
pub fn line(bytes: &[u8]) -> String {
    escape(bytes, false)
}

/// Escapes a text of one or more lines of a box.
pub fn text(bytes: &[u8]) -> String {
    escape(bytes, true).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (bytes, expected) in [
            (&b"10 packets"[..], "10 packets"),
            (b"\x1b[2J\x07a\r\nb\tc", "\\u{1b}[2J\\u{7}a\\r\\nb\tc"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            ("‘fw’ …".as_bytes(), "‘fw’ …"),
            ("a\u{202e}b\u{9b}".as_bytes(), "a\\u{202e}b\\u{9b}"),
        ] {
            assert_eq!(line(bytes), expected);
        }
        assert_eq!(text(b"two\nlines\n"), "two\nlines");
        assert_eq!(line(&vec![b'x'; 1 << 20]).chars().count(), MAX_CHARACTERS + 1);
    }
}
