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
use crate::error::{CreateError, SystemError};
use crate::sandbox::{Bell, Carrier, End, Usage};
use crate::settings::Settings;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::vm::kick::{Target, Ticker};
use crate::vm::machine::{Leave, Machine};
use crate::vm::turns::{Class, Turns};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a machine of usual weight may stay without leaving by itself.
const SLICE: Duration = Duration::from_millis(4);

/// How long one may stay that has a processor for itself: it is called out for its use of time to be known.
const ALONE_SLICE: Duration = Duration::from_millis(100);

/// A turn in which something else may have run, too.
const LONG: Duration = Duration::from_micros(500);

/// Bounds of a weight, in hundredths: one that waits has to come to its turn, one that runs to its end.
const LEAST_WEIGHT: u32 = 1;
const MOST_WEIGHT: u32 = 1000;

/// What machines that end their turns by themselves may use, after a rest, before strays are served again.
const CREDIT: Duration = Duration::from_millis(20);

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

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    /// Machines in the queue: what the patient worker looks at.
    waiting: AtomicUsize,
    /// The stray that has its turn is to give way.
    pressed: AtomicBool,
    target: Target,
    /// Whether its only machine has a processor for itself.
    alone: bool,
}

#[derive(Debug)]
struct Queue {
    ready: Turns<Arc<Seat>>,
    /// Who wants to be woken when, by time stamp counter and address: one entry a seat.
    alarms: BTreeMap<(u64, usize), Arc<Seat>>,
    /// What has its turn.
    running: Option<(Arc<Seat>, Class)>,
    /// The worker waits to be notified.
    sleeping: bool,
    ended: bool,
}

impl Queue {
    fn new() -> Self {
        let ready = Turns::new(cpu::tsc_hz() / 1_000_000 * CREDIT.as_micros() as u64);
        Self { ready, alarms: BTreeMap::new(), running: None, sleeping: false, ended: false }
    }

    /// Adds a seat, unless it is there already.
    fn add(&mut self, seat: Arc<Seat>) {
        if !seat.queued.swap(true, Ordering::SeqCst) {
            self.push(seat);
        }
    }

    /// Adds a seat that says of itself that it is there. Who has a turn may no longer overdraw it.
    fn push(&mut self, seat: Arc<Seat>) {
        if let Some((running, _)) = &self.running {
            running.set_free_until(0);
        }
        let class = match seat.strays.load(Ordering::Relaxed) {
            false => Class::Prompt,
            true => Class::Stray,
        };
        self.ready.push(seat, class);
    }

    /// Sets a seat's alarm, instead of the one that it has; 0 for none.
    fn set_alarm(&mut self, seat: &Arc<Seat>, at: u64) {
        let key = |at| (at, Arc::as_ptr(seat) as usize);
        let before = seat.alarm.swap(at, Ordering::Relaxed);
        if before != 0 {
            self.alarms.remove(&key(before));
        }
        if at != 0 {
            self.alarms.insert(key(at), seat.clone());
        }
    }

    /// Makes ready whose alarm has come; the time until the next one.
    fn wake(&mut self) -> Option<Duration> {
        while let Some(alarm) = self.alarms.first_entry() {
            let left = alarm.key().0.saturating_sub(cpu::cycles());
            if left > 0 {
                return Some(cpu::time(left));
            }
            let seat = alarm.remove();
            seat.alarm.store(0, Ordering::Relaxed);
            self.add(seat);
        }
        None
    }
}

/// How many of the cycles of a turn were the machine's: in a long one the kernel may have run something else on the
/// processor, and only the thread's own time tells. In a short one that is not worth a system call.
fn own(cycles: u64, spent: Duration) -> u64 {
    if cpu::time(cycles) < LONG {
        return cycles;
    }
    let own = (cpu::thread_time() - spent).as_nanos() * u128::from(cpu::tsc_hz()) / 1_000_000_000;
    cycles.min(u64::try_from(own).unwrap_or(u64::MAX))
}

