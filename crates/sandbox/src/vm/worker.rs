//! A thread that runs machines in turn.
//!
//! A machine gets its turn when its doorbell was rung, and keeps it until it leaves: with nothing to do,
//! or with its quantum used up while others wait, when it goes to the end of the queue. One that doesn't leave by
//! itself is called out by a timer, counted, and from then on gives way to the others until it leaves by itself: a
//! loop costs its own box's share and no more, and keeps nobody's answer waiting. Machines that are called out share
//! the time by their weights: each turn gives one its slice, what it overdraws it has to save up again. A machine that
//! rests may have set an alarm: then its doorbell rings by itself.

use crate::area::Area;
use crate::cpu;
use crate::error::SystemError;
use crate::lock::lock;
use crate::settings::Settings;
use crate::vm::kick::{self, Target, Ticker};
use crate::vm::machine::Machine;
use crate::vm::queue::Queue;
use crate::vm::seat::{After, SLICE, Seat};
use crate::vm::turns::Class;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long one may stay that has a processor for itself: it is called out for its use of time to be known.
const ALONE_SLICE: Duration = Duration::from_millis(100);

/// A turn in which something else may have run, too.
const LONG: Duration = Duration::from_micros(500);

/// How long a machine may go on with its turn while nobody else waits for one: it ends before it is called out.
const FREE: Duration = Duration::from_millis(3);

/// How long a worker without work looks for some before it sleeps: waking a thread costs about as much.
const PATIENCE: Duration = Duration::from_micros(50);

/// A thread that runs machines. Dropped, it finishes the turn that it is in and ends; its machines stand
/// still.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a worker and the seats of its machines share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    pub(super) work: Condvar,
    /// Machines in the queue: what the patient worker looks at.
    pub(super) waiting: AtomicUsize,
    /// The stray that has its turn is to give way.
    pub(super) pressed: AtomicBool,
    pub(super) target: Target,
    /// Whether its only machine has a processor for itself.
    pub(super) alone: bool,
}

impl Worker {
    /// Starts a worker.
    pub fn start() -> Result<Self, SystemError> {
        Self::begin(false)
    }

    /// Starts a worker for one machine that has a processor for itself: it may stay as long as it
    /// likes.
    pub fn alone() -> Result<Self, SystemError> {
        Self::begin(true)
    }

    fn begin(alone: bool) -> Result<Self, SystemError> {
        kick::install()?;
        let (tell, told) = mpsc::channel();
        let run = move || {
            let started = Ticker::new().map(|ticker| {
                let shared = Arc::new(Shared {
                    queue: Mutex::new(Queue::new()),
                    work: Condvar::new(),
                    waiting: AtomicUsize::new(0),
                    pressed: AtomicBool::new(false),
                    target: Target::this_thread(),
                    alone,
                });
                (shared, ticker)
            });
            match started {
                Ok((shared, ticker)) if tell.send(Ok(shared.clone())).is_ok() => shared.run(&ticker),
                Ok(_) => {}
                // Nobody listening means that nobody wants a worker.
                Err(error) => drop(tell.send(Err(error))),
            }
        };
        let failed = |cause| SystemError { action: "start a worker", cause };
        let thread = std::thread::Builder::new().name("worker".into()).spawn(run).map_err(failed)?;
        let shared = told.recv().map_err(|_| failed(std::io::ErrorKind::Other.into()))??;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has the thread, and with it the machines, run on these processors and no others. Where the kernel forbids that
    /// they run where the kernel likes: slower, and still right.
    pub fn keep(&self, processors: &[usize]) {
        cpu::keep(self.shared.target.number(), processors);
    }

    /// Takes a machine into care. It has its first turn when its doorbell rings.
    pub(crate) fn seat(&self, machine: Machine, area: &Arc<Area>, settings: &Settings) -> Arc<Seat> {
        Arc::new(Seat::new(machine, area, settings, &self.shared))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        lock(&self.shared.queue).ended = true;
        self.shared.work.notify_one();
        self.shared.target.kick();
        if let Some(thread) = self.thread.take() {
            // A worker that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// How long a machine may stay without leaving by itself.
    pub(super) fn slice(&self) -> Duration {
        if self.alone { ALONE_SLICE } else { SLICE }
    }

    fn run(&self, ticker: &Ticker) {
        ticker.set(self.slice());
        while let Some((seat, class)) = self.next(ticker) {
            // From here on a doorbell puts the machine into the queue again.
            seat.queued.store(false, Ordering::SeqCst);
            let (from, spent) = (cpu::cycles(), cpu::thread_time());
            let after = seat.turn(spent);
            let used = own(cpu::cycles().wrapping_sub(from), spent);
            seat.busy_cycles.fetch_add(used, Ordering::Relaxed);
            let mut queue = lock(&self.queue);
            queue.running = None;
            queue.ready.used(class, used);
            match after {
                After::Rest => {}
                After::More => queue.add(seat),
                After::GaveWay if !seat.queued.swap(true, Ordering::SeqCst) => queue.ready.put_back(seat),
                // Its doorbell rang meanwhile.
                After::GaveWay => {}
            }
            self.waiting.store(queue.ready.len(), Ordering::Release);
        }
    }

    /// The next machine, waiting for one as long as it takes. Nothing: the worker is to end.
    fn next(&self, ticker: &Ticker) -> Option<(Arc<Seat>, Class)> {
        let since = Instant::now();
        while self.waiting.load(Ordering::Acquire) == 0 && since.elapsed() < PATIENCE {
            std::hint::spin_loop();
        }
        let mut queue = lock(&self.queue);
        let mut resting = false;
        loop {
            if queue.ended {
                // Seats know their worker: what knows seats is let go.
                queue.ready.clear();
                queue.alarms.clear();
                return None;
            }
            let next_alarm = queue.wake();
            if let Some((seat, class)) = queue.ready.pop() {
                self.waiting.store(queue.ready.len(), Ordering::Release);
                let free = match queue.ready.len() {
                    0 if self.alone => u64::MAX,
                    0 => cpu::cycles() + cpu::ticks(next_alarm.map_or(FREE, |alarm| alarm.min(FREE))),
                    _ => 0,
                };
                seat.set_uncontended_until(free);
                queue.running = Some((seat.clone(), class));
                self.pressed.store(false, Ordering::SeqCst);
                if resting {
                    ticker.set(self.slice());
                }
                return Some((seat, class));
            }
            if !resting {
                ticker.set(Duration::ZERO);
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
fn own(cycles: u64, spent: Duration) -> u64 {
    if cpu::time(cycles) < LONG {
        return cycles;
    }
    cycles.min(cpu::ticks(cpu::thread_time() - spent))
}
