//! Who wants a turn of a worker: now, or when an alarm comes.

use crate::cpu;
use crate::vm::run_queue::{RunQueue, TaskClass};
use crate::vm::vcpu_task::VcpuTask;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What machines that end their turns by themselves may use, after a rest, before cpu_bound are served again.
const YIELDING_CREDIT: Duration = Duration::from_millis(20);

/// The machines of a worker that want a turn, now or at some time.
#[derive(Debug)]
pub(super) struct Scheduler {
    pub(super) ready: RunQueue<Arc<VcpuTask>>,
    /// Who wants to be woken when, by time stamp counter and address: one entry a task.
    pub(super) alarms: BTreeMap<(u64, usize), Arc<VcpuTask>>,
    /// What has its turn.
    pub(super) running: Option<(Arc<VcpuTask>, TaskClass)>,
    /// The worker waits to be notified.
    pub(super) sleeping: bool,
    pub(super) ended: bool,
}

impl Scheduler {
    pub(super) fn new() -> Self {
        let ready = RunQueue::new(cpu::ticks(YIELDING_CREDIT));
        Self { ready, alarms: BTreeMap::new(), running: None, sleeping: false, ended: false }
    }

    /// Adds a task, unless it is there already.
    pub(super) fn add(&mut self, task: Arc<VcpuTask>) {
        if !task.queued.swap(true, Ordering::SeqCst) {
            self.push(task);
        }
    }

    /// Adds a task that says of itself that it is there. Who has a turn may no longer overdraw it.
    pub(super) fn push(&mut self, task: Arc<VcpuTask>) {
        if let Some((running, _)) = &self.running {
            running.set_free_until(0);
        }
        let class = match task.cpu_bound.load(Ordering::Relaxed) {
            false => TaskClass::Yielding,
            true => TaskClass::CpuBound,
        };
        self.ready.push(task, class);
    }

    /// Sets a task's alarm, instead of the one that it has; 0 for none.
    pub(super) fn set_alarm(&mut self, task: &Arc<VcpuTask>, at: u64) {
        let key = |at| (at, Arc::as_ptr(task) as usize);
        let before = task.alarm.swap(at, Ordering::Relaxed);
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
            task.alarm.store(0, Ordering::Relaxed);
            self.add(task);
        }
        None
    }
}
