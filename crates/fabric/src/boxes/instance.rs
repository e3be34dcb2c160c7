//! A running box: its sandbox, shared by several threads.

use super::resources::RunResources;
use super::share::Share;
use crate::fair_lock::{FairLock, LockTimeout};
use crate::limits::{HUGE_PAGE_CPU_THRESHOLD, MAX_HELD_PACKETS};
use crate::processors::ReservedProcessor;
use boundary::{Message, PublishedAccount, Request};
use rustix::process::{Pid, setpriority_process};
use sandbox::{CallError, ControlHandle, CreateError, Events, ExitStatus, Sandbox, Snapshot, State, Usage};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a box ended.
#[derive(Debug)]
pub(crate) struct FinalStatus {
    /// The exit status.
    pub(crate) end: ExitStatus,
    /// Whether the end was unexpected.
    pub(crate) crashed: bool,
    /// Packets inside the box, in none of its rings, as it last reported.
    pub(crate) held: u64,
    /// What became of the others, as it published after its last turn.
    pub(crate) account: Option<PublishedAccount>,
}

/// A box from its start to its end. A box that restarts is another instance.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Locked for a request until its reply. Nothing but requests waits for it: the rest uses `control` and `events`.
    sandbox: FairLock<Sandbox>,
    control: ControlHandle,
    events: Events,
    /// Whether its end was handled.
    status_taken: AtomicBool,
    /// Whether it was asked to stop, so that its end is no crash.
    stopping: AtomicBool,
    /// Whether its rings were collapsed into huge pages.
    collapsed: AtomicBool,
    throttle: Mutex<Throttle>,
    /// Its reserved processor, until it has ended.
    core: Mutex<Option<ReservedProcessor>>,
    /// Declared after the sandbox, which must be dropped before its worker.
    resources: RunResources,
}

/// Whether a box is suspended because it used up its CPU time. It runs during a request.
#[derive(Debug, Default)]
struct Throttle {
    held: bool,
    in_call: bool,
}

impl Instance {
    pub(super) fn new(sandbox: Sandbox, resources: RunResources, core: Option<ReservedProcessor>) -> Self {
        let (control, events) = (sandbox.control_handle(), sandbox.events());
        Self {
            sandbox: FairLock::new(sandbox),
            control,
            events,
            status_taken: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            collapsed: AtomicBool::new(false),
            throttle: Mutex::default(),
            core: Mutex::new(core),
            resources,
        }
    }

    fn core(&self) -> MutexGuard<'_, Option<ReservedProcessor>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn throttle(&self) -> MutexGuard<'_, Throttle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the box.
    pub(crate) fn start(&self) -> Result<(), CreateError> {
        self.control.start()?;
        match self.processor() {
            // For a virtual machine, this pins its worker.
            Some(number) => self.control.pin(&[number]),
            None => {
                if let RunResources::Affinity(affinity) = &self.resources {
                    affinity.apply();
                }
            }
        }
        Ok(())
    }

    /// Sends a request and waits for the reply. A box that violates the mailbox protocol is killed.
    pub(crate) fn call(&self, request: &Request, time: Duration) -> Result<Vec<u8>, CallError> {
        let start = Instant::now();
        let mut sandbox = self.sandbox.lock_within(time).map_err(|LockTimeout| CallError::TimedOut)?;
        self.set_in_call(true);
        let result = sandbox.call(request, time.saturating_sub(start.elapsed()));
        self.set_in_call(false);
        drop(sandbox);
        if let Err(CallError::Channel(_) | CallError::Reply(_)) = result {
            self.control.kill();
        }
        result
    }

    /// Resumes a throttled box for a request, and suspends it again afterwards.
    fn set_in_call(&self, in_call: bool) {
        let mut throttle = self.throttle();
        throttle.in_call = in_call;
        match (throttle.held, in_call) {
            (true, true) => self.control.resume(),
            (true, false) => self.control.suspend(),
            (false, _) => {}
        }
    }

