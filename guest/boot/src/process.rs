//! The platform of a Linux process: setup, confinement, and the remaining system calls.
//!
//! The host has started this image with descriptors of the shared region, of the mailbox event and, if present, of a
//! wake event, a shared pool and a snapshot. Before the program runs, all but the two events are used and closed, and a
//! filter leaves four system calls: sleep (and continue the sleep after a suspension), yield, signal an event, exit.

use crate::exit::crash_page;
use crate::fault::add_context;
use boundary::{
    BootInfo, CrashCause, Mapped, MemoryKind, MemoryRegion, SharedMemory, StatusPage, control, exit, fault,
};
use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const PAGE: usize = 4096;

const WRITE: usize = 1;
const MMAP: usize = 9;
const PREAD: usize = 17;
const RT_SIGACTION: usize = 13;
const SCHED_YIELD: usize = 24;
const SIGALTSTACK: usize = 131;
const PRCTL: usize = 157;
const FUTEX: usize = 202;
const EXIT_GROUP: usize = 231;
const SECCOMP: usize = 317;
const CLOSE_RANGE: usize = 436;

const READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE: usize = 2;
const MAP_FIXED: usize = 0x10;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const PR_SET_PDEATHSIG: usize = 1;
const PR_SET_NO_NEW_PRIVS: usize = 38;
const SECCOMP_SET_MODE_FILTER: usize = 1;
const SA_SIGINFO_ONSTACK_RESTORER: usize = 4 | 0x0800_0000 | 0x0400_0000;
/// SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV: what a processor exception becomes.
const FAULT_SIGNALS: [usize; 5] = [4, 5, 7, 8, 11];
const SIGNAL_STACK: usize = 16 << 10;

fn call(number: usize, arguments: [usize; 6]) -> isize {
    let result;
    // SAFETY: what each call does to memory is argued where it is made; the kernel keeps all other
    // registers.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") arguments[0], in("rsi") arguments[1],
            in("rdx") arguments[2], in("r10") arguments[3], in("r8") arguments[4], in("r9") arguments[5],
            out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// Ends the process when a step of the set-up failed; the host learns which one from the status.
fn require(step: i32, result: isize) -> usize {
    if result < 0 {
        exit(exit::SETUP_STATUS + step);
    }
    result as usize
}

/// Maps the shared region where its boot info wants it, and returns the address.
pub(crate) fn map_region() -> usize {
    let shared = |descriptor: i32, address, size, fixed| {
        call(MMAP, [address, size, READ_WRITE, MAP_SHARED | fixed, descriptor as usize, 0])
    };
    let first = require(1, shared(exit::REGION_DESCRIPTOR, 0, control::SIZE, 0));
    let Some(base) = core::ptr::NonNull::new(first as *mut u8) else { exit(exit::SETUP_STATUS) };
    // SAFETY: just mapped, and never unmapped.
    let control = unsafe { Mapped::new(base, control::SIZE) };
    let region = |kind| BootInfo::find_region(&control, kind);
    let fixed = |step, descriptor, region: MemoryRegion| {
        require(step, shared(descriptor, region.address as usize, region.size as usize, MAP_FIXED))
    };
    let address = match region(MemoryKind::SharedRegion) {
        Some(region) => fixed(2, exit::REGION_DESCRIPTOR, region),
        None => exit(exit::SETUP_STATUS + 3),
    };
    // A pool that is shared with others has addresses of the region that the region's file does not cover.
    if let Some(pool) = region(MemoryKind::Pool) {
        fixed(15, exit::POOL_DESCRIPTOR, pool);
    }
    address
}

/// Maps heap and stack, catches exceptions, closes all descriptors and gives up all system calls but
/// four. True: the memory is that of a copy, which continues where its original was idle: see [`resume`].
///
/// It runs on the kernel's stack, as it may overwrite all of the program's own memory.
pub(crate) fn confine(control: &Mapped, heap: MemoryRegion, own_stack: MemoryRegion) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    for region in [heap, own_stack] {
        let (address, size) = (region.address as usize, region.size as usize);
        require(4, call(MMAP, [address, size, READ_WRITE, flags, usize::MAX, 0]));
    }
    let is_copy = fill_memory();
    let unfixed = MAP_PRIVATE | MAP_ANONYMOUS;
    let stack = require(5, call(MMAP, [0, SIGNAL_STACK, READ_WRITE, unfixed, usize::MAX, 0]));
    let alternative = [stack, 0, SIGNAL_STACK];
    require(6, call(SIGALTSTACK, [alternative.as_ptr() as usize, 0, 0, 0, 0, 0]));
    let action =
        [on_signal as *const () as usize, SA_SIGINFO_ONSTACK_RESTORER, restore as *const () as usize, 0];
    for signal in FAULT_SIGNALS {
        require(7, call(RT_SIGACTION, [signal, action.as_ptr() as usize, 0, 8, 0, 0]));
    }
    let (first, last) = (exit::WAKE_EVENT_DESCRIPTOR as usize, exit::MAILBOX_EVENT_DESCRIPTOR as usize);
    require(8, call(CLOSE_RANGE, [0, first - 1, 0, 0, 0, 0]));
    require(8, call(CLOSE_RANGE, [last + 1, u32::MAX as usize, 0, 0, 0, 0]));
    require(9, call(PRCTL, [PR_SET_PDEATHSIG, 9, 0, 0, 0, 0]));
    require(10, call(PRCTL, [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0]));
    let length = control.load_u64(control::FILTER, Relaxed) as usize;
    let filter = length.checked_mul(8).and_then(|size| control.pointer(control::FILTER + 8, size));
    let Some(instructions) = filter else {
        exit(exit::SETUP_STATUS + 11);
    };
    let program = [length, instructions.as_ptr() as usize];
    require(12, call(SECCOMP, [SECCOMP_SET_MODE_FILTER, 0, program.as_ptr() as usize, 0, 0, 0]));
    is_copy
}

