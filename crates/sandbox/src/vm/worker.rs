//! A thread that runs virtual machines in turn.
//!
//! - A machine gets a turn when its doorbell rings, and keeps it until it leaves: because it is idle, or because it has
//!   used its quantum while others wait. In the latter case it goes to the end of the queue.
//! - A machine that does not leave on its own is kicked by a timer, which is counted. From then on it is CPU-bound and
//!   yields to the others until it leaves on its own again. A loop therefore costs only its own box's share, and delays
//!   no other box's reply.
//! - CPU-bound machines share the time by weight: each turn grants a machine its slice, and it must save up again what
//!   it used beyond that.
//! - An idle machine may have set an alarm: its doorbell then rings on its own.

use crate::cpu;
use crate::error::SystemError;
use crate::lock::lock;
use crate::settings::Settings;
use crate::shared_region::SharedRegion;
use crate::vm::kick::{self, PreemptionTimer, VcpuThread};
use crate::vm::run_queue::TaskClass;
use crate::vm::scheduler::{Schedulable, Scheduler};
use crate::vm::vcpu_task::{TurnEnd, VcpuTask};
use crate::vm::virtual_machine::VirtualMachine;
use crate::vm::worker_state::WorkerState;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A turn from this length on may include time of other threads.
const LONG_TURN: Duration = Duration::from_micros(500);

/// How long a machine may exceed its quantum while no other waits. It is shorter than a time slice, so that the turn
/// ends before the timer ends it.
const FREE_RUN: Duration = Duration::from_millis(3);

/// How long an idle worker polls for work before it sleeps: waking a thread costs about as much.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// A thread that runs virtual machines. On drop it finishes the current turn and ends; its machines no longer run.
#[derive(Debug)]
pub struct Worker {
    state: Arc<WorkerState<VcpuTask>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a worker. It polls for work for a moment before it sleeps.
    pub fn start() -> Result<Self, SystemError> {
        Self::begin(false, true)
    }

    /// Starts a worker that sleeps at once when it has no work, because others need the processor.
    pub fn start_considerate() -> Result<Self, SystemError> {
        Self::begin(false, false)
    }

    /// Starts a worker for one machine with a reserved processor, which may run without a limit.
    pub fn dedicated() -> Result<Self, SystemError> {
        Self::begin(true, true)
    }

    fn begin(dedicated: bool, spins: bool) -> Result<Self, SystemError> {
        kick::install()?;
        let (sender, receiver) = mpsc::channel();
        let run = move || {
            let started = PreemptionTimer::new().map(|timer| {
                let state = Arc::new(WorkerState {
                    queue: Mutex::new(Scheduler::new()),
                    work: Condvar::new(),
                    waiting: AtomicUsize::new(0),
                    preempt: AtomicBool::new(false),
                    thread: VcpuThread::this_thread(),
                    dedicated,
                    spins,
                });
                (state, timer)
            });
            match started {
                Ok((state, timer)) if sender.send(Ok(state.clone())).is_ok() => state.run(&timer),
                Ok(_) => {}
                // A closed channel means that the worker is not wanted.
                Err(error) => drop(sender.send(Err(error))),
            }
        };
        let failed = |cause| SystemError { action: "start a worker", cause };
        let thread = std::thread::Builder::new().name("worker".into()).spawn(run).map_err(failed)?;
        let state = receiver.recv().map_err(|_| failed(std::io::ErrorKind::Other.into()))??;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Pins the thread, and with it its machines, to these processors. If the kernel refuses, it may run anywhere:
    /// slower, but correct.
    pub fn pin(&self, processors: &[usize]) {
        cpu::pin(self.state.thread.number(), processors);
    }

    /// Adds a machine. It gets its first turn when its doorbell rings.
    pub(crate) fn add(
        &self,
        machine: VirtualMachine,
        region: &Arc<SharedRegion>,
        settings: &Settings,
    ) -> Arc<VcpuTask> {
        Arc::new(VcpuTask::new(machine, region, settings, &self.state))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        lock(&self.state.queue).ended = true;
        self.state.work.notify_one();
        self.state.thread.kick();
        if let Some(thread) = self.thread.take() {
            // A worker that panicked needs no further cleanup.
            let _ = thread.join();
        }
    }
}

impl WorkerState<VcpuTask> {
    fn run(&self, timer: &PreemptionTimer) {
        timer.set(self.slice());
        while let Some((task, class)) = self.next(timer) {
            // From here on a doorbell queues the machine again.
            task.queued.store(false, Ordering::SeqCst);
            let (from, spent) = (cpu::cycles(), cpu::thread_time());
            let after = task.turn(spent);
            let used = task_cycles(cpu::cycles().wrapping_sub(from), spent);
            task.busy_cycles.fetch_add(used, Ordering::Relaxed);
            let mut queue = lock(&self.queue);
            queue.running = None;
            queue.ready.used(class, used);
            match after {
                TurnEnd::Waiting => {}
                TurnEnd::Ready => queue.add(task),
                TurnEnd::Preempted if !task.queued.swap(true, Ordering::SeqCst) => queue.ready.put_back(task),
                // Its doorbell rang meanwhile, which queued it.
                TurnEnd::Preempted => {}
            }
            self.waiting.store(queue.ready.len(), Ordering::Release);
        }
    }

    /// The next task; waits for one without a limit. `None` when the worker must end.
    fn next(&self, timer: &PreemptionTimer) -> Option<(Arc<VcpuTask>, TaskClass)> {
        let since = Instant::now();
        while self.spins && self.waiting.load(Ordering::Acquire) == 0 && since.elapsed() < SPIN_TIME {
            std::hint::spin_loop();
        }
        let mut queue = lock(&self.queue);
        let mut timer_stopped = false;
        loop {
            if queue.ended {
                // Tasks hold the worker's state, so its references to tasks are dropped.
                queue.ready.clear();
                queue.alarms.clear();
                return None;
            }
            let next_alarm = queue.wake();
            if let Some((task, class)) = queue.ready.pop() {
                self.waiting.store(queue.ready.len(), Ordering::Release);
                let free = match queue.ready.len() {
                    0 if self.dedicated => u64::MAX,
                    0 => cpu::cycles() + cpu::ticks(next_alarm.map_or(FREE_RUN, |alarm| alarm.min(FREE_RUN))),
                    _ => 0,
                };
                task.set_uncontended_until(free);
                queue.running = Some((task.clone(), class));
                self.preempt.store(false, Ordering::SeqCst);
                if timer_stopped {
                    timer.set(self.slice());
                }
                return Some((task, class));
            }
            if !timer_stopped {
                timer.set(Duration::ZERO);
                timer_stopped = true;
            }
            queue.sleeping = true;
            queue = match next_alarm {
                None => self.work.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.work.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            queue.sleeping = false;
        }
    }
}

/// The cycles of a turn that the machine used. During a long turn the kernel may have run another thread, so the
/// thread's own time counts; for a short turn this is not worth a system call.
fn task_cycles(cycles: u64, spent: Duration) -> u64 {
    if cpu::time(cycles) < LONG_TURN {
        return cycles;
    }
    cycles.min(cpu::ticks(cpu::thread_time() - spent))
}
