//! The first and the last steps of a box: from the first instruction to a program with a heap, and from a
//! fault, a panic or a sleep back to the host.
//!
//! A program defines `#[unsafe(no_mangle)] fn run(boot: boot::Boot) -> !` and knows nothing of what
//! carries it: the same image runs in ring 3 of a virtual machine without a kernel, and as a Linux
//! process with four system calls left.
//!
//! Invariants: one thread; no interrupts; nothing privileged. The host is trusted, what it maps is as the
//! boot info says.
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
pub use exit::{cycles, end_turn, idle, prepare_idle, region, ring_host, ring_mailbox, stop};
pub use fault::on_crash;
pub use heap::heap_use;
pub use platform::GuestPlatform;
