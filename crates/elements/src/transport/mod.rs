//! UDP and TCP headers.

use element::Class;

mod checktcpheader;
mod checkudpheader;
mod dynamicudpipencap;
mod encapsulation;
mod settcpchecksum;
mod setudpchecksum;
mod tcpfragmenter;
mod udpipencap;

pub use checktcpheader::CheckTCPHeader;
pub use checkudpheader::CheckUDPHeader;
pub use dynamicudpipencap::DynamicUDPIPEncap;
pub use settcpchecksum::SetTCPChecksum;
pub use setudpchecksum::SetUDPChecksum;
pub use tcpfragmenter::TCPFragmenter;
pub use udpipencap::UDPIPEncap;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<UDPIPEncap>(),
    Class::of::<CheckUDPHeader>(),
    Class::of::<CheckTCPHeader>(),
    Class::of::<SetTCPChecksum>(),
    Class::of::<SetUDPChecksum>(),
    Class::of::<DynamicUDPIPEncap>(),
    Class::of::<TCPFragmenter>(),
];
