//! Storing packets, and moving them from pull to push.

use element::Class;

mod fifo;
mod frontdropqueue;
pub mod length;
mod mixedqueue;
mod notifierqueue;
mod queue;
mod quicknotequeue;
mod simplequeue;
mod threadsafequeue;
mod unqueue;

pub use fifo::{Fifo, Kind};
pub use frontdropqueue::FrontDropQueue;
pub use mixedqueue::MixedQueue;
pub use notifierqueue::NotifierQueue;
pub use queue::Queue;
pub use quicknotequeue::QuickNoteQueue;
pub use simplequeue::SimpleQueue;
pub use threadsafequeue::ThreadSafeQueue;
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
];
