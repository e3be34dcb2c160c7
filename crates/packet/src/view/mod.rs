//! Typed views of protocol headers over borrowed bytes.
//!
//! Every file has the same order: constants, header fields by offset, computed values, the rest of the packet,
//! printing, helpers, tests.
//!
//! A `View` reads; a `ViewMut` also writes. Construction checks once that the fixed part of the header is present.
//! After that, no accessor fails or panics on any bytes: lengths that a header claims are cut to the available bytes,
//! and unknown values are kept as they are. Where a protocol defines validity rules, `check` applies them.

#[macro_use]
mod field;

pub mod arp;
pub mod ethernet;
pub mod icmp4;
pub mod icmp6;
pub mod ip4;
pub mod ip6;
pub mod ppp;
pub mod pppoe;
pub mod protocol;
pub mod tcp;
pub mod udp;
pub mod vlan;

pub use arp::{View as ArpView, ViewMut as ArpViewMut};
pub use ethernet::{EtherType, View as EthernetView, ViewMut as EthernetViewMut};
pub use icmp4::{View as Icmp4View, ViewMut as Icmp4ViewMut};
pub use icmp6::{View as Icmp6View, ViewMut as Icmp6ViewMut};
pub use ip4::{View as Ip4View, ViewMut as Ip4ViewMut};
pub use ip6::{View as Ip6View, ViewMut as Ip6ViewMut};
pub use ppp::{View as PppView, ViewMut as PppViewMut};
pub use pppoe::{View as PppoeView, ViewMut as PppoeViewMut};
pub use tcp::{View as TcpView, ViewMut as TcpViewMut};
pub use udp::{View as UdpView, ViewMut as UdpViewMut};
pub use vlan::{View as VlanView, ViewMut as VlanViewMut};
