//! What a worker shares with the tasks of its virtual machines.

use crate::vm::kick::VcpuThread;
use crate::vm::scheduler::Scheduler;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How long a machine of usual weight may stay without leaving by itself.
pub(super) const TIME_SLICE: Duration = Duration::from_millis(4);

/// How long one may stay that has a processor for itself: it is called out for its use of time to be known.
const DEDICATED_TIME_SLICE: Duration = Duration::from_millis(100);

/// What a worker and the tasks of its machines share.
#[derive(Debug)]
pub(super) struct WorkerState<T> {
    pub(super) queue: Mutex<Scheduler<T>>,
    pub(super) work: Condvar,
    /// Tasks in the run queue, for a worker that spins before it sleeps.
    pub(super) waiting: AtomicUsize,
    /// The running CPU-bound task has to give way.
    pub(super) preempt: AtomicBool,
    pub(super) thread: VcpuThread,
    /// Whether its only machine has a processor for itself.
    pub(super) dedicated: bool,
}

impl<T> WorkerState<T> {
    /// How long a machine may stay without leaving by itself.
    pub(super) fn slice(&self) -> Duration {
        if self.dedicated { DEDICATED_TIME_SLICE } else { TIME_SLICE }
    }
}
