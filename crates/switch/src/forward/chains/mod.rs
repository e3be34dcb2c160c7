//! Services, their instances, and chains of them (OpenNetVM's manager).

mod counters;
mod flow_records;
mod identity;
mod instances;
mod plan;
mod table;
mod version;

pub use counters::{ChainBooks, HopCounters};
pub use plan::{ChainPlan, ChainsPlan, DestinationPlan, InstancePlan, MAX_HOPS, MAX_SLOTS, ServicePlan};
pub use table::{ChainCounters, Chains, InstanceStatus};
pub(crate) use table::{Role, Step};
