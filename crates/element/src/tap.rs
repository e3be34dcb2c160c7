//! A copy of the log, for an element that forwards it.

use alloc::string::String;
use core::cell::RefCell;

/// Maximum number of buffered bytes: bounds the memory that a flood of log lines can claim.
const MAX_BUFFERED: usize = 500_000;

/// Log lines that an element has not yet taken.
#[derive(Debug, Default)]
pub struct LogTap {
    lines: RefCell<String>,
}

impl LogTap {
    /// Adds a line, unless the buffer is full; returns whether the buffer was empty.
    pub fn put(&self, line: &str) -> bool {
        let mut lines = self.lines.borrow_mut();
        let first = lines.is_empty();
        if lines.len() + line.len() < MAX_BUFFERED {
            lines.push_str(line);
            lines.push('\n');
        }
        first
    }

    /// Takes all lines, each with its line end.
    pub fn take(&self) -> String {
        self.lines.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_bounded() {
        let tap = LogTap::default();
        assert_eq!((0..100_000).filter(|_| tap.put("0123456789")).count(), 1);
        assert_eq!(tap.take(), "0123456789\n".repeat(MAX_BUFFERED / 11));
        assert!(tap.put("a") && !tap.put(""));
        assert_eq!(tap.take(), "a\n\n");
        assert_eq!(tap.take(), "");
    }
}
