//! Services, their instances, and chains of them (OpenNetVM's manager).

mod counters;
mod entry;
mod entry_way;
mod flow_records;
mod freeze;
mod handover;
mod identity;
mod instances;
mod leave;
mod numbered;
mod pass;
mod plan;
mod sums;
mod table;
mod translator;
mod version;
mod way;

pub use counters::{ChainBooks, HopCounters};
pub(crate) use entry_way::{EntryWay, KnownFlow};
pub(crate) use identity::Identity;
pub use instances::{OverruledAnswers, RefusedTuples, RemovedInstances};
pub use plan::{
    ChainPlan, ChainsPlan, DestinationPlan, InstancePlan, MAX_HOPS, MAX_SLOTS, MappingPlan, RangePlan,
    ServicePlan, TranslationPlan,
};
pub use table::{ChainCounters, Chains, InstanceStatus};
pub(crate) use table::{Role, Step};
pub use translator::HostPair;
