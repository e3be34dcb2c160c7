//! Storing packets, and moving them from pull to push.

use element::Class;

mod bandwidthratedunqueue;
mod burster;
mod delayunqueue;
mod fifo;
mod frontdropqueue;
pub mod length;
mod linkunqueue;
mod mixedqueue;
mod notifierqueue;
mod queue;
mod quicknotequeue;
mod ratedpull;
mod ratedunqueue;
mod simplequeue;
mod threadsafequeue;
mod timedpull;
mod timedunqueue;
mod unqueue;

pub use bandwidthratedunqueue::BandwidthRatedUnqueue;
pub use burster::Burster;
pub use delayunqueue::DelayUnqueue;
pub(crate) use delayunqueue::postpone;
pub use fifo::{Fifo, Kind};
pub use frontdropqueue::FrontDropQueue;
pub use length::Length;
pub use linkunqueue::LinkUnqueue;
pub use mixedqueue::MixedQueue;
pub use notifierqueue::NotifierQueue;
pub use queue::Queue;
pub use quicknotequeue::QuickNoteQueue;
pub use ratedunqueue::RatedUnqueue;
pub use simplequeue::SimpleQueue;
pub use threadsafequeue::ThreadSafeQueue;
pub use timedunqueue::TimedUnqueue;
pub use unqueue::Unqueue;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<Queue>(),
    Class::of::<SimpleQueue>(),
    Class::of::<NotifierQueue>(),
    Class::of::<QuickNoteQueue>(),
    Class::of::<ThreadSafeQueue>(),
    Class::of::<MixedQueue>(),
    Class::of::<FrontDropQueue>(),
    Class::of::<Unqueue>(),
    Class::of::<RatedUnqueue>(),
    Class::of::<BandwidthRatedUnqueue>(),
    Class::of::<TimedUnqueue>(),
    Class::of::<Burster>(),
    Class::of::<DelayUnqueue>(),
    Class::of::<LinkUnqueue>(),
];
