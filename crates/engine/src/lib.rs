//! What runs inside a box: configurations, served over its mailbox, on its ports.
//!
//! [`Engine::run`] is the program of a box. It connects a router for each configuration to the region that
//! the box shares with its host. All it needs from its sandbox is a [`Platform`](boundary::Platform), so the same code
//! runs in a virtual machine, in a process with four system calls, and on a thread.
//!
//! Invariants:
//! - A configuration that is refused changes nothing; one that takes over has its predecessor's state.
//! - Packets never wait for events: lines and file output that the host does not take in time are dropped and counted.
//! - A port is read by one element and written by one.
//! - With nothing to do the box sleeps until its host or its next timer wakes it.
//!
//! Absent on purpose: threads, sockets, files but those that were shipped, any way out but mailbox and ports.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

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
mod idle;
mod limits;
mod port;
mod quota;
mod serve;

pub use crash_context::CrashContext;
pub use engine::Engine;
pub use error::EngineError;
pub use limits::{CONSOLE_LINES, MAX_LINE, OUTPUT_BYTES};
