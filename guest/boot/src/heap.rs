//! The box's one heap.

use boundary::HeapUse;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use heap::Heap;

struct Global(UnsafeCell<Heap>);

// SAFETY: a box has one thread and no interrupts, so there is never more than one user at a time. (A
// fault handler doesn't allocate.)
unsafe impl Sync for Global {}

#[global_allocator]
static HEAP: Global = Global(UnsafeCell::new(Heap::new()));

fn heap() -> &'static mut Heap {
    // SAFETY: one thread, and no function of this file holds this while it calls another that does.
    unsafe { &mut *HEAP.0.get() }
}

/// Gives the heap its memory.
///
/// # Safety
///
/// The region is mapped, zero, and used by nothing else.
pub(crate) unsafe fn set(address: usize, size: usize) {
    // SAFETY: the caller's promise is the same.
    unsafe { heap().set(address, size) };
}

/// How much of the heap is used.
pub fn heap_use() -> HeapUse {
    heap().usage()
}

/// Whether the last allocation failed.
pub(crate) fn exhausted() -> bool {
    heap().is_exhausted()
}

// SAFETY: blocks are disjoint parts of the heap's region, aligned and as long as asked for.
unsafe impl GlobalAlloc for Global {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        heap().take(layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        heap().take_zeroed(layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: the caller gives a block back that it got by this layout.
            unsafe { heap().give(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (Some(from), Ok(wanted)) = (NonNull::new(block), Layout::from_size_align(size, layout.align()))
        else {
            return null_mut();
        };
        // SAFETY: the caller's block, by its layout; the new one is at least the shorter size long.
        unsafe {
            if heap().resize(from, layout, size) {
                return block;
            }
            let moved = heap().take(wanted);
            if let Some(to) = NonNull::new(moved) {
                to.copy_from_nonoverlapping(from, size.min(layout.size()));
                heap().give(from, layout);
            }
            moved
        }
    }
}
