//! The scheduler of a worker: the tasks that want a turn now, and those with an alarm.

use crate::cpu;
use crate::vm::run_queue::{RunQueue, TaskClass};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The time that yielding machines may use after an idle period before CPU-bound ones get another turn.
const YIELDING_CREDIT: Duration = Duration::from_millis(20);

/// What the scheduler needs from a task.
pub(super) trait Schedulable {
    /// Whether the task is in the run queue, or about to be added.
    fn queued(&self) -> &AtomicBool;
    /// Whether the timer ended its last turn.
    fn is_cpu_bound(&self) -> bool;
    /// The time stamp at which it must be woken; 0 for none. Only the holder of the scheduler's lock changes it.
    fn alarm(&self) -> &AtomicU64;
    /// Lets the task exceed its quantum until this time stamp.
    fn set_uncontended_until(&self, tsc: u64);
}

/// The tasks of a worker that want a turn, now or at some time.
#[derive(Debug)]
pub(super) struct Scheduler<T> {
    pub(super) ready: RunQueue<Arc<T>>,
    /// Alarms by time stamp and task address: at most one per task.
    pub(super) alarms: BTreeMap<(u64, usize), Arc<T>>,
    /// The task that has its turn.
    pub(super) running: Option<(Arc<T>, TaskClass)>,
    /// The worker sleeps until it is notified.
    pub(super) sleeping: bool,
    pub(super) ended: bool,
}

impl<T: Schedulable> Scheduler<T> {
    pub(super) fn new() -> Self {
        let ready = RunQueue::new(cpu::ticks(YIELDING_CREDIT));
        Self { ready, alarms: BTreeMap::new(), running: None, sleeping: false, ended: false }
    }

    /// Adds a task, unless it is already queued.
    pub(super) fn add(&mut self, task: Arc<T>) {
        if !task.queued().swap(true, Ordering::SeqCst) {
            self.push(task);
        }
    }

    /// Adds a task whose `queued` flag is already set. The running task may then no longer exceed its quantum.
    pub(super) fn push(&mut self, task: Arc<T>) {
        if let Some((running, _)) = &self.running {
            running.set_uncontended_until(0);
        }
        let class = match task.is_cpu_bound() {
            false => TaskClass::Yielding,
            true => TaskClass::CpuBound,
        };
        self.ready.push(task, class);
    }

    /// Replaces a task's alarm; 0 for none.
    pub(super) fn set_alarm(&mut self, task: &Arc<T>, at: u64) {
        let key = |at| (at, Arc::as_ptr(task) as usize);
        let before = task.alarm().swap(at, Ordering::Relaxed);
        if before != 0 {
            self.alarms.remove(&key(before));
        }
        if at != 0 {
            self.alarms.insert(key(at), task.clone());
        }
    }

    /// Queues the tasks whose alarm is due. Returns the time until the next alarm.
    pub(super) fn wake(&mut self) -> Option<Duration> {
        while let Some(alarm) = self.alarms.first_entry() {
            let left = alarm.key().0.saturating_sub(cpu::cycles());
            if left > 0 {
                return Some(cpu::time(left));
            }
            let task = alarm.remove();
            task.alarm().store(0, Ordering::Relaxed);
            self.add(task);
        }
        None
    }
}
