//! Pools of fixed-size packet slots. Allocation and release don't call the allocator.

use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;

use crate::Timestamp;
use crate::annotation;
use crate::packet::Packet;

/// Bytes of headroom in front of a new packet's data.
pub const HEADROOM: usize = 64;
/// Bytes of buffer in a pool slot: an Ethernet frame with headroom, tags and a trailer.
pub const CAPACITY: usize = 2112;
/// The largest packet, headroom included. Bounds the allocation that a header with a false length can cause.
pub const MAX_CAPACITY: usize = 1 << 20;
/// Number of slots that a pool allocates at a time.
const CHUNK: usize = 64;
/// The value of a header offset that is not set.
pub(crate) const NONE: u32 = u32::MAX;

/// The header before a packet's bytes; the bytes of the slot's own buffer follow it in memory.
///
/// `owner` is the slot whose buffer holds the bytes: this one or, after a duplication, another. `users` counts the
/// handle of this slot (while it lives) and every other slot whose `owner` is this one. At zero the slot is free.
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) base: *mut u8,
    pub(crate) owner: *mut Slot,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) capacity: u32,
    pub(crate) users: u32,
    pub(crate) mac: u32,
    pub(crate) network: u32,
    pub(crate) transport: u32,
    pub(crate) device: u16,
    pub(crate) kind: u8,
    pub(crate) home: BufferHome,
    pub(crate) timestamp: Timestamp,
    pub(crate) pool: *const PoolState,
    pub(crate) annotations: [u8; annotation::SIZE],
    pub(crate) own_capacity: u32,
    /// Explicit padding: every byte of the header is initialised, so it can be copied as bytes.
    pub(crate) unused: [u32; 3],
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
}

pub(crate) const HEADER: usize = size_of::<Slot>();
/// An odd number of cache lines, so that the headers of neighbouring slots fall into different cache sets.
const STRIDE: usize = HEADER + CAPACITY;
const _: () = assert!(HEADER == 128 && core::mem::offset_of!(Slot, unused) == HEADER - 12);
const _: () = assert!((STRIDE / 64) % 2 == 1 && STRIDE.is_multiple_of(64));

/// The state shared by a pool's handles and its packets.
pub(crate) struct PoolState {
    pub(crate) free: UnsafeCell<Vec<NonNull<Slot>>>,
    chunks: UnsafeCell<Vec<NonNull<u8>>>,
    /// Lent buffers whose packets were dropped.
    returned: UnsafeCell<Vec<&'static mut [u8]>>,
    /// Slots that have been handed out at least once.
    slots: Cell<usize>,
    /// Slots of the last chunk that have never been handed out. Their memory is untouched.
    fresh: Cell<usize>,
    limit: usize,
    pub(crate) live: Cell<usize>,
    pub(crate) handles: Cell<usize>,
    exhausted: Cell<u64>,
}

/// A pool of packet slots: the only source of packets.
///
/// It grows in chunks up to its limit; beyond it, allocation fails. A clone is another handle to the same pool. The
/// memory is freed with the last handle and the last packet. A pool and its packets stay on one thread.
pub struct Pool {
    shared: NonNull<PoolState>,
}

impl Pool {
    /// A pool of at most `limit` live packets.
    pub fn new(limit: usize) -> Pool {
        let shared = Box::new(PoolState {
            free: UnsafeCell::new(Vec::new()),
            chunks: UnsafeCell::new(Vec::new()),
            returned: UnsafeCell::new(Vec::new()),
            slots: Cell::new(0),
            fresh: Cell::new(0),
            limit,
            live: Cell::new(0),
            handles: Cell::new(1),
            exhausted: Cell::new(0),
        });
        Pool { shared: NonNull::from(Box::leak(shared)) }
    }

    fn shared(&self) -> &PoolState {
        // SAFETY: the state lives while a handle does: `handles` counts this one.
        unsafe { self.shared.as_ref() }
    }

    /// A packet of `length` bytes, zero or stale, with the default headroom; `None` if the pool is exhausted.
    #[inline]
    pub fn allocate(&self, length: usize) -> Option<Packet> {
        self.allocate_with(HEADROOM, length)
    }

    /// A packet of `length` bytes, zero or stale, with at least `headroom` bytes before them; `None` if the pool is
    /// exhausted.
    pub fn allocate_with(&self, headroom: usize, length: usize) -> Option<Packet> {
        let slot = self.shared().take(headroom.checked_add(length)?)?;
        // SAFETY: `take` returns a reset slot without other users, with room for `headroom + length` bytes.
        unsafe {
            (*slot.as_ptr()).start = headroom as u32;
            (*slot.as_ptr()).end = (headroom + length) as u32;
            Some(Packet::from_slot(slot))
        }
    }

    /// A packet that holds a copy of `bytes`; `None` if the pool is exhausted.
    pub fn packet(&self, bytes: &[u8]) -> Option<Packet> {
        let mut packet = self.allocate(bytes.len())?;
        packet.data_mut().copy_from_slice(bytes);
        Some(packet)
    }

