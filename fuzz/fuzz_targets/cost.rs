//! Configurations whose check costs more than a linear amount of work or memory.
//!
//! An input is a text with a part to repeat: `START%%PART%%END` (`fuzz::repetition`). The work is the number of comparisons
//! of integers and of jumps by tables that the check executes, which the compiler's instrumentation reports. It is the same
//! in every run and on every machine. Work and memory are compared with the size of the input: its text, and what the text
//! makes of it, which are elements, connections, ports and messages. The check fails the target if twice the repetitions
//! take more work for each byte of size, or if the work or the memory for a byte exceeds a bound.
//!
//! The tests in `tests/cost` measure the texts with which this target starts, more exactly.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use click_lang::{Graph, Limits, Options};
use fuzz::repetition::Repetition;
use libfuzzer_sys::fuzz_target;
use router::Registry;

/// Bytes of the longer text.
const MAX_TEXT: usize = 1 << 16;
/// Repetitions of a short part.
const MAX_REPETITIONS: usize = 512;
/// Work and memory of an empty text: the tables of all classes.
const FIXED_WORK: u64 = 2_000_000;
const FIXED_MEMORY: i64 = 4 << 20;
/// Work for each byte of size.
const WORK_PER_BYTE: u64 = 4_000;
/// The maximum growth of the work for each byte of size, in percent, when the repetitions double: some terms grow with the
/// logarithm.
const MAX_GROWTH: u64 = 140;
/// Memory for each byte of size.
const MEMORY_PER_BYTE: i64 = 1_000;
/// Bytes of size for an element, a connection, a port.
const UNIT: usize = 64;

static WORK: AtomicU64 = AtomicU64::new(0);
static MEMORY: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// Replaces callbacks of the instrumentation by functions that count. The linker redirects them (`build.rs`).
macro_rules! counted {
    ($($wrapper:ident, $original:ident, ($($argument:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" {
            fn $original($($argument: $type),*);
        }

        /// # Safety
        ///
        /// Only the instrumentation calls it, as it would call the original.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $wrapper($($argument: $type),*) {
            WORK.fetch_add(1, Relaxed);
            // SAFETY: the original, with the arguments that were meant for it.
            unsafe { $original($($argument),*) }
        }
    )*};
}

counted! {
    __wrap___sanitizer_cov_trace_cmp1, __real___sanitizer_cov_trace_cmp1, (left: u8, right: u8);
    __wrap___sanitizer_cov_trace_cmp2, __real___sanitizer_cov_trace_cmp2, (left: u16, right: u16);
    __wrap___sanitizer_cov_trace_cmp4, __real___sanitizer_cov_trace_cmp4, (left: u32, right: u32);
    __wrap___sanitizer_cov_trace_cmp8, __real___sanitizer_cov_trace_cmp8, (left: u64, right: u64);
    __wrap___sanitizer_cov_trace_const_cmp1, __real___sanitizer_cov_trace_const_cmp1, (left: u8, right: u8);
    __wrap___sanitizer_cov_trace_const_cmp2, __real___sanitizer_cov_trace_const_cmp2, (left: u16, right: u16);
    __wrap___sanitizer_cov_trace_const_cmp4, __real___sanitizer_cov_trace_const_cmp4, (left: u32, right: u32);
    __wrap___sanitizer_cov_trace_const_cmp8, __real___sanitizer_cov_trace_const_cmp8, (left: u64, right: u64);
    __wrap___sanitizer_cov_trace_switch, __real___sanitizer_cov_trace_switch, (value: u64, cases: *mut u64);
}

/// Counts the bytes that are allocated.
struct Counting;

// SAFETY: the system's allocator does all; the layouts are passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size() as i64;
        PEAK.fetch_max(MEMORY.fetch_add(size, Relaxed) + size, Relaxed);
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        MEMORY.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The cost of a check.
struct Cost {
    work: u64,
    memory: i64,
    /// Bytes of the text and of what it expands to.
    size: u64,
}

/// Limits that a mutated text reaches, so that a text of a few bytes does not expand to a million elements.
fn limits() -> Limits {
    Limits {
        elements: 1 << 12,
        connections: 1 << 14,
        tunnel_steps: 1 << 17,
        expanded_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// What a text expands to, in bytes.
fn expanded_size(graph: &Graph) -> usize {
    let elements: usize =
        graph.elements.iter().map(|element| UNIT + element.name.len() + element.config.len()).sum();
    // An element has all ports up to the highest one that is connected.
    let mut ports = vec![[0, 0]; graph.elements.len()];
    for connection in &graph.connections {
        for (side, port) in [connection.from, connection.to].into_iter().enumerate() {
            if let Some(ports) = ports.get_mut(port.element) {
                ports[side] = ports[side].max(port.port + 1);
            }
        }
    }
    elements + UNIT * (graph.connections.len() + ports.iter().flatten().sum::<usize>())
}

fn check(text: &str) -> Cost {
    let before = MEMORY.load(Relaxed);
    PEAK.store(before, Relaxed);
    WORK.store(0, Relaxed);
    let is_class = |name: &str| elements::class(name).is_some();
    let compiled =
        click_lang::compile(text, &Options { limits: limits(), ..Options::new("fuzz", &is_class) });
    let size = (text.len() + expanded_size(&compiled.graph)) as u64;
    let found = router::check(compiled, Registry::new(elements::REGISTRY), Rc::new(fuzz::Nowhere));
    let bytes: usize = found.iter().map(|diagnostic| diagnostic.message.len()).sum();
    Cost { work: WORK.load(Relaxed), memory: PEAK.load(Relaxed) - before, size: size + bytes as u64 }
}

fuzz_target!(|text: &str| {
    let repetition = Repetition::new(text);
    let count = repetition.count(MAX_TEXT / 2).min(MAX_REPETITIONS / 2);
    let (one, two) = (check(&repetition.text(count)), check(&repetition.text(2 * count)));
    assert!(one.work > 0 && two.work > 0, "the work is not counted: the callbacks are not redirected");
    let shown = |cost: &Cost| {
        format!("{} comparisons, {} bytes of memory, size {}", cost.work, cost.memory, cost.size)
    };
    let growth = format!("{count} repetitions: {}\n{} repetitions: {}", shown(&one), 2 * count, shown(&two));
    assert!(two.work <= FIXED_WORK + WORK_PER_BYTE * two.size, "too much work\n{growth}");
    assert!(two.memory <= FIXED_MEMORY + MEMORY_PER_BYTE * two.size as i64, "too much memory\n{growth}");
    // A text that is cut off at a limit may grow by less than its repetitions, and so may what it expands to.
    let proportional = MAX_GROWTH * one.work / 100 * two.size.max(one.size) / one.size.max(1);
    assert!(two.work <= FIXED_WORK + proportional, "more than linear work\n{growth}");
});
