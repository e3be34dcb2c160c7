//! Choosing where to push to.

use element::Class;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[];
