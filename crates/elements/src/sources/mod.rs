//! Sources and sinks.

use element::Class;

mod discard;

pub use discard::Discard;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[Class::of::<Discard>()];
