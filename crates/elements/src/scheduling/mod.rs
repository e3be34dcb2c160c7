//! Choosing where to pull from.

use element::Class;

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

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<RoundRobinSched>(),
    Class::of::<PrioSched>(),
    Class::of::<StrideSched>(),
    Class::of::<DRRSched>(),
    Class::of::<TimeSortedSched>(),
    Class::of::<PullSwitch>(),
    Class::of::<SimplePullSwitch>(),
    Class::of::<StaticPullSwitch>(),
];
