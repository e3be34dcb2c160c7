//! The receive ring of a packet socket: slots in memory shared with the kernel.
//!
//! The first word of a slot says who owns it, the kernel or this process. Slots have a fixed size (`TPACKET_V2`).
//! `TPACKET_V3`, which packs frames into blocks, delivers a block only when it is full or a timer expires, which would
//! delay a single frame by half a millisecond or more.

use std::io;
use std::marker::PhantomData;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU32;

/// Bytes of a slot before the frame: its header, the source address, and the kernel's padding.
const FRONT: usize = 112;
/// Slot sizes are multiples of this.
const ALIGNMENT: usize = 16;
/// Block sizes are multiples of this, which is a multiple of the page size on every supported processor.
const BLOCK: usize = 1 << 16;

/// The memory layout of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingLayout {
    slot: usize,
    block: usize,
    blocks: usize,
}

impl RingLayout {
    /// A layout of slots for frames of up to `longest` bytes: as many blocks as fit in `memory`, but at least one.
    pub(super) fn new(longest: usize, memory: usize) -> RingLayout {
        let slot = (FRONT + longest).next_multiple_of(ALIGNMENT);
        let block = slot.next_multiple_of(BLOCK);
        RingLayout { slot, block, blocks: (memory / block).max(1) }
    }

    /// A layout of half the size, or `None` if there is only one block.
    pub(super) fn halved(self) -> Option<RingLayout> {
        (self.blocks > 1).then_some(RingLayout { blocks: self.blocks / 2, ..self })
    }

    /// The ring's size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.block * self.blocks
    }

    /// The layout as the kernel's request structure.
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

/// The shared memory of a socket's ring. It is unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is this value's own and not tied to a thread; slots are changed through `&mut` of the ring only.
unsafe impl Send for Mapping {}
// SAFETY: as above; through a shared reference, only the atomic first word of a slot is read.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the ring of a socket.
    pub(super) fn new(socket: BorrowedFd<'_>, length: usize) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address of the new mapping, so no existing memory is affected.
        let start =
            unsafe { libc::mmap(null_mut(), length, access, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(pointer) if start != libc::MAP_FAILED => Ok(Mapping { start: pointer, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` created the mapping with this length, and all pointers into it ended with the borrow.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The slots of a ring and the index of the next one.
#[derive(Debug)]
pub(super) struct Ring {
    /// Offsets of the slots in the mapping, in bytes.
    slots: Box<[usize]>,
    size: usize,
    next: usize,
}

impl Ring {
    /// A ring with this layout, at the start of the mapping.
    pub(super) fn new(layout: RingLayout) -> Ring {
        let in_block = layout.block / layout.slot;
        let slots = (0..layout.blocks)
            .flat_map(|block| (0..in_block).map(move |slot| block * layout.block + slot * layout.slot));
        Ring { slots: slots.collect(), size: layout.slot, next: 0 }
    }

    /// The size of a slot in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The next slot.
    #[inline]
    pub(super) fn slot<'m>(&self, mapping: &'m Mapping) -> Slot<'m> {
        let offset = self.slots.get(self.next).copied().unwrap_or(0);
        debug_assert!(offset + self.size <= mapping.length);
        // SAFETY: the ring has the layout that its mapping was requested with, so the whole slot is inside the mapping.
        let start = unsafe { mapping.start.add(offset) };
        Slot { start, mapping: PhantomData }
    }

    /// Moves to the next slot.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.next += 1;
        if self.next == self.slots.len() {
            self.next = 0;
        }
    }
}

/// One slot of the ring.
pub(super) struct Slot<'m> {
    start: NonNull<u8>,
    mapping: PhantomData<&'m Mapping>,
}

impl Slot<'_> {
    /// The slot's status: its owner and the kernel's flags for the frame in it.
    #[inline]
    pub(super) fn status(&self) -> &AtomicU32 {
        const { assert!(offset_of!(libc::tpacket2_hdr, tp_status) == 0) };
        // SAFETY: a slot begins with this word, which is aligned and which both sides access atomically.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().cast()) }
    }

    /// The start of the slot. Its contents may be accessed only while the status says that this process owns it.
    #[inline]
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

#[cfg(any(test, fuzzing))]
impl<'m> Slot<'m> {
    /// A slot that is in no ring.
    pub(super) fn of(bytes: &'m [u128]) -> Self {
        Self { start: NonNull::from(bytes).cast(), mapping: PhantomData }
    }
}

/// Offset in a slot of the frame's source address.
pub(super) const ADDRESS: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(ALIGNMENT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_layouts_meet_the_kernels_rules() {
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
