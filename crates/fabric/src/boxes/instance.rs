//! A running box: its sandbox, shared by several threads.

use super::cores;
use super::resources::RunResources;
use super::share::Share;
use crate::fair_lock::{FairLock, LockTimeout};
use crate::limits::{HUGE_PAGE_CPU_THRESHOLD, MAX_HELD_PACKETS};
use crate::processors::ReservedProcessor;
use boundary::{Message, PublishedAccount, Request};
use rustix::process::{Pid, getpriority_process, setpriority_process};
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
    /// The core that ended so, if there are several.
    pub(crate) core: Option<usize>,
    /// Whether the end was unexpected.
    pub(crate) crashed: bool,
}

/// What a box that has ended left in the memory that it shared.
#[derive(Debug)]
pub(crate) struct Remains {
    /// Packets inside the box, in none of its rings, as it last reported.
    pub(crate) held: u64,
    /// What became of the others, as it published after its last turn.
    pub(crate) account: Option<PublishedAccount>,
}

/// A box from its start to its end. A box that restarts is another instance.
///
/// It has a sandbox for each of its cores. They start, are suspended and end together: if one ends, so do the others.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Locked for a request until its reply. Nothing but requests waits for it: the rest uses `cores`.
    sandboxes: FairLock<Vec<Sandbox>>,
    cores: Vec<InstanceCore>,
    /// Whether its end was handled.
    status_taken: AtomicBool,
    /// Whether it was asked to stop, so that its end is no crash.
    stopping: AtomicBool,
    /// Whether its rings were collapsed into huge pages.
    collapsed: AtomicBool,
    throttle: Mutex<Throttle>,
}

/// A core of an instance.
#[derive(Debug)]
struct InstanceCore {
    control: ControlHandle,
    events: Events,
    /// Its reserved processor, until it has ended.
    processor: Mutex<Option<ReservedProcessor>>,
    /// Declared after the sandboxes, which must be dropped before their workers.
    resources: RunResources,
}

impl InstanceCore {
    fn processor(&self) -> MutexGuard<'_, Option<ReservedProcessor>> {
        self.processor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a box is suspended because it used up its CPU time. It runs during a request.
#[derive(Debug, Default)]
struct Throttle {
    held: bool,
    in_call: bool,
}

impl Instance {
    /// An instance with these cores.
    pub(super) fn new(cores: Vec<(Sandbox, RunResources, Option<ReservedProcessor>)>) -> Self {
        let mut sandboxes = Vec::new();
        let mut of_core = |(sandbox, resources, processor): (Sandbox, _, _)| {
            let (control, events) = (sandbox.control_handle(), sandbox.events());
            sandboxes.push(sandbox);
            InstanceCore { control, events, processor: Mutex::new(processor), resources }
        };
        let cores = cores.into_iter().map(&mut of_core).collect();
        Self {
            sandboxes: FairLock::new(sandboxes),
            cores,
            status_taken: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            collapsed: AtomicBool::new(false),
            throttle: Mutex::default(),
        }
    }

    /// The handles of all cores.
    fn controls(&self) -> impl Iterator<Item = &ControlHandle> {
        self.cores.iter().map(|core| &core.control)
    }

    /// The number of its cores.
    pub(crate) fn core_count(&self) -> usize {
        self.cores.len()
    }

