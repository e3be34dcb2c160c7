//! The environment of a plain process: clock, files, sockets, devices of this host.

mod datagrams;
mod descriptors;
mod devices;
mod files;
mod filter;
mod host;
mod multicast;
mod open_socket;
mod process;
mod replay;
mod sockets;

pub(crate) use process::ProcessEnvironment;
pub(crate) use replay::MemoryCapture;
