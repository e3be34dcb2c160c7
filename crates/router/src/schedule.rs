//! The run queue: stride scheduling by tickets, like Click's.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The stride of a task with one ticket.
const STRIDE: u64 = 1 << 16;
/// The default number of tickets of a task.
const DEFAULT_TICKETS: u32 = 1024;
/// The maximum number of tickets of a task.
const MAX_TICKETS: u32 = 1 << 15;

/// The tasks of all elements, at most one per element.
pub(crate) struct Schedule {
    tasks: Vec<Task>,
    /// The queued tasks except the running one: by pass, then in order of arrival.
    ready: BinaryHeap<Reverse<(u64, u64, usize)>>,
    sequence: u64,
    /// The running task.
    running: Option<usize>,
    /// The number of elements that have ever been scheduled.
    known: usize,
}

#[derive(Clone, Default)]
struct Task {
    tickets: u32,
    pass: u64,
    scheduled: bool,
    /// Whether the task is in the queue. An unscheduled task stays there until its turn.
    listed: bool,
    known: bool,
}

impl Task {
    fn stride(&self) -> u64 {
        STRIDE / u64::from(self.tickets.max(1))
    }
}

impl Schedule {
    pub(crate) fn new(elements: usize) -> Schedule {
        let task = Task { tickets: DEFAULT_TICKETS, ..Task::default() };
        Schedule {
            tasks: alloc::vec![task; elements],
            ready: BinaryHeap::new(),
            sequence: 0,
            running: None,
            known: 0,
        }
    }

    /// Schedules a task one stride after the running task, or else after the next one.
    pub(crate) fn schedule(&mut self, element: usize) {
        let front = self.front();
        let Some(task) = self.tasks.get_mut(element).filter(|task| !task.scheduled) else { return };
        if !core::mem::replace(&mut task.known, true) {
            self.known += 1;
        }
        task.scheduled = true;
        if !task.listed {
            task.pass = front + task.stride();
            self.list(element);
        }
    }

    /// The pass of the running task, or else of the next one.
    fn front(&self) -> u64 {
        match self.running.and_then(|running| self.tasks.get(running)) {
            Some(running) => running.pass,
            None => self.ready.peek().map_or(0, |Reverse((pass, ..))| *pass),
        }
    }

    /// Queues a task, behind others with the same pass.
    fn list(&mut self, element: usize) {
        let Some(task) = self.tasks.get_mut(element) else { return };
        task.listed = true;
        self.ready.push(Reverse((task.pass, self.sequence, element)));
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
            task.tickets = tickets.clamp(1, MAX_TICKETS);
        }
    }

    /// The next task. It counts as running until `finish`.
    pub(crate) fn next(&mut self) -> Option<usize> {
        while let Some(Reverse((.., element))) = self.ready.pop() {
            let Some(task) = self.tasks.get_mut(element) else { continue };
            if core::mem::take(&mut task.scheduled) {
                self.running = Some(element);
                return Some(element);
            }
            task.listed = false;
        }
        None
    }

    /// Queues the task that ran again, if it is scheduled. A task that found no work is queued behind the next one, so
    /// that it does not run again at once; returns whether there is no other.
    pub(crate) fn finish(&mut self, worked: bool) -> bool {
        let next = self.ready.peek().map(|Reverse((pass, ..))| *pass);
        let Some(element) = self.running.take() else { return false };
        let Some(task) = self.tasks.get_mut(element) else { return false };
        task.listed = task.scheduled;
        if !task.scheduled {
            return false;
        }
        task.pass += task.stride();
        if !worked {
            task.pass = task.pass.max(next.unwrap_or(0));
        }
        self.list(element);
        !worked && next.is_none()
    }

    /// Whether no task is queued.
    pub(crate) fn is_idle(&self) -> bool {
        let mut listed = self.ready.iter().map(|Reverse((.., element))| *element).chain(self.running);
        !listed.any(|element| self.is_scheduled(element))
    }

    /// The number of elements that have ever had a task to run.
    pub(crate) fn known(&self) -> usize {
        self.known
    }

    /// Whether an element has ever had a task to run.
    pub(crate) fn is_known(&self, element: usize) -> bool {
        self.tasks.get(element).is_some_and(|task| task.known)
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
    fn turns_are_in_proportion_to_tickets() {
        let mut schedule = Schedule::new(2);
        schedule.set_tickets(0, 3072);
        schedule.schedule(0);
        schedule.schedule(1);
        let mut turns = [0, 0];
        for _ in 0..400 {
            let element = schedule.next().unwrap();
            turns[element] += 1;
            schedule.schedule(element);
            schedule.finish(true);
        }
        // Three to one, and two turns that the first task is ahead at the start.
        assert_eq!(turns, [302, 98]);
    }

    #[test]
    fn equal_tasks_alternate() {
        let mut schedule = Schedule::new(3);
        (0..3).for_each(|element| schedule.schedule(element));
        let order: Vec<_> = (0..6)
            .map(|_| {
                let element = schedule.next().unwrap();
                schedule.schedule(element);
                schedule.finish(true);
                element
            })
            .collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
        schedule.unschedule(1);
        assert_eq!(schedule.next(), Some(0));
        schedule.finish(true);
        assert_eq!(schedule.next(), Some(2));
        schedule.finish(true);
        assert!(schedule.is_idle() && schedule.next().is_none());
    }

    #[test]
    fn a_woken_task_runs_after_those_that_were_ready() {
        let mut schedule = Schedule::new(3);
        schedule.schedule(0);
        schedule.schedule(1);
        assert_eq!(schedule.next(), Some(0));
        schedule.schedule(0);
        schedule.schedule(2);
        schedule.finish(true);
        assert_eq!(schedule.next(), Some(1));
        schedule.finish(true);
        assert_eq!(schedule.next(), Some(2));
        // Without work, it is queued behind the next task; if it is alone, it keeps its position.
        schedule.schedule(2);
        assert!(!schedule.finish(false));
        assert_eq!(schedule.next(), Some(0));
        schedule.finish(true);
        assert_eq!(schedule.next(), Some(2));
        schedule.schedule(2);
        assert!(schedule.finish(false));
        // An unscheduled task keeps its position until its turn.
        schedule.schedule(1);
        schedule.unschedule(2);
        schedule.schedule(2);
        assert_eq!(schedule.next(), Some(2));
    }

    #[test]
    fn new_tasks_begin_a_stride_behind() {
        let mut schedule = Schedule::new(3);
        (0..3).for_each(|element| schedule.set_tickets(element, element as u32 + 1));
        (0..3).for_each(|element| schedule.schedule(element));
        let order = (0..6).map(|_| {
            let element = schedule.next().unwrap();
            schedule.schedule(element);
            schedule.finish(true);
            element
        });
        assert_eq!(order.collect::<Vec<_>>(), [0, 2, 1, 2, 2, 0]);
    }
}
