//! Changing bytes, lengths and annotations.

use element::Class;

mod checklength;

pub use checklength::CheckLength;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[Class::of::<CheckLength>()];
