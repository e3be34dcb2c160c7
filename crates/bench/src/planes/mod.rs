//! What the processes of a daemon cost each other and the packets: ends of the daemon, and owners that share a host.

mod outage;
mod owners;
mod requests;

pub use outage::{Interrupted, Outage, Stream, outage};
pub use owners::{Owners, RoundTrips, owners};
