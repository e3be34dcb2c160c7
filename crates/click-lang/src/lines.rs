//! Lines and columns of the bytes of a text.

use crate::steps::pause;
use alloc::vec::Vec;

/// Positions are recorded once per this many bytes. A table of all line starts could be larger than a text that consists of
/// line ends, and a line may have many megabytes.
const BLOCK: usize = 256;

/// Blocks that are read in a step, in some ten microseconds.
const BLOCKS_A_STEP: usize = 256;

/// A line, counted from 0, and a column in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u32,
    /// Characters before, on the same line.
    pub(crate) column: u32,
}

impl Position {
    /// Moves over the byte at `at`.
    fn pass(&mut self, bytes: &[u8], at: usize) {
        if ends_line(bytes, at) {
            *self = Self { line: self.line + 1, column: 0 };
        } else if bytes[at] & 0xc0 != 0x80 {
            self.column += 1;
        }
    }
}

/// Whether none of eight bytes is a control character or a part of a character of several bytes. Most are not, and looking
/// at eight at once keeps long texts from taking long.
fn is_plain(word: u64) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let high = 0x80 * EACH;
    // Without a high bit, a byte below a space borrows from it.
    word & high == 0 && word.wrapping_sub(0x20 * EACH) & high == 0
}

/// The positions of the bytes of a text. Each is found in constant time.
pub(crate) struct Lines {
    /// The position at the start of each block.
    blocks: Vec<Position>,
}

impl Lines {
    /// Reads a text, in steps.
    pub(crate) async fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut blocks = Vec::with_capacity(bytes.len() / BLOCK + 1);
        let mut position = Position::default();
        for block in 0..=bytes.len() / BLOCK {
            blocks.push(position);
            if block % BLOCKS_A_STEP == BLOCKS_A_STEP - 1 {
                pause().await;
            }
            let end = bytes.len().min((block + 1) * BLOCK);
            let mut at = block * BLOCK;
            while at < end {
                let word = bytes.get(at..end).and_then(|rest| rest.first_chunk());
                if word.is_some_and(|word| is_plain(u64::from_le_bytes(*word))) {
                    position.column += 8;
                    at += 8;
                } else {
                    position.pass(bytes, at);
                    at += 1;
                }
            }
        }
        Self { blocks }
    }

    /// The position of an offset in `text`, which is the one that was read.
    pub(crate) fn position(&self, text: &str, offset: usize) -> Position {
        let bytes = text.as_bytes();
        let offset = offset.min(bytes.len());
        let mut position = self.blocks[offset / BLOCK];
        for at in offset / BLOCK * BLOCK..offset {
            position.pass(bytes, at);
        }
        position
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
