//! Slots, which hold a packet's header and bytes, and the memory that they come from.

use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;

use crate::Timestamp;
use crate::annotation;

/// Bytes of buffer in a pool slot: an Ethernet frame with headroom, tags and a trailer.
pub const CAPACITY: usize = 2112;
/// The largest packet, headroom included. Bounds the allocation that a header with a false length can cause.
pub const MAX_CAPACITY: usize = 1 << 20;
/// Number of slots that a pool allocates at a time.
const CHUNK_SLOTS: usize = 64;
/// The value of a header offset that is not set.
pub(crate) const NONE: u32 = u32::MAX;
/// The bit of `kind` that says that annotations were set.
pub(crate) const ANNOTATED: u8 = 1 << 7;

/// The header before a packet's bytes; the bytes of the slot's own buffer follow it in memory.
///
/// A packet's bytes are in the buffer of its own slot or, after a duplication, in that of another one, the `owner`. `users`
/// counts the handle of this slot (while it lives) and every slot whose `owner` is this one. At zero the slot is free.
///
/// The header takes two cache lines. The second one is needed only for bytes elsewhere, and for annotations behind the next hop's
/// address. These are zero unless `kind` says that they were set: also those of a free slot.
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) base: *mut u8,
    pub(crate) pool: *const PoolState,
    pub(crate) timestamp: Timestamp,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) capacity: u32,
    pub(crate) users: u32,
    pub(crate) mac: u32,
    pub(crate) network: u32,
    pub(crate) transport: u32,
    pub(crate) device: u16,
    /// The number of the packet type, and [`ANNOTATED`].
    pub(crate) kind: u8,
    pub(crate) home: BufferHome,
    /// The packet's place in an order that the router restores.
    pub(crate) stamp: u32,
    pub(crate) annotations: [u8; annotation::SIZE],
    pub(crate) own_capacity: u32,
    /// The slot that holds the bytes, if `home` is [`BufferHome::Other`].
    pub(crate) owner: *mut Slot,
    /// Explicit padding: every byte of the header is initialised, so it can be copied as bytes.
    pub(crate) unused: [u32; 2],
}

/// Bytes of annotations in the first cache line: the next hop's IPv4 address.
pub(crate) const NEAR_ANNOTATIONS: usize = 4;

impl Slot {
    /// Makes the annotations zero.
    #[inline(always)]
    pub(crate) fn clear_annotations(&mut self) {
        if self.kind & ANNOTATED != 0 {
            self.annotations = [0; annotation::SIZE];
            self.kind &= !ANNOTATED;
        } else {
            self.annotations[..NEAR_ANNOTATIONS].fill(0);
        }
    }

    /// Takes over the annotations and the packet type of another slot.
    #[inline]
    pub(crate) fn copy_annotations(&mut self, from: &Slot) {
        if (self.kind | from.kind) & ANNOTATED != 0 {
            self.annotations = from.annotations;
        } else {
            self.annotations[..NEAR_ANNOTATIONS].copy_from_slice(&from.annotations[..NEAR_ANNOTATIONS]);
        }
        self.kind = from.kind;
    }
}

/// Where a slot and its bytes are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BufferHome {
    /// The slot is in a chunk; the bytes follow its header.
    Pool = 0,
    /// The slot is a heap allocation of its own.
    Heap = 1,
    /// The slot is in a chunk; `base` and `capacity` describe a buffer lent to the pool.
    Lent = 2,
    /// The slot is in a chunk; its bytes are those of the slot `owner`.
    Other = 3,
}

pub(crate) const HEADER: usize = size_of::<Slot>();
/// An odd number of cache lines, so that the headers of neighbouring slots fall into different cache sets.
const STRIDE: usize = HEADER + CAPACITY;
const _: () = assert!(HEADER == 128 && core::mem::offset_of!(Slot, unused) == HEADER - 8);
const _: () = assert!(core::mem::offset_of!(Slot, annotations) + NEAR_ANNOTATIONS == 64);
const _: () = assert!((STRIDE / 64) % 2 == 1 && STRIDE.is_multiple_of(64));

/// The state shared by a pool's handles and its packets.
pub(crate) struct PoolState {
    pub(crate) free: UnsafeCell<Vec<NonNull<Slot>>>,
    chunks: UnsafeCell<Vec<NonNull<u8>>>,
    /// Lent buffers whose packets were dropped.
    pub(crate) returned: UnsafeCell<Vec<&'static mut [u8]>>,
    /// Slots that have been handed out at least once.
    slots: Cell<usize>,
    /// Slots of the last chunk that have never been handed out. Their memory is untouched.
    fresh: Cell<usize>,
    pub(crate) limit: usize,
    pub(crate) live: Cell<usize>,
    /// Slots without a handle, whose bytes other packets use.
    pub(crate) kept: Cell<usize>,
    pub(crate) handles: Cell<usize>,
    pub(crate) exhausted: Cell<u64>,
}

