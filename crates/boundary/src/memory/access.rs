//! The one trait through which shared memory is reached.

use core::sync::atomic::Ordering;

/// A region of memory that a peer, possibly hostile, reads and writes at the same time.
///
/// All accesses name a byte offset from the start of the region. An access outside the region, or a word
/// access that isn't aligned to the word's size, reads zero and writes nothing: the code above checks its
/// layout when it is made, so this is a second lock on the door, not a way of reporting errors.
///
/// The rings and the mailbox run unchanged on mapped memory ([`Mapped`](crate::Mapped)), on a model for
/// loom (`tests/loom.rs`) and on a double that answers every load with a random value.
///
/// # Safety
///
/// An implementation must
/// - keep the region readable and writable for as long as it lives,
/// - make every word access atomic with the order that it is given,
/// - never hand out a reference into the region: the peer may write to it at any time,
/// - copy in `read` and `write` without reading one byte twice.
pub unsafe trait SharedMemory {
    /// Bytes in the region.
    fn size(&self) -> usize;

    /// Loads the 32-bit word at `offset`.
    fn load_u32(&self, offset: usize, order: Ordering) -> u32;

    /// Stores a 32-bit word at `offset`.
    fn store_u32(&self, offset: usize, value: u32, order: Ordering);

    /// Loads the 64-bit word at `offset`.
    fn load_u64(&self, offset: usize, order: Ordering) -> u64;

    /// Stores a 64-bit word at `offset`.
    fn store_u64(&self, offset: usize, value: u64, order: Ordering);

    /// Orders all accesses before it before all accesses after it, for both sides.
    fn fence(&self);

    /// Copies bytes out of the region; `into` is zeroed when the range leaves the region.
    fn read(&self, offset: usize, into: &mut [u8]);

    /// Copies bytes into the region.
    fn write(&self, offset: usize, from: &[u8]);
}
