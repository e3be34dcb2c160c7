//! A running box: its sandbox, shared by several threads.

use super::forge::{Keeps, Share};
use crate::limits::{HUGE_PAGE_CPU_THRESHOLD, MAX_HELD_PACKETS};
use crate::processors::ReservedProcessor;
use boundary::{Message, Request};
use rustix::process::{Pid, setpriority_process};
use sandbox::{
    CallError, ControlHandle, CreateError, ExitStatus, Sandbox, Snapshot, SnapshotError, State, Usage,
};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Poll interval of a caller that waits for another thread's request to the box.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// The state of a box as far as it can be seen without blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It runs.
    Runs,
    /// It has ended.
    Ended,
    /// Another thread is talking to it.
    Busy,
}

/// How a box ended.
#[derive(Debug)]
pub(crate) struct Settled {
    /// The exit status.
    pub(crate) end: ExitStatus,
    /// Whether the end was unexpected.
    pub(crate) crashed: bool,
    /// Packets inside the box, in none of its rings, as it last reported.
    pub(crate) held: u64,
}

/// A box from its start to its end. A box that restarts is another instance.
#[derive(Debug)]
pub(crate) struct Instance {
    sandbox: Mutex<Sandbox>,
    remote: ControlHandle,
    /// Whether its end was handled.
    settled: AtomicBool,
    /// Whether it was told to stop, so that its end is no crash.
    stopping: AtomicBool,
    /// Whether its rings were collapsed into huge pages.
    gathered: AtomicBool,
    /// Whether it is throttled because it used up its processor time.
    held: AtomicBool,
    /// Its reserved processor, until it has ended.
    core: Mutex<Option<ReservedProcessor>>,
    /// Declared after the sandbox, which must be dropped before its worker.
    keeps: Keeps,
}

impl Instance {
    pub(super) fn new(sandbox: Sandbox, keeps: Keeps, core: Option<ReservedProcessor>) -> Self {
        let remote = sandbox.control_handle();
        Self {
            sandbox: Mutex::new(sandbox),
            remote,
            settled: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            gathered: AtomicBool::new(false),
            held: AtomicBool::new(false),
            core: Mutex::new(core),
            keeps,
        }
    }

