//! Starts, watches and ends boxes: one lifecycle for virtual machines, processes and, in tests and benchmarks, threads.
//!
//! A [`Host`] loads an image once; every [`Sandbox`] runs it with its own memory, mailbox and ports. It can load further
//! images, which users give: see [`LoadedImage`].
//!
//! Invariants:
//! - A box can access only its own memory, the read-only image, the region that it shares with its host, and its
//!   packet pool. This is enforced by page tables and memory slots for a virtual machine, and by the address space, a
//!   system call filter, namespaces and limits for a process. It is not enforced for a thread ([`thread`]).
//! - The host's own image installs the filter of a process in its first steps. Nothing relies on the first steps of other
//!   images: their processes are filtered before they execute them.
//! - Anything that a box does (faults, loops, arbitrary writes to the shared region) results in a [`State`] or an error
//!   of this crate, never in a panic of the host.
//! - A new box gets zeroed memory, without data of an earlier box.
//!
//! Absent on purpose: the program inside the box (packet contents, elements, Click), and the forwarding of packets.

#![allow(unsafe_code, reason = "system calls, and memory that boxes share")]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("boxes run on 64-bit x86 processors under Linux");

mod box_message;
mod cpu;
mod error;
mod event_fd;
mod host;
mod image;
mod lifecycle;
mod loaded_image;
mod lock;
mod mailbox;
mod memory;
mod poll;
mod pool;
mod process;
mod ring_signal;
mod sandbox;
mod sandbox_kind;
mod settings;
mod shared_region;
mod snapshot;
pub mod thread;
mod vm;

/// Entry points of the fuzz targets.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::image::survive as image;
}

pub use box_message::BoxMessage;
pub use error::{CreateError, HostError, ImageError, SettingsError, SetupError, SystemError};
pub use event_fd::EventFd;
pub use host::{Host, HostSettings, Target};
pub use lifecycle::{ControlHandle, Doorbell, ExitStatus, State, Usage};
pub use loaded_image::LoadedImage;
pub use mailbox::{CallError, Mailbox};
pub use pool::PacketPool;
pub use process::{Forker, Isolation, Layer, MissingLayer};
pub use sandbox::{Events, Sandbox};
pub use sandbox_kind::SandboxKind;
pub use settings::{PortSettings, Settings};
pub use shared_region::{HostPort, SharedRegion};
pub use snapshot::{Snapshot, SnapshotError};
pub use vm::{KvmDevice, VirtualMachine, VmExit, Worker};