    /// A packet whose data is `range` of a buffer that is lent to the pool, without a copy. [`Packet::into_buffer`]
    /// returns the buffer, or [`returned`](Self::returned) does once the packet and all packets that share its bytes
    /// are dropped.
    ///
    /// # Errors
    /// Returns the buffer if the pool is exhausted or the range is not in the buffer.
    #[inline]
    pub fn lend(
        &self,
        buffer: &'static mut [u8],
        range: core::ops::Range<usize>,
    ) -> Result<Packet, &'static mut [u8]> {
        if range.start > range.end || range.end > buffer.len() || !(1..=MAX_CAPACITY).contains(&buffer.len())
        {
            return Err(buffer);
        }
        let Some(slot) = self.shared().take(0) else { return Err(buffer) };
        // SAFETY: `take` hands out a free slot, reset. The buffer is borrowed for ever and uniquely, so
        // that its bytes are this slot's until they are handed back; the range lies in it.
        unsafe {
            let lent = slot.as_ptr();
            (*lent).base = buffer.as_mut_ptr();
            (*lent).capacity = buffer.len() as u32;
            (*lent).start = range.start as u32;
            (*lent).end = range.end as u32;
            (*lent).home = BufferHome::Lent;
            Ok(Packet::from_slot(slot))
        }
    }

    /// A lent buffer whose packet was dropped.
    #[inline]
    pub fn take_returned(&self) -> Option<&'static mut [u8]> {
        // SAFETY: the list is used by this thread only, one borrow at a time.
        unsafe { (*self.shared().returned.get()).pop() }
    }

    /// Number of live packets.
    pub fn live(&self) -> usize {
        self.shared().live.get()
    }

    /// The maximum number of live packets.
    pub fn limit(&self) -> usize {
        self.shared().limit
    }

    /// Number of failed allocations.
    pub fn failed_allocations(&self) -> u64 {
        self.shared().exhausted.get()
    }
}

impl Clone for Pool {
    fn clone(&self) -> Pool {
        self.shared().handles.set(self.shared().handles.get() + 1);
        Pool { shared: self.shared }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let shared = self.shared();
        shared.handles.set(shared.handles.get() - 1);
        if shared.handles.get() == 0 && shared.live.get() == 0 {
            // SAFETY: no handle or packet is left that could reach the state.
            unsafe { PoolState::destroy(self.shared.as_ptr()) }
        }
    }
}

impl core::fmt::Debug for Pool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pool").field("live", &self.live()).field("limit", &self.limit()).finish()
    }
}

impl PoolState {
    /// A reset slot with room for `capacity` bytes; `None` at the limit.
    #[inline]
    pub(crate) fn take(&self, capacity: usize) -> Option<NonNull<Slot>> {
        if capacity > CAPACITY {
            return self.take_large(capacity);
        }
        // SAFETY: the list is used by this thread only, and nothing below borrows it again before the borrow ends.
        let slot = match unsafe { (*self.free.get()).pop() } {
            Some(slot) => slot,
            None => self.grow()?,
        };
        self.live.set(self.live.get() + 1);
        // SAFETY: a slot on the free list has no user and its memory belongs to the pool.
        unsafe { self.reset(slot.as_ptr()) };
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
            (*slot.as_ptr()).home = BufferHome::Heap;
            (*slot.as_ptr()).own_capacity = capacity as u32;
            self.reset(slot.as_ptr());
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
                self.fresh.set(CHUNK);
                // Reserves room for all slots, so that a release never allocates.
                (*self.free.get()).reserve(self.slots.get() + CHUNK);
            }
            let chunk = (*self.chunks.get()).last()?;
            let slot = chunk.add((CHUNK - self.fresh.get()) * STRIDE).cast::<Slot>();
            (*slot.as_ptr()).own_capacity = CAPACITY as u32;
            self.fresh.set(self.fresh.get() - 1);
            self.slots.set(self.slots.get() + 1);
            Some(slot)
        }
    }

    fn chunk_layout() -> Layout {
        match Layout::from_size_align(CHUNK * STRIDE, 64) {
            Ok(layout) => layout,
            Err(_) => unreachable!("a chunk is far smaller than the address space"),
        }
    }

    /// Makes `slot` an empty packet with its own buffer.
    ///
    /// # Safety
    /// `slot` is one of this pool's, or fresh from the heap for it, and is not in use.
    #[inline]
    unsafe fn reset(&self, slot: *mut Slot) {
        // SAFETY: by the contract above; the buffer starts right behind the header.
        unsafe {
            (*slot).base = slot.cast::<u8>().add(HEADER);
            (*slot).owner = slot;
            (*slot).capacity = (*slot).own_capacity;
            (*slot).users = 1;
            (*slot).mac = NONE;
            (*slot).network = NONE;
            (*slot).transport = NONE;
            (*slot).device = 0;
            (*slot).kind = 0;
            (*slot).timestamp = Timestamp::ZERO;
            (*slot).pool = self;
            (*slot).annotations = [0; annotation::SIZE];
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

    /// Gives up one use of `slot`.
    ///
    /// # Safety
    /// The caller held that use, and does not touch the slot through it again.
    #[inline]
    pub(crate) unsafe fn release(slot: *mut Slot) {
        // SAFETY: the use that the caller held kept the slot and its pool alive until here.
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
