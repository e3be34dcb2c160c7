//! A box, from creation to end.

use crate::error::{CreateError, SystemError};
use crate::mailbox::{CallError, Mailbox};
use crate::shared_region::{HostPort, SharedRegion};
use crate::snapshot::{Snapshot, SnapshotError};
use boundary::{BoxState, CrashReport, Diagnostic, Message, Reply, Request};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a waiting caller polls for a reply without yielding the processor.
const SPIN_TIME: Duration = Duration::from_micros(250);

/// How long it polls in total before it sleeps between polls.
const YIELD_TIME: Duration = Duration::from_millis(2);

/// How long it sleeps between polls.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

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

/// What runs a box: one contract for virtual machines and processes.
pub(crate) trait Backend: Send + Sync + std::fmt::Debug {
    /// Notifies the box of work.
    fn ring(&self);
    /// Starts it.
    fn start(&self) -> Result<(), CreateError>;
    /// Suspends it.
    fn suspend(&self);
    /// Resumes it.
    fn resume(&self);
    /// Kills it.
    fn kill(&self);
    /// How it ended, if it has ended.
    fn end(&self) -> Option<ExitStatus>;
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

/// Wakes a box after work was put into its rings.
#[derive(Clone, Debug)]
pub struct Doorbell(Arc<dyn Backend>);

impl Doorbell {
    /// Notifies the box of work.
    pub fn ring(&self) {
        self.0.ring();
    }
}

/// Controls a box from any thread, with operations that need no reply of the box. They also work while another thread
/// waits for its reply.
#[derive(Clone, Debug)]
pub struct ControlHandle(Arc<dyn Backend>);

impl ControlHandle {
    /// Kills the box. A thread that waits for its reply gets an error.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// The id of the box's process, while it has one.
    pub fn process_id(&self) -> Option<i32> {
        self.0.process_id()
    }

    /// Pins the box's process to these processors, once it was started. If the kernel refuses, it may run anywhere:
    /// slower, but correct. A virtual machine runs where its worker runs.
    pub fn pin(&self, processors: &[usize]) {
        self.0.pin(processors);
    }

    /// Collapses the touched pages of the box's rings and buffers into huge pages, if the kernel has them. This is for
    /// a busy box in a process: it saves the box and the switch address translation costs with every packet. Virtual
    /// machines have huge pages from the start.
    ///
    /// It takes up to a millisecond per 2 MB, during which packets in these pages may be delayed.
    pub fn collapse_pages(&self) {
        self.0.collapse_pages();
    }
}

/// A box. Dropping it kills it.
#[derive(Debug)]
pub struct Sandbox {
    backend: Arc<dyn Backend>,
    mailbox: Mailbox,
    ports: Vec<Option<HostPort>>,
    region: Arc<SharedRegion>,
    /// After `start` and before the end: running or suspended.
    state: State,
}

impl Sandbox {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        region: Arc<SharedRegion>,
        mailbox: Mailbox,
        ports: Vec<HostPort>,
    ) -> Self {
        Self { backend, mailbox, ports: ports.into_iter().map(Some).collect(), region, state: State::Created }
    }

    /// Starts a new box. Does nothing if it was already started.
    pub fn start(&mut self) -> Result<(), CreateError> {
        if self.state == State::Created {
            self.backend.start()?;
            self.state = State::Running;
        }
        Ok(())
    }

    /// The box's state.
    pub fn state(&mut self) -> State {
        if let (State::Running | State::Suspended, Some(end)) = (&self.state, self.backend.end()) {
            self.state = State::Ended(end);
        }
        self.state.clone()
    }

    /// Whether the box reports that it serves its mailbox.
    pub fn is_ready(&self) -> bool {
        self.region.status().is_ok_and(|status| status.state() == Some(BoxState::Ready))
    }

    /// Packets inside the box, in none of its rings, as it last reported.
    pub fn held(&self) -> u64 {
        self.region.status().map_or(0, |status| status.packets_held())
    }

    /// Suspends a running box.
    pub fn suspend(&mut self) {
        if self.state() == State::Running {
            self.backend.suspend();
            self.state = State::Suspended;
        }
    }

    /// Resumes a suspended box.
    pub fn resume(&mut self) {
        if self.state() == State::Suspended {
            self.state = State::Running;
            self.backend.resume();
        }
    }

    /// Asks the box to stop. It may not comply: see [`kill`](Self::kill).
    pub fn stop(&mut self) {
        if let Ok(status) = self.region.status() {
            status.set_stop(true);
        }
        self.backend.ring();
    }

    /// Kills the box.
    pub fn kill(&mut self) {
        if !matches!(self.state(), State::Ended(_)) {
            self.backend.kill();
            self.state = State::Ended(ExitStatus::Killed);
        }
    }

