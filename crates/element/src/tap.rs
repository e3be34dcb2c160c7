//! What is written to the log, for an element that passes it on.

use alloc::string::String;
use core::cell::RefCell;

/// Bytes that are kept for an element that doesn't take them: bounds what a flood of lines can claim.
const MOST: usize = 500_000;

/// Lines of the log that an element has not yet taken.
#[derive(Debug, Default)]
pub struct LogTap {
    lines: RefCell<String>,
}

impl LogTap {
    /// Adds a line, unless there are too many already; whether there was none before.
    pub fn put(&self, line: &str) -> bool {
        let mut lines = self.lines.borrow_mut();
        let first = lines.is_empty();
        if lines.len() + line.len() < MOST {
            lines.push_str(line);
            lines.push('\n');
        }
        first
    }

    /// Takes all lines, each with its end.
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
        assert!((MOST - 11..=MOST).contains(&tap.take().len()));
        assert!(tap.put("a") && !tap.put(""));
        assert_eq!(tap.take(), "a\n\n");
        assert_eq!(tap.take(), "");
    }
}
