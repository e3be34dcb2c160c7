//! ICMP.

use element::Class;

mod checkicmpheader;
mod icmperror;

pub use checkicmpheader::CheckICMPHeader;
pub use icmperror::ICMPError;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[Class::of::<ICMPError>(), Class::of::<CheckICMPHeader>()];
