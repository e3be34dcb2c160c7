//! How many turns a task takes at once: alone, paced with others, or to fill the batches behind many outputs.

use element::Outputs;

use crate::pace::{Emptied, Pace, TURNS_PER_ROUND};
use crate::state::{NO_ELEMENT, RouterState};

/// The maximum number of rounds that a task takes at once to fill the batches behind many outputs.
const MAX_ROUNDS_AT_ONCE: usize = 4;

impl RouterState {
    /// How many turns a source that sends at most one packet a turn may take at once, alone or with those that empty its queues.
    pub(crate) fn take_paced_turns(&self, source: usize) -> usize {
        self.extra_turns.set(0);
        let Some(pace) =
            self.paces.iter().find(|pace| pace.source == source).filter(|pace| self.keeps_pace(pace))
        else {
            return self.take_own_turns(source);
        };
        let left = self.turns_left.get();
        let turns = left / (1 + pace.emptied.len());
        if turns < 2 {
            return 1;
        }
        // The turn that every call of a task takes is counted by the caller.
        self.turns_left.set(left - turns * (1 + pace.emptied.len()) + 1);
        self.paced_turns.set(turns);
        self.resources.is_paced.set(true);
        turns
    }

    /// Further turns for a task that takes all at once, as many as in a round, if an element spreads packets over many outputs: the
    /// more packets are gathered, the larger the batches behind it. None if a timer is due, so that packets and timers come in the
    /// order in which they come without this.
    pub(crate) fn more_turns(&self, element: usize, outputs: &mut Outputs) -> usize {
        let more = self.extra_turns.get() + 1;
        let is_useful = self.is_wide && self.batch() > 1 && more < MAX_ROUNDS_AT_ONCE;
        let paced = self.paced_turns.get();
        if !is_useful || paced == 0 && !self.schedule.borrow().is_alone(element) {
            return 0;
        }
        self.extra_turns.set(more);
        outputs.set_goes_on(true);
        self.write_deferred();
        self.deliver(outputs);
        outputs.set_limit(self.batch());
        self.running.set(element);
        outputs.set_goes_on(false);
        let is_due = self.timers.borrow().next().is_some_and(|at| at <= self.resources.steady());
        let goes_on = self.resources.driver.is_running() && self.successor.borrow().is_none();
        if is_due || !goes_on || self.resources.deferred.has_writes() {
            return 0;
        }
        if paced > 0 {
            self.paced_turns.set(paced + TURNS_PER_ROUND);
        }
        TURNS_PER_ROUND
    }

    /// How many turns a task may take at once: several if it is alone, or empties a queue after a source's paced turns.
    pub(crate) fn take_own_turns(&self, element: usize) -> usize {
        let takes_all =
            self.batch() > 1 && (self.following.get() == element || self.schedule.borrow().is_alone(element));
        if takes_all { self.turns_left.replace(1).max(1) } else { 1 }
    }

    /// Whether a source's turns and those of the tasks behind it can be taken at once now.
    fn keeps_pace(&self, pace: &Pace) -> bool {
        let schedule = self.schedule.borrow();
        let is_ready = |emptied: &Emptied| {
            let Some(node) = self.nodes.get(emptied.queue) else { return false };
            let runs = schedule.is_scheduled(emptied.task) || !node.empty.cell.is_active();
            runs && schedule.is_known(emptied.task)
                && schedule.tickets(emptied.task) == schedule.tickets(pace.source)
                && [emptied.queue, emptied.task].into_iter().all(|element| self.element_keeps_pace(element))
        };
        self.batch() > 1 && schedule.known() == 1 + pace.emptied.len() && pace.emptied.iter().all(is_ready)
    }

    fn element_keeps_pace(&self, element: usize) -> bool {
        let object = self.nodes.get(element).map(|node| node.object.try_borrow());
        matches!(object, Some(Ok(object)) if object.as_ref().is_some_and(|object| object.keeps_pace()))
    }

    /// After the paced turns of a source: gives those that empty its queues as many.
    #[inline]
    pub(crate) fn follow_paced_turns(&self, source: usize) {
        if self.paced_turns.get() > 0 {
            self.follow(source, self.paced_turns.take());
        }
    }

    fn follow(&self, source: usize, turns: usize) {
        self.resources.is_paced.set(false);
        let left = self.turns_left.get();
        for Emptied { task, .. } in
            self.paces.iter().filter(|pace| pace.source == source).flat_map(|pace| &pace.emptied)
        {
            self.following.set(*task);
            for _ in 0..turns {
                self.turns_left.set(turns);
                let found_work = self.call(*task, |object, cx| object.task(cx));
                self.run_deferred();
                if found_work != Some(true) {
                    break;
                }
            }
        }
        self.following.set(NO_ELEMENT);
        self.turns_left.set(left);
    }
}
