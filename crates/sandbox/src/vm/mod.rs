//! Boxes as KVM virtual machines.
//!
//! A machine has one vCPU and no devices, interrupts or kernel: the image runs in ring 3 from its first instruction,
//! with tables that the host prepares and the box cannot write.

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

pub use hypervisor::KvmDevice;
pub(crate) use hypervisor::{Hypervisor, SharedImage};
pub use virtual_machine::{VirtualMachine, VmExit};
pub use worker::Worker;
