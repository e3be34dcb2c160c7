//! Access to memory that the other side may change at any time.

mod access;
mod mapped;

#[cfg(test)]
pub(crate) mod hostile;

pub use access::SharedMemory;
pub(crate) use mapped::MappedRing;
pub use mapped::{CACHE_LINE, Mapped, end_stream};
