//! A virtual machine as a task of its worker: its turns, and the requests of its owner.

use crate::cpu;
use crate::error::CreateError;
use crate::event_fd::EventFd;
use crate::lifecycle::{Backend, ExitStatus, Usage};
use crate::lock::lock;
use crate::ring_signal::RingSignal;
use crate::settings::Settings;
use crate::shared_region::SharedRegion;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::vm::run_queue::TaskClass;
use crate::vm::scheduler::Schedulable;
use crate::vm::virtual_machine::{VirtualMachine, VmExit};
use crate::vm::worker_state::{TIME_SLICE, WorkerState};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Bounds of a weight, in hundredths: a waiting machine must get a turn, and a running one's turn must end.
const MIN_WEIGHT: u32 = 1;
const MAX_WEIGHT: u32 = 1000;

/// A virtual machine as a task of its worker.
#[derive(Debug)]
pub(crate) struct VcpuTask {
    /// `None` once the machine has ended, which frees its memory.
    machine: Mutex<Option<VirtualMachine>>,
    end: Mutex<Option<ExitStatus>>,
    /// Notified when `end` is set.
    ended: Condvar,
    mailbox_ring: RingSignal,
    /// In the run queue, or about to be added.
    pub(super) queued: AtomicBool,
    /// The timer ended its last turn.
    cpu_bound: AtomicBool,
    /// It was kicked at an arbitrary point, possibly between its last check for work and going idle.
    interrupted: AtomicBool,
    /// Its doorbell rang since its turn began, or since it was kicked.
    rung: AtomicBool,
    /// It left because it was idle, and was not entered since.
    idle: AtomicBool,
    /// A thread waits until it is idle.
    idle_watched: AtomicBool,
    /// Suspended: must not be entered.
    suspended: AtomicBool,
    killed: AtomicBool,
    /// Nanoseconds per turn, and those left of the turns so far, which is negative if it used more.
    slice: AtomicU64,
    credit: AtomicI64,
    /// It was preempted in the middle of a turn, which continues.
    preempted: AtomicBool,
    /// When the machine must be woken, 0 for never. Only the holder of the queue's lock changes it.
    alarm: AtomicU64,
    pub(super) busy_cycles: AtomicU64,
    turns: AtomicU64,
    overruns: AtomicU64,
    wake_event: Option<Arc<EventFd>>,
    exit_event: Option<Arc<EventFd>>,
    region: Arc<SharedRegion>,
    worker: Arc<WorkerState<VcpuTask>>,
}

/// The state of a machine after its turn.
pub(super) enum TurnEnd {
    /// It waits for its doorbell, or has ended.
    Waiting,
    /// It has more work.
    Ready,
    /// It was preempted in the middle of a turn for another machine.
    Preempted,
}

impl VcpuTask {
    /// A task for a machine. It gets its first turn when its doorbell rings.
    pub(super) fn new(
        machine: VirtualMachine,
        region: &Arc<SharedRegion>,
        settings: &Settings,
        worker: &Arc<WorkerState<VcpuTask>>,
    ) -> Self {
        Self {
            machine: Mutex::new(Some(machine)),
            end: Mutex::default(),
            ended: Condvar::new(),
            mailbox_ring: RingSignal::default(),
            queued: AtomicBool::new(false),
            cpu_bound: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            rung: AtomicBool::new(false),
            idle: AtomicBool::new(false),
            idle_watched: AtomicBool::new(false),
            suspended: AtomicBool::new(false),
            killed: AtomicBool::new(false),
            slice: AtomicU64::new(TIME_SLICE.as_nanos() as u64),
            credit: AtomicI64::new(0),
            preempted: AtomicBool::new(false),
            alarm: AtomicU64::new(0),
            busy_cycles: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            wake_event: settings.wake_event.clone(),
            exit_event: settings.exit_event.clone(),
            region: region.clone(),
            worker: worker.clone(),
        }
    }

