//! The environment of a plain process: clock, files, sockets, devices of this host.

mod bindings;
mod captures;
mod datagrams;
mod descriptors;
mod device_parts;
mod devices;
mod files;
mod filter;
mod host;
mod multicast;
mod open_socket;
mod parts;
mod process;
mod replay;
mod shard;
mod sockets;
mod split;
mod xdp;

pub(crate) use bindings::{Binding, BindingError, set as bind, unused as unused_bindings};
pub(crate) use parts::Outputs;
pub(crate) use process::ProcessEnvironment;
pub(crate) use replay::MemoryCapture;
pub(crate) use shard::{ShardLink, Waker};
pub(crate) use split::{join, remove_parts, split};
