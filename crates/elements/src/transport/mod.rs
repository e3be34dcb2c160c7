//! UDP and TCP headers.

use element::Class;

mod checktcpheader;
mod checkudpheader;
mod udpipencap;

pub use checktcpheader::CheckTCPHeader;
pub use checkudpheader::CheckUDPHeader;
pub use udpipencap::UDPIPEncap;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] =
    &[Class::of::<UDPIPEncap>(), Class::of::<CheckUDPHeader>(), Class::of::<CheckTCPHeader>()];
