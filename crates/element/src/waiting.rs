//! Packets that wait in an element, and since when.

use alloc::collections::VecDeque;

use packet::Timestamp;

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
}
