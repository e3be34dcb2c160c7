//! The out-of-memory score: when memory is short, the kernel kills boxes before their host and their spawner.
//!
//! It runs in the helper: see there for what it must not do.

use crate::process::spawner::step::{Failure, Step};
use std::os::fd::RawFd;

/// The score of boxes, of at most 1,000. A host has 0, unless the operator has set another.
const BOX_SCORE: i32 = 500;

/// Bytes that a score needs, with its sign.
const MAX_DIGITS: usize = 8;

/// The helper's score. A child inherits it when it is created; then the helper takes its own back.
pub(super) struct OomScore {
    /// The kernel's file, which works in every namespace.
    file: RawFd,
    own: [u8; MAX_DIGITS],
    own_length: usize,
    /// Boxes get a higher score than the helper.
    is_raised: bool,
}

impl OomScore {
    /// Reads the helper's score from the open file.
    pub(super) fn new(file: RawFd) -> Self {
        let mut own = [0; MAX_DIGITS];
        // SAFETY: the kernel writes at most as many bytes as there are.
        let read = unsafe { libc::pread(file, own.as_mut_ptr().cast(), MAX_DIGITS, 0) };
        let own_length = usize::try_from(read).unwrap_or(0).min(MAX_DIGITS);
        let is_raised = own.get(..own_length).and_then(parse).is_some_and(|own| own < BOX_SCORE);
        Self { file, own, own_length, is_raised }
    }

    /// Whether the helper can change its score.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let raised = self.raise();
        self.restore();
        raised
    }

    /// Takes the score of boxes.
    pub(super) fn raise(&self) -> Result<(), Failure> {
        if !self.is_raised {
            return if self.own_length > 0 { Ok(()) } else { Err((Step::SetOomScore, libc::ENOENT)) };
        }
        Step::SetOomScore.done(self.write(b"500"))
    }

    /// Takes the helper's own score back.
    pub(super) fn restore(&self) {
        if let Some(own) = self.own.get(..self.own_length).filter(|_| self.is_raised) {
            self.write(own);
        }
    }

    fn write(&self, score: &[u8]) -> i64 {
        // SAFETY: the kernel reads live memory of this length.
        unsafe { libc::pwrite(self.file, score.as_ptr().cast(), score.len(), 0) as i64 }
    }
}

/// A decimal number, up to the end of its line.
fn parse(text: &[u8]) -> Option<i32> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read() {
        let cases: [(&[u8], _); 5] = [
            (b"0\n", Some(0)),
            (b"-1000\n", Some(-1000)),
            (b"1000\n", Some(1000)),
            (b"", None),
            (b"x", None),
        ];
        for (text, score) in cases {
            assert_eq!(parse(text), score);
        }
        assert_eq!(BOX_SCORE.to_string().as_bytes(), b"500");
    }
}
