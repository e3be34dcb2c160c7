//! Aggregates: flows and address groups, and their statistics.

mod aggregatecounter;
mod aggregateip;
mod aggregateipflows;
mod aggregatepacketcounter;
mod countfile;
mod counts;
mod field;
mod flow;
mod flowrecords;
mod fragments;
mod ipratemonitor;
mod rates;
mod trigger;

pub use aggregatecounter::AggregateCounter;
pub use aggregateip::AggregateIP;
pub use aggregateipflows::AggregateIPFlows;
pub use aggregatepacketcounter::AggregatePacketCounter;
pub use ipratemonitor::IPRateMonitor;

element::classes![AggregateIP, AggregateIPFlows, AggregateCounter, AggregatePacketCounter, IPRateMonitor,];
