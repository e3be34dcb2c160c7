//! Measurements of the processes: packet loss while the daemon is away, the rebuild of a fabric, owners that share a host,
//! and changes of flow entries by a controller.

mod controller;
mod outage;
mod owners;
mod rebuild;
mod requests;
mod rule_changes;

pub use outage::{Interrupted, Outage, Stream, outage};
pub use owners::{Owners, RoundTrips, owners};
pub use rebuild::{Rebuild, rebuild};
pub use rule_changes::{RuleChanges, RuleChangesScope, rule_changes};
