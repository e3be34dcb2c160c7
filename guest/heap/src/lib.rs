//! The heap of a box: allocates blocks from one region, for one user at a time.
//!
//! Small blocks come in size classes, with a free list per class. Large blocks are whole pages, in a free list that is
//! sorted by address and whose neighbours are merged. Unused memory is taken from the front of the region, so a box
//! touches no more memory than it needs.
//!
//! Absent on purpose: locks, and returning memory to the host.
#![cfg_attr(not(test), no_std)]

use boundary::HeapUse;
use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};

const SMALLEST: usize = 16;
/// Blocks over this size are large.
const LARGEST_SMALL: usize = 32 << 10;
const PAGE: usize = 4096;
/// Up to this size there is a class for every 16 bytes, from there on four for each doubling.
const EVERY_STEP: usize = 128;
/// Classes: 16, 32, ... 128, then 160, 192, 224, 256, 320, ... `LARGEST_SMALL`.
const CLASSES: usize = EVERY_STEP / SMALLEST + 4 * 8;
/// The largest alignment of a small block. A class that serves requests with an alignment up to this one
/// has blocks of a multiple of it, as sizes are rounded up to the alignment first.
const LARGEST_SMALL_ALIGN: usize = 64;

/// A free block. It lies in the block itself.
struct Free {
    next: *mut Free,
    size: usize,
}

/// A heap. It gives nothing before it is given a region.
pub struct Heap {
    /// First byte that was never used.
    front: usize,
    end: usize,
    small: [*mut Free; CLASSES],
    /// Large free blocks by address.
    large: *mut Free,
    usage: HeapUse,
    exhausted: bool,
}

/// The class of a small size, and the bytes of its blocks.
fn class(size: usize) -> (usize, usize) {
    if size <= EVERY_STEP {
        let steps = size.div_ceil(SMALLEST).max(1);
        return (steps - 1, steps * SMALLEST);
    }
    let doubling = (size - 1).ilog2() as usize;
    let base = 1 << doubling;
    let step = base / 4;
    let quarter = (size - base).div_ceil(step);
    let first = EVERY_STEP / SMALLEST + 4 * (doubling - EVERY_STEP.ilog2() as usize);
    (first + quarter - 1, base + quarter * step)
}

