//! Measurements of the processes: packet loss while the daemon is away, the rebuild of a fabric, and owners that share a
//! host.

mod outage;
mod owners;
mod rebuild;
mod requests;

pub use outage::{Interrupted, Outage, Stream, outage};
pub use owners::{Owners, RoundTrips, owners};
pub use rebuild::{Rebuild, rebuild};
