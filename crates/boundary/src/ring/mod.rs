//! Single-producer single-consumer rings of packet descriptors.

mod consumer;
mod cursor;
mod descriptor;
mod producer;

pub use consumer::Consumer;
pub use cursor::{CorruptIndex, RingError, Slots, indices};
pub use descriptor::{Descriptor, DescriptorError, PoolLayout};
pub use producer::{FreeSlots, Producer};

pub(crate) use cursor::{HEADER, Reader, Writer};

#[cfg(test)]
mod tests;
