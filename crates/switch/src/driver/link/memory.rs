//! The memory that the two sides of a link share: a sealed memory file.
//!
//! Each direction has a ring of [`SLOTS`] descriptors (`boundary`), followed by one buffer for each slot. A frame in slot
//! N is in buffer N: no side lets the other choose where it reads or writes.

use super::error::LinkError;
use crate::driver::sealed_memory::{self, MemoryFile, SEALS};
use boundary::limits::BUFFER_SIZE;
use boundary::{Consumer, Mapped, Producer, Slots};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

/// The slots of each ring. A side that is busy for a millisecond misses no frame at a million frames per second.
pub(super) const SLOTS: Slots = match Slots::new(1024) {
    Ok(slots) => slots,
    Err(_) => panic!("1024 slots are allowed"),
};

/// Bytes of a ring, up to a page boundary.
const RING: usize = SLOTS.bytes().next_multiple_of(4096);
/// Bytes of one direction.
const DIRECTION: usize = RING + SLOTS.count() as usize * BUFFER_SIZE;
/// Bytes of the memory file.
pub(super) const SIZE: usize = 2 * DIRECTION;

/// The end of a direction at which frames are written.
#[derive(Debug)]
pub(super) struct Transmit {
    pub(super) ring: Producer<Mapped>,
    pub(super) buffers: Mapped,
}

/// The end of a direction at which frames are read.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) ring: Consumer<Mapped>,
    pub(super) buffers: Mapped,
}

/// The mapped memory of a link. It is unmapped on drop.
#[derive(Debug)]
pub(super) struct LinkMemory {
    start: NonNull<u8>,
    /// The number of the memory file, which is the same in both processes.
    number: u64,
}

// SAFETY: the mapping is not tied to a thread; it is accessed only through `Mapped`, which tolerates concurrent writers.
unsafe impl Send for LinkMemory {}

/// Creates the memory file of a new link, all zeros and sealed.
pub(super) fn create() -> Result<OwnedFd, LinkError> {
    Ok(sealed_memory::create(c"link", SIZE)?)
}

impl LinkMemory {
    /// Maps the memory file of a link, which another process may have created.
    ///
    /// # Errors
    ///
    /// An access to the mapping could raise a signal: the file is not a memory file with small pages, has another length,
    /// or its length is not sealed.
    pub(super) fn map(file: &OwnedFd) -> Result<Self, LinkError> {
        let Some(MemoryFile { seals, length, number }) = MemoryFile::inspect(file)? else {
            return Err(LinkError::NotMemory);
        };
        if seals & SEALS != SEALS {
            return Err(LinkError::NotSealed);
        }
        if length != SIZE as u64 {
            return Err(LinkError::Length(length));
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address of the new mapping, so no existing memory is affected.
        let start = unsafe { libc::mmap(null_mut(), SIZE, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(pointer) if start != libc::MAP_FAILED => Ok(Self { start: pointer, number }),
            _ => Err(io::Error::last_os_error().into()),
        }
    }

    /// What identifies the link, in both processes.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The ends of the two directions for one of the two sides. The memory must outlive them.
    pub(super) fn ends(&self, side: Side) -> Option<(Transmit, Receive)> {
        // SAFETY: the file is mapped readable and writable with this length, and cannot shrink. The caller, `LinkPort`, keeps
        // the ends in private fields beside this mapping and hands none of them out.
        let all = unsafe { Mapped::new(self.start, SIZE) };
        let (own, other) = match side {
            Side::First => (0, DIRECTION),
            Side::Second => (DIRECTION, 0),
        };
        let part = |start| Some((all.part(start, RING)?, all.part(start + RING, DIRECTION - RING)?));
        let ((ring, buffers), (far_ring, far_buffers)) = (part(own)?, part(other)?);
        let transmit = Transmit { ring: Producer::new(ring, SLOTS).ok()?, buffers };
        Some((transmit, Receive { ring: Consumer::new(far_ring, SLOTS).ok()?, buffers: far_buffers }))
    }
}

impl Drop for LinkMemory {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own mapping; its users are dropped with it and don't access it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), SIZE) };
    }
}

/// A side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The side that created the link.
    First,
    /// The side that joined it.
    Second,
}
