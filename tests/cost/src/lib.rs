//! Counts the work and the memory of a piece of code. Both are the same in every run and on every machine.
//!
//! Work is the number of basic blocks that the code executes, and memory the number of bytes that it has allocated at
//! most. The compiler inserts a call into every block (`.cargo/config.toml`).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The blocks that all threads have executed. It is no atomic number, because its methods are instrumented as well: they
/// would call themselves without end.
static mut BLOCKS: u64 = 0;

thread_local! {
    static BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Called once for each instrumented file.
// SAFETY: the name is that of the interface, and nothing else defines it.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc_guard_init(_: *mut u32, _: *mut u32) {}

/// Called in each basic block.
// SAFETY: the name is that of the interface, and nothing else defines it.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc_guard(_: *mut u32) {
    // SAFETY: tests run one by one (`.cargo/config.toml`), so that no other thread is in code of ours.
    unsafe { BLOCKS += 1 };
}

/// Counts the bytes that are allocated.
struct Counting;

// SAFETY: the system's allocator does all; the layouts are passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as i64 - layout.size() as i64);
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn add(bytes: i64) {
    BYTES.set(BYTES.get() + bytes);
    PEAK.set(PEAK.get().max(BYTES.get()));
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a piece of code costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Basic blocks executed.
    pub blocks: u64,
    /// Bytes allocated at most.
    pub bytes: u64,
}

/// The cost of `code`, and its result.
pub fn measure<T>(code: impl FnOnce() -> T) -> (Cost, T) {
    let (blocks, bytes) = (blocks(), BYTES.get());
    PEAK.set(bytes);
    let result = code();
    let cost = Cost { blocks: self::blocks() - blocks, bytes: (PEAK.get() - bytes) as u64 };
    (cost, result)
}

fn blocks() -> u64 {
    // SAFETY: as above.
    unsafe { BLOCKS }
}
