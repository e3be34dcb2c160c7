//! Packet schedulers: elements that choose the input of a pull.

mod drrsched;
mod priosched;
mod pullswitch;
mod roundrobinsched;
mod simplepullswitch;
mod staticpullswitch;
pub(crate) mod stride;
mod stridesched;
mod timesortedsched;

pub use drrsched::DRRSched;
pub use priosched::PrioSched;
pub use pullswitch::PullSwitch;
pub use roundrobinsched::RoundRobinSched;
pub use simplepullswitch::SimplePullSwitch;
pub use staticpullswitch::StaticPullSwitch;
pub use stridesched::StrideSched;
pub use timesortedsched::TimeSortedSched;

element::classes![
    RoundRobinSched,
    PrioSched,
    StrideSched,
    DRRSched,
    TimeSortedSched,
    PullSwitch,
    SimplePullSwitch,
    StaticPullSwitch,
];
