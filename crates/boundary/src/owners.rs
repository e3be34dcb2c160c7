//! The owner of each buffer in a pool that several boxes share, as recorded by the host.

use crate::memory::Mapped;
use crate::ring::{Descriptor, PoolLayout};
use crate::tags::BufferTags;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::num::NonZeroU16;
use core::sync::atomic::AtomicU16;
use core::sync::atomic::Ordering::Relaxed;

/// A box that shares a pool.
pub type PoolMember = NonZeroU16;

/// What the host needs for the ports of a member of a pool: [`HostPort::pooled`](crate::HostPort::pooled). The owner of the
/// ports holds it, as the memory is mapped only as long as it exists.
pub struct PoolShare {
    /// The buffers of the pool.
    pub buffers: Mapped,
    /// Their owners.
    pub owners: Arc<BufferOwners>,
    /// The member.
    pub member: PoolMember,
    /// The buffers that its rings start with.
    pub own: Vec<u32>,
    /// Keeps the memory mapped. Its drop ends the membership, and frees the buffers of the member.
    pub keeper: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for PoolShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolShare").field("member", &self.member).finish_non_exhaustive()
    }
}

/// The owner of each buffer: the box that has it in a ring or has taken it out, or none.
///
/// A box can write to all buffers of the pool, also to those of other boxes; this harms only their owner. It cannot,
/// however, pass on a buffer of another box or leave it in a ring. Each box therefore always owns as many buffers as it
/// started with, and all of them are freed when it ends.
///
/// Words are loaded and stored individually. If two threads handle the same buffer at the same time, which only
/// misbehaving boxes can cause, one update may be lost: boxes of their owner then share a buffer.
#[derive(Debug)]
pub struct BufferOwners {
    pool: PoolLayout,
    holders: Box<[AtomicU16]>,
    /// What the host notes of the buffers while boxes have them.
    tags: Arc<BufferTags>,
}

impl BufferOwners {
    /// A pool of `bytes` bytes whose buffers have no owner.
    pub fn new(bytes: usize) -> Self {
        let pool = PoolLayout::in_bytes(bytes);
        let holders = (0..pool.buffers()).map(|_| AtomicU16::new(0)).collect();
        Self { pool, holders, tags: Arc::new(BufferTags::new(pool.buffers())) }
    }

    /// Assigns `count` free buffers to a box, or returns `None` if there are fewer.
    pub fn take(&self, holder: PoolMember, count: usize) -> Option<Vec<u32>> {
        let mut taken = Vec::with_capacity(count);
        for (number, owner) in (0u32..).zip(&self.holders) {
            if taken.len() == count {
                break;
            }
            if owner.compare_exchange(0, holder.get(), Relaxed, Relaxed).is_ok() {
                taken.push(number);
            }
        }
        if taken.len() == count {
            return Some(taken);
        }
        for number in taken {
            self.set(number, 0);
        }
        None
    }

    /// Frees all buffers of a box that has ended. Returns their number.
    pub fn give_back(&self, holder: PoolMember) -> usize {
        let of_holder = |owner: &&AtomicU16| owner.load(Relaxed) == holder.get();
        self.holders.iter().filter(of_holder).map(|owner| owner.store(0, Relaxed)).count()
    }

    /// Transfers a packet with its buffer from one box to another, in exchange for the buffer `spare`. Returns false,
    /// with nothing changed, if one of the buffers does not belong to its box, or if the packet is not inside its
    /// buffer.
    #[inline(always)]
    pub(crate) fn exchange(&self, from: PoolMember, packet: Descriptor, to: PoolMember, spare: u32) -> bool {
        let sound = self.pool.range(packet).is_ok()
            && self.holder(packet.buffer) == from.get()
            && self.holder(spare) == to.get();
        if sound {
            self.set(packet.buffer, to.get());
            self.set(spare, from.get());
        }
        sound
    }

    /// What the host notes of the buffers.
    pub(crate) fn tags(&self) -> &Arc<BufferTags> {
        &self.tags
    }

    /// Whether a buffer belongs to a box.
    #[inline(always)]
    pub(crate) fn owns(&self, holder: PoolMember, buffer: u32) -> bool {
        self.holder(buffer) == holder.get()
    }

    /// The owner of a buffer, 0 for none.
    #[inline(always)]
    fn holder(&self, buffer: u32) -> u16 {
        self.holders.get(buffer as usize).map_or(0, |owner| owner.load(Relaxed))
    }

    #[inline(always)]
    fn set(&self, buffer: u32, holder: u16) {
        if let Some(owner) = self.holders.get(buffer as usize) {
            owner.store(holder, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::BUFFER_SIZE;
    use random::Random;

    fn holder(number: u16) -> PoolMember {
        PoolMember::new(number).unwrap()
    }

    #[test]
    fn buffers_are_taken_and_given_back() {
        let holders = BufferOwners::new(10 * BUFFER_SIZE);
        assert_eq!(holders.take(holder(1), 4), Some(alloc::vec![0, 1, 2, 3]));
        assert_eq!(holders.take(holder(2), 7), None);
        assert_eq!(holders.take(holder(2), 6), Some(alloc::vec![4, 5, 6, 7, 8, 9]));
        assert_eq!((holders.give_back(holder(1)), holders.give_back(holder(1))), (4, 0));
        assert_eq!(holders.take(holder(3), 4), Some(alloc::vec![0, 1, 2, 3]));
    }

    /// Whatever boxes claim, each keeps as many buffers as it has.
    #[test]
    fn false_claims_move_no_buffer() {
        let (holders, mut random) = (BufferOwners::new(60 * BUFFER_SIZE), Random::new(9));
        for number in 1..=3 {
            holders.take(holder(number), 20).unwrap();
        }
        let mut moved = 0;
        for _ in 0..50_000 {
            let word = random.next();
            let packet = Descriptor::from_bits(word & 0x0000_0fff_3ff0_003f);
            let (from, to) = (holder(1 + (word >> 50) as u16 % 3), holder(1 + (word >> 40) as u16 % 3));
            moved += u32::from(holders.exchange(from, packet, to, (random.next() % 70) as u32));
        }
        assert!(moved > 1_000);
        assert_eq!([1, 2, 3].map(|number| holders.give_back(holder(number))), [20; 3]);
    }
}
