//! Memory for many rows of bits that grows in blocks: large blocks that move take longer than packets may wait.

use alloc::vec::Vec;

/// Words of a block, unless a row is longer.
const BLOCK: usize = 2048;

/// Rows of equal length.
pub(crate) struct RowStore {
    /// Words of a row.
    words: usize,
    rows_in_block: usize,
    blocks: Vec<Vec<u64>>,
    len: usize,
}

impl RowStore {
    /// A store for rows of `words` words, at least one.
    pub(crate) fn new(words: usize) -> Self {
        Self { words, rows_in_block: (BLOCK / words).max(1), blocks: Vec::new(), len: 0 }
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, row: impl Iterator<Item = u64>) {
        if self.len.is_multiple_of(self.rows_in_block) {
            self.blocks.push(Vec::with_capacity(self.rows_in_block * self.words));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.extend(row.take(self.words));
            self.len += 1;
        }
    }

    /// The row with this number; empty if there is none.
    #[inline]
    pub(crate) fn row(&self, number: usize) -> &[u64] {
        let start = number % self.rows_in_block * self.words;
        let block = self.blocks.get(number / self.rows_in_block);
        block.and_then(|block| block.get(start..start + self.words)).unwrap_or_default()
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the rows.
    pub(crate) fn bytes(&self) -> usize {
        8 * self.words * self.len
    }
}
