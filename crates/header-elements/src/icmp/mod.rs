//! ICMP.

mod checkicmpheader;
mod encapsulation;
mod icmp6error;
mod icmperror;
mod icmpipencap;
mod icmppingencap;
mod icmppingresponder;
mod icmppingsource;
mod pingstatistics;

pub use checkicmpheader::CheckICMPHeader;
pub use icmp6error::ICMP6Error;
pub use icmperror::ICMPError;
pub use icmpipencap::ICMPIPEncap;
pub use icmppingencap::ICMPPingEncap;
pub use icmppingresponder::ICMPPingResponder;
pub use icmppingsource::ICMPPingSource;

element::classes![
    ICMPError,
    ICMP6Error,
    CheckICMPHeader,
    ICMPPingEncap,
    ICMPPingResponder,
    ICMPPingSource,
    ICMPIPEncap,
];
