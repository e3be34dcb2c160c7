//! `memif`: an interface over memory that two processes share, protocol 2.0, as in VPP and DPDK.

mod bell;
mod connection;
mod error;
mod memory;
mod port;
mod queues;
mod ring;
mod wire;

pub use connection::MemifSettings;
pub use error::MemifError;
pub use port::MemifPort;
