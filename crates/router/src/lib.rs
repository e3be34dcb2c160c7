//! A running graph of elements: checks, tasks, timers, signals, handlers and hot swap.
//!
//! [`Router::new`] takes a flat graph and a registry of classes; [`Router::run`] drives it, or [`Router::turn`] bit by
//! bit. Invariants:
//! - packets are delivered depth first, in the order in which Click pushes them, whatever the batch size;
//! - an element is never called while one of its calls is under way;
//! - a swap to a new configuration happens as a whole or not at all;
//! - with a simulated clock a run is deterministic and never waits.
//!
//! Absent: any concrete element, files, devices and clocks of its own; the environment has them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod build;
mod check;
mod clock;
mod deliver;
mod handlers;
mod hookup;
mod node;
mod order;
mod ports;
mod precedence;
mod processing;
mod registry;
mod router;
mod runtime;
mod schedule;
mod signals;
mod standard;
mod state;
mod swap;
mod timers;
mod turn;

pub use build::{DEFAULT_BATCH, Options};
pub use check::check;
pub use registry::Registry;
pub use router::{Loss, ROUTER_VERSION, Router, RunEnd};
pub use turn::Turn;
