//! The element behind all queues.

use alloc::collections::VecDeque;
use core::any::Any;

use element::prelude::*;
use element::{Direction, Notifies};

use super::length::Length;
use super::stored::Stored;

/// Unsuccessful pulls after which a queue announces that it is empty, so that a nearly empty queue does not toggle.
const SLEEPINESS_TRIGGER: u32 = 9;
/// Initial capacity of the buffer; a longer queue grows on use.
const INITIAL_CAPACITY: usize = 4096;

/// Policy of a queue class.
pub trait QueuePolicy: 'static {
    /// Arguments of the class.
    type Args: Args;
    /// Announce emptiness with the last packet instead of after several unsuccessful pulls.
    const NOTIFIES_QUICKLY: bool = false;
    /// Keep the newest packets, not the oldest, when the capacity shrinks.
    const KEEPS_NEWEST: bool = false;

    /// Whether packets of an input are put in front of the others.
    fn is_stacked(_port: usize) -> bool {
        false
    }

    /// Maximum number of packets.
    fn capacity(args: Self::Args) -> usize;

    /// Stores a packet that arrived at `port`; returns the packet to drop if the queue is full.
    #[inline]
    fn store(
        packets: &mut VecDeque<Packet>,
        capacity: usize,
        _port: usize,
        packet: Packet,
    ) -> Option<Packet> {
        if packets.len() >= capacity {
            return Some(packet);
        }
        packets.push_back(packet);
        None
    }
}

/// A queue of packets: FIFO unless its policy says otherwise.
pub struct Fifo<K: QueuePolicy> {
    stored: Stored,
    capacity: usize,
    highwater: usize,
    drops: u64,
    sleepiness: u32,
    length: Length,
    kind: core::marker::PhantomData<K>,
}

impl<K: QueuePolicy> Fifo<K> {
    const NOTIFIES_EMPTY: bool =
        matches!(<K::Args as Args>::INFO.notifies, Notifies::Empty | Notifies::EmptyAndFull);
    const NOTIFIES_FULL: bool =
        matches!(<K::Args as Args>::INFO.notifies, Notifies::Full | Notifies::EmptyAndFull);

    fn overflow(&mut self, cx: &mut Context, packet: Packet) {
        if self.drops == 0 && self.capacity > 0 {
            cx.log(&format!("{} :: {}: overflow", cx.name(), <K::Args as Args>::INFO.name));
        }
        self.drops += 1;
        if cx.outputs() < 2 {
            cx.drop(packet, Reason::OVERFLOW);
        } else {
            cx.send(1, packet);
        }
    }

    /// Updates notifiers and counts after packets were added.
    #[inline]
    fn packets_added(&mut self, cx: &Context) {
        let length = self.stored.len();
        self.length.set(length);
        // Paced packets would have been taken away one by one.
        self.highwater = self.highwater.max(if cx.is_paced() { length.min(1) } else { length });
        if Self::NOTIFIES_EMPTY && length > 0 {
            cx.set_signal(Direction::Empty, true);
        }
        if Self::NOTIFIES_FULL && length >= self.capacity && !cx.is_paced() {
            cx.set_signal(Direction::Full, false);
        }
    }

    /// Updates notifiers and counts after `taken` of `most` wanted packets were removed.
    #[inline]
    fn packets_removed(&mut self, cx: &Context, taken: usize, most: usize) {
        self.length.set(self.stored.len());
        if taken > 0 {
            self.sleepiness = 0;
            if Self::NOTIFIES_FULL {
                cx.set_signal(Direction::Full, true);
            }
        }
        if K::NOTIFIES_QUICKLY {
            if self.stored.packets.is_empty() {
                cx.set_signal(Direction::Empty, false);
            }
        } else if taken < most {
            if self.sleepiness < SLEEPINESS_TRIGGER {
                self.sleepiness += 1;
            } else if Self::NOTIFIES_EMPTY {
                cx.set_signal(Direction::Empty, false);
            }
        }
    }

    /// Takes over the packets of an old queue, as far as they fit.
    fn take_over(&mut self, stored: &mut Stored, cx: &Context) {
        let length = stored.len();
        core::mem::swap(&mut self.stored, stored);
        self.set_capacity(self.capacity, cx);
        self.highwater = self.stored.len();
        if length > self.capacity {
            let heading = cx.message_heading("While hot-swapping state into");
            let new = self.capacity;
            cx.log(&format!(
                "{heading}\n  warning: some packets lost (old length {length}, new capacity {new})"
            ));
        }
    }

    /// Sets the capacity; what is over it is lost.
    fn set_capacity(&mut self, capacity: usize, cx: &Context) {
        cx.count_drops(Reason::REMOVED, self.shrink(capacity) as u64);
    }

    /// Sets the capacity; returns how many packets were over it.
    fn shrink(&mut self, capacity: usize) -> usize {
        self.capacity = capacity;
        self.length.set_capacity(capacity);
        let surplus = self.stored.shrink(capacity, K::KEEPS_NEWEST);
        self.length.set(self.stored.len());
        surplus
    }

