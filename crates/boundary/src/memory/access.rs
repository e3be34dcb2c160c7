//! The trait through which all shared memory is accessed.

use core::sync::atomic::Ordering;

/// A region of memory that a possibly hostile peer reads and writes concurrently.
///
/// All accesses use a byte offset from the start of the region. An access outside the region, or a word access that is
/// not aligned to the word's size, reads zero and writes nothing. The callers check their layout when they are created,
/// so this is a second line of defence, not a way to report errors.
///
/// The rings and the mailbox run unchanged on mapped memory ([`Mapped`](crate::Mapped)), on a model for loom
/// (`tests/loom.rs`) and on a test double that answers every load with a random value.
///
/// # Safety
///
/// An implementation must
/// - keep the region readable and writable for as long as it lives,
/// - make every word access atomic with the given order,
/// - never hand out a reference into the region: the peer may write to it at any time,
/// - copy in `read` and `write` without reading one byte twice.
pub unsafe trait SharedMemory {
    /// The size of the region in bytes.
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

    /// Copies bytes out of the region; `into` is zeroed if the range is not inside the region.
    fn read(&self, offset: usize, into: &mut [u8]);

    /// Copies bytes into the region.
    fn write(&self, offset: usize, from: &[u8]);
}
