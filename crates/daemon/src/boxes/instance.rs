//! A box that runs: its sandbox, for several threads.

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

/// How long a caller sleeps between looks whether another one is done with the box.
const NAP: Duration = Duration::from_micros(200);

/// What is seen of a box without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It has not ended.
    Runs,
    /// It has.
    Ended,
    /// Somebody talks to it.
    Busy,
}

/// An end.
#[derive(Debug)]
pub(crate) struct Settled {
    /// How it ended.
    pub(crate) end: ExitStatus,
    /// Whether nobody wished for that.
    pub(crate) crashed: bool,
    /// Packets that were in it, in no ring, as it said last.
    pub(crate) held: u64,
}

/// A box from its start to its end. A box that is made anew is another instance.
#[derive(Debug)]
pub(crate) struct Instance {
    sandbox: Mutex<Sandbox>,
    remote: ControlHandle,
    /// Whether its end was dealt with.
    settled: AtomicBool,
    /// Whether it was told to stop, so that its end is no crash.
    stopping: AtomicBool,
    /// Whether its rings were gathered into large pages.
    gathered: AtomicBool,
    /// Whether it stands still because it used up its time.
    held: AtomicBool,
    /// The processor that it has for itself, until it has ended.
    core: Mutex<Option<ReservedProcessor>>,
    /// After the sandbox, which must be gone before its worker.
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

