//! Shifts of TCP sequence numbers, for connections whose data became longer or shorter.

use alloc::collections::VecDeque;

/// Distance after which no sequence number from before a shift can still arrive: 1 GB.
const SETTLED_DISTANCE: u32 = 1 << 30;

/// Maximum shifts kept per flow; a further one discards the oldest. Bounds the memory that a sender can claim.
const MAX_SHIFTS: usize = 64;

/// The sequence number shifts of both directions, newest first. Index 0 is forward, 1 the replies.
#[derive(Default)]
pub(crate) struct SequenceShifts {
    steps: VecDeque<Shift>,
}

/// Direction `d` is shifted by `shifts[d]` from `triggers[d]` on, if set.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shift {
    pub(crate) shifts: [i32; 2],
    pub(crate) triggers: [Option<u32>; 2],
}

/// Whether sequence number `a` is equal to or after `b`.
fn is_at_or_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

impl SequenceShifts {
    /// All shifts, newest first.
    pub(crate) fn steps(&self) -> &VecDeque<Shift> {
        &self.steps
    }

    /// Adds a shift that is older than all others. Returns false if there are as many as a flow keeps.
    pub(crate) fn push_older(&mut self, shift: Shift) -> bool {
        let has_room = self.steps.len() < MAX_SHIFTS;
        if has_room {
            self.steps.push_back(shift);
        }
        has_room
    }

    /// Shifts the sequence numbers of direction `reply` by a further `change` from `trigger` on. Returns false if that
    /// is before an earlier shift.
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
            // Move the other direction's shifts up by one, so that the newest of each direction comes first.
            self.steps.push_front(Shift::default());
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
        // A shift this far back applies to every number that can still arrive.
        let old = self.steps.iter().skip(1).position(|step| {
            step.triggers[this].is_none_or(|old| is_at_or_after(trigger, old.wrapping_add(SETTLED_DISTANCE)))
        });
        if let Some(index) = old {
            self.apply_to_all(index + 1, this);
        }
        self.steps.truncate(MAX_SHIFTS);
        true
    }

    /// Makes the shift at `index` apply to all sequence numbers of a direction, and discards older ones.
    fn apply_to_all(&mut self, index: usize, direction: usize) {
        if let Some(step) = self.steps.get_mut(index) {
            step.triggers[direction] = None;
            if step.triggers == [None, None] {
                self.steps.truncate(index + 1);
            }
        }
    }

    /// Records the sequence number of a packet, which may be far enough for the newest shift to apply to all numbers.
    pub(crate) fn record(&mut self, reply: bool, sequence: u32) {
        let this = usize::from(reply);
        let trigger = self.steps.front().and_then(|step| step.triggers[this]);
        if trigger.is_some_and(|trigger| is_at_or_after(sequence, trigger.wrapping_add(SETTLED_DISTANCE))) {
            self.apply_to_all(0, this);
        }
    }

    /// The shift of a sequence number, where `is_past` tells whether the number is at or after a trigger.
    fn shift(&self, direction: usize, is_past: impl Fn(u32, u32) -> bool) -> u32 {
        let holds = |step: &&Shift| {
            step.triggers[direction].is_none_or(|trigger| is_past(step.shifts[direction] as u32, trigger))
        };
        self.steps.iter().find(holds).map_or(0, |step| step.shifts[direction] as u32)
    }

    /// Whether any shift applies to a direction.
    pub(crate) fn is_shifted(&self, reply: bool) -> bool {
        let this = usize::from(reply);
        self.steps.front().is_some_and(|step| step.shifts[this] != 0 || step.triggers[this].is_some())
    }

    /// The sequence number as sent to the receiver of direction `reply`.
    pub(crate) fn sequence(&self, reply: bool, sequence: u32) -> u32 {
        let shift = self.shift(usize::from(reply), |_, trigger| is_at_or_after(sequence, trigger));
        sequence.wrapping_add(shift)
    }

    /// The acknowledgement number in a packet of direction `reply`, as sent to the sender of the acknowledged data.
    pub(crate) fn acknowledgement(&self, reply: bool, number: u32) -> u32 {
        let shift = self
            .shift(usize::from(!reply), |shift, trigger| is_at_or_after(number.wrapping_sub(shift), trigger));
        number.wrapping_sub(shift)
    }

    /// The shift of a direction's newest sequence numbers.
    pub(crate) fn newest(&self, reply: bool) -> i32 {
        self.steps.front().map_or(0, |step| step.shifts[usize::from(reply)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_before_a_change_stay() {
        let mut shifts = SequenceShifts::default();
        assert!(shifts.add(false, 1_000, 5) && shifts.add(false, 2_000, -3));
        assert!(!shifts.add(false, 1_500, 1));
        let seen = [999, 1_000, 1_999, 2_000].map(|number| shifts.sequence(false, number));
        assert_eq!(seen, [999, 1_005, 2_004, 2_002]);
        let acknowledged = [999, 1_005, 2_002].map(|number| shifts.acknowledgement(true, number));
        assert_eq!(acknowledged, [999, 1_000, 2_000]);
        assert_eq!((shifts.sequence(true, 7), shifts.acknowledgement(false, 7)), (7, 7));
        assert_eq!(
            (shifts.newest(false), shifts.is_shifted(false), shifts.is_shifted(true)),
            (2, true, false)
        );
    }

    #[test]
    fn directions_are_shifted_independently() {
        let mut shifts = SequenceShifts::default();
        assert!(shifts.add(false, 100, 1) && shifts.add(true, 500, 10) && shifts.add(false, 200, 1));
        assert_eq!([99, 100, 200].map(|number| shifts.sequence(false, number)), [99, 101, 202]);
        assert_eq!([499, 500].map(|number| shifts.sequence(true, number)), [499, 510]);
    }

    #[test]
    fn numbers_may_wrap_and_jump() {
        let mut shifts = SequenceShifts::default();
        assert!(shifts.add(false, u32::MAX, 4));
        assert_eq!(shifts.sequence(false, 3), 7);
        assert_eq!(shifts.sequence(false, u32::MAX - 1), u32::MAX - 1);
        shifts.record(false, SETTLED_DISTANCE);
        assert_eq!(shifts.sequence(false, u32::MAX - 1), 2);
    }

    #[test]
    fn a_flow_keeps_a_bounded_number_of_shifts() {
        let mut shifts = SequenceShifts::default();
        (0..10_000).for_each(|at| assert!(shifts.add(at % 3 == 0, at * 10, 1)));
        assert_eq!(shifts.steps.len(), MAX_SHIFTS);
        // The oldest shifts are discarded, but numbers after them keep their effect.
        assert_eq!((shifts.newest(true), shifts.newest(false)), (3_334, 6_666));
        assert_eq!((shifts.sequence(true, 100_000), shifts.sequence(false, 100_000)), (103_334, 106_666));
    }
}
