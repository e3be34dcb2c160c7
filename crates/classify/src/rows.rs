//! Bit rows: for each class of a field, the set of terms that accept it, stored without empty words.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::pace::{FREED, Pace};

/// Maximum words of one field's rows (8 MiB). Rows of overlapping rules can grow with the square of the number of
/// rules. A field beyond the limit is not indexed, and its terms evaluate their expressions.
const MAX_WORDS: usize = 1 << 20;

/// Words of a block of a builder. Rows that grow in blocks need not be moved, which would take longer than packets may wait.
const BLOCK: usize = 2048;

/// For each class of a field, the set of slots whose terms test the field and accept the class.
///
/// A row is stored as a bitmap of its non-empty words (`present`) and those words.
pub(crate) struct Rows {
    /// Number of bitmap words per row; each bit covers 64 slots.
    stride: usize,
    present: Vec<u64>,
    /// Index into `words` of the first word for each bitmap word.
    starts: Vec<u32>,
    words: Vec<u64>,
    /// Slots whose terms don't test the field.
    free: Vec<u64>,
}

impl Rows {
    /// Word `word` of the row of `class`, including the free slots.
    #[inline]
    pub(crate) fn word(&self, class: u32, word: usize) -> u64 {
        let row = class as usize * self.stride + word / 64;
        let free = self.free.get(word).copied().unwrap_or(0);
        let present = self.present.get(row).copied().unwrap_or(0);
        let bit = word % 64;
        if present >> bit & 1 == 0 {
            return free;
        }
        let before = (present & ((1 << bit) - 1)).count_ones();
        let start = self.starts.get(row).copied().unwrap_or(0);
        free | self.words.get((start + before) as usize).copied().unwrap_or(0)
    }

    /// Word `word` of the slots whose terms don't test the field.
    pub(crate) fn free(&self, word: usize) -> u64 {
        self.free.get(word).copied().unwrap_or(0)
    }

    /// For each class, a bitmap of the granules of `1 << granule` slots in which its row is non-zero.
    pub(crate) async fn tops(&self, granule: u32, pace: &Pace) -> Vec<u64> {
        let words = |present: &[u64]| {
            let set = present.iter().zip(0u32..);
            set.flat_map(|(bits, index)| ones(*bits).map(move |bit| 64 * index + bit)).collect::<Vec<u32>>()
        };
        let free =
            self.free.iter().zip(0..).fold(0, |top, (bits, word)| top | granules(*bits, word, granule));
        let top = |class: usize| {
            let row = class * self.stride;
            let start = self.starts[row] as usize;
            let found = words(&self.present[row..row + self.stride]).into_iter().zip(&self.words[start..]);
            found.fold(free, |top, (word, bits)| top | granules(*bits, word, granule))
        };
        let mut tops = Vec::with_capacity(self.len());
        for class in 0..self.len() {
            pace.spend(self.free.len() / 4 + 4).await;
            tops.push(top(class));
        }
        tops
    }

    /// Number of classes.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() / self.stride
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        8 * (self.present.len() + self.words.len() + self.free.len()) + 4 * self.starts.len()
    }
}

/// Collects the rows of one field during a sweep over its coordinates.
pub(crate) struct RowsBuilder {
    rows: Rows,
    /// The words of the rows, in blocks, and how many there are.
    blocks: Vec<Vec<u64>>,
    count: usize,
    /// The set at the current coordinate.
    active: Vec<u64>,
    active_present: Vec<u64>,
    /// A sum over the set, used to find equal sets.
    signature: u64,
    known: BTreeMap<u64, Vec<u32>>,
}

impl RowsBuilder {
    /// A builder for `slots` slots.
    pub(crate) fn new(slots: usize) -> Self {
        let words = slots.div_ceil(64).max(1);
        let stride = words.div_ceil(64);
        Self {
            rows: Rows {
                stride,
                present: Vec::new(),
                starts: Vec::new(),
                words: Vec::new(),
                free: vec![0; words],
            },
            blocks: Vec::new(),
            count: 0,
            active: vec![0; words],
            active_present: vec![0; stride],
            signature: 0,
            known: BTreeMap::new(),
        }
    }

    /// Notes that the term of `slot` ignores the field.
    pub(crate) fn set_free(&mut self, slot: usize) {
        self.rows.free[slot / 64] |= 1 << (slot % 64);
    }

    /// Word number `at` of the rows.
    fn stored(&self, at: usize) -> u64 {
        self.blocks[at / BLOCK][at % BLOCK]
    }

    /// Adds `slot` to the current set, or removes it.
    pub(crate) fn toggle(&mut self, slot: usize) {
        let word = slot / 64;
        self.active[word] ^= 1 << (slot % 64);
        let bit = 1 << (word % 64);
        if self.active[word] == 0 {
            self.active_present[word / 64] &= !bit;
        } else {
            self.active_present[word / 64] |= bit;
        }
        self.signature ^= scatter(slot as u64);
    }

    /// The class of the current set, created if necessary; `None` if the rows get too large.
    pub(crate) fn class(&mut self) -> Option<u32> {
        let candidates = self.known.get(&self.signature);
        if let Some(class) = candidates.and_then(|list| list.iter().find(|class| self.equals(**class))) {
            return Some(*class);
        }
        let class = u32::try_from(self.rows.len()).ok()?;
        for (index, &present) in self.active_present.iter().enumerate() {
            self.rows.present.push(present);
            self.rows.starts.push(self.count as u32);
            let mut rest = present;
            while rest != 0 {
                if self.count.is_multiple_of(BLOCK) {
                    self.blocks.push(Vec::with_capacity(BLOCK));
                }
                if let Some(block) = self.blocks.last_mut() {
                    block.push(self.active[64 * index + rest.trailing_zeros() as usize]);
                    self.count += 1;
                }
                rest &= rest - 1;
            }
        }
        if self.count + self.rows.present.len() > MAX_WORDS {
            return None;
        }
        self.known.entry(self.signature).or_default().push(class);
        Some(class)
    }

    /// Whether the row of `class` equals the current set.
    fn equals(&self, class: u32) -> bool {
        let start = class as usize * self.rows.stride;
        self.active_present.iter().enumerate().all(|(index, &present)| {
            let mut at = self.rows.starts[start + index] as usize;
            let mut rest = present;
            if self.rows.present[start + index] != present {
                return false;
            }
            while rest != 0 {
                if self.stored(at) != self.active[64 * index + rest.trailing_zeros() as usize] {
                    return false;
                }
                at += 1;
                rest &= rest - 1;
            }
            true
        })
    }

    /// The finished rows.
    pub(crate) async fn finish(mut self, pace: &Pace) -> Rows {
        self.rows.words.reserve_exact(self.count);
        for block in self.blocks {
            pace.spend(BLOCK / 8).await;
            self.rows.words.extend(block);
        }
        for _ in self.known {
            pace.spend(FREED).await;
        }
        self.rows
    }

    /// The work of finding a class.
    pub(crate) fn work(&self) -> usize {
        self.active.len() / 2 + 10
    }
}

/// The numbers of the set bits.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(bit)
    })
}

/// The granules of `1 << granule` slots that contain bits of row word `word`.
fn granules(bits: u64, word: u32, granule: u32) -> u64 {
    if granule >= 6 {
        return u64::from(bits != 0) << (word >> (granule - 6) & 63);
    }
    ones(bits).fold(0, |top, bit| top | 1 << ((64 * word + bit) >> granule & 63))
}

/// Spreads a number over 64 bits, as a hash.
pub(crate) fn scatter(number: u64) -> u64 {
    let mixed = (number.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 29)
}
