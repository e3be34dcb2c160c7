//! The boot code of a box: from the first instruction to a program with a heap, and back to the host after a fault, a
//! panic, or when the program sleeps.
//!
//! A program defines `#[unsafe(no_mangle)] fn run(boot: boot::Boot) -> !`. It does not know its sandbox: the same image
//! runs in ring 3 of a virtual machine without a kernel, and as a Linux process with four system calls.
//!
//! Invariants: one thread; no interrupts; no privileged code. The host is trusted: memory is mapped as the boot info
//! states.
#![no_std]

extern crate alloc;

mod entry;
mod exit;
mod fault;
mod heap;
mod panic;
mod platform;
mod process;

pub use entry::Boot;
pub use exit::{
    cycles, end_turn, idle, prepare_idle, region, ring_host, ring_mailbox, stop, yield_before_idle,
};
pub use fault::on_crash;
pub use heap::heap_use;
pub use platform::GuestPlatform;
