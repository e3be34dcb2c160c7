//! ICMP.

use element::Class;

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

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<ICMPError>(),
    Class::of::<ICMP6Error>(),
    Class::of::<CheckICMPHeader>(),
    Class::of::<ICMPPingEncap>(),
    Class::of::<ICMPPingResponder>(),
    Class::of::<ICMPPingSource>(),
    Class::of::<ICMPIPEncap>(),
];
