//! Decides batches by tables: each field is looked up once, and the classes of the fields are combined by tables.
//!
//! This is recursive flow classification (Gupta and McKeown, "Packet classification on multiple fields", SIGCOMM 1999).
//! The steps are the same for every packet and every value, so that the processor predicts all branches, and works on
//! the cache misses of many packets at a time.

use alloc::vec::Vec;

use crate::flat::Flat;
use crate::headers::Base;
use crate::index::Index;
use crate::words::{Column, Words};

/// Maps a field of every packet to its class.
pub(crate) struct Lookup {
    /// The word that contains the field.
    pub(crate) word: (Base, u16),
    /// The number of the word, which `number_words` sets.
    pub(crate) column: u16,
    pub(crate) shift: u8,
    pub(crate) mask: u32,
    pub(crate) flat: Flat,
}

/// Combines the classes of two columns into a column of classes.
pub(crate) struct Merge {
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// Number of classes of the right column.
    pub(crate) width: u32,
    /// The class of each combination.
    pub(crate) cells: Vec<u16>,
}

/// Combines the classes of the last two columns into outputs. With a `width` of 0 there is only the right one.
pub(crate) struct Verdicts {
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// Number of classes of the right column.
    pub(crate) width: u32,
    /// The number of the output of each combination.
    pub(crate) cells: Vec<u8>,
    /// The outputs, by number.
    pub(crate) outputs: Vec<u32>,
}

/// A rule set as tables.
pub(crate) struct Tables {
    /// The looked-up fields: the first columns.
    pub(crate) lookups: Vec<Lookup>,
    /// The merges: the columns after those of the fields.
    pub(crate) merges: Vec<Merge>,
    pub(crate) verdicts: Verdicts,
}

impl Lookup {
    pub(crate) fn new(index: &Index, flat: Flat) -> Self {
        let word = (index.field.base, index.field.offset / 4 * 4);
        Self { word, column: 0, shift: index.shift, mask: index.mask, flat }
    }

    /// The classes of the first `count` words of a column; others may change too.
    #[inline]
    pub(crate) fn classes(&self, words: &Column, classes: &mut Column, count: usize) {
        self.flat.classes(words, (self.shift, self.mask), classes, count);
    }
}

impl Tables {
    /// The words that contain the fields.
    pub(crate) fn words(&self) -> impl Iterator<Item = (Base, u16)> {
        self.lookups.iter().map(|lookup| lookup.word)
    }

    /// Sets the numbers of the words.
    pub(crate) fn number_words(&mut self, words: &Words) {
        for lookup in &mut self.lookups {
            lookup.column = words.number(lookup.word);
        }
    }

    /// Number of columns of classes.
    pub(crate) fn columns(&self) -> usize {
        self.lookups.len() + self.merges.len()
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.lookups.iter().map(|lookup| lookup.flat.bytes()).sum::<usize>()
            + self.merges.iter().map(|merge| size_of_val(&merge.cells[..])).sum::<usize>()
            + self.verdicts.cells.len()
    }
}

impl Merge {
    /// The classes of pairs.
    #[inline]
    pub(crate) fn classes(&self, into: &mut [u32], left: &[u32], right: &[u32]) {
        for ((into, left), right) in into.iter_mut().zip(left).zip(right) {
            let at = left.wrapping_mul(self.width).wrapping_add(*right) as usize;
            *into = self.cells.get(at).copied().unwrap_or(0).into();
        }
    }
}

impl Verdicts {
    /// The outputs of pairs.
    #[inline]
    pub(crate) fn outputs(&self, into: &mut [u32], left: &[u32], right: &[u32]) {
        let mut table = [crate::DROP; 256];
        for (entry, output) in table.iter_mut().zip(&self.outputs) {
            *entry = *output;
        }
        for ((into, left), right) in into.iter_mut().zip(left).zip(right) {
            let at = left.wrapping_mul(self.width).wrapping_add(*right) as usize;
            *into = table[usize::from(self.cells.get(at).copied().unwrap_or(0))];
        }
    }
}