impl PoolState {
    /// The state of a pool of at most `limit` live packets, with one handle. It lives until [`destroy`](Self::destroy).
    pub(crate) fn new(limit: usize) -> NonNull<PoolState> {
        let state = Box::new(PoolState {
            free: UnsafeCell::new(Vec::new()),
            chunks: UnsafeCell::new(Vec::new()),
            returned: UnsafeCell::new(Vec::new()),
            slots: Cell::new(0),
            fresh: Cell::new(0),
            limit,
            live: Cell::new(0),
            kept: Cell::new(0),
            handles: Cell::new(1),
            exhausted: Cell::new(0),
        });
        NonNull::from(Box::leak(state))
    }

    /// A reset slot with room for `capacity` bytes; `None` at the limit.
    #[inline]
    pub(crate) fn take(&self, capacity: usize) -> Option<NonNull<Slot>> {
        if capacity > CAPACITY {
            return self.take_large(capacity);
        }
        let slot = self.take_as_it_is()?;
        // SAFETY: a slot on the free list has no user, its memory belongs to the pool, and all of these have this capacity.
        unsafe { self.reset(slot.as_ptr(), CAPACITY as u32) };
        Some(slot)
    }

    /// A slot with the header of its last packet, or without one; `None` at the limit.
    #[inline]
    pub(crate) fn take_as_it_is(&self) -> Option<NonNull<Slot>> {
        // SAFETY: the list is used by this thread only, and nothing below borrows it again before the borrow ends.
        let slot = match unsafe { (*self.free.get()).pop() } {
            Some(slot) => slot,
            None => self.grow()?,
        };
        self.live.set(self.live.get() + 1);
        Some(slot)
    }

    /// Like `take`, but a slot beyond the limit comes from the heap: for a packet that is already counted.
    pub(crate) fn take_unlimited(&self, capacity: usize) -> NonNull<Slot> {
        if capacity <= CAPACITY
            && let Some(slot) = self.take(capacity)
        {
            return slot;
        }
        self.heap_slot(capacity.max(CAPACITY))
    }

    #[cold]
    fn take_large(&self, capacity: usize) -> Option<NonNull<Slot>> {
        if capacity > MAX_CAPACITY || self.live.get() >= self.limit {
            self.exhausted.set(self.exhausted.get() + 1);
            return None;
        }
        Some(self.heap_slot(capacity))
    }

    fn layout(capacity: usize) -> Layout {
        match Layout::from_size_align(HEADER + capacity, 64) {
            Ok(layout) => layout,
            Err(_) => unreachable!("capacities stay below {MAX_CAPACITY} times two"),
        }
    }

    fn heap_slot(&self, capacity: usize) -> NonNull<Slot> {
        let layout = Self::layout(capacity);
        // SAFETY: the layout is not empty; the memory is zeroed, which is a valid `Slot` (pointers may be null).
        let slot = unsafe {
            let Some(slot) = NonNull::new(alloc_zeroed(layout).cast::<Slot>()) else {
                alloc::alloc::handle_alloc_error(layout)
            };
            (*slot.as_ptr()).own_capacity = capacity as u32;
            self.reset(slot.as_ptr(), capacity as u32);
            (*slot.as_ptr()).home = BufferHome::Heap;
            slot
        };
        self.live.set(self.live.get() + 1);
        slot
    }

    /// A slot that was never handed out. Slots of a chunk are touched one at a time, so where memory is committed by
    /// page, a pool uses no more than its peak number of live packets.
    #[cold]
    pub(crate) fn grow(&self) -> Option<NonNull<Slot>> {
        if self.slots.get() >= self.limit {
            self.exhausted.set(self.exhausted.get() + 1);
            return None;
        }
        // SAFETY: the layout is not empty; zeroed memory is a valid `Slot`; slots lie `STRIDE` apart within the chunk,
        // of which the last `fresh` were never used. Both lists are used by this thread only, one borrow at a time.
        unsafe {
            if self.fresh.get() == 0 {
                let chunk = NonNull::new(alloc_zeroed(Self::chunk_layout()))?;
                (*self.chunks.get()).push(chunk);
                self.fresh.set(CHUNK_SLOTS);
                // Reserves room for all slots, so that a release never allocates.
                (*self.free.get()).reserve(self.slots.get() + CHUNK_SLOTS);
            }
            let chunk = (*self.chunks.get()).last()?;
            let slot = chunk.add((CHUNK_SLOTS - self.fresh.get()) * STRIDE).cast::<Slot>();
            (*slot.as_ptr()).own_capacity = CAPACITY as u32;
            self.fresh.set(self.fresh.get() - 1);
            self.slots.set(self.slots.get() + 1);
            Some(slot)
        }
    }

    fn chunk_layout() -> Layout {
        match Layout::from_size_align(CHUNK_SLOTS * STRIDE, 64) {
            Ok(layout) => layout,
            Err(_) => unreachable!("a chunk is far smaller than the address space"),
        }
    }

