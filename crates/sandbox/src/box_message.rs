//! Texts that a box sends for people to read.

use boundary::limits::MAX_BOX_MESSAGE;
use std::fmt;

/// A text that a box gives as the reason of an error. The box chose every character: nothing may be decided by it.
///
/// It has at most [`MAX_BOX_MESSAGE`] bytes, longer texts are cut. `Display` escapes control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxMessage(Box<str>);

impl BoxMessage {
    /// The beginning of a box's text. Invalid UTF-8 is replaced.
    pub(crate) fn new(text: &[u8]) -> Self {
        let kept = text.get(..MAX_BOX_MESSAGE).unwrap_or(text);
        Self(String::from_utf8_lossy(kept).into())
    }

    /// The text after words of the host, which say what it is about.
    #[must_use]
    pub fn introduced(&self, words: &str) -> Self {
        Self(format!("{words}: {}", self.0).into())
    }

    /// The text as the box sent it. It must be escaped before it is displayed.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoxMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_debug().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_and_escaped() {
        let message = BoxMessage::new(b"no element \x1b[31mx\xff\n");
        assert_eq!(message.as_str(), "no element \u{1b}[31mx\u{fffd}\n");
        assert_eq!(message.to_string(), "no element \\u{1b}[31mx\u{fffd}\\n");
        assert_eq!(BoxMessage::new(&vec![b'a'; MAX_BOX_MESSAGE]).as_str().len(), MAX_BOX_MESSAGE);
        let cut = BoxMessage::new("é".repeat(MAX_BOX_MESSAGE).as_bytes());
        assert_eq!(cut.as_str().chars().count(), MAX_BOX_MESSAGE / 2);
        assert_eq!(BoxMessage::new(b"full\n").introduced("core 1").to_string(), "core 1: full\\n");
    }
}
