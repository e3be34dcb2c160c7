//! The box's one heap.

use boundary::HeapUse;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use heap::Heap;

struct Global(UnsafeCell<Heap>);

// SAFETY: a box has one thread and no interrupts, so nothing runs beside the user of the heap. (A fault
// handler doesn't allocate.)
unsafe impl Sync for Global {}

#[global_allocator]
static HEAP: Global = Global(UnsafeCell::new(Heap::new()));

impl Global {
    /// The heap, for one use.
    ///
    /// # Safety
    ///
    /// - No reference that this function returned before is used again.
    /// - While the new reference is in use, nothing else calls this function: the caller runs only methods of
    ///   [`Heap`] and code that neither allocates nor frees memory.
    #[expect(clippy::mut_from_ref, reason = "the caller promises that the reference is the only one")]
    unsafe fn heap(&self) -> &mut Heap {
        // SAFETY: by the caller's promise no other reference is in use.
        unsafe { &mut *self.0.get() }
    }
}

/// Gives the heap its memory.
///
/// # Safety
///
/// The region is mapped, zero, and used by nothing else.
pub(crate) unsafe fn set(address: usize, size: usize) {
    // SAFETY: the reference ends with this statement; the caller's promise about the region is the same.
    unsafe { HEAP.heap().set(address, size) };
}

/// How much of the heap is used.
pub fn heap_use() -> HeapUse {
    // SAFETY: the reference ends with this statement.
    unsafe { HEAP.heap().usage() }
}

/// Whether the last allocation failed.
pub(crate) fn exhausted() -> bool {
    // SAFETY: the reference ends with this statement. If the heap itself has panicked, the panic handler that asks
    // doesn't return to it.
    unsafe { HEAP.heap().is_exhausted() }
}

// SAFETY: blocks are disjoint parts of the heap's region, aligned and as long as asked for. No function here
// calls another one that takes the heap, so each reference to it is the only one in use.
unsafe impl GlobalAlloc for Global {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the reference ends with this statement.
        unsafe { self.heap().take(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the reference ends with this statement.
        unsafe { self.heap().take_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: the reference ends with this statement; the caller returns a block that it got by this layout.
            unsafe { self.heap().give(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (Some(from), Ok(wanted)) = (NonNull::new(block), Layout::from_size_align(size, layout.align()))
        else {
            return null_mut();
        };
        // SAFETY: what runs while the reference is in use are the heap's methods and a copy; the block is the caller's,
        // by its layout; both blocks are at least as long as the shorter size.
        unsafe {
            let heap = self.heap();
            if heap.resize(from, layout, size) {
                return block;
            }
            let moved = heap.take(wanted);
            if let Some(to) = NonNull::new(moved) {
                to.copy_from_nonoverlapping(from, size.min(layout.size()));
                heap.give(from, layout);
            }
            moved
        }
    }
}
