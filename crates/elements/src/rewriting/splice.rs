//! Changes of TCP sequence numbers, where the data of a connection were made longer or shorter.

use alloc::collections::VecDeque;

/// A sequence number so far ahead of a change that nothing before the change can still come: 1 GB.
const PAST: u32 = 1 << 30;

/// Changes that are kept for one flow; further ones forget the oldest. Bounds what a sender of changes can claim.
const MOST: usize = 64;

/// By how much the sequence numbers of each direction are moved, newest change first. Index 0 is forward, 1 the
/// replies.
#[derive(Default)]
pub(crate) struct Splices {
    steps: VecDeque<Step>,
}

/// From `triggers[d]` on, if there is one, direction `d` is moved by `shifts[d]`.
#[derive(Clone, Copy, Default)]
struct Step {
    shifts: [i32; 2],
    triggers: [Option<u32>; 2],
}

/// Whether sequence number `a` is `b` or comes after it.
fn is_at_or_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

impl Splices {
    /// Moves what direction `reply` sends from `trigger` on by `change` more; false if that is before an earlier
    /// change.
    pub(crate) fn add(&mut self, reply: bool, trigger: u32, change: i32) -> bool {
        let (this, other) = (usize::from(reply), usize::from(!reply));
        let newest = self.steps.front().copied();
        if newest.and_then(|step| step.triggers[this]).is_some_and(|last| !is_at_or_after(trigger, last)) {
            return false;
        }
        let is_new = newest.is_none_or(|step| match step.triggers[this] {
            Some(last) => last != trigger,
            None => step.shifts[this] != 0,
        });
        if is_new {
            // The other direction's changes move up by one, so that each direction's newest stands in front.
            self.steps.push_front(Step::default());
            for at in 0..self.steps.len() {
                let Some(older) = self.steps.get(at + 1).copied() else { break };
                let Some(step) = self.steps.get_mut(at) else { break };
                step.shifts[other] = older.shifts[other];
                step.triggers[other] = older.triggers[other];
                if older.triggers[other].is_none() {
                    break;
                }
            }
        }
        let before = self.steps.get(1).map_or(0, |step| step.shifts[this]);
        if let Some(step) = self.steps.front_mut() {
            step.triggers[this] = Some(trigger);
            step.shifts[this] = before.wrapping_add(change);
        }
        // A change that lies so far back holds for all that can still come.
        let old = self.steps.iter().skip(1).position(|step| {
            step.triggers[this].is_none_or(|old| is_at_or_after(trigger, old.wrapping_add(PAST)))
        });
        if let Some(place) = old {
            self.settle(place + 1, this);
        }
        self.steps.truncate(MOST);
        true
    }

    /// Makes the change of a direction at `place` hold for everything, and forgets what is older.
    fn settle(&mut self, place: usize, direction: usize) {
        if let Some(step) = self.steps.get_mut(place) {
            step.triggers[direction] = None;
            if step.triggers == [None, None] {
                self.steps.truncate(place + 1);
            }
        }
    }

    /// Sees the sequence number of a packet of direction `reply`: it may be beyond the reach of the newest change.
    pub(crate) fn see(&mut self, reply: bool, sequence: u32) {
        let this = usize::from(reply);
        let trigger = self.steps.front().and_then(|step| step.triggers[this]);
        if trigger.is_some_and(|trigger| is_at_or_after(sequence, trigger.wrapping_add(PAST))) {
            self.settle(0, this);
        }
    }

    /// By how much a sequence number is moved, where `is_past` says whether it lies at or behind a trigger.
    fn shift(&self, direction: usize, is_past: impl Fn(u32, u32) -> bool) -> u32 {
        let holds = |step: &&Step| {
            step.triggers[direction].is_none_or(|trigger| is_past(step.shifts[direction] as u32, trigger))
        };
        self.steps.iter().find(holds).map_or(0, |step| step.shifts[direction] as u32)
    }

    /// Whether a direction is moved anywhere.
    pub(crate) fn moves(&self, reply: bool) -> bool {
        let this = usize::from(reply);
        self.steps.front().is_some_and(|step| step.shifts[this] != 0 || step.triggers[this].is_some())
    }

    /// The sequence number as the receiver of direction `reply` must see it.
    pub(crate) fn sequence(&self, reply: bool, sequence: u32) -> u32 {
        let shift = self.shift(usize::from(reply), |_, trigger| is_at_or_after(sequence, trigger));
        sequence.wrapping_add(shift)
    }

    /// The acknowledgement in a packet of direction `reply`, of what the other direction has sent, as its sender must
    /// see it.
    pub(crate) fn acknowledgement(&self, reply: bool, number: u32) -> u32 {
        let shift = self
            .shift(usize::from(!reply), |shift, trigger| is_at_or_after(number.wrapping_sub(shift), trigger));
        number.wrapping_sub(shift)
    }

    /// By how much the newest sequence numbers of a direction are moved.
    pub(crate) fn newest(&self, reply: bool) -> i32 {
        self.steps.front().map_or(0, |step| step.shifts[usize::from(reply)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_before_a_change_stay() {
        let mut splices = Splices::default();
        assert!(splices.add(false, 1_000, 5) && splices.add(false, 2_000, -3));
        assert!(!splices.add(false, 1_500, 1));
        let seen = [999, 1_000, 1_999, 2_000].map(|number| splices.sequence(false, number));
        assert_eq!(seen, [999, 1_005, 2_004, 2_002]);
        let acknowledged = [999, 1_005, 2_002].map(|number| splices.acknowledgement(true, number));
        assert_eq!(acknowledged, [999, 1_000, 2_000]);
        assert_eq!((splices.sequence(true, 7), splices.acknowledgement(false, 7)), (7, 7));
        assert_eq!((splices.newest(false), splices.moves(false), splices.moves(true)), (2, true, false));
    }

    #[test]
    fn changes_of_both_directions_are_apart() {
        let mut splices = Splices::default();
        assert!(splices.add(false, 100, 1) && splices.add(true, 500, 10) && splices.add(false, 200, 1));
        assert_eq!([99, 100, 200].map(|number| splices.sequence(false, number)), [99, 101, 202]);
        assert_eq!([499, 500].map(|number| splices.sequence(true, number)), [499, 510]);
    }

    #[test]
    fn numbers_may_wrap_and_go_far() {
        let mut splices = Splices::default();
        assert!(splices.add(false, u32::MAX, 4));
        assert_eq!(splices.sequence(false, 3), 7);
        assert_eq!(splices.sequence(false, u32::MAX - 1), u32::MAX - 1);
        splices.see(false, PAST);
        assert_eq!(splices.sequence(false, u32::MAX - 1), 2);
    }

    #[test]
    fn a_flow_keeps_a_bounded_number() {
        let mut splices = Splices::default();
        (0..10_000).for_each(|at| assert!(splices.add(at % 3 == 0, at * 10, 1)));
        assert!(splices.steps.len() <= MOST);
    }
}
