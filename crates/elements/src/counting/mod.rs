//! Counting and looking.

use element::Class;

mod counter;
mod dump;
mod print;
pub mod rate;

pub use counter::Counter;
pub use print::Print;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[Class::of::<Counter>(), Class::of::<Print>()];
