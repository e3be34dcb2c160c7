//! Counters of packets by fate.

use core::cell::Cell;

use crate::class_info::ClassInfo;
use crate::fate::{Fate, FateCounts};

/// An element's counters of packets by fate.
#[derive(Debug, Default)]
pub struct FateCounters([Cell<u64>; Fate::COUNTED.len()]);

impl FateCounters {
    /// Counts packets of an element of `class`.
    #[inline]
    pub fn add(&self, class: &ClassInfo, fate: Fate, count: u64) {
        debug_assert!(
            count == 0 || class.fates.contains(&fate),
            "packets of {} are {}: undeclared",
            class.name,
            fate.name()
        );
        if let Some(counter) = self.0.get(fate as usize) {
            counter.set(counter.get() + count);
        }
    }

    /// The counts.
    pub fn counts(&self) -> FateCounts {
        FateCounts { counts: core::array::from_fn(|index| self.0.get(index).map_or(0, Cell::get)) }
    }
}
