//! A blocking client: one call, one connection, no threads.

mod address;
mod call;
mod error;
mod reply;
mod socket;

pub use address::{Address, AddressError, SOCKET_VARIABLE, sockets};
pub use call::{Client, Credentials};
pub use error::ClientError;
pub use reply::{LineStream, Receive, Send};
