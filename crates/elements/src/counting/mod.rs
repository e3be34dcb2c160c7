//! Counting and looking.

use element::Class;

mod averagecounter;
mod bandwidthmeter;
mod counter;
mod dump;
mod meter;
mod print;
pub mod rate;
pub mod ratemeter;

pub use averagecounter::AverageCounter;
pub use bandwidthmeter::BandwidthMeter;
pub use counter::Counter;
pub use meter::Meter;
pub use print::Print;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<Counter>(),
    Class::of::<AverageCounter>(),
    Class::of::<Meter>(),
    Class::of::<BandwidthMeter>(),
    Class::of::<Print>(),
];
