//! The region of one function: a sealed memory file, which is made for one process and used by no other. Its buffers are in it,
//! or in the packet pool of its owner.

use crate::driver::sealed_memory;
use boundary::{Mapped, PoolShare};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

/// A mapped region. It is unmapped when its last user drops it: ports, and batches with packets that are still in it.
#[derive(Debug)]
pub(super) struct FunctionRegion {
    start: NonNull<u8>,
    size: usize,
    /// Its share of a pool, if its buffers are there. It ends after the last user of the region.
    pub(super) share: Option<PoolShare>,
}

// SAFETY: the mapping is not tied to a thread; it is accessed only through `Mapped`, which tolerates concurrent writers.
unsafe impl Send for FunctionRegion {}
// SAFETY: as above; no method hands out a reference into the mapping.
unsafe impl Sync for FunctionRegion {}

impl FunctionRegion {
    /// Makes and maps a region, all zeros. Returns the file too, for the process.
    pub(super) fn create(size: usize, share: Option<PoolShare>) -> io::Result<(Self, OwnedFd)> {
        let file = sealed_memory::create(c"function", size)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address of the new mapping, so no existing memory is affected.
        let start = unsafe { libc::mmap(null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(pointer) if start != libc::MAP_FAILED => Ok((Self { start: pointer, size, share }, file)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Access to the region. The region must outlive it.
    pub(super) fn mapped(&self) -> Mapped {
        // SAFETY: the file is mapped readable and writable with this length, and cannot shrink. The caller, `FunctionPort`,
        // keeps this region beside everything that it makes of the value.
        unsafe { Mapped::new(self.start, self.size) }
    }
}

impl Drop for FunctionRegion {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own mapping, and its users hold this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}
