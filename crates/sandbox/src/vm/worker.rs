//! A thread that runs machines in turn.
//!
//! A machine gets its turn when its doorbell was rung, and keeps it until it leaves: with nothing to do,
//! or with its quantum used up while others wait, when it goes to the end of the queue. One that doesn't leave by
//! itself is called out by a timer, counted, and from then on gives way to the others until it leaves by itself: a
//! loop costs its own box's share and no more, and keeps nobody's answer waiting. Machines that are called out share
//! the time by their weights: each turn gives one its slice, what it overdraws it has to save up again. A machine that
//! rests may have set an alarm: then its doorbell rings by itself.

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

/// A turn in which something else may have run, too.
const LONG_TURN: Duration = Duration::from_micros(500);

/// How long a machine may go on with its turn while nobody else waits for one: it ends before it is called out.
const FREE_RUN: Duration = Duration::from_millis(3);

/// How long a worker without work looks for some before it sleeps: waking a thread costs about as much.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// A thread that runs machines. Dropped, it finishes the turn that it is in and ends; its machines stand
/// still.
#[derive(Debug)]
pub struct Worker {
    state: Arc<WorkerState<VcpuTask>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a worker.
    pub fn start() -> Result<Self, SystemError> {
        Self::begin(false)
    }

    /// Starts a worker for one machine that has a processor for itself: it may stay as long as it
    /// likes.
    pub fn dedicated() -> Result<Self, SystemError> {
        Self::begin(true)
    }

    fn begin(dedicated: bool) -> Result<Self, SystemError> {
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
                });
                (state, timer)
            });
            match started {
                Ok((state, timer)) if sender.send(Ok(state.clone())).is_ok() => state.run(&timer),
                Ok(_) => {}
                // Nobody listening means that nobody wants a worker.
                Err(error) => drop(sender.send(Err(error))),
            }
        };
        let failed = |cause| SystemError { action: "start a worker", cause };
        let thread = std::thread::Builder::new().name("worker".into()).spawn(run).map_err(failed)?;
        let state = receiver.recv().map_err(|_| failed(std::io::ErrorKind::Other.into()))??;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Has the thread, and with it the machines, run on these processors and no others. Where the kernel forbids that
    /// they run where the kernel likes: slower, and still right.
    pub fn pin(&self, processors: &[usize]) {
        cpu::pin(self.state.thread.number(), processors);
    }

    /// Takes a machine into care. It has its first turn when its doorbell rings.
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
            // A worker that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

impl WorkerState<VcpuTask> {
    fn run(&self, timer: &PreemptionTimer) {
        timer.set(self.slice());
        while let Some((task, class)) = self.next(timer) {
            // From here on a doorbell puts the machine into the queue again.
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
                // Its doorbell rang meanwhile.
                TurnEnd::Preempted => {}
            }
            self.waiting.store(queue.ready.len(), Ordering::Release);
        }
    }

    /// The next machine, waiting for one as long as it takes. Nothing: the worker is to end.
    fn next(&self, timer: &PreemptionTimer) -> Option<(Arc<VcpuTask>, TaskClass)> {
        let since = Instant::now();
        while self.waiting.load(Ordering::Acquire) == 0 && since.elapsed() < SPIN_TIME {
            std::hint::spin_loop();
        }
        let mut queue = lock(&self.queue);
        let mut resting = false;
        loop {
            if queue.ended {
                // Seats know their worker: what knows tasks is let go.
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
                if resting {
                    timer.set(self.slice());
                }
                return Some((task, class));
            }
            if !resting {
                timer.set(Duration::ZERO);
                resting = true;
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

/// How many of the cycles of a turn were the machine's: in a long one the kernel may have run something else on the
/// processor, and only the thread's own time tells. In a short one that is not worth a system call.
fn task_cycles(cycles: u64, spent: Duration) -> u64 {
    if cpu::time(cycles) < LONG_TURN {
        return cycles;
    }
    cycles.min(cpu::ticks(cpu::thread_time() - spent))
}
