//! A batch: the packets that one call processes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::slot::PoolState;
use crate::{BatchTrace, Packet, Pool, Receiving};

/// The maximum number of packets in a batch.
pub const MAX_BATCH: usize = 256;

/// The maximum number of batches over which [`Batch::scatter`] distributes packets.
pub const MAX_SCATTER: usize = 8;

/// A sequence of packets, and the unit in which elements are called. The framework's batches hold at most [`MAX_BATCH`]
/// packets.
///
/// It is a single pointer, because it is moved more often than its packets are read: from an element to the outputs, and from
/// there to the next element. A vector of three words would go through memory at each move.
#[derive(Default)]
pub struct Batch {
    /// `None` before the first packet is added.
    packets: Option<Box<Packets>>,
}

#[derive(Default)]
struct Packets {
    list: Vec<Packet>,
}

impl Batch {
    /// An empty batch. It allocates when the first packet is added.
    pub const fn new() -> Batch {
        Batch { packets: None }
    }

    /// An empty batch with room for [`MAX_BATCH`] packets.
    pub fn with_capacity() -> Batch {
        Batch { packets: Some(Box::new(Packets { list: Vec::with_capacity(MAX_BATCH) })) }
    }

    /// A batch of one.
    pub fn single(packet: Packet) -> Batch {
        let mut batch = Batch::with_capacity();
        batch.push(packet);
        batch
    }

    /// Whether the batch has memory for packets.
    #[inline]
    pub fn has_memory(&self) -> bool {
        self.packets.is_some()
    }