    fn core(&self) -> MutexGuard<'_, Option<ReservedProcessor>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Sandbox> {
        self.sandbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sandbox, unless another thread uses it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Sandbox>> {
        match self.sandbox.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn lock_within(&self, time: Duration) -> Result<MutexGuard<'_, Sandbox>, CallError> {
        let start = Instant::now();
        loop {
            match self.try_lock() {
                Some(guard) => return Ok(guard),
                None if start.elapsed() >= time => return Err(CallError::TimedOut),
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Starts the box.
    pub(crate) fn start(&self) -> Result<(), CreateError> {
        let mut sandbox = self.lock();
        sandbox.start()?;
        match self.processor() {
            // For a virtual machine, this pins its worker.
            Some(number) => self.remote.pin(&[number]),
            None => {
                if let Keeps::Share(affinity) = &self.keeps {
                    affinity.apply();
                }
            }
        }
        Ok(())
    }

    /// Sends a request and waits for the reply. A box that violates the mailbox protocol is killed.
    pub(crate) fn call(&self, request: &Request, time: Duration) -> Result<Vec<u8>, CallError> {
        let start = Instant::now();
        let mut sandbox = self.lock_within(time)?;
        // A throttled box is resumed for its reply.
        let held = self.is_held();
        if held {
            sandbox.resume();
        }
        let result = sandbox.call(request, time.saturating_sub(start.elapsed()));
        if held {
            sandbox.suspend();
        }
        drop(sandbox);
        if let Err(CallError::Channel(_) | CallError::Reply(_)) = result {
            self.remote.kill();
        }
        result
    }

    /// The box's pending messages, at most `most`. Empty while another thread talks to it.
    pub(crate) fn events(&self, most: usize) -> Vec<Message> {
        let Some(mut sandbox) = self.try_lock() else { return Vec::new() };
        let mut messages = Vec::new();
        while messages.len() < most {
            match sandbox.event() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => {
                    // The box violated the protocol; nothing more can be read.
                    drop(sandbox);
                    self.remote.kill();
                    break;
                }
            }
        }
        messages
    }

    /// Whether it is throttled.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    /// Throttles the box, which then only answers requests. Does nothing while another thread talks to it.
    pub(crate) fn hold(&self) {
        if let Some(mut sandbox) = self.try_lock() {
            sandbox.suspend();
            self.held.store(true, Ordering::SeqCst);
        }
    }

    /// Ends the throttling. Does nothing while another thread talks to it.
    pub(crate) fn release(&self) {
        if let Some(mut sandbox) = self.try_lock() {
            self.held.store(false, Ordering::SeqCst);
            sandbox.resume();
        }
    }

    /// A snapshot of the box as soon as it is idle. `None` if it does not become idle in time, has sent a message, or
    /// reports that a copy would not be equivalent to a fresh installation.
    pub(crate) fn snapshot(&self, time: Duration) -> Option<Snapshot> {
        let (start, mut sandbox, mut nap) = (Instant::now(), self.lock(), POLL_INTERVAL);
        loop {
            // A line printed at the start would be missing in the logs of copies.
            if !matches!(sandbox.event(), Ok(None)) {
                return None;
            }
            match sandbox.snapshot() {
                Ok(snapshot) if snapshot.is_clone_safe() == Some(true) => return Some(snapshot),
                Ok(snapshot) if snapshot.is_clone_safe() == Some(false) => return None,
                Ok(_) | Err(SnapshotError::Busy | SnapshotError::NotRunning) if start.elapsed() < time => {
                    // Each look interrupts the box: a slow one becomes idle only if it is left alone for longer.
                    std::thread::sleep(nap);
                    nap *= 2;
                }
                _ => return None,
            }
        }
    }

    /// Suspends the box.
    pub(crate) fn suspend(&self) {
        self.lock().suspend();
    }

    /// Resumes the box. Also clears the throttled state, which would otherwise never end.
    pub(crate) fn resume(&self) {
        let mut sandbox = self.lock();
        self.held.store(false, Ordering::SeqCst);
        sandbox.resume();
    }

    /// Asks the box to stop, and kills it if it does not stop in time.
    pub(crate) fn stop(&self, time: Duration) {
        self.stopping.store(true, Ordering::SeqCst);
        let start = Instant::now();
        if let Ok(mut sandbox) = self.lock_within(time) {
            // A suspended box cannot receive the request.
            sandbox.resume();
            sandbox.stop();
            drop(sandbox);
            while start.elapsed() < time {
                if self.look() == Look::Ended {
                    return;
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        self.remote.kill();
    }

    /// Kills the box. It is then handled like a crash.
    pub(crate) fn kill(&self) {
        self.remote.kill();
    }

    /// Kills the box because it is stopped or removed: this is not a crash.
    pub(crate) fn end_for_good(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.remote.kill();
    }

    /// Whether it was told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// The box's state, without blocking.
    pub(crate) fn look(&self) -> Look {
        match self.try_lock().map(|mut sandbox| sandbox.state()) {
            None => Look::Busy,
            Some(State::Ended(_)) => Look::Ended,
            Some(_) => Look::Runs,
        }
    }

    /// Ends the box if it still runs, and returns how it ended, to the first caller only. Later callers get `None`.
    pub(crate) fn settle(&self) -> Option<Settled> {
        // A thread that talks to a box that has ended notices within milliseconds, so this lock is short.
        let mut sandbox = self.lock();
        let (crashed, end) = match sandbox.state() {
            State::Ended(end) => (end != ExitStatus::Stopped && !self.is_stopping(), end),
            _ => {
                sandbox.kill();
                (false, ExitStatus::Killed)
            }
        };
        let settled = Settled { end, crashed, held: sandbox.held().min(MAX_HELD_PACKETS) };
        // Frees the processor for the next box at once, even if other threads still hold this instance.
        *self.core() = None;
        (!self.settled.swap(true, Ordering::SeqCst)).then_some(settled)
    }

    /// Sets its share relative to other boxes: packets per turn, the weight of a virtual machine, and the nice value of
    /// a process.
    pub(crate) fn set_share(&self, share: Share) {
        let sandbox = self.lock();
        sandbox.set_quantum(share.quantum);
        sandbox.set_weight(share.weight);
        if let Some(process) = sandbox.process_id().and_then(Pid::from_raw) {
            // Without the privilege to lower the nice value, it stays as it is.
            let _ = setpriority_process(Some(process), share.nice);
        }
    }

    /// The resources that it has used. `None` while another thread talks to it.
    pub(crate) fn usage(&self) -> Option<Usage> {
        Some(self.try_lock()?.usage())
    }

    /// Collapses its rings into huge pages, once, when the processor time that it used shows that it is busy.
    pub(crate) fn collapse_pages(&self, used: Duration) {
        if used >= HUGE_PAGE_CPU_THRESHOLD && !self.gathered.swap(true, Ordering::Relaxed) {
            self.remote.collapse_pages();
        }
    }

    /// The number of its reserved processor.
    pub(crate) fn processor(&self) -> Option<usize> {
        self.core().as_ref().map(ReservedProcessor::number)
    }

    /// The id of its process.
    pub(crate) fn process_id(&self) -> Option<i32> {
        self.remote.process_id()
    }

    /// A descriptor that becomes readable when its process ends.
    pub(crate) fn end_descriptor(&self) -> Option<OwnedFd> {
        self.lock().end_descriptor()
    }
}
