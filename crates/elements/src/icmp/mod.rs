//! ICMP.

use element::Class;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[];
