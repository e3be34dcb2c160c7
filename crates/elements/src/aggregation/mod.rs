//! Flows and address groups, and their statistics.

use element::Class;

mod aggregatecounter;
mod aggregateipflows;
mod aggregatepacketcounter;

pub use aggregatecounter::AggregateCounter;
pub use aggregateipflows::AggregateIPFlows;
pub use aggregatepacketcounter::AggregatePacketCounter;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<AggregateIPFlows>(),
    Class::of::<AggregateCounter>(),
    Class::of::<AggregatePacketCounter>(),
];
