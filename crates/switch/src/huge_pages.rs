//! Huge pages for large tables.
//!
//! A table that is read at random places misses the processor's cache of page addresses (TLB) at almost every read, and a
//! prefetch then waits for the search of the page. One huge page has the place of 512 others there.

use flow_table::{CacheCapacity, FlowCache, Seed};
use std::ops::Range;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes of other pages.
const PAGE: usize = 4096;

/// Asks the kernel to use huge pages for memory that has not been used yet, if it is larger than some of them. The kernel
/// may have none, or be configured not to: nothing else changes then.
pub(crate) fn prefer<T>(memory: &Range<*const T>) {
    let start = memory.start.addr().next_multiple_of(PAGE);
    let end = memory.end.addr() / PAGE * PAGE;
    if end.saturating_sub(start) < 2 * HUGE_PAGE {
        return;
    }
    let address = memory.start.map_addr(|_| start).cast_mut().cast();
    // SAFETY: the advice does not change the contents of any memory.
    unsafe { libc::madvise(address, end - start, libc::MADV_HUGEPAGE) };
}

/// A flow cache as the switch has it: on huge pages.
#[must_use]
pub fn flow_cache(capacity: CacheCapacity, seed: Seed) -> FlowCache {
    let cache = FlowCache::new(capacity, seed);
    cache.memory().for_each(|memory| prefer(&memory));
    cache
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_changes_no_table() {
        for size in [0, 1, HUGE_PAGE, 5 * HUGE_PAGE + 17] {
            let mut table = vec![7u8; size];
            prefer(&table.as_ptr_range());
            assert!(table.iter().all(|byte| *byte == 7));
            table.fill(8);
        }
    }
}
