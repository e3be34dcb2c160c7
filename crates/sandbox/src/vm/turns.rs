//! Who has the next turn.
//!
//! Machines that end their turns by themselves come first, in the order in which they rang. Those that had
//! to be called out of their last turn, strays, come after them and give way in the middle of a turn: an
//! endless loop doesn't keep another box's answer waiting. Yet all are owed the same time: each of the two
//! classes has a clock, which runs by the time that its machines use, divided by how many they are, and
//! the class whose clock is behind comes first.

use std::collections::VecDeque;

/// What a machine is by its last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It ended its turn by itself.
    Prompt,
    /// It was called out.
    Stray,
}

/// Machines that wait for a turn.
#[derive(Debug)]
pub(super) struct Turns<T> {
    prompt: VecDeque<T>,
    strays: VecDeque<T>,
    /// What one machine of each class has used: prompt, strays.
    clocks: [u64; 2],
    /// How far the clock of the prompt may be behind when they come back: what they can use before strays
    /// are served again.
    credit: u64,
}

impl<T> Turns<T> {
    /// Nobody waits yet. `credit` is in the unit in which [`used`](Self::used) counts.
    pub(super) fn new(credit: u64) -> Self {
        Self { prompt: VecDeque::new(), strays: VecDeque::new(), clocks: [0; 2], credit }
    }

    /// Machines that wait.
    pub(super) fn len(&self) -> usize {
        self.prompt.len() + self.strays.len()
    }

    /// Adds a machine behind those of its class.
    pub(super) fn push(&mut self, machine: T, class: Class) {
        let [prompt, strays] = self.clocks;
        match class {
            Class::Prompt => {
                if self.prompt.is_empty() {
                    self.clocks[0] = prompt.max(strays.saturating_sub(self.credit));
                }
                self.prompt.push_back(machine);
            }
            Class::Stray => {
                if self.strays.is_empty() {
                    self.clocks[1] = strays.max(prompt);
                }
                self.strays.push_back(machine);
            }
        }
    }

    /// Puts a stray back that gave way: it goes on where it was, before the others.
    pub(super) fn put_back(&mut self, stray: T) {
        self.strays.push_front(stray);
    }

    /// Takes out whose turn it is.
    pub(super) fn pop(&mut self) -> Option<(T, Class)> {
        let prompt_first = self.strays.is_empty() || self.clocks[0] <= self.clocks[1];
        if prompt_first && let Some(machine) = self.prompt.pop_front() {
            return Some((machine, Class::Prompt));
        }
        self.strays.pop_front().map(|machine| (machine, Class::Stray))
    }

    /// Counts what a machine that was taken out has used.
    pub(super) fn used(&mut self, class: Class, time: u64) {
        let (waiting, clock) = match class {
            Class::Prompt => (self.prompt.len(), &mut self.clocks[0]),
            Class::Stray => (self.strays.len(), &mut self.clocks[1]),
        };
        *clock = clock.saturating_add(time / (waiting as u64 + 1));
    }

    /// Whether a stray that has its turn should give way.
    pub(super) fn presses(&self) -> bool {
        !self.prompt.is_empty() && self.clocks[0] < self.clocks[1]
    }

    /// Takes all out.
    pub(super) fn clear(&mut self) {
        self.prompt.clear();
        self.strays.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs so many turns; each machine's time. The `prompt` use a fortieth of what the strays use, and come
    /// back at once.
    fn compete(prompt: usize, strays: usize, turns: usize) -> Vec<u64> {
        let mut queue = Turns::new(80_000);
        for machine in 0..prompt {
            queue.push(machine, Class::Prompt);
        }
        for machine in prompt..prompt + strays {
            queue.push(machine, Class::Stray);
        }
        let mut used = vec![0; prompt + strays];
        for _ in 0..turns {
            let (machine, class) = queue.pop().unwrap();
            let time = if class == Class::Prompt { 1_000 } else { 40_000 };
            queue.used(class, time);
            used[machine] += time;
            queue.push(machine, class);
        }
        used
    }

    #[test]
    fn all_that_want_it_get_the_same_time() {
        for (prompt, strays) in [(1, 1), (3, 1), (1, 3), (10, 10), (2, 0), (0, 2)] {
            let used = compete(prompt, strays, 20_000);
            let (least, most) = (used.iter().min().unwrap(), used.iter().max().unwrap());
            assert!(*most as f64 <= *least as f64 * 1.2 + 100_000.0, "{prompt} {strays}: {used:?}");
        }
    }

    #[test]
    fn a_machine_that_wants_little_is_served_at_once() {
        let mut queue = Turns::new(80_000);
        (0..11).for_each(|machine| queue.push(machine, Class::Stray));
        for round in 0..1_000 {
            let (stray, class) = queue.pop().unwrap();
            assert_eq!(class, Class::Stray);
            assert!(!queue.presses());
            queue.push(99, Class::Prompt);
            assert!(round == 0 || queue.presses(), "{round}");
            queue.used(class, 40_000);
            queue.put_back(stray);
            assert_eq!(queue.pop(), Some((99, Class::Prompt)), "{round}");
            queue.used(Class::Prompt, 1_000);
        }
        assert_eq!(queue.len(), 11);
        queue.clear();
        assert!(queue.pop().is_none());
    }
}
