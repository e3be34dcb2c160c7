//! The program inside a box: runs configurations on the box's ports. The host controls it through the mailbox.
//!
//! [`Engine::run`] is the main function. It connects one router per configuration to the region that the box shares
//! with its host. All it needs from its sandbox is a [`Platform`](boundary::Platform), so the same code runs in a
//! virtual machine, in a process with four system calls, and in a thread.
//!
//! Invariants:
//! - A rejected configuration changes nothing; an accepted one takes over its predecessor's state.
//! - Packets never wait for events: log lines and file output that the host does not read in time are dropped and
//!   counted.
//! - A port is read by at most one element and written by at most one.
//! - Without work the box sleeps until its host or its next timer wakes it.
//!
//! Absent on purpose: threads, sockets, files other than those that the host sent, and any communication other than
//! through the mailbox and the ports.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod account_publisher;
mod buffers;
mod clock;
mod configuration;
mod context;
mod crash_context;
mod device;
mod diagnostics;
mod engine;
mod environment;
mod error;
mod events;
mod files;
mod flow_states;
mod idle;
mod limits;
mod own_writes;
mod port;
mod prepared_writes;
mod quota;
mod serve;
mod spread;

pub use crash_context::CrashContext;
pub use engine::Engine;
pub use error::EngineError;
pub use limits::{CONSOLE_LINES, MAX_LINE, OUTPUT_BYTES};
