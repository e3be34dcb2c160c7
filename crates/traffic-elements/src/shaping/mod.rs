//! Rate limits, delays and active queue management.

mod adaptivered;
pub mod average;
mod bandwidthratedsplitter;
mod bandwidthshaper;
mod codel;
mod delayshaper;
mod dropping;
pub mod early;
mod earlydrop;
pub mod gaprate;
mod pi;
mod randomsample;
pub mod rated;
mod ratedsplit;
mod ratedsplitter;
mod red;
mod shaper;
pub mod tokenbucket;
pub mod watched;

pub use adaptivered::AdaptiveRed;
pub use bandwidthratedsplitter::BandwidthRatedSplitter;
pub use bandwidthshaper::BandwidthShaper;
pub use codel::CoDel;
pub use delayshaper::DelayShaper;
pub use gaprate::GapRate;
pub use pi::Pi;
pub use randomsample::RandomSample;
pub use ratedsplitter::RatedSplitter;
pub use red::Red;
pub use shaper::Shaper;
pub use tokenbucket::TokenBucket;

element::classes![
    Shaper,
    BandwidthShaper,
    DelayShaper,
    RatedSplitter,
    BandwidthRatedSplitter,
    RandomSample,
    Red,
    AdaptiveRed,
    Pi,
    CoDel,
];