    /// The list of packets, which is made if there is none.
    #[inline]
    fn list(&mut self) -> &mut Vec<Packet> {
        &mut self.packets.get_or_insert_default().list
    }

    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether the batch is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// Whether the batch holds [`MAX_BATCH`] packets or more.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() >= MAX_BATCH
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        match &mut self.packets {
            Some(packets) if packets.list.len() < packets.list.capacity() => packets.list.push(packet),
            _ => self.grow(packet),
        }
    }

    /// Appends a packet for which there is no room yet.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, packet: Packet) {
        self.list().push(packet);
    }

    /// Removes the last packet and returns it.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.as_mut()?.list.pop()
    }

    /// Iterates over the packets.
    #[inline]
    pub fn iter(&self) -> core::slice::Iter<'_, Packet> {
        self.as_slice().iter()
    }

    /// Iterates over the packets mutably.
    #[inline]
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, Packet> {
        self.as_mut_slice().iter_mut()
    }

    /// The batch as a crash report shows it.
    #[inline]
    pub fn trace(&self) -> BatchTrace {
        BatchTrace::of(self.as_slice())
    }

    /// The packets as a slice.
    #[inline]
    pub fn as_slice(&self) -> &[Packet] {
        self.packets.as_ref().map_or(&[], |packets| &packets.list)
    }

    /// The packets as a mutable slice.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Packet] {
        self.packets.as_mut().map_or(&mut [], |packets| &mut packets.list)
    }

    /// Removes all packets, in order. The batch keeps its memory.
    #[inline]
    pub fn drain(&mut self) -> alloc::vec::Drain<'_, Packet> {
        self.list().drain(..)
    }

    /// Removes the first `count` packets.
    pub fn drain_front(&mut self, count: usize) -> alloc::vec::Drain<'_, Packet> {
        let count = count.min(self.len());
        self.list().drain(..count)
    }

    /// Moves all packets of `other` to the end of this one.
    #[inline]
    pub fn append(&mut self, other: &mut Batch) {
        if let Some(others) = &mut other.packets {
            self.list().append(&mut others.list);
        }
    }

    /// Appends to `into` packets with the same bytes as these, in the same order: as many as the pool allows.
    pub fn duplicate_to(&self, into: &mut Batch) {
        let list = into.list();
        list.reserve(self.len());
        list.extend(self.as_slice().iter().map_while(Packet::duplicate));
    }

    /// Keeps the first `count` packets and drops the others.
    pub fn truncate(&mut self, count: usize) {
        if let Some(packets) = &mut self.packets {
            packets.list.truncate(count);
        }
    }

    /// Drops all packets.
    #[inline]
    pub fn clear(&mut self) {
        if let Some(packets) = &mut self.packets {
            PoolState::release_all(&mut packets.list);
        }
    }

    /// Takes the lent buffers out of the first packets, at most `most`, as long as no other packet shares their bytes, and drops
    /// these packets. Passes each buffer to `each`, with the range of the packet's data. Returns their number.
    ///
    /// In bulk, this costs less than [`Packet::into_buffer`] and [`clear`](Self::clear).
    #[inline]
    pub fn take_lent(
        &mut self,
        most: usize,
        each: impl FnMut((&'static mut [u8], core::ops::Range<usize>)),
    ) -> usize {
        self.packets.as_mut().map_or(0, |packets| PoolState::take_lent(&mut packets.list, most, each))
    }

    /// Passes each packet to `keep` and keeps, in place and in order, those that it returns.
    #[inline]
    pub fn filter_map(&mut self, keep: impl FnMut(Packet) -> Option<Packet>) {
        self.filter_map_from(0, keep);
    }

    /// Like `filter_map`, but keeps the first `first` packets unchanged.
    #[inline]
    pub fn filter_map_from(&mut self, first: usize, mut keep: impl FnMut(Packet) -> Option<Packet>) {
        let list = self.list();
        let count = list.len();
        let first = first.min(count);
        let packets = list.as_mut_ptr();
        let mut kept = first;
        // SAFETY: the length covers only the packets kept so far, so a panic in `keep` leaks packets and nothing is
        // dropped twice. Each index from `first` to `count` is read once; `kept` never passes the index that was read
        // last.
        unsafe {
            list.set_len(first);
            for index in first..count {
                if let Some(packet) = keep(packets.add(index).read()) {
                    packets.add(kept).write(packet);
                    kept += 1;
                }
            }
            list.set_len(kept);
        }
    }

    /// Moves each packet to the end of one of the batches `into`, of which there are 1 to [`MAX_SCATTER`]. `to` has the number
    /// of that batch at the packet's index; a number that is missing, or too large, stands for the last batch.
    pub fn scatter(&mut self, to: &[u32], into: &mut [Batch]) {
        let into = into.get_mut(..MAX_SCATTER.min(into.len())).unwrap_or_default();
        let list = self.list();
        let (mut packets, count) = (list.as_mut_ptr(), list.len());
        let (Some(last), named) = (into.len().checked_sub(1), to.get(..count).unwrap_or(to)) else { return };
        into.iter_mut().for_each(|batch| batch.list().reserve(count));
        // SAFETY: each packet is moved once, out of a list that has none from here on, and nothing below panics. Each batch has
        // room for all packets behind its end.
        unsafe {
            list.set_len(0);
            // A byte for each batch counts the packets added to it. Counters in memory would make each packet wait for the
            // one before it.
            for some in named.chunks(usize::from(u8::MAX)) {
                let mut ends = [core::ptr::null_mut(); MAX_SCATTER];
                for (end, batch) in ends.iter_mut().zip(&mut *into) {
                    *end = batch.list().as_mut_ptr_range().end;
                }
                let mut added = 0u64;
                for (index, to) in some.iter().enumerate() {
                    let to = last.min(*to as usize);
                    let end = ends.get_unchecked(to).add((added >> (8 * to)) as u8 as usize);
                    end.write(packets.add(index).read());
                    added += 1 << (8 * to);
                }
                packets = packets.add(some.len());
                for (batch, added) in into.iter_mut().zip(added.to_le_bytes()) {
                    let list = batch.list();
                    list.set_len(list.len() + usize::from(added));
                }
            }
            for index in 0..count - named.len() {
                into[last].push(packets.add(index).read());
            }
        }
    }

    /// Takes up to `count` slots from `pool`, to append received frames: that costs less than packets made one by one.
    #[inline]
    pub fn receive<'a>(&'a mut self, pool: &'a Pool, count: usize) -> Receiving<'a> {
        Receiving::new(pool.shared(), count, self.list())
    }

    /// Appends up to `count` copies of `template`, as far as its pool's limit allows; returns how many. Small packets
    /// get their own bytes.
    pub fn push_copies(&mut self, template: &Packet, count: usize) -> usize {
        /// Up to this length, copying is cheaper than sharing the bytes and copying them at the first write.
        const SMALL: usize = 192;
        template.replicate(template.len() > SMALL, count, self.list())
    }
}

impl FromIterator<Packet> for Batch {
    fn from_iter<I: IntoIterator<Item = Packet>>(packets: I) -> Batch {
        Batch { packets: Some(Box::new(Packets { list: packets.into_iter().collect() })) }
    }
}

impl IntoIterator for Batch {
    type Item = Packet;
    type IntoIter = alloc::vec::IntoIter<Packet>;
    fn into_iter(mut self) -> Self::IntoIter {
        core::mem::take(self.list()).into_iter()
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = &'a Packet;
    type IntoIter = core::slice::Iter<'a, Packet>;
    fn into_iter(self) -> Self::IntoIter {
        self.as_slice().iter()
    }
}

impl core::fmt::Debug for Batch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Batch({} packets)", self.len())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.clear();
    }
}
