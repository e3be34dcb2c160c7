//! The user-space switch: what joins boxes, devices, files and each other.
//!
//! Three layers, each tested without the next: a [`Forward`] decides where a frame goes; a [`Switch`]
//! applies it to batches, counts, and keeps to caps; a [`SwitchRunner`] moves batches between the switch and
//! its ports' [`Driver`]s, and sleeps when there is nothing to move.
//!
//! Invariants:
//! - The core does no I/O and reads no clock: time is given.
//! - What is looked at of a frame is copied out of its port first, so that what was checked stays as it was.
//! - Every frame that comes in goes out, or is counted under a reason, at the port that it came from or
//!   was for.
//! - What a port may cost is bounded: frames a visit, addresses it may teach, frames and bits a second.
//!
//! Absent on purpose: virtual LANs, spanning tree, steering by flow.

mod batch;
mod box_pipe;
mod counters;
pub mod device;
pub mod driver;
mod forward;
mod link;
mod port;
mod port_capture;
mod rate_limiter;
mod runner;
mod switch;

pub use batch::{Batch, MAX_FRAME, SplitFrame};
pub use box_pipe::BoxPipe;
pub use counters::{Counters, REASONS};
pub use driver::{Driver, DriverError};
pub use forward::{
    Decision, Forward, ForwardingMode, LearningBridge, LearningSettings, StaticTable, TableError,
};
pub use link::{BoxLink, Link, PIPE_RINGS};
pub use packet::MacAddr;
pub use port::{PortId, PortSettings};
pub use port_capture::{Capture, CaptureSink, CapturedDriver, Captures, Delivery};
pub use rate_limiter::{RateLimit, RateLimiter};
pub use reason::Reason;
pub use runner::{PortCost, SwitchRunner, wait};
pub use switch::{ForwardingPlan, MAX_PORTS, Switch, SwitchError};
