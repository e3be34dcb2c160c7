//! The fabric: one thread with all switches, pipes and their ports.
//!
//! There is only one thread because a box has one doorbell for all its ports, even if they are attached to different
//! switches. Other threads send it commands, which it runs between two rounds of forwarding; commands never block. The
//! `switch` crate handles all frames; the fabric keeps records of names, owners and limits.

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
