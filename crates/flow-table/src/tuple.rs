//! Tuples: the entries of a table that have the same mask.
//!
//! An entry is found by one hash lookup of the masked key (tuple space search; Srinivasan, Suri, Varghese, SIGCOMM 1999).

use std::collections::BTreeMap;

use flow::Index;

use crate::layout::Words;

/// The entries with one mask.
pub(crate) struct Tuple {
    /// The words of the mask that are not zero.
    mask: Box<[(u8, u64)]>,
    /// Finds entries by the hash of their masked key. Of entries with the same match it holds the one of highest
    /// priority, which leads to the others.
    pub(crate) index: Index,
    /// Number of entries of each priority.
    priorities: BTreeMap<u16, u32>,
    /// The highest priority; `None` without entries.
    pub(crate) max_priority: Option<u16>,
    /// The number of the latest addition.
    pub(crate) added: u32,
}

impl Tuple {
    pub(crate) fn new(mask: &Words) -> Self {
        let words = mask.iter().enumerate().filter(|(_, word)| **word != 0);
        Self {
            mask: words.map(|(at, word)| (at as u8, *word)).collect(),
            index: Index::new(),
            priorities: BTreeMap::new(),
            max_priority: None,
            added: 0,
        }
    }

    /// Counts an entry of this priority.
    pub(crate) fn enter(&mut self, priority: u16) {
        *self.priorities.entry(priority).or_default() += 1;
        self.max_priority = self.max_priority.max(Some(priority));
    }

    /// No longer counts an entry of this priority.
    pub(crate) fn leave(&mut self, priority: u16) {
        if let Some(count) = self.priorities.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&priority);
                self.max_priority = self.priorities.last_key_value().map(|(priority, _)| *priority);
            }
        }
    }

    pub(crate) fn has_priority(&self, priority: u16) -> bool {
        self.priorities.contains_key(&priority)
    }

    /// The hash of a key, or of a match's value, under the mask.
    #[inline]
    pub(crate) fn hash(&self, words: &Words, seed: u64) -> u64 {
        let mut hash = seed;
        for &(at, mask) in &self.mask {
            let word = words.get(usize::from(at)).copied().unwrap_or(0) & mask;
            hash = fold(hash ^ word, 0x9e37_79b9_7f4a_7c15 ^ seed.rotate_left(32)) ^ word;
        }
        fold(hash ^ 0xa076_1d64_78bd_642f, seed | 1)
    }

    /// Whether a key equals the value of a match with this mask.
    #[inline]
    pub(crate) fn matches(&self, key: &Words, value: &Words) -> bool {
        self.mask.iter().all(|&(at, mask)| {
            let at = usize::from(at);
            key.get(at).zip(value.get(at)).is_some_and(|(key, value)| key & mask == *value)
        })
    }
}

/// The 128-bit product, with its halves folded into one word.
#[inline(always)]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
