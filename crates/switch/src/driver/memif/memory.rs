//! Regions: the memory that the two sides of a connection share.
//!
//! The client makes them. The server maps what it gets from a client, which may be hostile: an access to a mapping must not
//! raise a signal, whatever the client does with its file.

use super::error::MemifError;
use crate::driver::sealed_memory::{self, MemoryFile};
use boundary::{Mapped, SharedMemory};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// Maximum bytes that all regions of a peer may have. Pages that this side touches count as its own memory. Two rings of 16,384
/// buffers of 2,048 bytes fit.
pub(super) const MAX_BYTES: u64 = 128 << 20;
/// Maximum regions of a peer. Each costs a mapping, of which a process cannot have many.
pub(super) const MAX_REGIONS: usize = 8;

/// A mapped region. It is unmapped on drop.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: the mapping is not tied to a thread; it is accessed only through `Mapped` and atomics, which tolerate concurrent
// writers.
unsafe impl Send for Region {}
// SAFETY: as above; no reference to what is not an atomic is handed out.
unsafe impl Sync for Region {}

impl Region {
    /// Makes a region of zeros, and its file for the peer.
    pub(super) fn create(size: usize) -> io::Result<(Self, OwnedFd)> {
        let file = sealed_memory::create(c"memif", size)?;
        Ok((Self::map_file(&file, size)?, file))
    }

    /// Maps a region of a peer.
    ///
    /// # Errors
    ///
    /// An access to the mapping could raise a signal: the file is not a memory file with small pages, is shorter than the
    /// region, or can be shortened.
    pub(super) fn map(file: OwnedFd, size: u64, discarder: &Discarder) -> Result<Self, MemifError> {
        let Some(MemoryFile { seals, length, .. }) = MemoryFile::inspect(&file)? else {
            discarder.discard(file);
            return Err(MemifError::NotMemory);
        };
        if seals & libc::F_SEAL_SHRINK == 0 {
            return Err(MemifError::NotSealed);
        }
        if size == 0 || length < size {
            return Err(MemifError::Length);
        }
        let size = usize::try_from(size).map_err(|_| MemifError::TooMuchMemory)?;
        Ok(Self::map_file(&file, size)?)
    }

    fn map_file(file: &OwnedFd, size: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address of the new mapping, so no existing memory is affected.
        let start = unsafe { libc::mmap(null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(pointer) if start != libc::MAP_FAILED => Ok(Self { start: pointer, size }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Bytes of the region.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Copies bytes out of the region. Returns false, with nothing copied, if they are not inside it.
    #[inline(always)]
    pub(super) fn read(&self, offset: usize, into: &mut [u8]) -> bool {
        let is_inside = self.mapped().pointer(offset, into.len()).is_some();
        if is_inside {
            self.mapped().read(offset, into);
        }
        is_inside
    }

    /// Copies bytes into a buffer of `room` bytes in the region; the peer reads them after [`end_stream`](boundary::end_stream).
    /// Those after them may become zeros. Returns false, with nothing copied, if the bytes do not fit inside the region.
    #[inline(always)]
    pub(super) fn write(&self, offset: usize, from: &[u8], room: usize) -> bool {
        let is_inside = self.mapped().pointer(offset, from.len()).is_some();
        if is_inside {
            self.mapped().stream(offset, from, room);
        }
        is_inside
    }

    /// The word of 64 bits at an offset; 0 if it is not inside the region.
    #[inline(always)]
    pub(super) fn load(&self, offset: usize) -> u64 {
        self.mapped().load_u64(offset, Ordering::Relaxed)
    }

    /// Sets the word of 64 bits at an offset.
    #[inline(always)]
    pub(super) fn store(&self, offset: usize, value: u64) {
        self.mapped().store_u64(offset, value, Ordering::Relaxed);
    }

    /// The word of 16 bits at an offset: rings have indices of this size beside those of the other side.
    #[inline(always)]
    pub(super) fn half(&self, offset: usize) -> Option<&AtomicU16> {
        let at = self.mapped().pointer(offset, 2)?.cast::<AtomicU16>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: the word is inside the mapping, which lives as long as the returned reference, and aligned. Both sides access
        // it as one word.
        Some(unsafe { at.as_ref() })
    }

    /// Fetches the cache line at an offset into the processor's cache.
    #[inline(always)]
    pub(super) fn prefetch_read(&self, offset: usize) {
        self.mapped().prefetch_read(offset);
    }

    /// Like [`prefetch_read`](Self::prefetch_read), for a line that will be written to: the other processor's copy becomes invalid.
    #[inline(always)]
    pub(super) fn prefetch_write(&self, offset: usize) {
        self.mapped().prefetch_write(offset);
    }

    #[inline(always)]
    fn mapped(&self) -> Mapped {
        // SAFETY: the file is mapped readable and writable with this length, and cannot shrink. No method of this type keeps the
        // value, or hands out a reference to what is not an atomic.
        unsafe { Mapped::new(self.start, self.size) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own mapping; all accesses borrow this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}

/// Closes descriptors of a peer that are not what they should be. To close that of a file which the peer serves itself waits
/// for the peer, so another thread does it. While one waits, no client is accepted. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Discarder(Arc<AtomicBool>);

impl Discarder {
    /// Closes a descriptor.
    pub(super) fn discard(&self, descriptor: OwnedFd) {
        self.0.store(true, Ordering::Relaxed);
        let is_busy = self.0.clone();
        let close = move || {
            drop(descriptor);
            is_busy.store(false, Ordering::Relaxed);
        };
        // Without a thread, the descriptor is closed here after all: what could not be started is dropped.
        if std::thread::Builder::new().name("close".into()).stack_size(64 << 10).spawn(close).is_err() {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    /// Whether a descriptor is still being closed.
    pub(super) fn is_busy(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
