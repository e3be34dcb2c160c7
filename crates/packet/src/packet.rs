//! A packet: bytes with headroom and tailroom, header offsets and annotations.

mod annotations;

use core::fmt;
use core::ptr::NonNull;

use crate::Timestamp;
use crate::slot::{BufferHome, MAX_CAPACITY, NONE, PoolState, Slot};

/// A handle to one packet. Dropping it returns the buffer to its pool.
///
/// `duplicate` shares the bytes. They are copied on the first write, so `data` never changes under another handle. No
/// method panics on any offset or length: values out of range are clipped, or the method returns `None`.
#[repr(transparent)]
pub struct Packet {
    slot: NonNull<Slot>,
}

impl Packet {
    /// # Safety
    /// `slot` is alive and the caller passes on the use that its handle counts for.
    #[inline]
    pub(crate) unsafe fn from_slot(slot: NonNull<Slot>) -> Packet {
        Packet { slot }
    }

    /// The pool that the packet came from.
    #[inline]
    pub(crate) fn pool(&self) -> *const PoolState {
        self.slot().pool
    }

    /// Appends up to `count` packets like this one to `into`, sharing its bytes or copying them; returns how many the
    /// pool had room for.
    pub(crate) fn replicate(&self, share: bool, count: usize, into: &mut alloc::vec::Vec<Packet>) -> usize {
        if !share && self.slot().end as usize > crate::CAPACITY {
            // The packet is larger than a pool slot.
            let copies = core::iter::from_fn(|| self.copy()).take(count);
            let before = into.len();
            into.extend(copies);
            return into.len() - before;
        }
        // SAFETY: this packet holds the slot, which is its pool's; the bytes fit, or are shared.
        unsafe { (*self.slot().pool).replicate(self.slot.as_ptr(), share, count, into) }
    }

    #[inline(always)]
    fn slot(&self) -> &Slot {
        // SAFETY: the handle counts as a user, so the slot lives; its header is changed through `&mut self` only, but
        // for `users`, which is read through the raw pointer.
        unsafe { self.slot.as_ref() }
    }

    /// The byte at `offset` of the buffer.
    ///
    /// # Safety
    /// The offset is at most the buffer's capacity.
    #[inline(always)]
    unsafe fn byte(&self, offset: u32) -> *mut u8 {
        let base = self.slot().base;
        // SAFETY: every slot in use has a buffer, of which this byte is a part by the contract above. The compiler need not be
        // prepared for a slice that is no place, as `Option<&mut [u8]>` says it.
        unsafe {
            core::hint::assert_unchecked(!base.is_null());
            base.add(offset as usize)
        }
    }

    #[inline(always)]
    fn slot_mut(&mut self) -> &mut Slot {
        // SAFETY: as for `slot`, and the handle is borrowed uniquely; duplicates have headers of their own.
        unsafe { self.slot.as_mut() }
    }

