//! Elements that choose or multiply the output of a packet.

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

element::classes![
    Switch,
    StaticSwitch,
    InputSwitch,
    RoundRobinSwitch,
    StrideSwitch,
    HashSwitch,
    RandomSwitch,
    PaintSwitch,
    Tee,
    PullTee,
    PaintTee,
    Hub,
    Bypass,
    Block,
    Suppressor,
];
