//! The run queue: stride scheduling by tickets, as Click's.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The stride of a task with one ticket.
const STRIDE: u64 = 1 << 16;
/// Tickets of a task that nobody gave any.
pub(crate) const DEFAULT_TICKETS: u32 = 1024;
/// The most tickets of a task.
pub(crate) const MOST_TICKETS: u32 = 1 << 15;

/// The tasks of all elements; an element has at most one.
pub(crate) struct Schedule {
    tasks: Vec<Task>,
    ready: BinaryHeap<Reverse<(u64, u64, usize)>>,
    sequence: u64,
    /// The pass of the task that ran last: new ones start there.
    pass: u64,
    /// Elements that have ever been scheduled.
    known: usize,
}

#[derive(Clone, Default)]
struct Task {
    tickets: u32,
    pass: u64,
    scheduled: bool,
    /// Which of the entries in the heap is its own; the others are stale.
    entry: u64,
    known: bool,
}

impl Schedule {
    pub(crate) fn new(elements: usize) -> Schedule {
        let task = Task { tickets: DEFAULT_TICKETS, ..Task::default() };
        Schedule {
            tasks: alloc::vec![task; elements],
            ready: BinaryHeap::new(),
            sequence: 0,
            pass: 0,
            known: 0,
        }
    }

    pub(crate) fn schedule(&mut self, element: usize) {
        let (pass, sequence) = (self.pass, self.sequence);
        let Some(task) = self.tasks.get_mut(element).filter(|task| !task.scheduled) else { return };
        if !core::mem::replace(&mut task.known, true) {
            self.known += 1;
        }
        task.scheduled = true;
        task.pass = task.pass.max(pass);
        task.entry = sequence;
        self.ready.push(Reverse((task.pass, sequence, element)));
        self.sequence += 1;
    }

    pub(crate) fn unschedule(&mut self, element: usize) {
        if let Some(task) = self.tasks.get_mut(element) {
            task.scheduled = false;
        }
    }

    pub(crate) fn is_scheduled(&self, element: usize) -> bool {
        self.tasks.get(element).is_some_and(|task| task.scheduled)
    }

    pub(crate) fn tickets(&self, element: usize) -> u32 {
        self.tasks.get(element).map_or(0, |task| task.tickets)
    }

    pub(crate) fn set_tickets(&mut self, element: usize, tickets: u32) {
        if let Some(task) = self.tasks.get_mut(element) {
            task.tickets = tickets.clamp(1, MOST_TICKETS);
        }
    }

    /// Takes the next task off the queue.
    pub(crate) fn next(&mut self) -> Option<usize> {
        while let Some(Reverse((pass, entry, element))) = self.ready.pop() {
            let Some(task) = self.tasks.get_mut(element) else { continue };
            if task.scheduled && task.entry == entry {
                task.scheduled = false;
                task.pass = pass + STRIDE / u64::from(task.tickets);
                self.pass = pass;
                return Some(element);
            }
        }
        None
    }

    /// Puts a task that found no work behind the next one, so that it does not run again at once.
    pub(crate) fn defer(&mut self, element: usize) {
        let Some(Reverse((pass, ..))) =
            self.ready.iter().min_by_key(|Reverse((.., other))| usize::from(*other == element))
        else {
            return;
        };
        let pass = *pass;
        let Some(task) = self.tasks.get_mut(element).filter(|task| task.scheduled && task.pass < pass) else {
            return;
        };
        task.pass = pass;
        task.entry = self.sequence;
        self.ready.push(Reverse((pass, self.sequence, element)));
        self.sequence += 1;
    }

    /// Whether no task waits.
    pub(crate) fn is_idle(&self) -> bool {
        !self.ready.iter().any(|Reverse((_, entry, element))| {
            self.tasks.get(*element).is_some_and(|task| task.scheduled && task.entry == *entry)
        })
    }

    /// Elements that have ever had a task to run.
    pub(crate) fn known(&self) -> usize {
        self.known
    }

    /// Whether `element` is the only one that has ever had a task to run.
    pub(crate) fn is_alone(&self, element: usize) -> bool {
        self.known == 1 && self.tasks.get(element).is_some_and(|task| task.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_share_out_the_turns() {
        let mut schedule = Schedule::new(2);
        schedule.set_tickets(0, 3072);
        schedule.schedule(0);
        schedule.schedule(1);
        let mut turns = [0, 0];
        for _ in 0..400 {
            let element = schedule.next().unwrap();
            turns[element] += 1;
            schedule.schedule(element);
        }
        assert!((298..=302).contains(&turns[0]), "{turns:?}");
    }

    #[test]
    fn equals_take_turns() {
        let mut schedule = Schedule::new(3);
        (0..3).for_each(|element| schedule.schedule(element));
        let order: Vec<_> = (0..6)
            .map(|_| {
                let element = schedule.next().unwrap();
                schedule.schedule(element);
                element
            })
            .collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
        schedule.unschedule(1);
        assert_eq!(schedule.next(), Some(0));
        assert_eq!(schedule.next(), Some(2));
        assert!(schedule.is_idle() && schedule.next().is_none());
    }
}