    fn throttle(&self) -> MutexGuard<'_, Throttle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the box.
    pub(crate) fn start(&self) -> Result<(), CreateError> {
        for core in &self.cores {
            core.control.start()?;
            let processor = core.processor().as_ref().map(ReservedProcessor::number);
            match processor {
                // For a virtual machine, this pins its worker.
                Some(number) => core.control.pin(&[number]),
                None => {
                    if let RunResources::Affinity(affinity) = &core.resources {
                        affinity.apply();
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends a request and waits for the reply. A box that violates the mailbox protocol is killed. Of several cores, all
    /// execute the request, and their replies become one.
    pub(crate) fn call(&self, request: &Request, time: Duration) -> Result<Vec<u8>, CallError> {
        let start = Instant::now();
        let mut sandboxes = self.sandboxes.lock_within(time).map_err(|LockTimeout| CallError::TimedOut)?;
        self.set_in_call(true);
        let result = cores::call(&mut sandboxes, request, time.saturating_sub(start.elapsed()));
        self.set_in_call(false);
        drop(sandboxes);
        if let Err(CallError::Channel(_) | CallError::Reply(_)) = result {
            self.kill();
        }
        result
    }

    /// Gives its ports other addresses, and each core new seeds and the time, before its first configuration.
    pub(crate) fn renew(&self, addresses: &[[u8; 6]]) -> Result<(), CreateError> {
        self.sandboxes.lock().iter().try_for_each(|sandbox| sandbox.renew(addresses))
    }

    /// Tells each of several cores which one it is, before the first configuration.
    pub(crate) fn number_cores(&self, time: Duration) -> Result<(), CallError> {
        let mut sandboxes = self.sandboxes.lock_within(time).map_err(|LockTimeout| CallError::TimedOut)?;
        cores::number(&mut sandboxes, time)
    }

    /// Resumes a throttled box for a request, and suspends it again afterwards.
    fn set_in_call(&self, in_call: bool) {
        let mut throttle = self.throttle();
        throttle.in_call = in_call;
        match (throttle.held, in_call) {
            (true, true) => self.controls().for_each(ControlHandle::resume),
            (true, false) => self.controls().for_each(ControlHandle::suspend),
            (false, _) => {}
        }
    }

    /// The pending messages of the box, at most `most` of each core, with the number of the core.
    pub(crate) fn events(&self, most: usize) -> Vec<(usize, Message)> {
        let mut messages = Vec::new();
        for (number, core) in self.cores.iter().enumerate() {
            for _ in 0..most {
                match core.events.next_event() {
                    Ok(Some(message)) => messages.push((number, message)),
                    Ok(None) => break,
                    Err(_) => {
                        // The box violated the protocol; nothing more can be read.
                        self.kill();
                        break;
                    }
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
            self.controls().for_each(ControlHandle::suspend);
        }
    }

    /// Ends the throttling.
    pub(crate) fn release(&self) {
        let mut throttle = self.throttle();
        throttle.held = false;
        self.controls().for_each(ControlHandle::resume);
    }

    /// A snapshot of the box as soon as it is idle. `None` if it does not become idle in time, has ended, has sent a
    /// message, reports that a copy would not be equivalent to a fresh installation, or has several cores.
    pub(crate) fn snapshot(&self, time: Duration) -> Option<Snapshot> {
        let start = Instant::now();
        let mut sandboxes = self.sandboxes.lock_within(time).ok()?;
        let ([sandbox], [core]) = (&mut sandboxes[..], &self.cores[..]) else { return None };
        // A line printed at the start would be missing in the logs of copies. One that is printed later is still in
        // transit when the box is idle.
        if !matches!(core.events.next_event(), Ok(None)) {
            return None;
        }
        let snapshot = sandbox.snapshot(time.saturating_sub(start.elapsed())).ok()?;
        (snapshot.is_clone_safe() == Some(true)).then_some(snapshot)
    }

    /// Suspends the box, after its reply to a request in progress.
    pub(crate) fn suspend(&self) {
        let _no_request = self.sandboxes.lock();
        self.controls().for_each(ControlHandle::suspend);
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
        let until = Instant::now() + time;
        self.controls().for_each(ControlHandle::stop);
        for control in self.controls() {
            if control.wait(until.saturating_duration_since(Instant::now())).is_none() {
                control.kill();
            }
        }
    }

    /// Kills the box. It is then handled like a crash.
    pub(crate) fn kill(&self) {
        self.controls().for_each(ControlHandle::kill);
    }

    /// Kills the box because it is stopped or removed: this is not a crash.
    pub(crate) fn discard(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.kill();
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Whether it has ended: whether one of its cores has.
    pub(crate) fn has_ended(&self) -> bool {
        self.controls().any(|control| matches!(control.state(), State::Ended(_)))
    }

    /// Ends the box if it still runs, and returns how it ended, to the first caller only. Later callers get `None`. Of several
    /// cores, the one that ended first says how.
    pub(crate) fn take_final_status(&self) -> Option<FinalStatus> {
        let ends = |control: &ControlHandle| match control.state() {
            State::Ended(end) => Some(end),
            _ => None,
        };
        let ended: Vec<Option<ExitStatus>> = self.controls().map(ends).collect();
        let is_crash = |end: &ExitStatus| *end != ExitStatus::Stopped;
        // A core that crashed may have ended while others were told to.
        let first = ended.iter().enumerate().filter_map(|(core, end)| Some((core, end.as_ref()?)));
        let first = first.min_by_key(|(_, end)| match end {
            ExitStatus::Crashed(_) | ExitStatus::Vanished { .. } => 0,
            ExitStatus::Killed => 1,
            ExitStatus::Stopped => 2,
        });
        let (crashed, end, core) = match first {
            Some((core, end)) => (is_crash(end) && !self.is_stopping(), end.clone(), core),
            None => (false, ExitStatus::Killed, 0),
        };
        let running = self.controls().zip(&ended).filter(|(_, end)| end.is_none());
        running.for_each(|(control, _)| control.kill());
        let status = FinalStatus { end, core: (self.cores.len() > 1).then_some(core), crashed };
        // Frees the processors for the next box at once, even if other threads still hold this instance.
        self.cores.iter().for_each(|core| *core.processor() = None);
        (!self.status_taken.swap(true, Ordering::SeqCst)).then_some(status)
    }

    /// What it left when it ended.
    pub(crate) fn remains(&self) -> Remains {
        let held = |control: &ControlHandle| control.packets_held().min(MAX_HELD_PACKETS);
        let accounts = self.controls().filter_map(ControlHandle::published_account);
        Remains { held: self.controls().map(held).sum(), account: accounts.reduce(cores::add_account) }
    }

    /// Sets its share relative to other boxes: packets per turn, the weight of a virtual machine, and the nice value of
    /// a process, which counts from this process's own.
    pub(crate) fn set_share(&self, share: Share) {
        let own = getpriority_process(None).unwrap_or_default();
        for control in self.controls() {
            control.set_quantum(share.quantum);
            control.set_weight(share.weight);
            if let Some(process) = control.process_id().and_then(Pid::from_raw) {
                // Without the privilege to lower the nice value, it stays as it is.
                let _ = setpriority_process(Some(process), (own + share.nice).clamp(-20, 19));
            }
        }
    }

    /// The resources that it has used, in all cores.
    pub(crate) fn usage(&self) -> Usage {
        self.controls().map(ControlHandle::usage).fold(Usage::default(), |sum, core| Usage {
            time: sum.time + core.time,
            turns: sum.turns + core.turns,
            overruns: sum.overruns + core.overruns,
        })
    }

    /// The processor time of each core, if there are several.
    pub(crate) fn core_times(&self) -> Vec<Duration> {
        match &self.cores[..] {
            [_] => Vec::new(),
            cores => cores.iter().map(|core| core.control.usage().time).collect(),
        }
    }

    /// Collapses its rings into huge pages, once, when the CPU time that it used shows that it is busy.
    pub(crate) fn collapse_pages(&self, used: Duration) {
        if used >= HUGE_PAGE_CPU_THRESHOLD && !self.collapsed.swap(true, Ordering::Relaxed) {
            self.controls().for_each(ControlHandle::collapse_pages);
        }
    }

    /// The number of the reserved processor of its first core.
    pub(crate) fn processor(&self) -> Option<usize> {
        self.cores.first().and_then(|core| core.processor().as_ref().map(ReservedProcessor::number))
    }

    /// The ids of the processes of its cores.
    pub(crate) fn process_ids(&self) -> Vec<i32> {
        self.controls().filter_map(ControlHandle::process_id).collect()
    }

    /// Descriptors that become readable when its processes end.
    pub(crate) fn end_descriptors(&self) -> Vec<OwnedFd> {
        self.controls().filter_map(ControlHandle::end_descriptor).collect()
    }
}
