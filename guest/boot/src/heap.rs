//! The heap: one region, given at the start.
//!
//! Small blocks come in classes, four to each doubling, and go back to a list of their class. Large ones
//! are whole pages, kept in a list by address and joined with their neighbours. What was never used yet
//! is cut from the front of the region, so a box touches no more memory than it needs.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};

const SMALLEST: usize = 16;
/// Blocks over this size are large.
const LARGEST_SMALL: usize = 32 << 10;
const PAGE: usize = 4096;
/// Classes: 16, then four per doubling up to `LARGEST_SMALL`.
const CLASSES: usize = 1 + 4 * 11;

/// How much of the heap is used, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapUse {
    /// In use now, rounded up to whole blocks.
    pub used: usize,
    /// Most ever in use.
    pub peak: usize,
    /// The whole heap.
    pub size: usize,
}

/// A free block. It lies in the block itself.
struct Free {
    next: *mut Free,
    size: usize,
}

struct Heap {
    /// First byte that was never used.
    front: usize,
    end: usize,
    small: [*mut Free; CLASSES],
    /// Large free blocks by address.
    large: *mut Free,
    usage: HeapUse,
    exhausted: bool,
}

struct Global(UnsafeCell<Heap>);

// SAFETY: a box has one thread and no interrupts, so there is never more than one user at a time. (A
// fault handler doesn't allocate.)
unsafe impl Sync for Global {}

#[global_allocator]
static HEAP: Global = Global(UnsafeCell::new(Heap {
    front: 0,
    end: 0,
    small: [null_mut(); CLASSES],
    large: null_mut(),
    usage: HeapUse { used: 0, peak: 0, size: 0 },
    exhausted: false,
}));

fn heap() -> &'static mut Heap {
    // SAFETY: one thread, and no function of this file calls another while it holds this.
    unsafe { &mut *HEAP.0.get() }
}

/// Gives the heap its memory.
///
/// # Safety
///
/// The region is mapped, zero, and used by nothing else.
pub(crate) unsafe fn set(address: usize, size: usize) {
    let heap = heap();
    heap.front = address.next_multiple_of(PAGE);
    heap.end = address.saturating_add(size);
    heap.usage.size = size;
}

/// How much of the heap is used.
pub fn heap_use() -> HeapUse {
    heap().usage
}

/// Whether the last allocation failed.
pub(crate) fn exhausted() -> bool {
    heap().exhausted
}

/// The class of a small size, and the bytes of its blocks.
fn class(size: usize) -> (usize, usize) {
    if size <= SMALLEST {
        return (0, SMALLEST);
    }
    let doubling = (size - 1).ilog2() as usize;
    let base = 1 << doubling;
    let step = base / 4;
    let quarter = (size - base).div_ceil(step);
    (1 + 4 * (doubling - 4) + quarter - 1, base + quarter * step)
}

impl Heap {
    fn take(&mut self, layout: Layout) -> *mut u8 {
        // A block of a size class is aligned to the largest power of two that divides its size; so a
        // block that is at least as large as its alignment, rounded up to it, is aligned.
        let wanted = layout.size().next_multiple_of(layout.align()).max(SMALLEST);
        let block = if wanted <= LARGEST_SMALL && layout.align() <= SMALLEST {
            self.take_small(wanted)
        } else {
            self.take_large(wanted.next_multiple_of(PAGE), layout.align())
        };
        self.exhausted = block.is_null();
        self.usage.peak = self.usage.peak.max(self.usage.used);
        block
    }

    fn take_small(&mut self, wanted: usize) -> *mut u8 {
        let (class, size) = class(wanted);
        let Some(list) = self.small.get_mut(class) else { return null_mut() };
        let first = *list;
        let block = if first.is_null() {
            self.cut(size.next_multiple_of(SMALLEST), SMALLEST)
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
        // SAFETY: the list's blocks are free and hold a Free; `link` points to the head or into one of them.
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

    fn give(&mut self, block: NonNull<u8>, layout: Layout) {
        let wanted = layout.size().next_multiple_of(layout.align()).max(SMALLEST);
        let block = block.cast::<Free>().as_ptr();
        if wanted <= LARGEST_SMALL && layout.align() <= SMALLEST {
            let (class, size) = class(wanted);
            if let Some(list) = self.small.get_mut(class) {
                // SAFETY: the block is the caller's to give back, and at least 16 bytes.
                unsafe { block.write(Free { next: *list, size }) };
                *list = block;
                self.usage.used -= size;
            }
        } else {
            let size = wanted.next_multiple_of(PAGE);
            self.usage.used -= size;
            self.give_large(block, size);
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

    /// Grows a large block in place when it is the last that was cut.
    fn grow(&mut self, block: *mut u8, old: Layout, size: usize) -> bool {
        if old.size() <= LARGEST_SMALL || size <= old.size() {
            return false;
        }
        let (had, wants) = (old.size().next_multiple_of(PAGE), size.next_multiple_of(PAGE));
        if block as usize + had != self.front || wants - had > self.end - self.front {
            return false;
        }
        self.front += wants - had;
        self.usage.used += wants - had;
        self.usage.peak = self.usage.peak.max(self.usage.used);
        true
    }
}

// SAFETY: blocks are disjoint parts of the heap's region, aligned and as long as asked for.
unsafe impl GlobalAlloc for Global {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        heap().take(layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            heap().give(block, layout);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= SMALLEST && heap().grow(block, layout, size) {
            return block;
        }
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else { return null_mut() };
        let moved = heap().take(wanted);
        if let (Some(to), Some(from)) = (NonNull::new(moved), NonNull::new(block)) {
            // SAFETY: both blocks are live, disjoint, and at least the shorter size long.
            unsafe { to.copy_from_nonoverlapping(from, size.min(layout.size())) };
            heap().give(from, layout);
        }
        moved
    }
}
