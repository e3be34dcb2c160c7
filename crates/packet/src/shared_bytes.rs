//! Bytes of a file that is read in place.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, compiler_fence};

/// Bytes that other processes may change while they are read, such as those of a mapped file.
///
/// No reference to them exists. They are copied before they are looked at, and what a copy contains is decided once.
#[derive(Clone, Copy, Debug)]
pub struct SharedBytes<'a> {
    start: NonNull<u8>,
    length: usize,
    memory: PhantomData<&'a u8>,
}

impl SharedBytes<'_> {
    /// No bytes.
    pub const EMPTY: SharedBytes<'static> =
        SharedBytes { start: NonNull::dangling(), length: 0, memory: PhantomData };

    /// `length` bytes from `start`.
    ///
    /// # Safety
    ///
    /// They are mapped and can be read for the lifetime of the value, and no mutable reference to any of them exists meanwhile.
    pub const unsafe fn new(start: NonNull<u8>, length: usize) -> Self {
        Self { start, length, memory: PhantomData }
    }

    /// Number of bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The part of `length` bytes from `offset`; `None` if it does not lie inside.
    #[inline(always)]
    pub fn part(&self, offset: usize, length: usize) -> Option<Self> {
        if length > self.length || offset > self.length - length {
            return None;
        }
        // SAFETY: the part lies inside the bytes.
        Some(Self { start: unsafe { self.start.add(offset) }, length, memory: PhantomData })
    }

    /// A copy of the `N` bytes from `offset`; `None` if they do not lie inside.
    #[inline(always)]
    pub fn chunk<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let part = self.part(offset, N)?;
        let mut chunk = [0; N];
        // SAFETY: both have `N` bytes, and the copy is new memory.
        unsafe { core::ptr::copy_nonoverlapping(part.start.as_ptr(), chunk.as_mut_ptr(), N) };
        // The bytes are not read once more where the copy is used.
        compiler_fence(Ordering::SeqCst);
        Some(chunk)
    }

    /// Copies the start of the bytes into the start of `into`, as many as both have. Returns their number.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let count = self.length.min(into.len());
        // SAFETY: both have `count` bytes; the caller alone reaches those of `into`.
        unsafe { core::ptr::copy_nonoverlapping(self.start.as_ptr(), into.as_mut_ptr(), count) };
        count
    }

    /// The address of the first byte.
    #[inline(always)]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_copies_stay_inside() {
        let memory = *b"0123456789";
        // SAFETY: the array lives longer than the value, and nothing changes it.
        let bytes = unsafe { SharedBytes::new(NonNull::from(&memory).cast(), memory.len()) };
        assert_eq!((bytes.len(), bytes.is_empty(), SharedBytes::EMPTY.len()), (10, false, 0));
        assert_eq!(bytes.chunk(8), Some(*b"89"));
        assert_eq!((bytes.chunk::<3>(8), bytes.chunk::<1>(usize::MAX)), (None, None));
        let mut into = [0; 4];
        assert_eq!((bytes.part(7, 3).map(|part| part.copy_to(&mut into)), &into), (Some(3), b"789\0"));
        assert!(bytes.part(7, 4).is_none() && bytes.part(11, 0).is_none() && bytes.part(10, 0).is_some());
        assert_eq!((bytes.copy_to(&mut into), &into), (4, b"0123"));
        assert_eq!((SharedBytes::EMPTY.copy_to(&mut into), &into), (0, b"0123"));
    }
}
