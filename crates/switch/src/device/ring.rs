//! The memory of a packet socket: a ring of slots that the kernel and this process hand each other.
//!
//! A slot belongs to one side at a time, as its first word says. Slots are of one size (version 2 of the interface):
//! the version that packs frames into blocks gives a block out when it is full or a timer has come, which would keep a
//! lonely frame back for half a millisecond to several.

use std::io;
use std::marker::PhantomData;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU32;

/// Bytes of a slot in front of a frame: its header, the address that it came from, and what the kernel leaves between.
const FRONT: usize = 112;
/// The size of a slot is a multiple of this.
const ALIGNMENT: usize = 16;
/// Slots lie in blocks of a multiple of this: of the pages of any processor.
const BLOCK: usize = 1 << 16;

/// How a ring lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingLayout {
    slot: usize,
    block: usize,
    blocks: usize,
}

impl RingLayout {
    /// Slots for frames of up to `longest` bytes, as many as go into `memory`, and one block of them at least.
    pub(super) fn new(longest: usize, memory: usize) -> RingLayout {
        let slot = (FRONT + longest).next_multiple_of(ALIGNMENT);
        let block = slot.next_multiple_of(BLOCK);
        RingLayout { slot, block, blocks: (memory / block).max(1) }
    }

    /// A ring of half the size, if there is one.
    pub(super) fn halved(self) -> Option<RingLayout> {
        (self.blocks > 1).then_some(RingLayout { blocks: self.blocks / 2, ..self })
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.block * self.blocks
    }

    /// As the kernel wants it.
    pub(super) fn request(&self) -> libc::tpacket_req {
        let slots = self.block / self.slot * self.blocks;
        libc::tpacket_req {
            tp_block_size: self.block as u32,
            tp_block_nr: self.blocks as u32,
            tp_frame_size: self.slot as u32,
            tp_frame_nr: slots as u32,
        }
    }
}

/// Memory shared with the kernel, as long as this lives.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is this value's own and not tied to a thread; slots are changed through `&mut` of the ring only.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the ring of a socket.
    pub(super) fn new(socket: BorrowedFd<'_>, length: usize) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses takes nothing away from anybody.
        let start =
            unsafe { libc::mmap(null_mut(), length, access, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(place) if start != libc::MAP_FAILED => Ok(Mapping { start: place, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and what pointed into it is gone with the borrow.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A socket's ring, and the place in it where this process is.
#[derive(Debug)]
pub(super) struct Ring {
    /// Where the slots begin, in bytes from the start of the mapping.
    slots: Box<[usize]>,
    size: usize,
    next: usize,
}

impl Ring {
    /// The ring of a layout, at the start of the mapping.
    pub(super) fn new(layout: RingLayout) -> Ring {
        let in_block = layout.block / layout.slot;
        let slots = (0..layout.blocks)
            .flat_map(|block| (0..in_block).map(move |slot| block * layout.block + slot * layout.slot));
        Ring { slots: slots.collect(), size: layout.slot, next: 0 }
    }

    /// Bytes of each slot.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The slot that comes next.
    #[inline]
    pub(super) fn slot<'m>(&self, mapping: &'m Mapping) -> Slot<'m> {
        let offset = self.slots.get(self.next).copied().unwrap_or(0);
        debug_assert!(offset + self.size <= mapping.length);
        // SAFETY: a ring is made for the layout that its mapping was asked with, so a slot lies in the mapping whole.
        let start = unsafe { mapping.start.add(offset) };
        Slot { start, mapping: PhantomData }
    }

    /// Goes on to the slot after it.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.next += 1;
        if self.next == self.slots.len() {
            self.next = 0;
        }
    }
}

/// One slot.
pub(super) struct Slot<'m> {
    start: NonNull<u8>,
    mapping: PhantomData<&'m Mapping>,
}

impl Slot<'_> {
    /// Whose it is, and what the kernel says of the frame in it.
    #[inline]
    pub(super) fn status(&self) -> &AtomicU32 {
        const { assert!(offset_of!(libc::tpacket2_hdr, tp_status) == 0) };
        // SAFETY: a slot begins with this word, which is aligned, and which both sides take for atomic.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().cast()) }
    }

    /// Where it begins. What is in it may be touched only while the status says that it is this process's.
    #[inline]
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

/// Where in a slot the address stands that a frame came from.
pub(super) const ADDRESS: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(ALIGNMENT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_fill_blocks_that_the_kernel_takes() {
        for (longest, memory) in [(14, 0), (2046, 1 << 22), (2048, 1), (65_535, 1 << 23), (200_000, 1 << 20)]
        {
            let layout = RingLayout::new(longest, memory);
            let request = layout.request();
            assert_eq!(request.tp_block_size % 65_536, 0);
            assert_eq!(request.tp_frame_size % 16, 0);
            assert!(request.tp_frame_size as usize >= longest + FRONT);
            assert_eq!(
                request.tp_block_size / request.tp_frame_size * request.tp_block_nr,
                request.tp_frame_nr
            );
            let ring = Ring::new(layout);
            assert_eq!(ring.slots.len(), request.tp_frame_nr as usize);
            let end = ring.slots.last().map(|last| last + ring.size());
            assert!(end.is_some_and(|end| end <= layout.bytes()), "{layout:?}");
        }
        assert_eq!(RingLayout::new(2046, 1 << 18).halved(), Some(RingLayout::new(2046, 1 << 17)));
        assert_eq!(RingLayout::new(2046, 1 << 16).halved(), None);
    }
}
