//! Counting and looking.

use element::Class;

mod arpprint;
mod averagecounter;
mod bandwidthmeter;
mod counter;
mod dump;
mod ip6print;
mod ipline;
mod ipprint;
mod journal;
mod meter;
mod print;
pub mod rate;
pub mod ratemeter;

pub use arpprint::ARPPrint;
pub use averagecounter::AverageCounter;
pub use bandwidthmeter::BandwidthMeter;
pub use counter::Counter;
pub use ip6print::IP6Print;
pub use ipprint::IPPrint;
pub use meter::Meter;
pub use print::Print;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<Counter>(),
    Class::of::<AverageCounter>(),
    Class::of::<Meter>(),
    Class::of::<BandwidthMeter>(),
    Class::of::<Print>(),
    Class::of::<IPPrint>(),
    Class::of::<ARPPrint>(),
    Class::of::<IP6Print>(),
];
