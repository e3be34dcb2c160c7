//! `af_xdp`: a kernel network device, through XDP sockets: one for each of its receive queues.

mod checksum;
mod device;
mod error;
mod interface;
mod limits;
mod mapping;
mod port;
mod program;
mod ring;
mod socket;
mod traffic;
mod umem;

#[cfg(any(test, fuzzing))]
pub(crate) use checksum::complete as complete_checksum;
pub use error::XdpError;
pub use interface::{XdpInterface, XdpSent};
pub use port::AfXdp;
pub use traffic::{XdpSource, pass_frames};