    /// Number of slots that are free, or that the limit allows to add.
    #[inline]
    pub(crate) fn available(&self) -> usize {
        // SAFETY: the list is used by this thread only, one borrow at a time.
        unsafe { (*self.free.get()).len() + self.limit.saturating_sub(self.slots.get()) }
    }

    /// Makes `slot` an empty packet of a chunk with its own buffer, of `capacity` bytes.
    ///
    /// # Safety
    /// `slot` is one of this pool's, or fresh from the heap for it, is not in use, and has that capacity.
    #[inline]
    pub(crate) unsafe fn reset(&self, slot: *mut Slot, capacity: u32) {
        // SAFETY: by the contract above; the buffer starts right behind the header.
        unsafe {
            let is_annotated = (*slot).kind & ANNOTATED != 0;
            (*slot).base = slot.cast::<u8>().add(HEADER);
            (*slot).pool = self;
            (*slot).timestamp = Timestamp::ZERO;
            (*slot).capacity = capacity;
            (*slot).users = 1;
            (*slot).mac = NONE;
            (*slot).network = NONE;
            (*slot).transport = NONE;
            (*slot).device = 0;
            (*slot).kind = 0;
            (*slot).home = BufferHome::Pool;
            (*slot).stamp = 0;
            (&raw mut (*slot).annotations).cast::<[u8; NEAR_ANNOTATIONS]>().write([0; NEAR_ANNOTATIONS]);
            if is_annotated {
                (*slot).annotations = [0; annotation::SIZE];
            }
        }
    }

    /// Keeps the buffer that was lent to `slot` until `returned` fetches it.
    ///
    /// # Safety
    /// The slot's bytes are lent, and its last user is giving it up.
    #[inline]
    pub(crate) unsafe fn take_back(&self, slot: *mut Slot) {
        // SAFETY: by the contract above only this call reaches the buffer; the list is used by this thread only.
        unsafe {
            let buffer = Self::lent(slot);
            (*self.returned.get()).push(buffer);
        }
    }

    /// Takes the lent buffer out of `slot`, which uses its own buffer from then on.
    ///
    /// # Safety
    /// The slot's bytes are lent and not in use elsewhere.
    #[inline]
    pub(crate) unsafe fn lent(slot: *mut Slot) -> &'static mut [u8] {
        // SAFETY: `lend` took base and capacity from a slice borrowed for ever and uniquely, and by the contract above
        // this is its last use under the slot.
        unsafe {
            let buffer = core::slice::from_raw_parts_mut((*slot).base, (*slot).capacity as usize);
            (*slot).home = BufferHome::Pool;
            (*slot).base = slot.cast::<u8>().add(HEADER);
            (*slot).capacity = (*slot).own_capacity;
            buffer
        }
    }

    /// Gives up a handle of `slot`.
    ///
    /// # Safety
    /// The caller held that use, and does not touch the slot through it again.
    #[inline]
    pub(crate) unsafe fn release(slot: *mut Slot) {
        // SAFETY: the use that the caller held kept the slot and its pool alive until here.
        unsafe {
            if (*slot).users > 1 {
                let kept = &(*(*slot).pool).kept;
                kept.set(kept.get() + 1);
            }
            Self::give_up(slot);
        }
    }

    /// Gives up the use that another slot made of the bytes of `owner`.
    ///
    /// # Safety
    /// As for [`release`](Self::release).
    #[inline]
    pub(crate) unsafe fn release_owner(owner: *mut Slot) {
        // SAFETY: as in `release`. The last use of an owner is never that of its handle, which was given up before.
        unsafe {
            if (*owner).users == 1 {
                let kept = &(*(*owner).pool).kept;
                kept.set(kept.get() - 1);
            }
            Self::give_up(owner);
        }
    }

    /// Gives up one use of `slot`.
    ///
    /// # Safety
    /// As for [`release`](Self::release).
    #[inline(always)]
    unsafe fn give_up(slot: *mut Slot) {
        // SAFETY: as in `release`.
        unsafe {
            (*slot).users -= 1;
            if (*slot).users == 0 {
                let shared = (*slot).pool;
                if (*slot).home == BufferHome::Heap {
                    dealloc(slot.cast(), Self::layout((*slot).own_capacity as usize));
                } else {
                    if (*slot).home == BufferHome::Lent {
                        (*shared).take_back(slot);
                    }
                    (*(*shared).free.get()).push(NonNull::new_unchecked(slot));
                }
                let live = (*shared).live.get() - 1;
                (*shared).live.set(live);
                if live == 0 && (*shared).handles.get() == 0 {
                    PoolState::destroy(shared.cast_mut());
                }
            }
        }
    }

    /// Frees the pool.
    ///
    /// # Safety
    /// No handle and no packet is left.
    #[cold]
    pub(crate) unsafe fn destroy(shared: *mut PoolState) {
        // SAFETY: the state came from a leaked box; chunks came from the allocator with this layout; neither is
        // in use.
        unsafe {
            let shared = Box::from_raw(shared);
            for chunk in &*shared.chunks.get() {
                dealloc(chunk.as_ptr(), Self::chunk_layout());
            }
        }
    }
}
