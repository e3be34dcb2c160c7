//! Adding received frames to a batch: the cost per packet of a source.

use alloc::vec::Vec;
use core::ptr::NonNull;

use crate::Timestamp;
use crate::packet::Packet;
use crate::pool::{HEADROOM, copy};
use crate::shared_bytes::SharedBytes;
use crate::slot::{CAPACITY, HEADER, PoolState, Slot};

/// Adds frames to a batch, with slots that it takes from the pool together. [`Batch::receive`](crate::Batch::receive) returns it.
///
/// The slots lie in the batch's list, behind its end. The next slot becomes the next packet. Those that are left return to the
/// pool when this is dropped.
pub struct Receiving<'a> {
    pool: &'a PoolState,
    list: &'a mut Vec<Packet>,
    /// The next slot. The packets before it, from the list's end on, are not counted yet.
    next: *mut Packet,
    /// Behind the last slot that was taken.
    end: *mut Packet,
    /// Where the last packet ends that may be added.
    limit: *mut Packet,
}

impl<'a> Receiving<'a> {
    /// Takes `count` slots, or as many as the pool's limit allows.
    #[inline]
    pub(crate) fn new(pool: &'a PoolState, count: usize, list: &'a mut Vec<Packet>) -> Receiving<'a> {
        let available = pool.available();
        pool.provide(count.min(available));
        list.reserve(count);
        // SAFETY: the free list is used by this thread only, and only through this borrow while it lasts. `list` has room for
        // `count` packets behind its end, and so for all slots that are moved there.
        unsafe {
            let free = &mut *pool.free.get();
            let left = free.len().saturating_sub(count);
            let taken = free.len() - left;
            let next = list.as_mut_ptr().add(list.len());
            next.cast::<NonNull<Slot>>().copy_from_nonoverlapping(free.as_ptr().add(left), taken);
            free.set_len(left);
            Receiving { pool, list, next, end: next.add(taken), limit: next.add(count) }
        }
    }

    /// Adds a packet that holds a copy of `bytes`, which begin with a link header. `None` if the pool is exhausted, or if there
    /// are as many packets as were announced.
    #[inline(always)]
    pub fn add(&mut self, bytes: &[u8], timestamp: Timestamp) -> Option<&mut Packet> {
        // SAFETY: a slice is readable.
        unsafe { self.add_copy(bytes.as_ptr(), bytes.len(), timestamp) }
    }

    /// Like [`add`](Self::add), of bytes that others may change meanwhile. The packet holds what was read.
    #[inline(always)]
    pub fn add_shared(&mut self, bytes: SharedBytes, timestamp: Timestamp) -> Option<&mut Packet> {
        // SAFETY: shared bytes are readable.
        unsafe { self.add_copy(bytes.as_ptr(), bytes.len(), timestamp) }
    }

    /// Adds a packet that holds a copy of `length` bytes from `bytes`.
    ///
    /// # Safety
    /// The bytes can be read. They may change meanwhile.
    #[inline(always)]
    unsafe fn add_copy(
        &mut self,
        bytes: *const u8,
        length: usize,
        timestamp: Timestamp,
    ) -> Option<&mut Packet> {
        if self.next == self.end || length > CAPACITY - HEADROOM {
            // SAFETY: by the contract above.
            return unsafe { self.add_apart(bytes, length, timestamp) };
        }
        // SAFETY: the slot came off the pool's free list, so it is not in use, and its buffer holds headroom and bytes.
        unsafe {
            let slot = self.next.cast::<NonNull<Slot>>().read().as_ptr();
            self.pool.reset(slot, CAPACITY as u32);
            let packet = self.complete(slot, length, timestamp);
            copy(bytes, slot.cast::<u8>().add(HEADER + HEADROOM), length);
            Some(packet)
        }
    }

    /// Adds a packet that is too large for a slot, or for which none was left.
    ///
    /// # Safety
    /// As for [`add_copy`](Self::add_copy).
    #[cold]
    #[inline(never)]
    unsafe fn add_apart(
        &mut self,
        bytes: *const u8,
        length: usize,
        timestamp: Timestamp,
    ) -> Option<&mut Packet> {
        if self.next == self.limit {
            return None;
        }
        // The pool compares the number of live packets with its limit.
        self.count_packets();
        let slot = self.pool.take(HEADROOM.checked_add(length)?)?;
        // SAFETY: `take` returns a reset slot that is not in use, with room for headroom and bytes. `next` is before the limit, so
        // the list has room for a packet there. A slot that makes way for it returns to the free list, which has room for all
        // slots of the pool. The new packet is counted by `take`.
        unsafe {
            let place = self.next.cast::<NonNull<Slot>>();
            if self.next == self.end {
                self.end = self.end.add(1);
            } else {
                (*self.pool.free.get()).push(place.read());
            }
            place.write(slot);
            let slot = slot.as_ptr();
            copy(bytes, (*slot).base.add(HEADROOM), length);
            self.list.set_len(self.list.len() + 1);
            Some(self.complete(slot, length, timestamp))
        }
    }

    /// Makes the packet at `next` of its slot.
    ///
    /// # Safety
    /// `slot` is what lies at `next`. It is reset and not in use, and its buffer has room for this length behind the headroom.
    #[inline(always)]
    unsafe fn complete(&mut self, slot: *mut Slot, length: usize, timestamp: Timestamp) -> &mut Packet {
        // SAFETY: by the contract above; a packet is a pointer to its slot.
        unsafe {
            (*slot).start = HEADROOM as u32;
            (*slot).end = (HEADROOM + length) as u32;
            (*slot).mac = HEADROOM as u32;
            (*slot).timestamp = timestamp;
            let packet = self.next;
            self.next = packet.add(1);
            &mut *packet
        }
    }

    /// Moves the list's end behind the packets that were added, and counts them as live.
    #[inline]
    fn count_packets(&mut self) {
        // SAFETY: `next` and the list's end lie in the list's memory, and all between them are packets.
        unsafe {
            let added = self.next.offset_from_unsigned(self.list.as_ptr().add(self.list.len()));
            self.list.set_len(self.list.len() + added);
            self.pool.live.set(self.pool.live.get() + added);
        }
    }
}

