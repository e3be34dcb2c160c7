//! Services, their instances, and chains of them (OpenNetVM's manager).

mod flow_records;
mod identity;
mod instances;
mod plan;
mod table;
mod version;

pub use plan::{ChainPlan, ChainsPlan, DestinationPlan, InstancePlan, MAX_HOPS, MAX_SLOTS, ServicePlan};
pub use table::{ChainCounters, Chains, HopCounters, InstanceStatus};
pub(crate) use table::{Role, Step};
