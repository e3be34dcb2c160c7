//! UDP and TCP headers.

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

element::classes![
    UDPIPEncap,
    CheckUDPHeader,
    CheckTCPHeader,
    SetTCPChecksum,
    SetUDPChecksum,
    DynamicUDPIPEncap,
    TCPFragmenter,
];
