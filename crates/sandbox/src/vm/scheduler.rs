//! Who wants a turn of a worker: now, or when an alarm comes.

use crate::cpu;
use crate::vm::run_queue::{RunQueue, TaskClass};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What machines that end their turns by themselves may use, after a rest, before cpu_bound are served again.
const YIELDING_CREDIT: Duration = Duration::from_millis(20);

/// What the scheduler has to know of a task.
pub(super) trait Schedulable {
    /// Whether the task is in the run queue, or is about to be put there.
    fn queued(&self) -> &AtomicBool;
    /// Whether its last turn had to be ended by the timer.
    fn is_cpu_bound(&self) -> bool;
    /// The time stamp at which it is to be woken; 0 for none. Only the holder of the scheduler changes it.
    fn alarm(&self) -> &AtomicU64;
    /// Lets the task exceed its quantum until this time stamp.
    fn set_uncontended_until(&self, tsc: u64);
}

/// The tasks of a worker that want a turn, now or at some time.
#[derive(Debug)]
pub(super) struct Scheduler<T> {
    pub(super) ready: RunQueue<Arc<T>>,
    /// Who wants to be woken when, by time stamp counter and address: one entry a task.
    pub(super) alarms: BTreeMap<(u64, usize), Arc<T>>,
    /// What has its turn.
    pub(super) running: Option<(Arc<T>, TaskClass)>,
    /// The worker waits to be notified.
    pub(super) sleeping: bool,
    pub(super) ended: bool,
}

impl<T: Schedulable> Scheduler<T> {
    pub(super) fn new() -> Self {
        let ready = RunQueue::new(cpu::ticks(YIELDING_CREDIT));
        Self { ready, alarms: BTreeMap::new(), running: None, sleeping: false, ended: false }
    }

    /// Adds a task, unless it is there already.
    pub(super) fn add(&mut self, task: Arc<T>) {
        if !task.queued().swap(true, Ordering::SeqCst) {
            self.push(task);
        }
    }

    /// Adds a task that says of itself that it is there. Who has a turn may no longer overdraw it.
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

    /// Sets a task's alarm, instead of the one that it has; 0 for none.
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

    /// Makes ready whose alarm has come; the time until the next one.
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