/// Fills memory from a snapshot, when there is one.
fn fill_memory() -> bool {
    let descriptor = exit::SNAPSHOT_DESCRIPTOR as usize;
    let read = |to: usize, size: usize, at: usize| call(PREAD, [descriptor, to, size, at, 0, 0]);
    let mut count = 0usize;
    if read(&raw mut count as usize, 8, 0) != 8 {
        return false;
    }
    for page in 0..count {
        let at = 8 + page * (8 + PAGE);
        let mut address = 0usize;
        require(13, read(&raw mut address as usize, 8, at));
        require(14, read(address, PAGE, at + 8));
    }
    true
}

/// The stack pointer of a box that is idle, or 0.
static CONTEXT: AtomicUsize = AtomicUsize::new(0);

/// Sleeps in a futex on `word` while it says `seen`, at most for the time at `limit` if that isn't zero,
/// with everything that a copy needs to continue in memory. `idle` is the word that says so. After it is set, the
/// mailbox event is signalled if `watched` is not zero.
///
/// # Safety
///
/// - `word`, `idle` and `watched` are addresses of aligned 32-bit words that stay mapped.
/// - `limit` is 0 or the address of a `timespec` that lives until the function returns.
#[unsafe(naked)]
unsafe extern "C" fn sleep_resumably(word: usize, seen: usize, idle: usize, limit: usize, watched: usize) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push rdx",
        "mov qword ptr [{context}], rsp",
        // An exchange is also a fence between this store and the load after it.
        "mov eax, 1",
        "xchg dword ptr [rdx], eax",
        "cmp dword ptr [r8], 0",
        "je 2f",
        "push rdi",
        "push rsi",
        "push rcx",
        "push 1",
        "mov eax, {write}",
        "mov edi, {event}",
        "mov rsi, rsp",
        "mov edx, 8",
        "syscall",
        "pop rax",
        "pop rcx",
        "pop rsi",
        "pop rdi",
        "2:",
        "mov rdx, rsi",
        "xor esi, esi",
        "mov r10, rcx",
        "mov eax, {futex}",
        "syscall",
        "jmp {resume}",
        context = sym CONTEXT,
        futex = const FUTEX,
        write = const WRITE,
        event = const exit::MAILBOX_EVENT_DESCRIPTOR,
        resume = sym resume,
    )
}