    /// Gives the machine a turn. `spent` is the thread's CPU time at the start of the turn.
    pub(super) fn turn(self: &Arc<Self>, spent: Duration) -> TurnEnd {
        let mut slot = lock(&self.machine);
        let Some(machine) = slot.as_mut() else { return TurnEnd::Waiting };
        if self.suspended.load(Ordering::SeqCst) || self.killed.load(Ordering::SeqCst) {
            return TurnEnd::Waiting;
        }
        let cpu_bound = self.cpu_bound.load(Ordering::Relaxed);
        let Some(slice) = self.begin(cpu_bound) else { return TurnEnd::Ready };
        // A machine that left on its own checks for work first; a kicked one may already have checked.
        if !self.interrupted.swap(true, Ordering::SeqCst) {
            self.rung.store(false, Ordering::SeqCst);
        }
        self.idle.store(false, Ordering::SeqCst);
        let preempt = &self.worker.preempt;
        let leave = loop {
            match machine.enter() {
                // A kick that arrived while the machine left has no effect, so an exit to ring is handled like a kick.
                VmExit::Ring => self.wake_event.iter().for_each(|event| event.ring()),
                VmExit::RingMailbox => self.mailbox_ring.notify(),
                VmExit::Kicked => {}
                leave => break leave,
            }
            if self.must_leave() {
                break VmExit::Kicked;
            }
            if preempt.load(Ordering::SeqCst) {
                self.spend(cpu::thread_time() - spent);
                self.preempted.store(true, Ordering::Relaxed);
                return TurnEnd::Preempted;
            }
            // The timer knows neither when the turn began, nor how long the kernel ran other threads.
            if cpu::thread_time() - spent >= slice {
                break VmExit::Kicked;
            }
        };
        if cpu_bound && leave == VmExit::Kicked {
            self.spend(cpu::thread_time() - spent);
        } else {
            self.credit.store(0, Ordering::Relaxed);
        }
        self.turns.fetch_add(1, Ordering::Relaxed);
        // A machine with a dedicated worker keeps no other machine waiting, so it cannot overrun.
        let cpu_bound = leave == VmExit::Kicked && !self.worker.dedicated;
        self.cpu_bound.store(cpu_bound, Ordering::Relaxed);
        self.interrupted.store(leave == VmExit::Kicked, Ordering::SeqCst);
        match leave {
            VmExit::Idle => {
                let alarm = self.region.status().map_or(0, |status| status.alarm());
                lock(&self.worker.queue).set_alarm(self, alarm);
                if self.rung.swap(false, Ordering::SeqCst) {
                    return TurnEnd::Ready;
                }
                self.idle.store(true, Ordering::SeqCst);
                if self.idle_watched.load(Ordering::SeqCst) {
                    self.mailbox_ring.notify();
                }
                return TurnEnd::Waiting;
            }
            VmExit::TurnOver => return TurnEnd::Ready,
            VmExit::Kicked | VmExit::Ring | VmExit::RingMailbox => {
                self.overruns.fetch_add(u64::from(cpu_bound && !self.must_leave()), Ordering::Relaxed);
                return TurnEnd::Ready;
            }
            VmExit::Stopped => self.finish(ExitStatus::Stopped),
            VmExit::Crashed { address } => self.finish(ExitStatus::crashed(&self.region, address)),
        }
        *slot = None;
        TurnEnd::Waiting
    }

    /// How long its turn may last. `None` if it has used so much more than its slices that it gets no turn now.
    fn begin(&self, cpu_bound: bool) -> Option<Duration> {
        if !cpu_bound {
            return Some(self.worker.slice());
        }
        let worth = match self.preempted.swap(false, Ordering::Relaxed) {
            true => 0,
            false => i64::try_from(self.slice.load(Ordering::Relaxed)).unwrap_or(i64::MAX),
        };
        let credit = self.credit.load(Ordering::Relaxed).saturating_add(worth);
        self.credit.store(credit, Ordering::Relaxed);
        // Turns end at timer ticks, so a credit of less than half a tick counts as none.
        let least = TIME_SLICE.as_nanos() as i64 / 2;
        (credit >= least).then(|| Duration::from_nanos((credit - least + 1).unsigned_abs()))
    }

