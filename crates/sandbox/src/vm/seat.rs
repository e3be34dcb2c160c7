//! A machine's place in the care of its worker: its turns, and what its owner wants of it.

use crate::area::Area;
use crate::cpu;
use crate::error::CreateError;
use crate::lock::lock;
use crate::sandbox::{Bell, Carrier, End, Usage};
use crate::settings::Settings;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::vm::machine::{Machine, VmExit};
use crate::vm::turns::Class;
use crate::vm::worker::Shared;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a machine of usual weight may stay without leaving by itself.
pub(super) const SLICE: Duration = Duration::from_millis(4);

/// Bounds of a weight, in hundredths: one that waits has to come to its turn, one that runs to its end.
const LEAST_WEIGHT: u32 = 1;
const MOST_WEIGHT: u32 = 1000;

/// A machine's place in its worker's care.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Taken out when the machine has ended, and its memory with it.
    machine: Mutex<Option<Machine>>,
    end: Mutex<Option<End>>,
    /// In the queue, or about to be.
    pub(super) queued: AtomicBool,
    /// It had to be called out of its last turn.
    pub(super) strays: AtomicBool,
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
    pub(super) alarm: AtomicU64,
    pub(super) busy_cycles: AtomicU64,
    turns: AtomicU64,
    overstays: AtomicU64,
    bell: Option<Arc<Bell>>,
    end_bell: Option<Arc<Bell>>,
    area: Arc<Area>,
    shared: Arc<Shared>,
}

/// What becomes of a machine after its turn.
pub(super) enum After {
    /// It waits for its doorbell, or has ended.
    Rest,
    /// It has more to do.
    More,
    /// It would have gone on, if nobody else had wanted the turn.
    GaveWay,
}

impl Seat {
    /// A place for a machine, which has its first turn when its doorbell rings.
    pub(super) fn new(machine: Machine, area: &Arc<Area>, settings: &Settings, shared: &Arc<Shared>) -> Self {
        Self {
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
            shared: shared.clone(),
        }
    }

    /// Gives the machine a turn, at the beginning of which the thread had `spent` so much time.
    pub(super) fn turn(self: &Arc<Self>, spent: Duration) -> After {
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
                // A call that came while it left is not told of any more: one that rings is looked at as one that was called.
                VmExit::Ring => self.bell.iter().for_each(|bell| bell.ring()),
                VmExit::Kicked => {}
                leave => break leave,
            }
            if self.called_out() {
                break VmExit::Kicked;
            }
            if pressed.load(Ordering::SeqCst) {
                self.spend(cpu::thread_time() - spent);
                self.gave_way.store(true, Ordering::Relaxed);
                return After::GaveWay;
            }
            // The timer doesn't know who came when, nor who was kept waiting by the kernel.
            if cpu::thread_time() - spent >= slice {
                break VmExit::Kicked;
            }
        };
        if strays && leave == VmExit::Kicked {
            self.spend(cpu::thread_time() - spent);
        } else {
            self.credit.store(0, Ordering::Relaxed);
        }
        self.turns.fetch_add(1, Ordering::Relaxed);
        // Where nobody else waits nobody can overstay.
        let strays = leave == VmExit::Kicked && !self.shared.alone;
        self.strays.store(strays, Ordering::Relaxed);
        self.cut.store(leave == VmExit::Kicked, Ordering::SeqCst);
        match leave {
            VmExit::Idle => {
                let alarm = self.area.status().map_or(0, |status| status.alarm());
                lock(&self.shared.queue).set_alarm(self, alarm);
                return if self.rung.swap(false, Ordering::SeqCst) { After::More } else { After::Rest };
            }
            VmExit::TurnOver => return After::More,
            VmExit::Kicked | VmExit::Ring => {
                self.overstays.fetch_add(u64::from(strays && !self.called_out()), Ordering::Relaxed);
                return After::More;
            }
            VmExit::Stopped => self.finish(End::Stopped),
            VmExit::Crashed { address } => self.finish(End::crashed(&self.area, address)),
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
    pub(super) fn set_uncontended_until(&self, tsc: u64) {
        if let Ok(status) = self.area.status() {
            status.set_uncontended_until(tsc);
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
        let presses = matches!(queue.running, Some((_, Class::Stray)))
            && queue.ready.presses()
            && !self.shared.pressed.swap(true, Ordering::SeqCst);
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
