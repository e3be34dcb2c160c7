//! Pools of packets. Allocation and release don't call the allocator.

use core::ptr::NonNull;

use crate::cache_line::{CACHE_LINE, QUARTER_LINE, QuarterLine};
use crate::packet::Packet;
use crate::slot::{BufferHome, MAX_CAPACITY, PoolState};

/// Bytes of headroom in front of a new packet's data.
pub const HEADROOM: usize = 64;

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
        Pool { shared: PoolState::new(limit) }
    }

    pub(crate) fn shared(&self) -> &PoolState {
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
    #[inline]
    pub fn packet(&self, bytes: &[u8]) -> Option<Packet> {
        let slot = self.shared().take(HEADROOM.checked_add(bytes.len())?)?;
        // SAFETY: `take` returns a reset slot without other users, with room for the headroom and the bytes.
        unsafe {
            let slot = slot.as_ptr();
            (*slot).start = HEADROOM as u32;
            (*slot).end = (HEADROOM + bytes.len()) as u32;
            copy(bytes.as_ptr(), (*slot).base.add(HEADROOM), bytes.len());
            Some(Packet::from_slot(NonNull::new_unchecked(slot)))
        }
    }

    /// A packet whose data is `range` of a buffer that is lent to the pool, without a copy. [`Packet::into_buffer`]
    /// returns the buffer, or [`take_returned`](Self::take_returned) does once the packet and all packets that share its bytes
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
        // SAFETY: `take` hands out a free slot, reset. The buffer is borrowed for ever and uniquely, so that its bytes
        // are this slot's until they are handed back; the range lies in it.
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

    /// Number of live packets. A packet that was dropped counts while others share its bytes.
    pub fn live(&self) -> usize {
        self.shared().live.get()
    }

    /// Number of packets that were allocated and not dropped.
    pub fn packets(&self) -> usize {
        self.live() - self.shared().kept.get()
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

/// Copies bytes. Those of a minimum-size frame take two overlapping halves of a cache line each, and no call.
///
/// # Safety
/// As for [`core::ptr::copy_nonoverlapping`].
#[inline(always)]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    const HALF: usize = 2 * QUARTER_LINE;
    // SAFETY: by the contract above; both halves lie within the bytes if there are as many as one has.
    unsafe {
        if (HALF..=CACHE_LINE).contains(&length) {
            let offsets = [0, QUARTER_LINE, length - HALF, length - QUARTER_LINE];
            let [a, b, c, d] = offsets.map(|offset| QuarterLine::read(from.add(offset)));
            a.write(to);
            b.write(to.add(QUARTER_LINE));
            c.write(to.add(length - HALF));
            d.write(to.add(length - QUARTER_LINE));
        } else {
            core::ptr::copy_nonoverlapping(from, to, length);
        }
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