impl Drop for Receiving<'_> {
    #[inline]
    fn drop(&mut self) {
        self.count_packets();
        // SAFETY: the slots from `next` to `end` came off the free list, which has room for all slots of the pool. This thread
        // alone uses the list, one borrow at a time.
        unsafe {
            let left = self.end.offset_from_unsigned(self.next);
            let free = &mut *self.pool.free.get();
            let end = free.as_mut_ptr().add(free.len());
            end.copy_from_nonoverlapping(self.next.cast(), left);
            free.set_len(free.len() + left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Pool};

    const TIME: Timestamp = Timestamp::from_nanos(5);

    #[test]
    fn packets_are_as_those_that_are_made_singly() {
        let pool = Pool::new(100);
        let large = [7; CAPACITY];
        let frames: [&[u8]; 6] = [b"", b"first", &large[..CAPACITY - HEADROOM], &large, &[1; 33], b"last"];
        for slots in [0, 3, 100] {
            drop((0..slots).map_while(|_| pool.packet(&[0xff; 200])).collect::<Batch>());
            let mut batch = Batch::single(pool.packet(b"before").unwrap());
            let mut receiving = batch.receive(&pool, 10);
            for frame in frames {
                let packet = receiving.add(frame, TIME).unwrap();
                packet.set_paint(1);
                assert_eq!(packet.data(), frame);
            }
            drop(receiving);
            assert_eq!((batch.len(), pool.live(), pool.failed_allocations()), (7, 7, 0));
            for (packet, frame) in batch.iter().skip(1).zip(frames) {
                let mut single = pool.packet(frame).unwrap();
                single.set_timestamp(TIME);
                single.set_mac_to_start();
                single.set_paint(1);
                assert_eq!(packet.data(), single.data());
                assert_eq!((packet.timestamp(), packet.mac()), (single.timestamp(), single.mac()));
                assert_eq!((packet.headroom(), packet.is_shared()), (single.headroom(), false));
                assert_eq!((packet.network(), packet.transport()), (single.network(), single.transport()));
                assert_eq!(packet.annotations(), single.annotations());
            }
            drop(batch);
            assert_eq!(pool.live(), 0);
        }
    }

    #[test]
    fn no_more_are_added_than_were_announced_or_than_the_pool_allows() {
        let pool = Pool::new(3);
        let mut batch = Batch::new();
        let mut receiving = batch.receive(&pool, 2);
        let added = (0..3).filter(|_| receiving.add(b"frame", TIME).is_some()).count();
        drop(receiving);
        assert_eq!((added, batch.len(), pool.live(), pool.failed_allocations()), (2, 2, 2, 0));
        let mut receiving = batch.receive(&pool, 5);
        assert!(receiving.add(b"frame", TIME).is_some());
        assert!(receiving.add(b"frame", TIME).is_none());
        assert!(receiving.add(&[0; CAPACITY], TIME).is_none());
        drop(receiving);
        assert_eq!((batch.len(), pool.live(), pool.failed_allocations()), (3, 3, 2));
        drop(batch);
        assert!(pool.packet(b"").is_some_and(|_| pool.live() == 1));
    }

    #[test]
    fn packets_that_end_meanwhile_make_room() {
        let pool = Pool::new(2);
        let mut ending = Batch::single(pool.packet(b"ending").unwrap());
        let mut batch = Batch::new();
        let mut receiving = batch.receive(&pool, 2);
        assert!(receiving.add(b"frame", TIME).is_some());
        assert!(receiving.add(b"frame", TIME).is_none());
        ending.clear();
        assert!(receiving.add(b"other", TIME).is_some());
        assert!(receiving.add(b"frame", TIME).is_none());
        drop(receiving);
        assert_eq!((batch.as_slice()[1].data(), batch.len(), pool.live()), (&b"other"[..], 2, 2));
    }

    #[test]
    fn slots_that_are_left_return() {
        let pool = Pool::new(50);
        let mut batch = Batch::new();
        for count in [0, 1, 7, 0, 20] {
            let mut receiving = batch.receive(&pool, 40);
            (0..count).for_each(|_| assert!(receiving.add(b"frame", TIME).is_some()));
            drop(receiving);
            assert_eq!((batch.len(), pool.live()), (count, count));
            batch.clear();
        }
        let all = (0..51).map_while(|_| pool.packet(b"frame")).collect::<Batch>();
        assert_eq!(all.len(), 50);
    }
}
