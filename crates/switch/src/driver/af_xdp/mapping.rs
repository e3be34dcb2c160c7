//! Memory that is shared with the kernel: the rings of a socket, and the buffers for frames.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A mapping. It is removed on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value and to no thread; all accesses to words are atomic, and bytes are read and written by
// raw pointers only.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of a file or a socket, from an offset on. Without a descriptor, the memory is anonymous.
    pub(super) fn new(file: Option<BorrowedFd<'_>>, offset: i64, length: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, descriptor) = match file {
            Some(file) => (libc::MAP_SHARED | libc::MAP_POPULATE, file.as_raw_fd()),
            None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: the kernel chooses the address of the new mapping, so no existing memory is affected.
        let start = unsafe { libc::mmap(null_mut(), length, access, flags, descriptor, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(pointer) if start != libc::MAP_FAILED => Ok(Self { start: pointer, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The address of the first byte, for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// The address of `length` bytes, if they are inside.
    #[inline(always)]
    fn at(&self, offset: usize, length: usize) -> Option<NonNull<u8>> {
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if !is_inside {
            return None;
        }
        // SAFETY: the whole range is inside the mapping.
        Some(unsafe { self.start.add(offset) })
    }

    /// A word of 32 bits, if it is inside and aligned.
    #[inline(always)]
    pub(super) fn word32(&self, offset: usize) -> Option<&AtomicU32> {
        let pointer = self.at(offset, 4)?.cast::<AtomicU32>();
        if !pointer.is_aligned() {
            return None;
        }
        // SAFETY: the word is inside the mapping, which lives as long as `self`, and aligned. All users access it atomically.
        Some(unsafe { pointer.as_ref() })
    }

    /// A word of 64 bits, if it is inside and aligned.
    #[inline(always)]
    pub(super) fn word64(&self, offset: usize) -> Option<&AtomicU64> {
        let pointer = self.at(offset, 8)?.cast::<AtomicU64>();
        if !pointer.is_aligned() {
            return None;
        }
        // SAFETY: as for `word32`.
        Some(unsafe { pointer.as_ref() })
    }

    /// Copies bytes out of the mapping. Returns false if they are not inside.
    #[inline(always)]
    pub(super) fn read(&self, offset: usize, into: &mut [u8]) -> bool {
        let Some(from) = self.at(offset, into.len()) else { return false };
        // SAFETY: the source is inside the mapping, and the destination is other memory. The kernel writes to a buffer only
        // while it owns it; if it did so now, the frame had mixed bytes.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from.as_ptr(), into.len()) };
        true
    }

    /// Copies bytes into the mapping. Returns false if there is no room.
    #[inline(always)]
    pub(super) fn write(&self, offset: usize, from: &[u8]) -> bool {
        let Some(to) = self.at(offset, from.len()) else { return false };
        // SAFETY: the destination is inside the mapping, and the source is other memory.
        unsafe { to.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        true
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` created the mapping with this length, and no reference into it outlives the value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn accesses_are_checked() {
        let memory = Mapping::new(None, 0, 64).unwrap();
        assert!(memory.write(60, &[1, 2, 3, 4]) && !memory.write(61, &[1, 2, 3, 4]));
        let mut bytes = [0; 4];
        assert!(memory.read(60, &mut bytes) && bytes == [1, 2, 3, 4]);
        assert!(!memory.read(61, &mut bytes) && !memory.read(usize::MAX, &mut bytes));
        memory.word64(8).unwrap().store(7, Ordering::Relaxed);
        let mut bytes = [0; 8];
        assert!(memory.read(8, &mut bytes) && bytes == 7u64.to_ne_bytes());
        assert!(memory.word64(60).is_none() && memory.word64(4).is_none() && memory.word32(62).is_none());
    }
}