/// The size that a layout is served with, and whether the block is a small one.
fn demand(layout: Layout) -> (usize, bool) {
    let wanted = layout.size().next_multiple_of(layout.align()).max(SMALLEST);
    match wanted <= LARGEST_SMALL && layout.align() <= LARGEST_SMALL_ALIGN {
        true => (wanted, true),
        false => (wanted.next_multiple_of(PAGE), false),
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

impl Heap {
    /// A heap without memory.
    pub const fn new() -> Self {
        Self {
            front: 0,
            end: 0,
            small: [null_mut(); CLASSES],
            large: null_mut(),
            usage: HeapUse { used: 0, peak: 0, size: 0 },
            exhausted: false,
        }
    }

    /// Gives the heap its memory, once.
    ///
    /// # Safety
    ///
    /// The region is mapped, zero, and used by nothing else as long as the heap is.
    pub unsafe fn set(&mut self, address: usize, size: usize) {
        self.front = address.next_multiple_of(PAGE);
        self.end = address.saturating_add(size);
        self.usage.size = size;
    }

    /// How much is used.
    pub fn usage(&self) -> HeapUse {
        self.usage
    }

    /// Whether the last allocation failed.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// A block for a layout; null when there is none.
    pub fn take(&mut self, layout: Layout) -> *mut u8 {
        let block = match demand(layout) {
            (wanted, true) => self.take_small(wanted),
            (wanted, false) => self.take_large(wanted, layout.align()),
        };
        self.exhausted = block.is_null();
        self.usage.peak = self.usage.peak.max(self.usage.used);
        block
    }

    /// As [`take`](Self::take), with all bytes zero. What was never used is zero already, and is not touched.
    pub fn take_zeroed(&mut self, layout: Layout) -> *mut u8 {
        let unused = self.front;
        let block = self.take(layout);
        if !block.is_null() && (block as usize) < unused {
            // SAFETY: the block is as long as its layout, and not handed out yet.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    /// Gives a block back.
    ///
    /// # Safety
    ///
    /// The block comes from this heap, by this layout, and isn't used any more.
    pub unsafe fn give(&mut self, block: NonNull<u8>, layout: Layout) {
        let (wanted, small) = demand(layout);
        let block = block.cast::<Free>().as_ptr();
        if small {
            let (class, size) = class(wanted);
            if let Some(list) = self.small.get_mut(class) {
                // SAFETY: the block is the caller's to give back, and at least 16 bytes.
                unsafe { block.write(Free { next: *list, size }) };
                *list = block;
                self.usage.used -= size;
            }
        } else {
            self.usage.used -= wanted;
            self.give_large(block, wanted);
        }
    }

    /// Changes a block's size where it lies, if that can be; whether it was done.
    ///
    /// # Safety
    ///
    /// As for [`give`](Self::give); when it was done, the block is of the new size from now on.
    pub unsafe fn resize(&mut self, block: NonNull<u8>, old: Layout, size: usize) -> bool {
        let Ok(new) = Layout::from_size_align(size, old.align()) else { return false };
        match (demand(old), demand(new)) {
            ((had, true), (wants, true)) => class(had) == class(wants),
            ((had, false), (wants, false)) if had == wants => true,
            ((had, false), (wants, false)) if wants > had => self.grow(block, had, wants),
            _ => false,
        }
    }

    /// Grows a large block in place when it is the last that was cut.
    fn grow(&mut self, block: NonNull<u8>, had: usize, wants: usize) -> bool {
        if block.as_ptr() as usize + had != self.front || wants - had > self.end - self.front {
            return false;
        }
        self.front += wants - had;
        self.usage.used += wants - had;
        self.usage.peak = self.usage.peak.max(self.usage.used);
        true
    }

    fn take_small(&mut self, wanted: usize) -> *mut u8 {
        let (class, size) = class(wanted);
        let Some(list) = self.small.get_mut(class) else { return null_mut() };
        let first = *list;
        let block = if first.is_null() {
            // Aligned to the largest power of two that divides the size, so that it serves any request of
            // its class.
            self.cut(size, (size & size.wrapping_neg()).min(LARGEST_SMALL_ALIGN))
        } else {
            // SAFETY: blocks in a list are free and hold a Free.
            *list = unsafe { (*first).next };
            first.cast()
        };
        if !block.is_null() {
            self.usage.used += size;
        }
        block
    }

    fn take_large(&mut self, size: usize, align: usize) -> *mut u8 {
        let mut link: *mut *mut Free = &mut self.large;
        // SAFETY: the list's blocks are free and hold a Free; `link` points to the head or into one of
        // them.
        unsafe {
            while !(*link).is_null() {
                let block = *link;
                if (*block).size >= size && (block as usize).is_multiple_of(align) {
                    let (next, rest) = ((*block).next, (*block).size - size);
                    *link = next;
                    if rest > 0 {
                        let behind = block.byte_add(size);
                        behind.write(Free { next, size: rest });
                        *link = behind;
                    }
                    self.usage.used += size;
                    return block.cast();
                }
                link = &mut (*block).next;
            }
        }
        let block = self.cut(size, align.max(PAGE));
        if !block.is_null() {
            self.usage.used += size;
        }
        block
    }

    /// Cuts from what was never used.
    fn cut(&mut self, size: usize, align: usize) -> *mut u8 {
        let start = self.front.next_multiple_of(align);
        match start.checked_add(size) {
            Some(end) if end <= self.end => {
                self.front = end;
                start as *mut u8
            }
            _ => null_mut(),
        }
    }

    fn give_large(&mut self, block: *mut Free, size: usize) {
        let mut before: *mut Free = null_mut();
        let mut next = self.large;
        // SAFETY: the list's blocks are free and hold a Free; the block given back is the caller's and
        // holds one.
        unsafe {
            while !next.is_null() && next < block {
                before = next;
                next = (*next).next;
            }
            block.write(Free { next, size });
            if !next.is_null() && block.byte_add(size) == next {
                (*block).size += (*next).size;
                (*block).next = (*next).next;
            }
            if before.is_null() {
                self.large = block;
            } else if before.byte_add((*before).size) == block {
                (*before).size += (*block).size;
                (*before).next = (*block).next;
            } else {
                (*before).next = block;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap over fresh memory, which lives as long as `body`.
    fn with_heap(size: usize, body: impl FnOnce(&mut Heap)) {
        let mut memory = vec![0u64; size / 8];
        let mut heap = Heap::new();
        // SAFETY: the vector outlives the heap's use and is not touched meanwhile.
        unsafe { heap.set(memory.as_mut_ptr() as usize, size) };
        body(&mut heap);
    }

    #[test]
    fn classes_fit_and_are_counted() {
        let mut last = 0;
        for size in 1..=LARGEST_SMALL {
            let (class, block) = class(size);
            assert!(block >= size && block <= size + size / 4 + 16 && class < CLASSES);
            assert!(class == last || class == last + 1);
            last = class;
        }
        assert_eq!((class(LARGEST_SMALL), last), ((CLASSES - 1, LARGEST_SMALL), CLASSES - 1));
    }

    /// Thousands of blocks of all sizes and alignments, taken, filled, resized and given back in random
    /// order.
    #[test]
    fn blocks_are_apart_aligned_and_come_back() {
        with_heap(64 << 20, |heap| {
            let mut random = random::Random::new(1);
            let mut next = move || random.next() as usize;
            let mut blocks: Vec<(NonNull<u8>, Layout, u8)> = Vec::new();
            let check = |block: &(NonNull<u8>, Layout, u8)| {
                // SAFETY: the block is live and as long as its layout.
                let bytes = unsafe { core::slice::from_raw_parts(block.0.as_ptr(), block.1.size()) };
                assert!(bytes.iter().all(|byte| *byte == block.2), "{:?} was overwritten", block.1);
            };
            for round in 0..30_000 {
                if blocks.len() > 200 || (next() % 3 == 0 && !blocks.is_empty()) {
                    let block = blocks.swap_remove(next() % blocks.len());
                    check(&block);
                    // SAFETY: the block came from this heap by this layout.
                    unsafe { heap.give(block.0, block.1) };
                    continue;
                }
                let size = match next() % 8 {
                    0 => next() % 200_000,
                    1 | 2 => next() % 40_000,
                    _ => next() % 600,
                };
                let layout = Layout::from_size_align(size.max(1), 1 << (next() % 13)).unwrap();
                let block = NonNull::new(heap.take(layout)).expect("there is room");
                assert!((block.as_ptr() as usize).is_multiple_of(layout.align()), "{layout:?}");
                let mut block = (block, layout, round as u8);
                // SAFETY: the block is live and as long as its layout; a resized one as long as its new
                // size.
                unsafe {
                    block.0.write_bytes(block.2, layout.size());
                    let wished = next() % (2 * layout.size()) + 1;
                    if heap.resize(block.0, layout, wished) {
                        block.1 = Layout::from_size_align(wished, layout.align()).unwrap();
                        block.0.write_bytes(block.2, wished);
                    }
                }
                blocks.push(block);
            }
            for block in blocks.drain(..) {
                check(&block);
                // SAFETY: as above.
                unsafe { heap.give(block.0, block.1) };
            }
            assert_eq!(heap.usage().used, 0);
            assert!(heap.usage().peak > 1 << 20 && !heap.is_exhausted());
        });
    }

    #[test]
    fn zeroed_blocks_are_zero_and_unused_memory_is_not_touched() {
        with_heap(1 << 20, |heap| {
            let zeroed = |heap: &mut Heap, layout: Layout| {
                let block = NonNull::new(heap.take_zeroed(layout)).unwrap();
                // SAFETY: the block is live and as long as its layout.
                let bytes = unsafe { core::slice::from_raw_parts(block.as_ptr(), layout.size()) };
                assert!(bytes.iter().all(|byte| *byte == 0), "{layout:?}");
                block
            };
            for size in [1, 16, 100, 5_000, 40_000, 100_000] {
                let layout = Layout::from_size_align(size, 16).unwrap();
                let block = NonNull::new(heap.take(layout)).unwrap();
                // SAFETY: the blocks are live, as long as their layout, and given back as they were taken.
                unsafe {
                    block.write_bytes(7, size);
                    heap.give(block, layout);
                    let front = heap.front;
                    let again = zeroed(heap, layout);
                    assert_eq!(heap.front, front, "{size} bytes were used before");
                    heap.give(again, layout);
                }
            }
            // What is not touched keeps what a test has left there: a box's memory is zero.
            let front = heap.front.next_multiple_of(PAGE);
            // SAFETY: the byte lies in the heap's region, and is not in use.
            unsafe { (front as *mut u8).add(5_000).write(9) };
            let block = heap.take_zeroed(Layout::from_size_align(200_000, 4096).unwrap());
            // SAFETY: the block is live and longer.
            assert_eq!((block as usize, unsafe { block.add(5_000).read() }), (front, 9));
        });
    }

    #[test]
    fn a_heap_that_is_used_up_says_so_and_goes_on() {
        with_heap(1 << 20, |heap| {
            let layout = Layout::from_size_align(100_000, 8).unwrap();
            let mut blocks = Vec::new();
            while let Some(block) = NonNull::new(heap.take(layout)) {
                blocks.push(block);
            }
            assert!(heap.is_exhausted() && blocks.len() == 10);
            for block in blocks {
                // SAFETY: the block came from this heap by this layout.
                unsafe { heap.give(block, layout) };
            }
            let whole = Layout::from_size_align(1_000_000, 8).unwrap();
            assert!(!heap.take(whole).is_null(), "neighbours were joined");
            assert!(!heap.is_exhausted());
        });
        assert!(Heap::new().take(Layout::new::<u64>()).is_null());
    }
}