    /// Sends a request and waits for its reply: the contents of [`Reply::Done`].
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`], [`CallError::Missing`] and [`CallError::Rejected`] carry the box's reason. The other
    /// errors mean that it did not reply, or not correctly.
    pub fn call(&mut self, request: &Request, timeout: Duration) -> Result<Vec<u8>, CallError> {
        let start = Instant::now();
        let number = self.mailbox.ask(request);
        loop {
            if self.mailbox.flush()? {
                self.backend.ring();
            }
            let (reply, wants_room) = self.mailbox.reply()?;
            if wants_room {
                self.backend.ring();
            }
            if let Some(reply) = reply
                && reply.number == number
            {
                let text = |reason: &[u8]| String::from_utf8_lossy(reason).into_owned();
                return match Reply::decode(&reply).map_err(CallError::Reply)? {
                    Reply::Done(value) => Ok(value.to_vec()),
                    Reply::Failed(reason) => Err(CallError::Refused(text(reason))),
                    Reply::Missing(reason) => Err(CallError::Missing(text(reason))),
                    Reply::Rejected(found) => {
                        Err(CallError::Rejected(Diagnostic::decode(found).map_err(CallError::Reply)?))
                    }
                };
            }
            let waited = start.elapsed();
            if waited >= timeout {
                // Otherwise requests would pile up for a box that takes none, and be executed later, unexpectedly.
                self.mailbox.withdraw(number);
                return Err(CallError::TimedOut);
            }
            if waited < SPIN_TIME {
                std::hint::spin_loop();
            } else if waited < YIELD_TIME {
                std::thread::yield_now();
            } else if matches!(self.state(), State::Ended(_)) {
                return Err(CallError::Ended);
            } else {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Installs a configuration under a name.
    pub fn install(&mut self, name: &str, configuration: &str, timeout: Duration) -> Result<(), CallError> {
        self.call(&Request::Install { name, configuration }, timeout).map(drop)
    }

    /// Takes a snapshot, from which [`Host::restore`](crate::Host::restore) creates copies. The box is suspended
    /// meanwhile and then resumes.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Busy`] while packets, requests or events are in transit.
    pub fn snapshot(&mut self) -> Result<Snapshot, SnapshotError> {
        let running = self.state() == State::Running;
        self.suspend();
        let snapshot = match self.state() {
            State::Suspended => self.backend.snapshot(),
            _ => Err(SnapshotError::NotRunning),
        };
        if running {
            self.resume();
        }
        snapshot
    }

    /// The next event of the box.
    pub fn event(&mut self) -> Result<Option<Message>, CallError> {
        let (event, wants_room) = self.mailbox.event()?;
        if wants_room {
            self.backend.ring();
        }
        Ok(event)
    }

    /// The host's end of a port, for the switch. It can be taken once.
    pub fn take_port(&mut self, index: usize) -> Option<HostPort> {
        self.ports.get_mut(index)?.take()
    }

    /// The doorbell that wakes the box.
    pub fn doorbell(&self) -> Doorbell {
        Doorbell(self.backend.clone())
    }

    /// A handle to kill the box and to pin its process, from any thread.
    pub fn control_handle(&self) -> ControlHandle {
        ControlHandle(self.backend.clone())
    }

    /// The id of the box's process, while it has one.
    pub fn process_id(&self) -> Option<i32> {
        self.backend.process_id()
    }

    /// A descriptor (pidfd) that becomes readable when the box's process ends, while it has one. For a virtual machine
    /// [`Settings::end_bell`](crate::Settings::end_bell) rings.
    pub fn end_descriptor(&self) -> Option<OwnedFd> {
        self.backend.end_descriptor()
    }

    /// Sets the number of packets after which the box ends its turn, which is its weight relative to others. 0: it ends
    /// its turn when it is idle. A box that ignores this is preempted.
    pub fn set_quantum(&self, packets: u32) {
        if let Ok(status) = self.region.status() {
            status.set_quantum(packets);
        }
    }

    /// Sets the box's share of its worker's time, in hundredths of the default, among boxes that do not end their turns
    /// on their own. The kernel divides the time of processes; their priority is set by whoever created the box.
    pub fn set_weight(&self, hundredths: u32) {
        self.backend.set_weight(hundredths);
    }

    /// The resources that the box has used.
    pub fn usage(&self) -> Usage {
        self.backend.usage()
    }

    /// Bytes of the box's private memory: variables, stack, the touched part of its heap, and page tables. This
    /// excludes the image, the region shared with the host, and what the kernel allocates to run it. A box that has
    /// ended has none.
    ///
    /// It reads `/proc`, so it is too slow to be called per packet.
    pub fn private_memory(&self) -> Result<usize, SystemError> {
        let system = |cause| SystemError { action: "read what memory a box takes", cause };
        self.backend.private_memory().map_err(system)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.kill();
    }
}
