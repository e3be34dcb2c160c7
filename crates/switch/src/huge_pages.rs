//! Huge pages for large tables.
//!
//! A table that is read at random places misses the processor's cache of page addresses (TLB) at almost every read, and a
//! prefetch then waits for the search of the page. One huge page has the place of 512 others there.

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes of other pages.
const PAGE: usize = 4096;

/// Asks the kernel to use huge pages for a table that has not been used yet, if it is larger than some of them. The kernel
/// may have none, or be configured not to: nothing else changes then.
pub(crate) fn prefer<T>(table: &[T]) {
    let start = table.as_ptr().addr().next_multiple_of(PAGE);
    let end = (table.as_ptr().addr() + size_of_val(table)) / PAGE * PAGE;
    if end.saturating_sub(start) < 2 * HUGE_PAGE {
        return;
    }
    let address = table.as_ptr().map_addr(|_| start).cast_mut().cast();
    // SAFETY: the range is part of a live allocation, and the advice does not change its contents.
    unsafe { libc::madvise(address, end - start, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_changes_no_table() {
        for size in [0, 1, HUGE_PAGE, 5 * HUGE_PAGE + 17] {
            let mut table = vec![7u8; size];
            prefer(&table);
            assert!(table.iter().all(|byte| *byte == 7));
            table.fill(8);
        }
    }
}
