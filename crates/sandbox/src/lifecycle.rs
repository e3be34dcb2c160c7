//! The lifecycle of a box: its state, from any thread, whether or not a request is in progress.

use crate::error::{CreateError, SystemError};
use crate::lock::lock;
use crate::shared_region::SharedRegion;
use crate::snapshot::{Snapshot, SnapshotError};
use boundary::{BoxState, CrashReport, PublishedAccount};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often a box may become busy again between becoming idle and being suspended, or wake the waiting thread in vain,
/// before no copy is made. Stops a box that rings without end from keeping that thread's processor busy until the time
/// limit.
const MAX_SNAPSHOT_ATTEMPTS: u32 = 64;

/// How a box ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It stopped on request.
    Stopped,
    /// It was killed.
    Killed,
    /// It could not continue, and left a report.
    Crashed(Box<CrashReport>),
    /// It ended without a report.
    Vanished {
        /// A process's exit status, or the negated number of the signal that ended it; 0 for a virtual machine.
        status: i32,
    },
}

impl ExitStatus {
    /// The end of a crashed box. `address` is the address of its last page fault.
    pub(crate) fn crashed(region: &SharedRegion, address: u64) -> Self {
        match region.crash().ok().and_then(|page| page.report()) {
            Some(mut report) => {
                if report.address == 0 {
                    report.address = address;
                }
                Self::Crashed(Box::new(report))
            }
            None => Self::Vanished { status: 0 },
        }
    }
}

/// The state of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not been started.
    Created,
    /// It runs, or is idle.
    Running,
    /// It was suspended.
    Suspended,
    /// It has ended.
    Ended(ExitStatus),
}

/// The resources that a box has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time.
    pub time: Duration,
    /// Turns, if a worker runs it.
    pub turns: u64,
    /// Turns that the worker had to end.
    pub overruns: u64,
}

/// What runs a box: one contract for virtual machines, processes and threads. Every method may be called from any
/// thread.
pub(crate) trait Backend: Send + Sync + std::fmt::Debug {
    /// Notifies the box of work.
    fn ring(&self);
    /// Starts it.
    fn start(&self) -> Result<(), CreateError>;
    /// Suspends it. When this returns, it does not run.
    fn suspend(&self);
    /// Resumes it.
    fn resume(&self);
    /// Kills it.
    fn kill(&self);
    /// How it ended, if it has ended.
    fn end(&self) -> Option<ExitStatus>;
    /// Waits until it has ended, at most for `timeout`. It may return early.
    fn wait_for_end(&self, timeout: Duration);
    /// Forgets that it rang for its mailbox.
    fn clear_mailbox_ring(&self);
    /// Waits until it has rung for its mailbox since that was cleared, or has ended, at most for `timeout`. It may return
    /// early, and a hostile box can end every wait.
    fn wait_for_mailbox_ring(&self, timeout: Duration);
    /// Pins its process, if it has one, to these processors.
    fn pin(&self, _processors: &[usize]) {}
    /// Sets its share among the boxes of a worker.
    fn set_weight(&self, _hundredths: u32) {}
    /// Collapses rings and buffers into huge pages, unless they have huge pages from the start.
    fn collapse_pages(&self) {}
    /// The resources that it has used.
    fn usage(&self) -> Usage;
    /// Bytes of its private memory.
    fn private_memory(&self) -> std::io::Result<usize>;
    /// Whether it is idle: it sleeps at a point where a copy of it can continue. A hostile box may lie, and harms its own
    /// copies. A box that cannot be copied may always be.
    fn is_idle(&self) -> bool {
        true
    }
    /// Sets whether it rings for its mailbox whenever it becomes idle.
    fn watch_idle(&self, _watched: bool) {}
    /// Its complete state. It must be suspended.
    fn snapshot(&self) -> Result<Snapshot, SnapshotError>;
    /// A descriptor that becomes readable when its process ends, if it has one.
    fn end_descriptor(&self) -> Option<OwnedFd> {
        None
    }
    /// The id of its process, if it has one.
    fn process_id(&self) -> Option<i32> {
        None
    }
}