    /// Notes what became of a packet that was offered at an input: whether the queue is longer now, and whether a packet
    /// had to go.
    fn count_stored(&mut self, cx: &Context, port: usize, is_longer: bool, has_victim: bool) {
        if is_longer && !K::is_stacked(port) {
            self.stored.count_last(cx);
        } else if is_longer {
            self.stored.count_first(cx);
        } else if has_victim && K::is_stacked(port) && self.capacity > 0 {
            self.stored.count_taken_from_end(1, self.stored.len() - 1);
            self.stored.count_first(cx);
        } else if has_victim && K::KEEPS_NEWEST && self.capacity > 0 {
            self.stored.count_taken(1);
            self.stored.count_last(cx);
        }
    }
}

/// The part of the capacity that this shard has.
fn own_capacity<K: QueuePolicy>(args: K::Args, setup: &Setup) -> Result<usize, SetupError> {
    let capacity = u32::try_from(K::capacity(args)).unwrap_or(u32::MAX);
    Ok(setup.shard.divide("CAPACITY", capacity)? as usize)
}

impl<K: QueuePolicy> Element for Fifo<K> {
    type Args = K::Args;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("length", "Packets stored.", |queue| queue.stored.len().to_string()),
        Handler::read("highwater_length", "Highest number of packets ever stored.", |queue| {
            queue.highwater.to_string()
        }),
        Handler::read("capacity", "Maximum number of packets.", |queue| queue.capacity.to_string()),
        Handler::setting("capacity", "Sets the maximum number of packets.", |queue, cx, value| {
            let capacity: u32 = cx.keyword("CAPACITY", value)?;
            let capacity = cx.shard().divide("CAPACITY", capacity)?;
            queue.set_capacity(capacity as usize, cx);
            cx.record_argument(Some(0), "CAPACITY", value.trim());
            if Self::NOTIFIES_FULL && queue.stored.len() < queue.capacity {
                cx.set_signal(Direction::Full, true);
            }
            Ok(())
        }),
        Handler::read("drops", "Packets dropped because the queue was full.", |queue| {
            queue.drops.to_string()
        }),
        Handler::action("reset_counts", "Resets `drops` and `highwater_length`.", |queue, _, _| {
            (queue.drops, queue.highwater) = (0, queue.stored.len());
            Ok(())
        }),
        Handler::action("reset", "Drops all packets.", |queue, cx, _| {
            let packets = core::mem::take(&mut queue.stored).packets;
            let count = packets.len();
            queue.packets_removed(cx, count, count + 1);
            for packet in packets {
                if cx.outputs() < 2 {
                    cx.drop(packet, Reason::RESET);
                } else {
                    cx.send(1, packet);
                }
            }
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: K::Args, setup: &mut Setup) -> Result<Fifo<K>, SetupError> {
        let capacity = own_capacity::<K>(args, setup)?;
        let length = Length::default();
        length.set_capacity(capacity);
        Ok(Fifo {
            stored: Stored::with_capacity(capacity.min(INITIAL_CAPACITY)),
            capacity,
            highwater: 0,
            drops: 0,
            sleepiness: 0,
            length,
            kind: core::marker::PhantomData,
        })
    }

    fn reconfigure(&mut self, args: K::Args, setup: &mut Setup) -> Result<(), SetupError> {
        // The router counts what is over the new capacity.
        self.shrink(own_capacity::<K>(args, setup)?);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        if cx.is_paced() || port == 0 && batch.len() <= self.capacity.saturating_sub(self.stored.len()) {
            self.stored.extend(cx, &mut batch);
        } else {
            for packet in batch.drain() {
                let before = self.stored.len();
                let victim = K::store(&mut self.stored.packets, self.capacity, port, packet);
                self.count_stored(cx, port, self.stored.len() > before, victim.is_some());
                if let Some(victim) = victim {
                    self.overflow(cx, victim);
                }
            }
        }
        cx.recycle(batch);
        self.packets_added(cx);
    }

    fn pull(&mut self, cx: &mut Context, _: usize, most: usize, into: &mut Batch) {
        let taken = most.min(self.stored.len());
        if taken == 1 {
            // Cheaper than a range of one.
            self.stored.packets.pop_front().into_iter().for_each(|packet| into.push(packet));
        } else {
            self.stored.packets.drain(..taken).for_each(|packet| into.push(packet));
        }
        self.stored.count_taken(taken);
        self.packets_removed(cx, taken, most);
    }

    fn inherit(&mut self, old: &mut Self, cx: &mut Context) {
        self.take_over(&mut old.stored, cx);
    }

    fn swap_state(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.stored)
    }

    fn inherit_swap_state(&mut self, state: &mut dyn Any, cx: &mut Context) {
        if let Some(stored) = state.downcast_mut() {
            self.take_over(stored, cx);
        }
    }

    fn keeps_pace(&self) -> bool {
        // Those that watch its length would see what it never holds if tasks alternate.
        self.stored.len() == 0 && self.capacity > 1 && !self.length.is_watched()
    }

    fn waiting(&self, waiting: &mut Waiting) {
        self.stored.report(waiting);
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Some(Rc::new(self.length.clone()))
    }
}
