//! What moves packets: one thread with all switches, pipes and their ports.
//!
//! One thread, since a box has one bell for all of its ports, whichever switches they are at. What is asked of the
//! thread is an order, which it carries out between two rounds; nothing in an order waits.

mod device;
mod joint;
mod network;
mod plug;
mod replay;
mod survey;
mod switches;
mod tap;
mod thread;
mod way;

pub(crate) use device::{missing, open};
pub(crate) use network::Attach;
pub(crate) use plug::Port;
pub(crate) use survey::{Passed, Survey};
pub(crate) use switches::Socket;
pub(crate) use tap::{Tap, header as capture_header};
pub(crate) use thread::Fabric;
