//! Shaping traffic to a rate or a delay, and dropping early.

use element::Class;

pub mod tokenbucket;

pub use tokenbucket::TokenBucket;

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[];