    /// Length of the data in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (self.slot().end - self.slot().start) as usize
    }

    /// Whether the packet has no data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slot().end == self.slot().start
    }

    /// The data.
    #[inline]
    pub fn data(&self) -> &[u8] {
        let Slot { start, end, .. } = *self.slot();
        // SAFETY: `start <= end <= capacity`; else as for `bytes`.
        unsafe { core::slice::from_raw_parts(self.byte(start), (end - start) as usize) }
    }

    /// The initialised bytes from offset `from` of the buffer to the end of the data.
    #[inline]
    fn bytes(&self, from: u32) -> &[u8] {
        let end = self.slot().end;
        let from = from.min(end);
        // SAFETY: `from <= end <= capacity` of the buffer, whose bytes are initialised (buffers start zeroed) and are written
        // only by a handle that has no co-user.
        unsafe { core::slice::from_raw_parts(self.byte(from), (end - from) as usize) }
    }

    #[inline]
    fn bytes_mut(&mut self, from: u32) -> &mut [u8] {
        self.make_unique();
        let end = self.slot().end;
        let from = from.min(end);
        // SAFETY: as for `bytes`; `make_unique` left this handle the only user of the buffer.
        unsafe { core::slice::from_raw_parts_mut(self.byte(from), (end - from) as usize) }
    }

    /// The data, mutable. Shared data is copied first.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.bytes_mut(self.slot().start)
    }

    /// Bytes of room before the data.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.slot().start as usize
    }

    /// Bytes of room after the data.
    #[inline]
    pub fn tailroom(&self) -> usize {
        (self.slot().capacity - self.slot().end) as usize
    }

    /// Whether another packet holds the same bytes.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // SAFETY: this handle is a user of the owner, directly or through its own slot, so the owner lives.
        unsafe { (*self.owner()).users != 1 }
    }

    /// Whether the bytes are in its own slot, and no other packet holds them: what can be told from the first cache line.
    #[inline]
    fn is_alone(&self) -> bool {
        let slot = self.slot.as_ptr();
        // SAFETY: the handle keeps the slot alive.
        unsafe { (*slot).users == 1 && (*slot).home != BufferHome::Other }
    }

    /// The slot that holds the bytes.
    #[inline]
    fn owner(&self) -> *mut Slot {
        let Slot { home, owner, .. } = *self.slot();
        if home == BufferHome::Other { owner } else { self.slot.as_ptr() }
    }

    /// Another packet with the same bytes, offsets and annotations; `None` if the pool is exhausted.
    #[inline]
    pub fn duplicate(&self) -> Option<Packet> {
        // SAFETY: the pool lives while the packet does. The new slot is unused, and every field of its header is set here apart
        // from its own capacity, which stays; it becomes a user of the owner.
        unsafe {
            let slot = (*self.slot().pool).take_as_it_is()?;
            let copy = slot.as_ptr();
            (*copy).pool = self.slot().pool;
            (*copy).users = 1;
            self.copy_header_to(copy);
            let owner = self.owner();
            (*copy).base = self.slot().base;
            (*copy).capacity = self.slot().capacity;
            (*copy).home = BufferHome::Other;
            (*copy).owner = owner;
            (*owner).users += 1;
            Some(Packet { slot })
        }
    }

    /// The packet's place in the order of those that were stamped with it, until they are in order again. Then it is the
    /// packet's input, where the packets of several inputs are mixed. Meaningless otherwise.
    #[inline]
    pub fn stamp(&self) -> u32 {
        self.slot().stamp
    }

    /// Sets the packet's place in an order that is to be restored, or its input.
    #[inline]
    pub fn set_stamp(&mut self, stamp: u32) {
        self.slot_mut().stamp = stamp;
    }

    /// Another packet with a copy of the bytes; `None` if the pool is exhausted.
    #[inline]
    pub fn copy(&self) -> Option<Packet> {
        // SAFETY: the pool lives while the packet does; the new slot is reset, unused and large enough.
        unsafe {
            let slot = (*self.slot().pool).take(self.slot().end as usize)?;
            self.copy_header_to(slot.as_ptr());
            core::ptr::copy_nonoverlapping(self.slot().base, (*slot.as_ptr()).base, self.slot().end as usize);
            Some(Packet { slot })
        }
    }

    /// Copies the header fields that describe the packet, but not the location of its bytes.
    ///
    /// # Safety
    /// `to` is a live slot of no other user.
    #[inline]
    unsafe fn copy_header_to(&self, to: *mut Slot) {
        let from = self.slot();
        // SAFETY: by the contract above.
        unsafe {
            (*to).start = from.start;
            (*to).end = from.end;
            (*to).mac = from.mac;
            (*to).network = from.network;
            (*to).transport = from.transport;
            (*to).device = from.device;
            (*to).timestamp = from.timestamp;
            (*to).stamp = from.stamp;
            (*to).copy_annotations(from);
        }
    }

    /// Takes the lent buffer out of this packet, with the range of its data, and leaves the packet empty. `None` if
    /// another packet shares the bytes or if no buffer was lent.
    #[inline]
    pub fn into_buffer(&mut self) -> Option<(&'static mut [u8], core::ops::Range<usize>)> {
        let slot = self.slot.as_ptr();
        // SAFETY: the handle keeps the slot alive and is borrowed uniquely. A slot with a lent buffer and one user has only this
        // handle, so no other reference to the buffer exists.
        unsafe {
            if (*slot).home != BufferHome::Lent || (*slot).users != 1 {
                return None;
            }
            let range = (*slot).start as usize..(*slot).end as usize;
            let buffer = PoolState::lent(slot);
            ((*slot).start, (*slot).end) = (0, 0);
            ((*slot).mac, (*slot).network, (*slot).transport) = (NONE, NONE, NONE);
            Some((buffer, range))
        }
    }

    /// Makes this packet the only owner of its bytes, by a copy if they are shared.
    #[inline]
    pub fn make_unique(&mut self) {
        if !self.is_alone() {
            self.leave_others();
        }
    }

    /// Copies the bytes if another packet holds them too.
    #[cold]
    #[inline(never)]
    fn leave_others(&mut self) {
        if self.is_shared() {
            self.reserve(0, 0);
        }
    }

    /// Moves the packet into a buffer of its own with `front` more bytes of headroom and `back` more bytes of tailroom.
    #[cold]
    #[inline(never)]
    fn reserve(&mut self, front: usize, back: usize) {
        let (end, base) = (self.slot().end as usize, self.slot().base);
        let old_slot = self.slot.as_ptr();
        let owner = self.owner();
        // SAFETY: `old_slot` and `owner` live while this handle uses them. The own buffer of a slot whose bytes are
        // elsewhere is unused (bytes never move out of a buffer without their handle), so it may take them in.
        // Otherwise a new slot takes over, and the handle's use of the old one ends.
        unsafe {
            if owner != old_slot && front == 0 && end + back <= (*old_slot).own_capacity as usize {
                let own = old_slot.cast::<u8>().add(size_of::<Slot>());
                core::ptr::copy_nonoverlapping(base, own, end);
                (*old_slot).base = own;
                (*old_slot).capacity = (*old_slot).own_capacity;
                (*old_slot).home = BufferHome::Pool;
                PoolState::release_owner(owner);
                return;
            }
            let slot = (*(*old_slot).pool).take_unlimited(front + end + back);
            let new = slot.as_ptr();
            self.copy_header_to(new);
            core::ptr::copy_nonoverlapping(base, (*new).base.add(front), end);
            let shift = front as u32;
            (*new).start += shift;
            (*new).end += shift;
            for offset in [&mut (*new).mac, &mut (*new).network, &mut (*new).transport] {
                if *offset != NONE {
                    *offset += shift;
                }
            }
            self.slot = slot;
            if owner != old_slot {
                PoolState::release_owner(owner);
            }
            PoolState::release(old_slot);
        }
    }

    /// Removes up to `count` bytes from the front; returns the number removed.
    #[inline]
    pub fn strip(&mut self, count: usize) -> usize {
        let count = count.min(self.len());
        self.slot_mut().start += count as u32;
        count
    }

    /// Removes `count` bytes from the front if the packet has that many; returns whether it did.
    #[inline]
    pub fn strip_exactly(&mut self, count: usize) -> bool {
        let there = count <= self.len();
        if there {
            self.slot_mut().start += count as u32;
        }
        there
    }

    /// Removes up to `count` bytes from the end; returns the number removed.
    #[inline]
    pub fn truncate_by(&mut self, count: usize) -> usize {
        let count = count.min(self.len());
        self.slot_mut().end -= count as u32;
        count
    }

    /// Keeps the first `length` bytes.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        let length = length.min(self.len());
        let slot = self.slot_mut();
        slot.end = slot.start + length as u32;
    }

    /// Adds `count` bytes at the front. Their contents are the bytes stripped before, or stale. `None` if the packet
    /// would exceed the maximum size.
    #[inline]
    pub fn prepend(&mut self, count: usize) -> Option<&mut [u8]> {
        self.make_room(count)?;
        self.slot_mut().start -= count as u32;
        // SAFETY: the bytes lie between the new start and the old one, which is not beyond `end`; `make_room` left this handle
        // the only user of the buffer; else as for `bytes`.
        Some(unsafe { core::slice::from_raw_parts_mut(self.byte(self.slot().start), count) })
    }

    /// Adds a link header at the front, and sets the offsets of the link header and of the network header behind it. The
    /// transport header offset does not change. `None` if the packet would exceed the maximum size.
    #[inline]
    pub fn prepend_link_header<const LENGTH: usize>(&mut self, header: &[u8; LENGTH]) -> Option<()> {
        self.make_room(LENGTH)?;
        let slot = self.slot_mut();
        let network = slot.start;
        let start = network - LENGTH as u32;
        (slot.start, slot.mac, slot.network) = (start, start, network);
        // SAFETY: as in `prepend`.
        unsafe { slot.base.add(start as usize).cast::<[u8; LENGTH]>().write(*header) };
        Some(())
    }

    /// Makes this packet the only owner of its bytes, with at least `count` bytes of headroom. `None` if it would exceed the
    /// maximum size.
    #[inline]
    fn make_room(&mut self, count: usize) -> Option<()> {
        if count > self.headroom() {
            self.check_growth(count)?;
            // Extra room, so that a stack of encapsulations moves the packet only once.
            self.reserve(count.next_multiple_of(64), 0);
        } else {
            self.make_unique();
        }
        Some(())
    }

    /// Moves the start of the data back by `count` bytes without writing; returns `false` if the headroom is smaller.
    #[inline]
    pub fn unstrip(&mut self, count: usize) -> bool {
        if count > self.headroom() {
            return false;
        }
        self.slot_mut().start -= count as u32;
        true
    }

    /// Adds `count` zero bytes at the end. `None` if the packet would exceed the maximum size.
    pub fn append(&mut self, count: usize) -> Option<&mut [u8]> {
        if count > self.tailroom() || self.is_shared() {
            self.check_growth(count)?;
            self.reserve(0, count);
        }
        let length = self.len();
        self.slot_mut().end += count as u32;
        let added = self.data_mut().get_mut(length..)?;
        added.fill(0);
        Some(added)
    }

    /// Moves the data so that the headroom is `front` bytes. Header offsets move with it; a stripped header that lies
    /// further in front is no longer set.
    pub fn set_headroom(&mut self, front: usize) -> Option<()> {
        let now = self.headroom();
        if front > now {
            self.check_growth(front - now)?;
            self.reserve(front - now, 0);
        } else if front < now {
            self.make_unique();
            let (end, shift) = (self.slot().end, (now - front) as u32);
            let slot = self.slot_mut();
            // SAFETY: `start..end` and `start - shift..` lie in the buffer, of which `make_unique` left no other user.
            unsafe {
                let data = slot.base.add(slot.start as usize);
                core::ptr::copy(data, data.sub(shift as usize), (end - slot.start) as usize);
            }
            slot.start -= shift;
            slot.end -= shift;
            for offset in [&mut slot.mac, &mut slot.network, &mut slot.transport] {
                *offset = if *offset == NONE { NONE } else { offset.checked_sub(shift).unwrap_or(NONE) };
            }
        }
        Some(())
    }

    fn check_growth(&self, count: usize) -> Option<()> {
        (count <= MAX_CAPACITY - self.len().min(MAX_CAPACITY)
            && self.slot().end as usize + count <= 2 * MAX_CAPACITY)
            .then_some(())
    }

    /// Clears annotations and header offsets and forgets stripped bytes, as in a packet fresh from a source.
    pub fn clear_annotations(&mut self) {
        let slot = self.slot_mut();
        slot.clear_annotations();
        (slot.mac, slot.network, slot.transport) = (NONE, NONE, NONE);
        (slot.device, slot.kind, slot.timestamp) = (0, 0, Timestamp::ZERO);
    }

    /// Steps behind a copy of it in the order of stamps.
    #[inline]
    pub fn step_behind_copy(&mut self) {
        let stamp = &mut self.slot_mut().stamp;
        *stamp = stamp.wrapping_add(1);
    }

    /// Copies the metadata of `other` except for header offsets: annotations, time, device, packet type, and stamp.
    pub fn copy_annotations(&mut self, other: &Packet) {
        let from = other.slot();
        let slot = self.slot_mut();
        slot.copy_annotations(from);
        (slot.timestamp, slot.device, slot.stamp) = (from.timestamp, from.device, from.stamp);
    }
}