/// The state of a box and what runs it. The mailbox is apart, so that a request in progress blocks nothing here.
#[derive(Debug)]
struct Lifecycle {
    backend: Arc<dyn Backend>,
    region: Arc<SharedRegion>,
    /// What was last known: a box that runs or is suspended may have ended since. Held while the box is suspended, resumed
    /// or copied, so that these follow one another.
    state: Mutex<State>,
}

/// Wakes a box after work was put into its rings.
#[derive(Clone, Debug)]
pub struct Doorbell(Arc<dyn Backend>);

impl Doorbell {
    /// Notifies the box of work.
    pub fn ring(&self) {
        self.0.ring();
    }
}

/// Observes and controls a box from any thread, also while another thread waits for its reply.
#[derive(Clone, Debug)]
pub struct ControlHandle(Arc<Lifecycle>);

impl ControlHandle {
    pub(crate) fn new(backend: Arc<dyn Backend>, region: Arc<SharedRegion>) -> Self {
        Self(Arc::new(Lifecycle { backend, region, state: Mutex::new(State::Created) }))
    }

    /// Its state, brought up to date.
    fn current(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.0.state);
        if let (State::Running | State::Suspended, Some(end)) = (&*state, self.0.backend.end()) {
            *state = State::Ended(end);
        }
        state
    }

    /// What the box is doing.
    pub fn state(&self) -> State {
        self.current().clone()
    }

    /// Starts a new box. A box that was started already is left as it is.
    pub fn start(&self) -> Result<(), CreateError> {
        let mut state = self.current();
        if *state == State::Created {
            self.0.backend.start()?;
            *state = State::Running;
        }
        Ok(())
    }

    /// Suspends a running box. When this returns, it does not run.
    pub fn suspend(&self) {
        let mut state = self.current();
        if *state == State::Running {
            self.0.backend.suspend();
            *state = State::Suspended;
        }
    }

    /// Lets a suspended box continue.
    pub fn resume(&self) {
        let mut state = self.current();
        if *state == State::Suspended {
            *state = State::Running;
            self.0.backend.resume();
        }
    }

    /// Asks the box to stop. It may not: see [`kill`](Self::kill).
    pub fn stop(&self) {
        if let Ok(status) = self.0.region.status() {
            status.set_stop(true);
        }
        self.0.backend.ring();
    }

    /// Ends the box at once. A caller that waits for its reply gets [`CallError::Ended`](crate::CallError::Ended).
    pub fn kill(&self) {
        // Before the lock: a thread that suspends the box holds that until the box has given way.
        if self.0.backend.end().is_none() {
            self.0.backend.kill();
        }
        let mut state = lock(&self.0.state);
        if !matches!(*state, State::Ended(_)) {
            *state = State::Ended(self.0.backend.end().unwrap_or(ExitStatus::Killed));
        }
    }

    /// Waits until the box has ended, at most for `timeout`. Returns how it ended; `None` if it has not ended, and at
    /// once if it was never started.
    pub fn wait(&self, timeout: Duration) -> Option<ExitStatus> {
        if matches!(self.state(), State::Running | State::Suspended) {
            self.0.backend.wait_for_end(timeout);
        }
        match self.state() {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Forgets that the box rang for its mailbox. Only the thread that uses the mailbox may do so.
    pub(crate) fn clear_mailbox_ring(&self) {
        self.0.backend.clear_mailbox_ring();
    }

    /// Waits until the box has rung for its mailbox since that was cleared, or has ended, at most for `timeout`. It may
    /// return early, and a hostile box can end every wait.
    pub(crate) fn wait_for_mailbox_ring(&self, timeout: Duration) {
        self.0.backend.wait_for_mailbox_ring(timeout);
    }

    /// Copies the box as soon as it is idle, at most after `timeout`. Only the thread that uses the mailbox may call this.
    pub(crate) fn snapshot(&self, timeout: Duration) -> Result<Snapshot, SnapshotError> {
        let start = Instant::now();
        for _ in 0..MAX_SNAPSHOT_ATTEMPTS {
            match self.copy_if_idle() {
                Err(SnapshotError::NotIdle) => {}
                result => return result,
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            self.wait_until_idle(left);
        }
        Err(SnapshotError::NotIdle)
    }

    /// Waits until the box is idle or has ended, at most for `timeout`. It may return early.
    fn wait_until_idle(&self, timeout: Duration) {
        let backend = &self.0.backend;
        backend.watch_idle(true);
        backend.clear_mailbox_ring();
        // After that: a box that becomes idle, or ends, from here on ends the wait.
        if !backend.is_idle() && backend.end().is_none() {
            backend.wait_for_mailbox_ring(timeout);
        }
        backend.watch_idle(false);
    }

    /// If the box is idle, suspends it if it runs, copies it, and lets it continue.
    fn copy_if_idle(&self) -> Result<Snapshot, SnapshotError> {
        let (state, backend) = (self.current(), &self.0.backend);
        let copy = || match backend.is_idle() {
            true => backend.snapshot(),
            false => Err(SnapshotError::NotIdle),
        };
        match *state {
            // Not interrupted in vain.
            State::Running if !backend.is_idle() => Err(SnapshotError::NotIdle),
            State::Running => {
                backend.suspend();
                let snapshot = match backend.end() {
                    None => copy(),
                    Some(_) => Err(SnapshotError::NotRunning),
                };
                backend.resume();
                snapshot
            }
            State::Suspended => copy(),
            State::Created | State::Ended(_) => Err(SnapshotError::NotRunning),
        }
    }

    /// Whether the box reports that it serves its mailbox.
    pub fn is_ready(&self) -> bool {
        self.0.region.status().is_ok_and(|status| status.state() == Some(BoxState::Ready))
    }

    /// Packets inside the box, in none of its rings, as it last reported.
    pub fn packets_held(&self) -> u64 {
        self.0.region.status().map_or(0, |status| status.packets_held())
    }

    /// What became of its packets up to its last turn, as it published.
    pub fn published_account(&self) -> Option<PublishedAccount> {
        self.0.region.status().ok()?.published_account()
    }

    /// The resources that the box has used.
    pub fn usage(&self) -> Usage {
        self.0.backend.usage()
    }

    /// Sets the number of packets after which the box ends its turn, which is its weight relative to others. 0: it ends
    /// its turn when it is idle. A box that ignores this is preempted.
    pub fn set_quantum(&self, packets: u32) {
        if let Ok(status) = self.0.region.status() {
            status.set_quantum(packets);
        }
    }

    /// Sets the box's share of its worker's time, in hundredths of the default, among boxes that do not end their turns
    /// on their own. The kernel divides the time of processes; their priority is set by the creator of the box.
    pub fn set_weight(&self, hundredths: u32) {
        self.0.backend.set_weight(hundredths);
    }

    /// The id of the box's process, while it has one.
    pub fn process_id(&self) -> Option<i32> {
        self.0.backend.process_id()
    }

    /// A descriptor (pidfd) that becomes readable when the box's process ends, while it has one. For a virtual machine
    /// [`Settings::exit_event`](crate::Settings::exit_event) rings.
    pub fn end_descriptor(&self) -> Option<OwnedFd> {
        self.0.backend.end_descriptor()
    }

    /// Pins the box's process to these processors, once it was started. If the kernel refuses, it may run anywhere:
    /// slower, but correct. A virtual machine runs where its worker runs.
    pub fn pin(&self, processors: &[usize]) {
        self.0.backend.pin(processors);
    }

    /// Collapses the touched pages of the box's rings and buffers into huge pages, if the kernel has them. This is for
    /// a busy box in a process: it saves the box and the switch address translation costs with every packet. Virtual
    /// machines have huge pages from the start.
    ///
    /// It takes up to a millisecond per 2 MB, during which packets in these pages may be delayed.
    pub fn collapse_pages(&self) {
        self.0.backend.collapse_pages();
    }

    /// Bytes of the box's private memory: variables, stack, the touched part of its heap, and page tables. This
    /// excludes the image, the region shared with the host, and what the kernel allocates to run it. A box that has
    /// ended has none.
    ///
    /// It reads `/proc`, so it is too slow to be called per packet.
    pub fn private_memory(&self) -> Result<usize, SystemError> {
        let system = |cause| SystemError { action: "read a box's memory usage", cause };
        self.0.backend.private_memory().map_err(system)
    }

    /// The doorbell that wakes the box.
    pub fn doorbell(&self) -> Doorbell {
        Doorbell(self.0.backend.clone())
    }
}
