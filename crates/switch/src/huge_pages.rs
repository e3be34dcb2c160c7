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

/// Gives whole pages back to the kernel. They are zeros when they are used next.
///
/// # Safety
///
/// The memory is the allocator's, and holds zeros, or nothing that is initialised.
pub(crate) unsafe fn give_back(memory: &Range<*const u8>) {
    let start = memory.start.addr().next_multiple_of(PAGE);
    let end = memory.end.addr() / PAGE * PAGE;
    if start < end {
        let address = memory.start.map_addr(|_| start).cast_mut().cast();
        // SAFETY: the allocator's memory is private and has no file, so its pages become zeros. A reader finds the zeros
        // that are there, by the promise of the caller.
        unsafe { libc::madvise(address, end - start, libc::MADV_DONTNEED) };
    }
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
    fn pages_that_were_given_back_are_zeros() {
        let mut table = vec![7u8; 5 * PAGE];
        let zeros = PAGE / 2..4 * PAGE + 9;
        table[zeros.clone()].fill(0);
        // SAFETY: this part holds zeros.
        unsafe { give_back(&table[zeros.clone()].as_ptr_range()) };
        assert!(table.iter().enumerate().all(|(at, byte)| *byte == if zeros.contains(&at) { 0 } else { 7 }));
        table.fill(8);
        assert!(table.iter().all(|byte| *byte == 8));
    }

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
