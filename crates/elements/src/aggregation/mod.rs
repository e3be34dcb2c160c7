//! Flows and address groups, and their statistics.

use element::Class;

mod aggregatecounter;
mod aggregateip;
mod aggregateipflows;
mod aggregatepacketcounter;
mod call;
mod countfile;
mod counts;
mod field;
mod flow;
mod flowrecords;
mod fragments;
mod ipratemonitor;
mod rates;

pub use aggregatecounter::AggregateCounter;
pub use aggregateip::AggregateIP;
pub use aggregateipflows::AggregateIPFlows;
pub use aggregatepacketcounter::AggregatePacketCounter;
pub use ipratemonitor::IPRateMonitor;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<AggregateIP>(),
    Class::of::<AggregateIPFlows>(),
    Class::of::<AggregateCounter>(),
    Class::of::<AggregatePacketCounter>(),
    Class::of::<IPRateMonitor>(),
];
