//! Processor exceptions in a virtual machine.
//!
//! The host's interrupt table sends all 32 vectors to the table below, in ring 3 and on a separate stack. The handlers
//! never return to the interrupted code.

use crate::exit;
use boundary::{CrashPage, Mapped, control, exit::CRASH_PORT, fault};
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of the stack that fault entries use.
pub(crate) const STACK_SIZE: usize = 16 << 10;

/// The stack of the fault entries.
#[repr(C, align(64))]
pub(crate) struct FaultStack(UnsafeCell<[u8; STACK_SIZE]>);

// SAFETY: only the processor uses it, at a fault, and a box has one processor.
unsafe impl Sync for FaultStack {}

pub(crate) static FAULT_STACK: FaultStack = FaultStack(UnsafeCell::new([0; STACK_SIZE]));

unsafe extern "C" {
    /// 32 entries of 16 bytes.
    pub(crate) fn fault_table();
}

// Each entry pushes its vector, with a zero instead of the error code where the processor pushes
// none. A second fault finds the state set and leaves at once.
global_asm!(
    ".section .text.fault, \"ax\"",
    ".balign 64",
    ".globl fault_table",
    "fault_table:",
    ".set vector, 0",
    ".rept 32",
    ".balign 16",
    ".set coded, vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21",
    ".set coded, coded || vector == 29 || vector == 30",
    ".if coded == 0",
    "push 0",
    ".endif",
    "push vector",
    "jmp 2f",
    ".set vector, vector + 1",
    ".endr",
    ".balign 16",
    "2:",
    "push rax",
    "mov rax, qword ptr [{region}]",
    "add rax, {page}",
    "cmp qword ptr [rax + {state}], 0",
    "jne 3f",
    "mov qword ptr [rax + {state}], {exception}",
    "mov [rax + {general} + 8], rbx",
    "mov [rax + {general} + 16], rcx",
    "mov [rax + {general} + 24], rdx",
    "mov [rax + {general} + 32], rsi",
    "mov [rax + {general} + 40], rdi",
    "mov [rax + {general} + 48], rbp",
    "mov [rax + {general} + 56], r8",
    "mov [rax + {general} + 64], r9",
    "mov [rax + {general} + 72], r10",
    "mov [rax + {general} + 80], r11",
    "mov [rax + {general} + 88], r12",
    "mov [rax + {general} + 96], r13",
    "mov [rax + {general} + 104], r14",
    "mov [rax + {general} + 112], r15",
    "pop rcx",
    "mov [rax + {general}], rcx",
    "pop rcx",
    "mov [rax + {vector_at}], rcx",
    "pop rcx",
    "mov [rax + {error}], rcx",
    "pop rcx",
    "mov [rax + {registers}], rcx",
    "pop rcx",
    "pop rcx",
    "mov [rax + {registers} + 16], rcx",
    "pop rcx",
    "mov [rax + {registers} + 8], rcx",
    "and rsp, -16",
    "cld",
    "call {after}",
    "3:",
    "mov dx, {port}",
    "out dx, al",
    "jmp 3b",
    ".text",
    region = sym exit::REGION,
    page = const control::CRASH,
    state = const fault::STATE,
    exception = const fault::EXCEPTION,
    general = const fault::REGISTERS + 24,
    registers = const fault::REGISTERS,
    vector_at = const fault::VECTOR,
    error = const fault::ERROR_CODE,
    after = sym after,
    port = const CRASH_PORT,
);

extern "C" fn after() -> ! {
    if let Some(page) = exit::crash_page() {
        add_context(&page);
    }
    exit::crash()
}

static CONTEXT: AtomicUsize = AtomicUsize::new(0);

/// Sets what adds the running element and the packet in hand to a crash report. It runs after a fault,
/// with everything in any state: it may read what it kept for this purpose, and should allocate nothing.
pub fn on_crash(context: fn(&CrashPage<Mapped>)) {
    CONTEXT.store(context as usize, Relaxed);
}

pub(crate) fn add_context(page: &CrashPage<Mapped>) {
    let context = CONTEXT.load(Relaxed);
    if context != 0 {
        // SAFETY: only `on_crash` stores here, and it stores such a function.
        let context = unsafe { core::mem::transmute::<usize, fn(&CrashPage<Mapped>)>(context) };
        context(page);
    }
}
