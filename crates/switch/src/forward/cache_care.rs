//! Care for the flow cache while no packets are looked up: it shrinks when its keys were not used for a while.

use super::steering::Steering;
use crate::huge_pages::give_back;
use std::time::Duration;

/// Bytes that are given back to the kernel at once: this takes up to a tenth of a millisecond.
const GIVEN_BACK: usize = 8 << 20;

impl Steering {
    /// Makes a step, if it is time.
    pub(super) fn tidy_cache(&mut self, now: u64) {
        if now < self.tidy_at {
            return;
        }
        let pause = self.cache.tidy(&self.pipeline, Duration::from_nanos(now));
        for memory in self.cache.take_idle_memory(GIVEN_BACK) {
            // SAFETY: the cache says that the memory, which is in its vectors, holds zeros or nothing.
            unsafe { give_back(&memory) };
        }
        self.tidy_at = now.saturating_add(pause.map_or(0, |pause| pause.as_nanos() as u64));
    }

    /// When the next step is due, in nanoseconds; `None` if the cache is small.
    pub(super) fn tidy_deadline(&self) -> Option<u64> {
        self.cache.needs_care().then_some(self.tidy_at)
    }
}