    /// The box's pending messages, at most `most`.
    pub(crate) fn events(&self, most: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        while messages.len() < most {
            match self.events.next_event() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => {
                    // The box violated the protocol; nothing more can be read.
                    self.control.kill();
                    break;
                }
            }
        }
        messages
    }

    /// Whether it is throttled.
    pub(crate) fn is_held(&self) -> bool {
        self.throttle().held
    }

    /// Throttles the box, which then only answers requests.
    pub(crate) fn hold(&self) {
        let mut throttle = self.throttle();
        throttle.held = true;
        if !throttle.in_call {
            self.control.suspend();
        }
    }

    /// Ends the throttling.
    pub(crate) fn release(&self) {
        let mut throttle = self.throttle();
        throttle.held = false;
        self.control.resume();
    }

    /// A snapshot of the box as soon as it is idle. `None` if it does not become idle in time, has ended, has sent a
    /// message, or reports that a copy would not be equivalent to a fresh installation.
    pub(crate) fn snapshot(&self, time: Duration) -> Option<Snapshot> {
        let start = Instant::now();
        let mut sandbox = self.sandbox.lock_within(time).ok()?;
        // A line printed at the start would be missing in the logs of copies. One that is printed later is still in
        // transit when the box is idle.
        if !matches!(self.events.next_event(), Ok(None)) {
            return None;
        }
        let snapshot = sandbox.snapshot(time.saturating_sub(start.elapsed())).ok()?;
        (snapshot.is_clone_safe() == Some(true)).then_some(snapshot)
    }

    /// Suspends the box, after its reply to a request in progress.
    pub(crate) fn suspend(&self) {
        let _no_request = self.sandbox.lock();
        self.control.suspend();
    }

    /// Resumes the box. Also clears the throttled state, which would otherwise never end.
    pub(crate) fn resume(&self) {
        self.release();
    }

    /// Asks the box to stop, and kills it if it does not stop in time.
    pub(crate) fn stop(&self, time: Duration) {
        self.stopping.store(true, Ordering::SeqCst);
        // A suspended box cannot receive the request.
        self.release();
        self.control.stop();
        if self.control.wait(time).is_none() {
            self.control.kill();
        }
    }

    /// Kills the box. It is then handled like a crash.
    pub(crate) fn kill(&self) {
        self.control.kill();
    }

    /// Kills the box because it is stopped or removed: this is not a crash.
    pub(crate) fn discard(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.control.kill();
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.control.state(), State::Ended(_))
    }

    /// Ends the box if it still runs, and returns how it ended, to the first caller only. Later callers get `None`.
    pub(crate) fn take_final_status(&self) -> Option<FinalStatus> {
        let (crashed, end) = match self.control.state() {
            State::Ended(end) => (end != ExitStatus::Stopped && !self.is_stopping(), end),
            _ => {
                self.control.kill();
                (false, ExitStatus::Killed)
            }
        };
        let status = FinalStatus {
            end,
            crashed,
            held: self.control.packets_held().min(MAX_HELD_PACKETS),
            account: self.control.published_account(),
        };
        // Frees the processor for the next box at once, even if other threads still hold this instance.
        *self.core() = None;
        (!self.status_taken.swap(true, Ordering::SeqCst)).then_some(status)
    }

    /// Sets its share relative to other boxes: packets per turn, the weight of a virtual machine, and the nice value of
    /// a process.
    pub(crate) fn set_share(&self, share: Share) {
        self.control.set_quantum(share.quantum);
        self.control.set_weight(share.weight);
        if let Some(process) = self.control.process_id().and_then(Pid::from_raw) {
            // Without the privilege to lower the nice value, it stays as it is.
            let _ = setpriority_process(Some(process), share.nice);
        }
    }

    /// The resources that it has used.
    pub(crate) fn usage(&self) -> Usage {
        self.control.usage()
    }

    /// Collapses its rings into huge pages, once, when the CPU time that it used shows that it is busy.
    pub(crate) fn collapse_pages(&self, used: Duration) {
        if used >= HUGE_PAGE_CPU_THRESHOLD && !self.collapsed.swap(true, Ordering::Relaxed) {
            self.control.collapse_pages();
        }
    }

    /// The number of its reserved processor.
    pub(crate) fn processor(&self) -> Option<usize> {
        self.core().as_ref().map(ReservedProcessor::number)
    }

    /// The id of its process.
    pub(crate) fn process_id(&self) -> Option<i32> {
        self.control.process_id()
    }

    /// A descriptor that becomes readable when its process ends.
    pub(crate) fn end_descriptor(&self) -> Option<OwnedFd> {
        self.control.end_descriptor()
    }
}