    /// The sandbox, when nobody else has it.
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
                None => std::thread::sleep(NAP),
            }
        }
    }

    /// Lets it begin.
    pub(crate) fn start(&self) -> Result<(), CreateError> {
        let mut sandbox = self.lock();
        sandbox.start()?;
        match self.processor() {
            // It is the worker that is kept to a machine's.
            Some(number) => self.remote.pin(&[number]),
            None => {
                if let Keeps::Share(affinity) = &self.keeps {
                    affinity.apply();
                }
            }
        }
        Ok(())
    }

    /// Sends a request and waits for the reply. A box that breaks the mailbox's protocol is ended.
    pub(crate) fn call(&self, request: &Request, time: Duration) -> Result<Vec<u8>, CallError> {
        let start = Instant::now();
        let mut sandbox = self.lock_within(time)?;
        // One that is held for its use of time is let go to answer.
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

    /// What the box wants to say, at most so many messages; nothing while somebody else talks to it.
    pub(crate) fn events(&self, most: usize) -> Vec<Message> {
        let Some(mut sandbox) = self.try_lock() else { return Vec::new() };
        let mut messages = Vec::new();
        while messages.len() < most {
            match sandbox.event() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => {
                    // It broke the protocol, so that nothing more can be read.
                    drop(sandbox);
                    self.remote.kill();
                    break;
                }
            }
        }
        messages
    }

    /// Whether it is held.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    /// Makes it stand still for a while, but for answers, unless somebody talks to it.
    pub(crate) fn hold(&self) {
        if let Some(mut sandbox) = self.try_lock() {
            sandbox.suspend();
            self.held.store(true, Ordering::SeqCst);
        }
    }

    /// Lets it go on that was held, unless somebody talks to it.
    pub(crate) fn release(&self) {
        if let Some(mut sandbox) = self.try_lock() {
            self.held.store(false, Ordering::SeqCst);
            sandbox.resume();
        }
    }

    /// What it is as soon as it rests, if it does in time, has said nothing, and says that a copy of it is as good as a
    /// box that is installed anew.
    pub(crate) fn snapshot(&self, time: Duration) -> Option<Snapshot> {
        let (start, mut sandbox, mut nap) = (Instant::now(), self.lock(), NAP);
        loop {
            // A line that is said at the start would be missing in the logs of copies.
            if !matches!(sandbox.event(), Ok(None)) {
                return None;
            }
            match sandbox.snapshot() {
                Ok(snapshot) if snapshot.is_clone_safe() == Some(true) => return Some(snapshot),
                Ok(snapshot) if snapshot.is_clone_safe() == Some(false) => return None,
                Ok(_) | Err(SnapshotError::Busy | SnapshotError::NotRunning) if start.elapsed() < time => {
                    // To look holds the box up: a slow one comes to rest only if it is left alone for longer.
                    std::thread::sleep(nap);
                    nap *= 2;
                }
                _ => return None,
            }
        }
    }

    /// Makes it stand still.
    pub(crate) fn suspend(&self) {
        self.lock().suspend();
    }

    /// Lets it go on, also if it was held when it was made to stand still: else nobody would hold it again.
    pub(crate) fn resume(&self) {
        let mut sandbox = self.lock();
        self.held.store(false, Ordering::SeqCst);
        sandbox.resume();
    }

    /// Wishes it to stop, and ends it if it doesn't in time.
    pub(crate) fn stop(&self, time: Duration) {
        self.stopping.store(true, Ordering::SeqCst);
        let start = Instant::now();
        if let Ok(mut sandbox) = self.lock_within(time) {
            // One that stands still can't hear the wish.
            sandbox.resume();
            sandbox.stop();
            drop(sandbox);
            while start.elapsed() < time {
                if self.look() == Look::Ended {
                    return;
                }
                std::thread::sleep(NAP);
            }
        }
        self.remote.kill();
    }

    /// Ends it at once. What follows is as after a crash.
    pub(crate) fn kill(&self) {
        self.remote.kill();
    }

    /// Ends it at once, because it is to be gone.
    pub(crate) fn end_for_good(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.remote.kill();
    }

    /// Whether it was told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Whether it has ended, as far as that can be seen without waiting.
    pub(crate) fn look(&self) -> Look {
        match self.try_lock().map(|mut sandbox| sandbox.state()) {
            None => Look::Busy,
            Some(State::Ended(_)) => Look::Ended,
            Some(_) => Look::Runs,
        }
    }

    /// How it ended, once: for whoever deals with it. One that runs still is ended. Nothing: somebody has dealt with
    /// it.
    pub(crate) fn settle(&self) -> Option<Settled> {
        // Whoever talks to a box that has ended hears so within milliseconds.
        let mut sandbox = self.lock();
        let (crashed, end) = match sandbox.state() {
            State::Ended(end) => (end != ExitStatus::Stopped && !self.is_stopping(), end),
            _ => {
                sandbox.kill();
                (false, ExitStatus::Killed)
            }
        };
        let settled = Settled { end, crashed, held: sandbox.held().min(MAX_HELD_PACKETS) };
        // Whoever still looks at it doesn't keep its processor from the next one.
        *self.core() = None;
        (!self.settled.swap(true, Ordering::SeqCst)).then_some(settled)
    }

    /// Sets its share beside others: the packets of one turn, and for a process of its own how nice it is.
    pub(crate) fn set_share(&self, share: Share) {
        let sandbox = self.lock();
        sandbox.set_quantum(share.quantum);
        sandbox.set_weight(share.weight);
        if let Some(process) = sandbox.process_id().and_then(Pid::from_raw) {
            // Without the privilege to be less nice than others it stays as nice as they are.
            let _ = setpriority_process(Some(process), share.nice);
        }
    }

    /// What it has used; nothing while somebody talks to it.
    pub(crate) fn usage(&self) -> Option<Usage> {
        Some(self.try_lock()?.usage())
    }

    /// Gathers its rings into large pages, once, when it has shown by what it used that it has much to do.
    pub(crate) fn collapse_pages(&self, used: Duration) {
        if used >= HUGE_PAGE_CPU_THRESHOLD && !self.gathered.swap(true, Ordering::Relaxed) {
            self.remote.collapse_pages();
        }
    }

    /// The number of the processor that it has for itself.
    pub(crate) fn processor(&self) -> Option<usize> {
        self.core().as_ref().map(ReservedProcessor::number)
    }

    /// The number of its process.
    pub(crate) fn process_id(&self) -> Option<i32> {
        self.remote.process_id()
    }

    /// What becomes readable when its process ends.
    pub(crate) fn end_descriptor(&self) -> Option<OwnedFd> {
        self.lock().end_descriptor()
    }
}
