//! What an element does with packets, apart from passing them on.

use alloc::collections::VecDeque;
use core::cell::Cell;

use packet::Timestamp;

use crate::class_info::ClassInfo;

/// What can happen to packets at an element. A class declares its fates; passing a packet on unchanged is none.
///
/// The first seven are counted, each where it happens. Then for each element, at rest:
///
/// `in + received + made + copied = out + delivered + discarded + consumed + merged + lost + waiting`
///
/// [`Lost`](Fate::Lost) is counted by [reason](crate::Reason). [`Waiting`](Fate::Waiting) is measured when it is read.
/// [`Changed`](Fate::Changed) is only declared: the packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fate {
    /// Came into the configuration: from a device, a socket or a file.
    Received,
    /// Was made by the element. A packet that found no buffer is made, and lost as `no_buffer`.
    Made,
    /// Is a copy that the element made of a packet. A copy that found no buffer is copied, and lost as `no_buffer`.
    Copied,
    /// Left the configuration: to a device, a socket or a file.
    Delivered,
    /// Ended as the configuration says: in `Discard`, for instance.
    Discarded,
    /// Was used up by the element, which acted on its contents.
    Consumed,
    /// Became a part of another packet.
    Merged,
    /// Was lost, for one of the reasons that the class declares.
    Lost,
    /// Waits in the element.
    Waiting,
    /// Goes on with other contents. Annotations do not count.
    Changed,
}

impl Fate {
    /// All fates, in their order.
    pub const ALL: [Fate; 10] = [
        Fate::Received,
        Fate::Made,
        Fate::Copied,
        Fate::Delivered,
        Fate::Discarded,
        Fate::Consumed,
        Fate::Merged,
        Fate::Lost,
        Fate::Waiting,
        Fate::Changed,
    ];

    /// Those that have a counter, in the order of [`FateCounts::counts`].
    pub const COUNTED: [Fate; 7] = [
        Fate::Received,
        Fate::Made,
        Fate::Copied,
        Fate::Delivered,
        Fate::Discarded,
        Fate::Consumed,
        Fate::Merged,
    ];

    /// Its name in handlers, metrics and the reference.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Received => "received",
            Fate::Made => "made",
            Fate::Copied => "copied",
            Fate::Delivered => "delivered",
            Fate::Discarded => "discarded",
            Fate::Consumed => "consumed",
            Fate::Merged => "merged",
            Fate::Lost => "lost",
            Fate::Waiting => "waiting",
            Fate::Changed => "changed",
        }
    }

    /// What it means for packets of an element, in a sentence.
    pub fn summary(self) -> &'static str {
        match self {
            Fate::Received => "The element brings packets in from a device, a socket or a file.",
            Fate::Made => "The element makes packets of its own.",
            Fate::Copied => "The element copies packets.",
            Fate::Delivered => "Packets leave the configuration here: to a device, a socket or a file.",
            Fate::Discarded => "Packets end here, as the configuration says.",
            Fate::Consumed => "The element acts on the contents of packets, which end here.",
            Fate::Merged => "Packets become a part of other packets.",
            Fate::Lost => "Packets can be lost here, for one of the reasons below.",
            Fate::Waiting => "Packets can wait here.",
            Fate::Changed => "The contents of packets change here.",
        }
    }

    /// Whether such packets come into being at the element.
    pub fn is_origin(self) -> bool {
        matches!(self, Fate::Received | Fate::Made | Fate::Copied)
    }
}

/// Numbers of packets by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FateCounts {
    /// A number for each of [`Fate::COUNTED`].
    pub counts: [u64; Fate::COUNTED.len()],
}

impl FateCounts {
    /// The number of packets with a fate; 0 for one without a counter.
    pub fn of(&self, fate: Fate) -> u64 {
        self.counts.get(fate as usize).copied().unwrap_or_default()
    }

    /// Adds other numbers.
    pub fn add(&mut self, other: &FateCounts) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
    }

    /// Packets that came into being.
    pub fn begun(&self) -> u64 {
        self.sum(true)
    }

    /// Packets that ended, without those that were lost.
    pub fn ended(&self) -> u64 {
        self.sum(false)
    }

    fn sum(&self, origin: bool) -> u64 {
        Fate::COUNTED
            .iter()
            .zip(self.counts)
            .filter(|(fate, _)| fate.is_origin() == origin)
            .map(|(_, count)| count)
            .sum()
    }
}

/// An element's counters of packets by fate.
#[derive(Debug, Default)]
pub struct FateCounters([Cell<u64>; Fate::COUNTED.len()]);

impl FateCounters {
    /// Counts packets of an element of `class`.
    #[inline]
    pub fn add(&self, class: &ClassInfo, fate: Fate, count: u64) {
        debug_assert!(
            count == 0 || class.fates.contains(&fate),
            "packets of {} are {}: undeclared",
            class.name,
            fate.name()
        );
        if let Some(counter) = self.0.get(fate as usize) {
            counter.set(counter.get() + count);
        }
    }

    /// The counts.
    pub fn counts(&self) -> FateCounts {
        FateCounts { counts: core::array::from_fn(|index| self.0.get(index).map_or(0, Cell::get)) }
    }
}

