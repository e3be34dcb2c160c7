//! The fabric: one thread with all switches, pipes and their ports.
//!
//! It is one thread because a box has one bell for all of its ports, whichever switches they are attached to. Others ask
//! it to run commands, which it does between two rounds of forwarding; no command waits. Everything that touches frames
//! is the `switch` crate's: the fabric keeps records of names, owners and limits.

mod capture_stream;
mod network;
mod open_port;
mod records;
mod stats;
mod switches;
mod thread;
mod traffic;

pub(crate) use capture_stream::CaptureStream;
pub(crate) use open_port::{open, placeholder};
pub(crate) use records::{AttachRequest, Port, PortLocation};
pub(crate) use stats::{PortStats, TrafficSnapshot};
pub(crate) use thread::Fabric;
