//! The state that a worker shares with the tasks of its virtual machines.

use crate::vm::kick::VcpuThread;
use crate::vm::scheduler::Scheduler;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How long a machine with the default weight may run without leaving on its own.
pub(super) const TIME_SLICE: Duration = Duration::from_millis(4);

/// The same for a machine with a reserved processor: it is kicked only so that its usage is updated.
const DEDICATED_TIME_SLICE: Duration = Duration::from_millis(100);

/// The state that a worker shares with the tasks of its machines.
#[derive(Debug)]
pub(super) struct WorkerState<T> {
    pub(super) queue: Mutex<Scheduler<T>>,
    pub(super) work: Condvar,
    /// The number of tasks in the run queue, for a worker that polls before it sleeps.
    pub(super) waiting: AtomicUsize,
    /// The running CPU-bound task must yield.
    pub(super) preempt: AtomicBool,
    pub(super) thread: VcpuThread,
    /// Whether its only machine has a reserved processor.
    pub(super) dedicated: bool,
    /// Poll for work for a moment before sleeping.
    pub(super) spins: bool,
}

impl<T> WorkerState<T> {
    /// How long a machine may run without leaving on its own.
    pub(super) fn slice(&self) -> Duration {
        if self.dedicated { DEDICATED_TIME_SLICE } else { TIME_SLICE }
    }
}
