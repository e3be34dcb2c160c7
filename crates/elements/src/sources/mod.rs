//! Sources and sinks.

use element::Class;

mod discard;
mod idle;
mod infinitesource;
mod null;
mod production;
mod ratedsource;

pub use discard::Discard;
pub use idle::Idle;
pub use infinitesource::InfiniteSource;
pub use null::Null;
pub(crate) use production::MOST_AT_ONCE;
pub use ratedsource::RatedSource;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<InfiniteSource>(),
    Class::of::<RatedSource>(),
    Class::of::<Discard>(),
    Class::of::<Idle>(),
    Class::of::<Null>(),
];
