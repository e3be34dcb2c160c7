//! Choosing where to push to.

use element::Class;

mod block;
mod bypass;
mod hashswitch;
mod hub;
mod inputswitch;
mod paintswitch;
mod painttee;
mod pulltee;
mod randomswitch;
mod roundrobinswitch;
mod staticswitch;
mod strideswitch;
mod suppressor;
mod switch;
mod tee;

pub use block::Block;
pub use bypass::Bypass;
pub use hashswitch::HashSwitch;
pub use hub::Hub;
pub use inputswitch::InputSwitch;
pub use paintswitch::PaintSwitch;
pub use painttee::PaintTee;
pub use pulltee::PullTee;
pub use randomswitch::RandomSwitch;
pub use roundrobinswitch::RoundRobinSwitch;
pub use staticswitch::StaticSwitch;
pub use strideswitch::StrideSwitch;
pub use suppressor::Suppressor;
pub use switch::Switch;
pub use tee::Tee;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<Switch>(),
    Class::of::<StaticSwitch>(),
    Class::of::<InputSwitch>(),
    Class::of::<RoundRobinSwitch>(),
    Class::of::<StrideSwitch>(),
    Class::of::<HashSwitch>(),
    Class::of::<RandomSwitch>(),
    Class::of::<PaintSwitch>(),
    Class::of::<Tee>(),
    Class::of::<PullTee>(),
    Class::of::<PaintTee>(),
    Class::of::<Hub>(),
    Class::of::<Bypass>(),
    Class::of::<Block>(),
    Class::of::<Suppressor>(),
];
