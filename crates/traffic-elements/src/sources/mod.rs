//! Sources and sinks.

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
mod webgen;

pub use discard::Discard;
pub use fasttcpflows::FastTCPFlows;
pub use fastudpflows::FastUDPFlows;
pub use fastudpsource::FastUDPSource;
pub use idle::Idle;
pub use infinitesource::InfiniteSource;
pub use null::Null;
pub(crate) use production::MAX_PACKETS_PER_RUN;
pub use pullnull::PullNull;
pub use pushnull::PushNull;
pub use randomsource::RandomSource;
pub use ratedsource::RatedSource;
pub use timedsink::TimedSink;
pub use timedsource::TimedSource;
pub use webgen::WebGen;

element::classes![
    InfiniteSource,
    RatedSource,
    TimedSource,
    RandomSource,
    FastUDPSource,
    FastUDPFlows,
    FastTCPFlows,
    WebGen,
    Discard,
    TimedSink,
    Idle,
    Null,
    PushNull,
    PullNull,
];
