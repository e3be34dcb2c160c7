//! `vhost_user`: the back end of a virtual machine's virtio network device, over memory that the machine shares.

mod bell;
mod connection;
mod error;
mod memory;
mod messages;
mod offloads;
mod pairs;
mod port;
mod ring;

pub use error::VhostUserError;
pub use port::{VhostUser, VhostUserSettings};
