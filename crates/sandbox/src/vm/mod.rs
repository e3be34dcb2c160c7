//! Boxes as virtual machines of KVM.
//!
//! One processor, no device, no interrupt, no kernel: the image runs in ring 3 from its first
//! instruction, over tables that the host prepares and that the box can't write.

mod hypervisor;
mod kick;
mod memory;
mod run_queue;
mod scheduler;
mod snapshot;
mod tables;
mod vcpu_task;
mod virtual_machine;
mod worker;
mod worker_state;

pub(crate) use hypervisor::Hypervisor;
pub use virtual_machine::{VirtualMachine, VmExit};
pub use worker::Worker;