/// What an element holds, as it reports itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Packets that wait.
    pub packets: u64,
    /// Since when the oldest of them waits, in steady time; `None` if nothing waits, or the element does not know.
    pub oldest: Option<Timestamp>,
    /// Packets that are never sent: patterns from which others are made.
    pub templates: u64,
}

impl Waiting {
    /// Adds packets, the oldest of which waits since `since`.
    pub fn add(&mut self, packets: usize, since: Option<Timestamp>) {
        self.packets += packets as u64;
        if packets > 0 {
            self.oldest = match (self.oldest, since) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
    }

    /// Adds patterns from which packets are made.
    pub fn add_templates(&mut self, packets: usize) {
        self.templates += packets as u64;
    }
}

/// How many marks [`QueueAge`] sets for the packets of a queue, roughly.
const MARKS: u64 = 8;

/// Since when the oldest packet of a queue waits, without a time for each packet.
///
/// Some packets are marked with the time of their arrival: the first of an empty queue, and then one for each eighth of
/// the queue's length. The oldest packet arrived no earlier than the last mark at or before it.
#[derive(Clone, Debug, Default)]
pub struct QueueAge {
    /// Packets that have arrived and left.
    arrived: u64,
    left: u64,
    /// The number of packets that arrived before the marked one, and its time; in order.
    marks: VecDeque<(u64, Timestamp)>,
}

impl QueueAge {
    /// Packets arrive at the end. `now` is called only if one of them is to be marked.
    #[inline]
    pub fn arrive(&mut self, count: usize, now: impl FnOnce() -> Timestamp) {
        let waiting = self.arrived - self.left;
        let is_due = self
            .marks
            .back()
            .is_none_or(|(last, _)| *last < self.left || self.arrived - last > waiting / MARKS);
        if is_due && count > 0 {
            self.mark(now());
        }
        self.arrived += count as u64;
    }

    #[inline(never)]
    fn mark(&mut self, now: Timestamp) {
        while self.marks.get(1).is_some_and(|(next, _)| *next <= self.left) {
            self.marks.pop_front();
        }
        if self.left == self.arrived {
            self.marks.clear();
        }
        self.marks.push_back((self.arrived, now));
    }

    /// Packets leave from the front.
    #[inline]
    pub fn leave(&mut self, count: usize) {
        self.left += count as u64;
    }

    /// Packets leave from the end.
    pub fn retract(&mut self, count: usize) {
        self.arrived -= (count as u64).min(self.arrived - self.left);
        while self.marks.back().is_some_and(|(last, _)| *last >= self.arrived) {
            self.marks.pop_back();
        }
    }

    /// Since when the oldest packet waits, at the earliest; `None` if the queue is empty.
    pub fn oldest(&self) -> Option<Timestamp> {
        let before = self.marks.iter().take_while(|(mark, _)| *mark <= self.left);
        before.last().or(self.marks.front()).map(|(_, time)| *time).filter(|_| self.arrived > self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_parts(seconds, 0)
    }

    #[test]
    fn the_age_of_a_queue_is_close_and_never_too_low() {
        let (mut age, mut queue, mut most) = (QueueAge::default(), VecDeque::new(), 0);
        // Grows, stays, shrinks to nothing, and begins again.
        for second in 0..20_000_i64 {
            let leave = match second % 4_000 {
                0..1_500 => usize::from(second % 3 == 0),
                1_500..2_500 => 1,
                _ => 2,
            };
            age.arrive(1, || at(second));
            queue.push_back(second);
            let gone = leave.min(queue.len());
            age.leave(queue.drain(..gone).count());
            match (age.oldest(), queue.front()) {
                (None, None) => {}
                (Some(oldest), Some(front)) => {
                    let (bound, exact) = (second - oldest.seconds(), second - front);
                    assert!(bound >= exact, "{second}: {bound} s for {exact} s");
                    assert!(bound <= exact + exact / 4 + 2, "{second}: {bound} s for {exact} s");
                }
                other => panic!("{second}: {other:?}"),
            }
            most = most.max(age.marks.len());
        }
        assert!(most < 100, "{most} marks");
    }

    #[test]
    fn what_leaves_from_the_end_is_no_longer_waited_for() {
        let mut age = QueueAge::default();
        age.arrive(1, || at(1));
        age.arrive(1, || at(2));
        age.retract(1);
        assert_eq!(age.oldest(), Some(at(1)));
        age.retract(1);
        assert_eq!(age.oldest(), None);
        age.arrive(1, || at(3));
        assert_eq!(age.oldest(), Some(at(3)));
    }

    #[test]
    fn counts_are_origins_or_ends() {
        let counts = FateCounts { counts: core::array::from_fn(|index| 1 << index) };
        let sum: u64 = counts.counts.iter().sum();
        assert_eq!(counts.begun() + counts.ended(), sum);
        assert_eq!((counts.of(Fate::Received), counts.of(Fate::Merged), counts.of(Fate::Lost)), (1, 64, 0));
        assert!(Fate::ALL.iter().take(Fate::COUNTED.len()).eq(Fate::COUNTED.iter()));
    }
}