/// Header offsets. They are relative to the buffer, so stripping or adding bytes at the front does not invalidate them.
/// Relative to the data they may be negative; the bytes in the headroom still exist.
impl Packet {
    fn relative(&self, offset: u32) -> Option<isize> {
        (offset != NONE).then(|| offset as isize - self.slot().start as isize)
    }

    fn absolute(&self, relative: isize) -> u32 {
        let offset = (self.slot().start as isize).saturating_add(relative);
        if offset < 0 || offset > self.slot().end as isize { NONE } else { offset as u32 }
    }

    /// Offset of the link header, relative to the data.
    #[inline]
    pub fn mac_offset(&self) -> Option<isize> {
        self.relative(self.slot().mac)
    }

    /// Offset of the network header, relative to the data.
    #[inline]
    pub fn network_offset(&self) -> Option<isize> {
        self.relative(self.slot().network)
    }

    /// Offset of the transport header, relative to the data.
    #[inline]
    pub fn transport_offset(&self) -> Option<isize> {
        self.relative(self.slot().transport)
    }

    /// The bytes from the link header to the end of the data; empty if its offset is not set.
    #[inline]
    pub fn mac(&self) -> &[u8] {
        self.bytes(self.slot().mac)
    }

    /// The bytes from the network header to the end of the data; empty if its offset is not set.
    #[inline]
    pub fn network(&self) -> &[u8] {
        self.bytes(self.slot().network)
    }

