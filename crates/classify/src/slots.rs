//! Assigns a program's terms to bit positions of its rows.

use alloc::vec::Vec;

use crate::pace::{Pace, sort_few};
use crate::terms::Term;

/// The rule number that means no rule.
pub(crate) const NONE: u32 = u32::MAX;

/// Terms in the order of their bits.
///
/// Terms that test the same fields are adjacent, so that most words of a row are empty. One word summarizes a row by
/// granules of slots; a large group of terms starts at a granule boundary.
pub(crate) struct Slots {
    entries: Vec<Option<(u32, Term)>>,
    count: usize,
    granule: u32,
}

impl Slots {
    /// Assigns slots to the terms, each with its rule; `indexed` are the fields that will have rows.
    pub(crate) async fn new(mut terms: Vec<(u32, Term)>, indexed: &[u16], pace: &Pace) -> Self {
        if terms.len() <= 64 {
            sort_few(&mut terms, |(rule, _), (other, _)| rule < other);
            let entries: Vec<_> = terms.into_iter().map(Some).collect();
            return Self { count: entries.len(), entries, granule: 0 };
        }
        let looks = |term: &Term| {
            indexed.iter().fold(0u32, |mask, number| mask << 1 | u32::from(term.set(*number).is_some()))
        };
        // The fields of a term, its rule, and its place.
        let mut order: Vec<u128> = Vec::with_capacity(terms.len());
        for (place, (rule, term)) in terms.iter().enumerate() {
            pace.spend(2 * indexed.len()).await;
            order.push(u128::from(looks(term)) << 96 | u128::from(*rule) << 64 | place as u128);
        }
        pace.sort(&mut order).await;
        let sizes: Vec<usize> = order.chunk_by(|a, b| a >> 96 == b >> 96).map(<[_]>::len).collect();
        let mut granule = (terms.len() as u64).div_ceil(64).next_power_of_two().trailing_zeros();
        while padded(&sizes, granule) > 64 << granule {
            granule += 1;
        }
        let mut entries = Vec::with_capacity(padded(&sizes, granule));
        let mut order = order.into_iter();
        for size in sizes {
            let start = start(entries.len(), size, granule);
            entries.resize_with(start, || None);
            for key in order.by_ref().take(size) {
                pace.spend(2).await;
                let term = terms.get_mut(key as u64 as usize);
                entries.push(term.map(|(rule, term)| (*rule, core::mem::take(term))));
            }
        }
        Self { count: entries.len(), entries, granule }
    }

    /// Frees the terms.
    pub(crate) async fn clear(&mut self, pace: &Pace) {
        pace.free(core::mem::take(&mut self.entries)).await;
    }

    /// Returns the terms with their rules.
    pub(crate) fn into_terms(self) -> Vec<(u32, Term)> {
        self.entries.into_iter().flatten().collect()
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The rule and term of every slot; `None` for padding slots. Empty after `clear`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<(u32, &Term)>> {
        self.entries.iter().map(|entry| entry.as_ref().map(|(rule, term)| (*rule, term)))
    }

    /// The rule and term in `slot`.
    pub(crate) fn get(&self, slot: usize) -> Option<(u32, &Term)> {
        self.entries.get(slot)?.as_ref().map(|(rule, term)| (*rule, term))
    }

    /// A granule is `1 << granule()` slots; there are at most 64 granules.
    pub(crate) fn granule(&self) -> u32 {
        self.granule
    }
}

/// The first slot of a group of `size` terms when `used` slots are taken.
fn start(used: usize, size: usize, granule: u32) -> usize {
    // Aligning a small group would waste more slots than it saves.
    if 2 * size >= 1 << granule { used.next_multiple_of(1 << granule) } else { used }
}

/// Number of slots that groups of these sizes need.
fn padded(sizes: &[usize], granule: u32) -> usize {
    sizes.iter().fold(0, |used, size| start(used, *size, granule) + size)
}
