//! ICMP.

use element::Class;

mod checkicmpheader;
mod icmperror;
mod icmppingencap;
mod icmppingresponder;

pub use checkicmpheader::CheckICMPHeader;
pub use icmperror::ICMPError;
pub use icmppingencap::ICMPPingEncap;
pub use icmppingresponder::ICMPPingResponder;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<ICMPError>(),
    Class::of::<CheckICMPHeader>(),
    Class::of::<ICMPPingEncap>(),
    Class::of::<ICMPPingResponder>(),
];
