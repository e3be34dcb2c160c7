//! Counting and looking.

use element::Class;

mod counter;
pub mod rate;

pub use counter::Counter;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[Class::of::<Counter>()];
