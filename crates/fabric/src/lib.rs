//! The data plane: boxes, switches and ports, in a process that a daemon orders about through one socket.
//!
//! It has three layers:
//! - The `network` is one thread that moves packets between boxes, switches and devices.
//! - The `lifecycle` of boxes starts, watches, throttles and restarts them. It holds their configurations, so that a box
//!   that crashes is restarted although no daemon is there.
//! - Above them, [`serve()`] carries out the daemon's orders.
//!
//! Invariants:
//! - The engine is not linked, so a bug in an element cannot affect this process. No configuration text, JSON or SQL is
//!   parsed here: texts are passed to boxes as bytes.
//! - Every order is checked as if a stranger had sent it. An order that fails changes nothing.
//! - A packet never waits for an order, for the daemon, or for the reader of a capture.
//! - Without a daemon everything goes on.
//!
//! Absent on purpose: users, stacks and stored definitions, which the daemon has; opening devices, which the launcher
//! does.

#![forbid(unsafe_code)]

mod boxes;
mod diagnostics;
mod error;
mod fair_lock;
mod filter;
mod functions;
mod history;
mod lifecycle;
mod limits;
mod network;
mod numa;
mod processors;
mod run;
mod serve;

pub use lifecycle::{Fabric, StartError};
pub use run::run;
pub use serve::{serve, serve_agent};

/// Settings of a fabric.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image that boxes run.
    pub image: &'static [u8],
    /// Threads that run virtual machines. 0: one per processor, except those that the switches use.
    pub workers: usize,
    /// Threads that switch packets: 1 to 8. Each box has as many ring pairs at each of its ports.
    pub switch_threads: usize,
    /// Other fabrics use the same processors: idle threads sleep at once, instead of polling for packets for a moment.
    pub shares_processors: bool,
}