    fn spend(&self, time: Duration) {
        self.credit.fetch_sub(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Whether the machine must leave for another reason than time.
    fn must_leave(&self) -> bool {
        self.suspended.load(Ordering::SeqCst)
            || self.killed.load(Ordering::SeqCst)
            || lock(&self.worker.queue).ended
    }

    fn finish(&self, end: ExitStatus) {
        lock(&self.end).get_or_insert(end);
        self.ended.notify_all();
        self.mailbox_ring.notify();
        self.wake_event.iter().chain(&self.exit_event).for_each(|event| event.ring());
    }
}

impl Schedulable for VcpuTask {
    fn queued(&self) -> &AtomicBool {
        &self.queued
    }

    fn is_cpu_bound(&self) -> bool {
        self.cpu_bound.load(Ordering::Relaxed)
    }

    fn alarm(&self) -> &AtomicU64 {
        &self.alarm
    }

    fn set_uncontended_until(&self, tsc: u64) {
        if let Ok(status) = self.region.status() {
            status.set_uncontended_until(tsc);
        }
    }
}

impl Backend for Arc<VcpuTask> {
    fn ring(&self) {
        // Set first: a machine that is about to be entered may be past its last check for work.
        self.rung.store(true, Ordering::SeqCst);
        if self.queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut queue = lock(&self.worker.queue);
        queue.push(self.clone());
        self.worker.waiting.store(queue.ready.len(), Ordering::Release);
        let should_preempt = matches!(queue.running, Some((_, TaskClass::CpuBound)))
            && queue.ready.should_preempt()
            && !self.worker.preempt.swap(true, Ordering::SeqCst);
        let sleeping = queue.sleeping;
        drop(queue);
        if sleeping {
            self.worker.work.notify_one();
        }
        if should_preempt {
            self.worker.thread.kick();
        }
    }

    fn start(&self) -> Result<(), CreateError> {
        self.ring();
        Ok(())
    }

    fn suspend(&self) {
        self.suspended.store(true, Ordering::SeqCst);
        self.worker.thread.kick();
        // Once this lock was acquired, the machine does not run and will not be entered.
        drop(lock(&self.machine));
    }

    fn resume(&self) {
        self.suspended.store(false, Ordering::SeqCst);
        self.ring();
    }

    fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        self.worker.thread.kick();
        *lock(&self.machine) = None;
        lock(&self.worker.queue).set_alarm(self, 0);
        self.finish(ExitStatus::Killed);
    }

    fn set_weight(&self, hundredths: u32) {
        let slice = TIME_SLICE.as_nanos() as u64 / 100 * u64::from(hundredths.clamp(MIN_WEIGHT, MAX_WEIGHT));
        self.slice.store(slice, Ordering::Relaxed);
    }

    fn collapse_pages(&self) {
        // Its own memory has them from the start, a pool does not.
        if let Some(membership) = self.region.membership() {
            membership.collapse();
        }
    }

    fn private_memory(&self) -> std::io::Result<usize> {
        lock(&self.machine).as_ref().map_or(Ok(0), VirtualMachine::private_memory)
    }

    fn is_idle(&self) -> bool {
        self.idle.load(Ordering::SeqCst)
    }

    fn watch_idle(&self, watched: bool) {
        self.idle_watched.store(watched, Ordering::SeqCst);
    }

    fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        lock(&self.machine).as_mut().ok_or(SnapshotError::NotRunning)?.snapshot()
    }

    fn end(&self) -> Option<ExitStatus> {
        lock(&self.end).clone()
    }

    fn wait_for_end(&self, timeout: Duration) {
        let waited = self.ended.wait_timeout_while(lock(&self.end), timeout, |end| end.is_none());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn clear_mailbox_ring(&self) {
        self.mailbox_ring.clear();
    }

    fn wait_for_mailbox_ring(&self, timeout: Duration) {
        self.mailbox_ring.wait(timeout);
    }

    fn usage(&self) -> Usage {
        Usage {
            time: cpu::time(self.busy_cycles.load(Ordering::Relaxed)),
            turns: self.turns.load(Ordering::Relaxed),
            overruns: self.overruns.load(Ordering::Relaxed),
        }
    }
}
