//! Measurements of the processes: packet loss while the daemon is away, and owners that share a host.

mod outage;
mod owners;
mod requests;

pub use outage::{Interrupted, Outage, Stream, outage};
pub use owners::{Owners, RoundTrips, owners};