/// A machine's place in its worker's care.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Taken out when the machine has ended, and its memory with it.
    machine: Mutex<Option<Machine>>,
    end: Mutex<Option<End>>,
    /// In the queue, or about to be.
    queued: AtomicBool,
    /// It had to be called out of its last turn.
    strays: AtomicBool,
    /// It was called out in the middle of whatever it did, perhaps between its last look for work and its rest.
    cut: AtomicBool,
    /// Its doorbell rang since its turn began, or since it was called out.
    rung: AtomicBool,
    /// Suspended: not to be entered.
    held: AtomicBool,
    killed: AtomicBool,
    /// Nanoseconds that a turn is worth, and those that are left of the turns so far; less than nothing when more was
    /// used.
    slice: AtomicU64,
    credit: AtomicI64,
    /// It gave way in the middle of a turn, which goes on.
    gave_way: AtomicBool,
    /// When the machine wants to be woken, 0 for never; changed by who holds the queue.
    alarm: AtomicU64,
    busy_cycles: AtomicU64,
    turns: AtomicU64,
    overstays: AtomicU64,
    bell: Option<Arc<Bell>>,
    end_bell: Option<Arc<Bell>>,
    area: Arc<Area>,
    shared: Arc<Shared>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        crate::vm::kick::install()?;
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
        Arc::new(Seat {
            machine: Mutex::new(Some(machine)),
            end: Mutex::default(),
            queued: AtomicBool::new(false),
            strays: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            rung: AtomicBool::new(false),
            held: AtomicBool::new(false),
            killed: AtomicBool::new(false),
            slice: AtomicU64::new(SLICE.as_nanos() as u64),
            credit: AtomicI64::new(0),
            gave_way: AtomicBool::new(false),
            alarm: AtomicU64::new(0),
            busy_cycles: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            overstays: AtomicU64::new(0),
            bell: settings.bell.clone(),
            end_bell: settings.end_bell.clone(),
            area: area.clone(),
            shared: self.shared.clone(),
        })
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
    fn slice(&self) -> Duration {
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
                seat.set_free_until(free);
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

/// What becomes of a machine after its turn.
enum After {
    /// It waits for its doorbell, or has ended.
    Rest,
    /// It has more to do.
    More,
    /// It would have gone on, if nobody else had wanted the turn.
    GaveWay,
}

impl Seat {
    /// Gives the machine a turn, at the beginning of which the thread had `spent` so much time.
    fn turn(self: &Arc<Self>, spent: Duration) -> After {
        let mut place = lock(&self.machine);
        let Some(machine) = place.as_mut() else { return After::Rest };
        if self.held.load(Ordering::SeqCst) || self.killed.load(Ordering::SeqCst) {
            return After::Rest;
        }
        let strays = self.strays.load(Ordering::Relaxed);
        let Some(slice) = self.begin(strays) else { return After::More };
        // One that left by itself looks for work first of all; one that was called out may have looked already.
        if !self.cut.swap(true, Ordering::SeqCst) {
            self.rung.store(false, Ordering::SeqCst);
        }
        let pressed = &self.shared.pressed;
        let leave = loop {
            match machine.enter() {
                Leave::Ring => self.bell.iter().for_each(|bell| bell.ring()),
                Leave::Kicked if pressed.load(Ordering::SeqCst) && !self.called_out() => {
                    self.spend(cpu::thread_time() - spent);
                    self.gave_way.store(true, Ordering::Relaxed);
                    return After::GaveWay;
                }
                // The timer doesn't know who came when, nor who was kept waiting by the kernel.
                Leave::Kicked if cpu::thread_time() - spent < slice && !self.called_out() => {}
                leave => break leave,
            }
        };
        if strays && leave == Leave::Kicked {
            self.spend(cpu::thread_time() - spent);
        } else {
            self.credit.store(0, Ordering::Relaxed);
        }
        self.turns.fetch_add(1, Ordering::Relaxed);
        // Where nobody else waits nobody can overstay.
        let strays = leave == Leave::Kicked && !self.shared.alone;
        self.strays.store(strays, Ordering::Relaxed);
        self.cut.store(leave == Leave::Kicked, Ordering::SeqCst);
        match leave {
            Leave::Idle => {
                let alarm = self.area.status().map_or(0, |status| status.alarm());
                lock(&self.shared.queue).set_alarm(self, alarm);
                return if self.rung.swap(false, Ordering::SeqCst) { After::More } else { After::Rest };
            }
            Leave::TurnOver | Leave::Ring => return After::More,
            Leave::Kicked => {
                self.overstays.fetch_add(u64::from(strays && !self.called_out()), Ordering::Relaxed);
                return After::More;
            }
            Leave::Stopped => self.finish(End::Stopped),
            Leave::Crashed { address } => self.finish(End::crashed(&self.area, address)),
        }
        *place = None;
        After::Rest
    }

    /// How long its turn may last. Nothing: it has overdrawn so much that it has none now.
    fn begin(&self, strays: bool) -> Option<Duration> {
        if !strays {
            return Some(self.shared.slice());
        }
        let worth = match self.gave_way.swap(false, Ordering::Relaxed) {
            true => 0,
            false => i64::try_from(self.slice.load(Ordering::Relaxed)).unwrap_or(i64::MAX),
        };
        let credit = self.credit.load(Ordering::Relaxed).saturating_add(worth);
        self.credit.store(credit, Ordering::Relaxed);
        // Turns end when the timer ticks: what is nearer to nothing than to a tick is nothing.
        let least = SLICE.as_nanos() as i64 / 2;
        (credit >= least).then(|| Duration::from_nanos((credit - least + 1).unsigned_abs()))
    }

    /// Until when, by the time stamp counter, it may go on though its quantum is used up.
    fn set_free_until(&self, tsc: u64) {
        if let Ok(status) = self.area.status() {
            status.set_free_until(tsc);
        }
    }

    fn spend(&self, time: Duration) {
        self.credit.fetch_sub(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Whether someone wants the machine to leave for another reason than time.
    fn called_out(&self) -> bool {
        self.held.load(Ordering::SeqCst)
            || self.killed.load(Ordering::SeqCst)
            || lock(&self.shared.queue).ended
    }

    fn finish(&self, end: End) {
        lock(&self.end).get_or_insert(end);
        self.bell.iter().chain(&self.end_bell).for_each(|bell| bell.ring());
    }
}

impl Carrier for Arc<Seat> {
    fn ring(&self) {
        // Noted first: who is about to be entered may be past its last look for work.
        self.rung.store(true, Ordering::SeqCst);
        if self.queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        queue.push(self.clone());
        self.shared.waiting.store(queue.ready.len(), Ordering::Release);
        let presses = matches!(queue.running, Some((_, Class::Stray))) && queue.ready.presses();
        let presses = presses && !self.shared.pressed.swap(true, Ordering::SeqCst);
        let sleeping = queue.sleeping;
        drop(queue);
        if sleeping {
            self.shared.work.notify_one();
        }
        if presses {
            self.shared.target.kick();
        }
    }

    fn start(&self) -> Result<(), CreateError> {
        self.ring();
        Ok(())
    }

    fn suspend(&self) {
        self.held.store(true, Ordering::SeqCst);
        self.shared.target.kick();
        // When this can be had, the machine is not running, and won't.
        drop(lock(&self.machine));
    }

    fn resume(&self) {
        self.held.store(false, Ordering::SeqCst);
        self.ring();
    }

    fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        self.shared.target.kick();
        *lock(&self.machine) = None;
        lock(&self.shared.queue).set_alarm(self, 0);
        self.finish(End::Killed);
    }

    fn set_weight(&self, hundredths: u32) {
        let slice = SLICE.as_nanos() as u64 / 100 * u64::from(hundredths.clamp(LEAST_WEIGHT, MOST_WEIGHT));
        self.slice.store(slice, Ordering::Relaxed);
    }

    fn private_memory(&self) -> std::io::Result<usize> {
        lock(&self.machine).as_ref().map_or(Ok(0), Machine::private_memory)
    }

    fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        lock(&self.machine).as_mut().ok_or(SnapshotError::NotRunning)?.snapshot()
    }

    fn end(&self) -> Option<End> {
        lock(&self.end).clone()
    }

    fn usage(&self) -> Usage {
        Usage {
            time: cpu::time(self.busy_cycles.load(Ordering::Relaxed)),
            turns: self.turns.load(Ordering::Relaxed),
            overstays: self.overstays.load(Ordering::Relaxed),
        }
    }
}
