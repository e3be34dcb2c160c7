//! The first instructions, and the version note by which the host knows the image.

use crate::exit::ExitMethod;
use crate::{exit, fault, heap, process};
use boundary::{BootError, BootInfo, BoxRegion, CrashCause, CrashPage, Mapped, MemoryKind, control};
use core::arch::{asm, global_asm};
use core::ptr::NonNull;

/// Bytes of stack that the host is asked for. Code that isn't optimised needs more.
const STACK_SIZE: u64 = if cfg!(debug_assertions) { 256 << 10 } else { 128 << 10 };

// A virtual machine begins with the shared region's address in rdi and the stack pointer at the top of its stack;
// a process begins with rdi zero on the kernel's stack.
global_asm!(
    ".section .text.start, \"ax\"",
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {begin}",
    "ud2",
    ".text",
    begin = sym begin,
);

global_asm!(
    ".section .note.clickbox, \"a\", @note",
    ".balign 4",
    ".long 9, 32, {kind}",
    ".asciz \"Clickbox\"",
    ".balign 4",
    ".quad {protocol}, {table}, {stack} + {stack_size}, {wanted}",
    ".text",
    kind = const boundary::NOTE_TYPE,
    protocol = const boundary::PROTOCOL,
    table = sym fault::fault_table,
    stack = sym fault::FAULT_STACK,
    stack_size = const fault::STACK_SIZE,
    wanted = const STACK_SIZE,
);

/// What a program starts with.
#[derive(Debug)]
pub struct Boot {
    /// The boot info.
    pub info: BootInfo,
    /// The region shared with the host.
    pub region: BoxRegion,
}

unsafe extern "Rust" {
    /// The program.
    safe fn run(boot: Boot) -> !;
}

extern "C" fn begin(region: usize) -> ! {
    memory::link();
    if region != 0 {
        exit::set_exit_method(ExitMethod::PortWrite, region);
        enter();
    }
    exit::set_exit_method(ExitMethod::SystemCall, process::map_region());
    let Some(control) = exit::part(0, control::SIZE) else { exit::crash() };
    let region = |kind| BootInfo::find_region(&control, kind);
    let (Some(heap), Some(stack)) = (region(MemoryKind::Heap), region(MemoryKind::Stack)) else {
        refuse(&control);
    };
    if process::confine(&control, heap, stack) {
        // SAFETY: the snapshot that filled the memory was taken of an idle box, which had saved its stack pointer
        // there; this runs on the kernel's stack, which the box doesn't use.
        unsafe { process::resume() };
    }
    // SAFETY: the stack was just mapped, and nothing of the old one is needed any more.
    unsafe {
        asm!("mov rsp, {top}", "xor ebp, ebp", "call {enter}", "ud2",
            top = in(reg) stack.address + stack.size, enter = sym enter, options(noreturn));
    }
}

/// From here on both platforms are the same: memory is mapped, the stack is the box's own.
extern "C" fn enter() -> ! {
    let Some(control) = exit::part(0, control::SIZE) else { exit::crash() };
    let region = |kind| BootInfo::find_region(&control, kind);
    let (Some(whole), Some(free)) = (region(MemoryKind::SharedRegion), region(MemoryKind::Heap)) else {
        refuse(&control);
    };
    // SAFETY: the heap's region is mapped, its memory is new, and nothing else lies in it.
    unsafe { heap::set(free.address as usize, free.size as usize) };
    let Some(base) = NonNull::new(whole.address as *mut u8) else { refuse(&control) };
    // SAFETY: the region is mapped there for ever, with the length in the boot info, but for the hole before a shared pool,
    // in which no part of its layout lies; references into it are those of loans only.
    let memory = unsafe { Mapped::new(base, whole.size as usize) };
    match BootInfo::read(&memory) {
        Ok(info) => {
            exit::set_tsc_hz(info.tsc_hz);
            // SAFETY: the region stays mapped as long as the box lives, this runs once, and the rest of this crate
            // reaches the control pages only. The host is elsewhere.
            let region = unsafe { BoxRegion::new(memory) };
            run(Boot { info, region })
        }
        Err(_) => refuse(&control),
    }
}

/// Ends a box whose boot info is of another version, or none.
fn refuse(control: &Mapped) -> ! {
    if let Some(page) = control.part(control::CRASH, control::PAGE_SIZE).map(CrashPage) {
        let found = match BootInfo::read(control) {
            Err(BootError::Version { found }) => u64::from(found),
            _ => 0,
        };
        page.begin(CrashCause::Version { found });
    }
    exit::crash()
}
