//! The switch's side of the sessions with controllers, without I/O (OpenFlow 1.3.5, 6.3).
//!
//! An [`Agent`] speaks for one switch, to any number of controllers. Its caller moves bytes between it and connections,
//! and calls [`Agent::poll`] when time passes.

mod agent;
mod buffers;
mod connection;
mod datapath;
mod limits;
mod port_config;
mod request;

pub use agent::{Agent, AgentCounters, SessionId};
pub use datapath::{Datapath, Event, PacketForController, Report};
pub use limits::{AgentLimits, SessionState};