    /// The bytes from the transport header to the end of the data; empty if its offset is not set.
    #[inline]
    pub fn transport(&self) -> &[u8] {
        self.bytes(self.slot().transport)
    }

    /// Like `mac`, mutable.
    #[inline]
    pub fn mac_mut(&mut self) -> &mut [u8] {
        self.bytes_mut(self.slot().mac)
    }

    /// Like `network`, mutable.
    #[inline]
    pub fn network_mut(&mut self) -> &mut [u8] {
        self.bytes_mut(self.slot().network)
    }

    /// Like `transport`, mutable.
    #[inline]
    pub fn transport_mut(&mut self) -> &mut [u8] {
        self.bytes_mut(self.slot().transport)
    }

    /// Whether the network header offset is set.
    #[inline]
    pub fn has_network(&self) -> bool {
        self.slot().network != NONE
    }

    /// Whether the transport header offset is set.
    #[inline]
    pub fn has_transport(&self) -> bool {
        self.slot().transport != NONE
    }

    /// Bytes between the network and the transport header; zero if either offset is not set.
    #[inline]
    pub fn network_header_length(&self) -> usize {
        let slot = self.slot();
        if slot.transport == NONE || slot.network == NONE {
            0
        } else {
            slot.transport.saturating_sub(slot.network) as usize
        }
    }

