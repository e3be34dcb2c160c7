//! Shaping traffic to a rate or a delay, and dropping early.

use element::Class;

mod bandwidthratedsplitter;
mod bandwidthshaper;
mod delayshaper;
pub mod gaprate;
pub mod rated;
mod ratedsplit;
mod ratedsplitter;
mod shaper;
pub mod tokenbucket;

pub use bandwidthratedsplitter::BandwidthRatedSplitter;
pub use bandwidthshaper::BandwidthShaper;
pub use delayshaper::DelayShaper;
pub use gaprate::GapRate;
pub use ratedsplitter::RatedSplitter;
pub use shaper::Shaper;
pub use tokenbucket::TokenBucket;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<Shaper>(),
    Class::of::<BandwidthShaper>(),
    Class::of::<DelayShaper>(),
    Class::of::<RatedSplitter>(),
    Class::of::<BandwidthRatedSplitter>(),
];
