//! The run queue: decides which machine gets the next turn.
//!
//! Machines that end their turns on their own come first, in the order in which they rang. CPU-bound machines, whose
//! last turn the timer had to end, come after them and can be preempted in the middle of a turn: an endless loop does
//! not delay another box's reply. Both classes are still owed equal time per machine. Each class has a clock that
//! advances by the time that its machines use, divided by their number; the class whose clock is behind comes first.

use std::collections::VecDeque;

/// The class of a machine, by its last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskClass {
    /// It ended its turn on its own.
    Yielding,
    /// The timer ended its turn.
    CpuBound,
}

/// Machines that wait for a turn.
#[derive(Debug)]
pub(super) struct RunQueue<T> {
    yielding: VecDeque<T>,
    cpu_bound: VecDeque<T>,
    /// Time used per machine of each class: yielding, CPU-bound.
    clocks: [u64; 2],
    /// How far the clock of the yielding class may be behind when it becomes active again: the time that it may use
    /// before CPU-bound machines get another turn.
    credit: u64,
}

impl<T> RunQueue<T> {
    /// An empty queue. `credit` is in the unit of [`used`](Self::used).
    pub(super) fn new(credit: u64) -> Self {
        Self { yielding: VecDeque::new(), cpu_bound: VecDeque::new(), clocks: [0; 2], credit }
    }

    /// The number of machines that wait.
    pub(super) fn len(&self) -> usize {
        self.yielding.len() + self.cpu_bound.len()
    }

    /// Adds a machine at the end of its class.
    pub(super) fn push(&mut self, machine: T, class: TaskClass) {
        let [yielding, cpu_bound] = self.clocks;
        match class {
            TaskClass::Yielding => {
                if self.yielding.is_empty() {
                    self.clocks[0] = yielding.max(cpu_bound.saturating_sub(self.credit));
                }
                self.yielding.push_back(machine);
            }
            TaskClass::CpuBound => {
                if self.cpu_bound.is_empty() {
                    self.clocks[1] = cpu_bound.max(yielding);
                }
                self.cpu_bound.push_back(machine);
            }
        }
    }

    /// Returns a preempted machine to the front of its class: it continues its turn before the others.
    pub(super) fn put_back(&mut self, machine: T) {
        self.cpu_bound.push_front(machine);
    }

    /// Removes the machine that has the next turn.
    pub(super) fn pop(&mut self) -> Option<(T, TaskClass)> {
        let yielding_first = self.cpu_bound.is_empty() || self.clocks[0] <= self.clocks[1];
        if yielding_first && let Some(machine) = self.yielding.pop_front() {
            return Some((machine, TaskClass::Yielding));
        }
        self.cpu_bound.pop_front().map(|machine| (machine, TaskClass::CpuBound))
    }

    /// Charges the time that a removed machine has used.
    pub(super) fn used(&mut self, class: TaskClass, time: u64) {
        let (waiting, clock) = match class {
            TaskClass::Yielding => (self.yielding.len(), &mut self.clocks[0]),
            TaskClass::CpuBound => (self.cpu_bound.len(), &mut self.clocks[1]),
        };
        *clock = clock.saturating_add(time / (waiting as u64 + 1));
    }

    /// Whether the running CPU-bound machine should be preempted.
    pub(super) fn should_preempt(&self) -> bool {
        !self.yielding.is_empty() && self.clocks[0] < self.clocks[1]
    }

    /// Removes all machines.
    pub(super) fn clear(&mut self) {
        self.yielding.clear();
        self.cpu_bound.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs this many turns and returns each machine's time. Yielding machines use a fortieth of what CPU-bound ones
    /// use, and return at once.
    fn compete(yielding: usize, cpu_bound: usize, turns: usize) -> Vec<u64> {
        let mut queue = RunQueue::new(80_000);
        for machine in 0..yielding {
            queue.push(machine, TaskClass::Yielding);
        }
        for machine in yielding..yielding + cpu_bound {
            queue.push(machine, TaskClass::CpuBound);
        }
        let mut used = vec![0; yielding + cpu_bound];
        for _ in 0..turns {
            let (machine, class) = queue.pop().unwrap();
            let time = if class == TaskClass::Yielding { 1_000 } else { 40_000 };
            queue.used(class, time);
            used[machine] += time;
            queue.push(machine, class);
        }
        used
    }

    #[test]
    fn busy_vms_get_equal_time() {
        for (yielding, cpu_bound) in [(1, 1), (3, 1), (1, 3), (10, 10), (2, 0), (0, 2)] {
            let used = compete(yielding, cpu_bound, 20_000);
            let (least, most) = (used.iter().min().unwrap(), used.iter().max().unwrap());
            assert!(*most as f64 <= *least as f64 * 1.2 + 100_000.0, "{yielding} {cpu_bound}: {used:?}");
        }
    }

    #[test]
    fn a_mostly_idle_vm_is_served_at_once() {
        let mut queue = RunQueue::new(80_000);
        (0..11).for_each(|machine| queue.push(machine, TaskClass::CpuBound));
        for round in 0..1_000 {
            let (machine, class) = queue.pop().unwrap();
            assert_eq!(class, TaskClass::CpuBound);
            assert!(!queue.should_preempt());
            queue.push(99, TaskClass::Yielding);
            assert!(round == 0 || queue.should_preempt(), "{round}");
            queue.used(class, 40_000);
            queue.put_back(machine);
            assert_eq!(queue.pop(), Some((99, TaskClass::Yielding)), "{round}");
            queue.used(TaskClass::Yielding, 1_000);
        }
        assert_eq!(queue.len(), 11);
        queue.clear();
        assert!(queue.pop().is_none());
    }
}