    /// Sets the link header offset, relative to the data. An offset outside the buffer clears it.
    #[inline]
    pub fn set_mac(&mut self, relative: isize) {
        self.slot_mut().mac = self.absolute(relative);
    }

    /// Sets the link header offset, relative to the data, and the network header offset `length` bytes after it. The
    /// transport header offset does not change.
    #[inline]
    pub fn set_mac_header(&mut self, relative: isize, length: usize) {
        let (mac, network) =
            (self.absolute(relative), self.absolute(relative.saturating_add_unsigned(length)));
        let slot = self.slot_mut();
        (slot.mac, slot.network) = (mac, network);
    }

    /// Sets the link header offset to the start of the data.
    #[inline]
    pub fn set_mac_to_start(&mut self) {
        let slot = self.slot_mut();
        slot.mac = slot.start;
    }

    /// Sets the network header offset, relative to the data, and the transport header offset `length` bytes after it.
    #[inline]
    pub fn set_network(&mut self, relative: isize, length: usize) {
        let network = self.absolute(relative);
        let end = self.slot().end;
        let slot = self.slot_mut();
        slot.network = network;
        slot.transport = match network.checked_add(length as u32) {
            Some(transport) if network != NONE && transport <= end => transport,
            _ => NONE,
        };
    }

    /// Sets the network header offset to `offset` and the transport header offset `header` bytes after it, and
    /// truncates the packet to `length` bytes from the network header on. Returns `false` if the data is shorter than
    /// that or `length` is below `header`.
    #[inline]
    pub fn set_network_within(&mut self, offset: usize, header: usize, length: usize) -> bool {
        if header > length || offset.saturating_add(length) > self.len() {
            return false;
        }
        let slot = self.slot_mut();
        slot.network = slot.start + offset as u32;
        slot.transport = slot.network + header as u32;
        slot.end = slot.network + length as u32;
        true
    }

    /// Clears the network and transport header offsets.
    #[inline]
    pub fn clear_network(&mut self) {
        let slot = self.slot_mut();
        (slot.network, slot.transport) = (NONE, NONE);
    }

    /// Clears the link header offset.
    #[inline]
    pub fn clear_mac(&mut self) {
        self.slot_mut().mac = NONE;
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        let slot = self.slot.as_ptr();
        // SAFETY: the handle's use of its slot ends here, and, where the bytes are elsewhere, the slot's use of the
        // owner.
        unsafe {
            if (*slot).home == BufferHome::Other {
                PoolState::release_owner((*slot).owner);
            }
            PoolState::release(slot);
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packet({} bytes)", self.len())
    }
}