/// Continues where the box was idle: the second half of [`sleep_resumably`], for the box itself and for its
/// copies.
///
/// # Safety
///
/// - [`sleep_resumably`] has saved the stack pointer in [`CONTEXT`], and no sleep has ended since: it is entered once.
/// - The memory, the stack included, is as the sleep left it. A copy's memory is filled from a snapshot of it.
/// - Nothing of the caller's stack is needed afterwards.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn resume() -> ! {
    naked_asm!(
        "mov rsp, qword ptr [{context}]",
        "pop rdx",
        "mov dword ptr [rdx], 0",
        "mov qword ptr [{context}], 0",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        context = sym CONTEXT,
    )
}

/// Sleeps while the doorbell says `seen`, at most for so many nanoseconds.
pub(crate) fn sleep(status: &Mapped, seen: u32, limit: Option<u64>) {
    let word = status.pointer(StatusPage::<Mapped>::doorbell_offset(), 4);
    let idle = status.pointer(StatusPage::<Mapped>::idle_offset(), 4);
    let watched = status.pointer(StatusPage::<Mapped>::idle_watched_offset(), 4);
    let span = limit.map(|limit| [limit / 1_000_000_000, limit % 1_000_000_000]);
    let limit = span.as_ref().map_or(0, |span| span.as_ptr() as usize);
    if let (Some(word), Some(idle), Some(watched)) = (word, idle, watched) {
        let (word, idle, watched) =
            (word.as_ptr() as usize, idle.as_ptr() as usize, watched.as_ptr() as usize);
        // SAFETY: the words are mapped, the time lives until the call is over; the function keeps the
        // registers that a function keeps.
        unsafe { sleep_resumably(word, seen as usize, idle, limit, watched) };
    }
}

/// Lets others run.
pub(crate) fn yield_processor() {
    call(SCHED_YIELD, [0; 6]);
}

/// Signals the host of the ports. It fails if there is no such event, which no host then waits for.
pub(crate) fn ring_host() {
    signal(exit::WAKE_EVENT_DESCRIPTOR);
}

/// Signals the caller at the mailbox.
pub(crate) fn ring_mailbox() {
    signal(exit::MAILBOX_EVENT_DESCRIPTOR);
}

/// Adds one to an eventfd. It fails only if the count is at its maximum, in which case the event is signalled already.
fn signal(event: i32) {
    let one = 1u64;
    call(WRITE, [event as usize, &raw const one as usize, 8, 0, 0, 0]);
}

/// Ends the process.
pub(crate) fn exit(status: i32) -> ! {
    loop {
        call(EXIT_GROUP, [status as usize, 0, 0, 0, 0, 0]);
    }
}

/// The kernel wants a way back for a handler; ours has none.
#[unsafe(naked)]
extern "C" fn restore() -> ! {
    naked_asm!("ud2")
}

/// Order of the registers that the kernel saves from its `ucontext` on: r8 to r15, rdi, rsi, rbp, rbx,
/// rdx, rax, rcx, rsp, rip, flags, segments, error, vector, (mask), address. Here each crash register's
/// index in it: rip, rsp, flags, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8 to r15.
const SAVED: [usize; fault::REGISTER_COUNT] = [16, 15, 17, 13, 11, 14, 12, 9, 8, 10, 0, 1, 2, 3, 4, 5, 6, 7];
/// Bytes of a `ucontext` before its registers.
const CONTEXT_HEADER: usize = 40;
const SAVED_ERROR: usize = 19;
const SAVED_VECTOR: usize = 20;
const SAVED_ADDRESS: usize = 22;

extern "C" fn on_signal(_signal: i32, _info: usize, context: usize) -> ! {
    let saved = |index: usize| {
        // SAFETY: the kernel passes the address of a ucontext, whose registers lie there.
        unsafe { ((context + CONTEXT_HEADER) as *const u64).add(index).read() }
    };
    if let Some(page) = crash_page() {
        let cause = CrashCause::Exception { vector: saved(SAVED_VECTOR), error_code: 0 };
        if page.begin(cause) {
            page.0.store_u64(fault::ERROR_CODE, saved(SAVED_ERROR), Relaxed);
            page.0.store_u64(fault::ADDRESS, saved(SAVED_ADDRESS), Relaxed);
            for (register, index) in SAVED.into_iter().enumerate() {
                page.0.store_u64(fault::REGISTERS + 8 * register, saved(index), Relaxed);
            }
            add_context(&page);
        }
    }
    exit(exit::CRASHED_STATUS)
}
