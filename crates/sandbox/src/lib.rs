//! Starts, watches and ends boxes: one lifecycle over virtual machines, processes and, for tests and benchmarks, threads.
//!
//! A [`Host`] loads an image once; every [`Sandbox`] runs it with memory, mailbox and ports of its own.
//!
//! Invariants:
//! - A box reaches its own memory, the read-only image, the area that it shares with its host and the packet pool that
//!   it was given, and nothing else. In a virtual machine the page tables and memory slots see to that, in a process
//!   its address space and a system call filter; in a thread nothing does ([`thread`]).
//! - Whatever a box does (faults, loops, scribbles over the shared area) ends in a [`State`] or an error of this crate,
//!   never in a panic of the host.
//! - A new box gets zeroed memory: nothing of the box that had it before.
//!
//! Absent on purpose: what runs inside (packets' contents, elements, Click), and where packets go.

#![allow(unsafe_code, reason = "system calls, and memory that boxes share")]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("boxes run on 64-bit x86 processors under Linux");

mod cpu;
mod error;
mod event_fd;
mod host;
mod image;
mod lock;
mod mailbox;
mod memory;
mod pool;
mod process;
mod sandbox;
mod settings;
mod shared_region;
mod snapshot;
pub mod thread;
mod vm;

/// What the fuzz targets call.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::image::survive as image;
}

pub use error::{CreateError, HostError, ImageError, SettingsError, SetupError, SystemError};
pub use event_fd::EventFd;
pub use host::{Host, Target};
pub use mailbox::{CallError, Mailbox};
pub use pool::PacketPool;
pub use sandbox::{ControlHandle, Doorbell, ExitStatus, Sandbox, State, Usage};
pub use settings::{PortSettings, Settings};
pub use shared_region::{HostPort, SharedRegion};
pub use snapshot::{Snapshot, SnapshotError};
pub use vm::{VirtualMachine, VmExit, Worker};
