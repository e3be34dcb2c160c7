//! Queues, and elements that move packets from pull to push.

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
mod replayunqueue;
mod simplequeue;
mod stored;
mod threadsafequeue;
mod timedpull;
mod timedunqueue;
mod unqueue;

pub use bandwidthratedunqueue::BandwidthRatedUnqueue;
pub use burster::Burster;
pub use delayunqueue::DelayUnqueue;
pub(crate) use delayunqueue::postpone;
pub use fifo::{Fifo, QueuePolicy};
pub use frontdropqueue::FrontDropQueue;
pub use length::Length;
pub use linkunqueue::LinkUnqueue;
pub use mixedqueue::MixedQueue;
pub use notifierqueue::NotifierQueue;
pub use queue::Queue;
pub use quicknotequeue::QuickNoteQueue;
pub use ratedunqueue::RatedUnqueue;
pub use replayunqueue::ReplayUnqueue;
pub use simplequeue::SimpleQueue;
pub use threadsafequeue::ThreadSafeQueue;
pub use timedunqueue::TimedUnqueue;
pub use unqueue::Unqueue;

element::classes![
    Queue,
    SimpleQueue,
    NotifierQueue,
    QuickNoteQueue,
    ThreadSafeQueue,
    MixedQueue,
    FrontDropQueue,
    Unqueue,
    RatedUnqueue,
    BandwidthRatedUnqueue,
    TimedUnqueue,
    Burster,
    DelayUnqueue,
    LinkUnqueue,
    ReplayUnqueue,
];
