//! Sources and sinks.

use element::Class;

mod bursts;
mod discard;
mod fasttcpflows;
mod fastudpflows;
mod fastudpsource;
mod frame;
mod idle;
mod infinitesource;
mod metered;
mod null;
mod production;
mod pullnull;
mod pushnull;
mod randomsource;
mod ratedsource;
mod timedsink;
mod timedsource;

pub use discard::Discard;
pub use fasttcpflows::FastTCPFlows;
pub use fastudpflows::FastUDPFlows;
pub use fastudpsource::FastUDPSource;
pub use idle::Idle;
pub use infinitesource::InfiniteSource;
pub use null::Null;
pub(crate) use production::MOST_AT_ONCE;
pub use pullnull::PullNull;
pub use pushnull::PushNull;
pub use randomsource::RandomSource;
pub use ratedsource::RatedSource;
pub use timedsink::TimedSink;
pub use timedsource::TimedSource;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<InfiniteSource>(),
    Class::of::<RatedSource>(),
    Class::of::<TimedSource>(),
    Class::of::<RandomSource>(),
    Class::of::<FastUDPSource>(),
    Class::of::<FastUDPFlows>(),
    Class::of::<FastTCPFlows>(),
    Class::of::<Discard>(),
    Class::of::<TimedSink>(),
    Class::of::<Idle>(),
    Class::of::<Null>(),
    Class::of::<PushNull>(),
    Class::of::<PullNull>(),
];
