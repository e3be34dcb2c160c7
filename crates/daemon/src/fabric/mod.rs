//! What moves packets: one thread with all switches, pipes and their ports.
//!
//! One thread, since a box has one bell for all of its ports, whichever switches they are at. What is asked of the
//! thread is an order, which it carries out between two rounds; nothing in an order waits.

mod box_pipe;
mod capture;
mod forwarding_mode;
mod network;
mod open_port;
mod pcap_port;
mod port_slot;
mod switches;
mod thread;
mod traffic;

pub(crate) use capture::{Capture, header as capture_header};
pub(crate) use network::AttachRequest;
pub(crate) use open_port::{missing, open};
pub(crate) use port_slot::Port;
pub(crate) use switches::PortLocation;
pub(crate) use thread::Fabric;
pub(crate) use traffic::{PortStats, TrafficSnapshot};
