//! Boxes as virtual machines of KVM.
//!
//! One processor, no device, no interrupt, no kernel: the image runs in ring 3 from its first
//! instruction, over tables that the host prepares and that the box can't write.

mod copy;
mod hypervisor;
mod kick;
mod machine;
mod memory;
mod queue;
mod seat;
mod tables;
mod turns;
mod worker;

pub(crate) use hypervisor::Hypervisor;
pub use machine::{Machine, VmExit};
pub use worker::Worker;
