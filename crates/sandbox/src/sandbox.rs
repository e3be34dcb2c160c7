//! A box, from its creation to its end.

use crate::error::{CreateError, SystemError};
use crate::mailbox::{CallError, Mailbox};
use crate::shared_region::{HostPort, SharedRegion};
use crate::snapshot::{Snapshot, SnapshotError};
use boundary::{BoxState, CrashReport, Diagnostic, Message, Reply, Request};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a waiting caller looks for a reply without letting others run,
const HASTE: Duration = Duration::from_micros(250);

/// and how long before it begins to sleep between looks.
const PATIENCE: Duration = Duration::from_millis(2);

/// How long it sleeps between looks.
const NAP: Duration = Duration::from_micros(100);

/// How a box ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It was asked to stop, and did.
    Stopped,
    /// It was killed.
    Killed,
    /// It couldn't go on, and left a report.
    Crashed(Box<CrashReport>),
    /// It ended without a report; the status tells how, where there is one.
    Vanished {
        /// A process's exit status, or minus the number of the signal that ended it; 0 for a machine.
        status: i32,
    },
}

impl ExitStatus {
    /// The end of a box that crashed, with the address of its last page fault.
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

/// What a box is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not been started.
    Created,
    /// It runs, or rests until there is work.
    Running,
    /// It stands still, on request.
    Suspended,
    /// It has ended.
    Ended(ExitStatus),
}

/// What a box has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time.
    pub time: Duration,
    /// RunQueue, where a worker runs it.
    pub turns: u64,
    /// RunQueue that it did not end by itself.
    pub overruns: u64,
}

/// What carries a box: one contract for machines and processes.
pub(crate) trait Backend: Send + Sync + std::fmt::Debug {
    /// Tells the box that there is work.
    fn ring(&self);
    /// Lets it begin.
    fn start(&self) -> Result<(), CreateError>;
    /// Makes it stand still.
    fn suspend(&self);
    /// Lets it go on.
    fn resume(&self);
    /// Ends it at once.
    fn kill(&self);
    /// How it ended, if it has.
    fn end(&self) -> Option<ExitStatus>;
    /// Has its process, when it has one of its own, run on these processors and no others.
    fn pin(&self, _processors: &[usize]) {}
    /// Sets its share, where boxes share a worker.
    fn set_weight(&self, _hundredths: u32) {}
    /// Gathers rings and buffers into large pages, where they aren't in such from their start.
    fn collapse_pages(&self) {}
    /// What it has used.
    fn usage(&self) -> Usage;
    /// Bytes of memory that it has for itself.
    fn private_memory(&self) -> std::io::Result<usize>;
    /// Everything that is in it, while it stands still.
    fn snapshot(&self) -> Result<Snapshot, SnapshotError>;
    /// What becomes readable when its process ends, when it has one of its own.
    fn end_descriptor(&self) -> Option<OwnedFd> {
        None
    }
    /// The number of its process, when it has one of its own.
    fn process_id(&self) -> Option<i32> {
        None
    }
}

/// By this, whoever puts work into a box's rings wakes it.
#[derive(Clone, Debug)]
pub struct Doorbell(Arc<dyn Backend>);

impl Doorbell {
    /// Tells the box that there is work.
    pub fn ring(&self) {
        self.0.ring();
    }
}

/// By this, what needs no answer of a box is done to it from any thread, also while another one waits for its answer.
#[derive(Clone, Debug)]
pub struct ControlHandle(Arc<dyn Backend>);

impl ControlHandle {
    /// Ends the box at once. Whoever waits for its answer is told so.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// The number of the box's process, while it has one of its own.
    pub fn process_id(&self) -> Option<i32> {
        self.0.process_id()
    }

    /// Has the box's process run on these processors and no others, once it has been started. Where the kernel forbids
    /// that it runs where the kernel likes: slower, and still right. Where a machine runs is its worker's business.
    pub fn pin(&self, processors: &[usize]) {
        self.0.pin(processors);
    }

    /// Gathers what was touched of the box's rings and buffers into large pages, where the kernel has them: for a box in
    /// a process that turns out to have much to do, so that neither it nor the switch waits for the translation of
    /// addresses with every packet. Machines have such pages from their start.
    ///
    /// It takes up to a millisecond for each 2 MB, during which packets there may wait.
    pub fn collapse_pages(&self) {
        self.0.collapse_pages();
    }
}

/// A box. Dropped, it is killed.
#[derive(Debug)]
pub struct Sandbox {
    backend: Arc<dyn Backend>,
    mailbox: Mailbox,
    ports: Vec<Option<HostPort>>,
    region: Arc<SharedRegion>,
    /// Between `start` and the end: running or suspended.
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

    /// Lets a new box begin. A box that was started already is left as it is.
    pub fn start(&mut self) -> Result<(), CreateError> {
        if self.state == State::Created {
            self.backend.start()?;
            self.state = State::Running;
        }
        Ok(())
    }

    /// What the box is doing.
    pub fn state(&mut self) -> State {
        if let (State::Running | State::Suspended, Some(end)) = (&self.state, self.backend.end()) {
            self.state = State::Ended(end);
        }
        self.state.clone()
    }

    /// Whether the box says that it serves its mailbox.
    pub fn is_ready(&self) -> bool {
        self.region.status().is_ok_and(|status| status.state() == Some(BoxState::Ready))
    }

    /// Packets that are in the box, in no ring, as it said last.
    pub fn held(&self) -> u64 {
        self.region.status().map_or(0, |status| status.packets_held())
    }

    /// Makes a running box stand still.
    pub fn suspend(&mut self) {
        if self.state() == State::Running {
            self.backend.suspend();
            self.state = State::Suspended;
        }
    }

    /// Lets a suspended box go on.
    pub fn resume(&mut self) {
        if self.state() == State::Suspended {
            self.state = State::Running;
            self.backend.resume();
        }
    }

    /// Wishes the box to stop by itself. It may not: see [`kill`](Self::kill).
    pub fn stop(&mut self) {
        if let Ok(status) = self.region.status() {
            status.set_stop(true);
        }
        self.backend.ring();
    }

    /// Ends the box at once.
    pub fn kill(&mut self) {
        if !matches!(self.state(), State::Ended(_)) {
            self.backend.kill();
            self.state = State::Ended(ExitStatus::Killed);
        }
    }

    /// Sends a request and waits for its reply: what [`Reply::Done`] holds.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`], [`CallError::Missing`] and [`CallError::Rejected`] with the box's reason; the others
    /// when it doesn't answer, or not as it should.
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
                // Else requests would pile up before a box that takes none, and be done when nobody expects it.
                self.mailbox.withdraw(number);
                return Err(CallError::TimedOut);
            }
            if waited < HASTE {
                std::hint::spin_loop();
            } else if waited < PATIENCE {
                std::thread::yield_now();
            } else if matches!(self.state(), State::Ended(_)) {
                return Err(CallError::Ended);
            } else {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Runs a configuration under a name.
    pub fn install(&mut self, name: &str, configuration: &str, timeout: Duration) -> Result<(), CallError> {
        self.call(&Request::Install { name, configuration }, timeout).map(drop)
    }

    /// Copies the box as it is: boxes like it are made by [`Host::restore`](crate::Host::restore). It
    /// rests meanwhile, and goes on afterwards.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Busy`] while packets, requests or events are under way.
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

    /// The host's end of a port, once: for the switch.
    pub fn take_port(&mut self, index: usize) -> Option<HostPort> {
        self.ports.get_mut(index)?.take()
    }

    /// What wakes the box.
    pub fn doorbell(&self) -> Doorbell {
        Doorbell(self.backend.clone())
    }

    /// What ends the box, and says on which processors its process runs, from any thread.
    pub fn control_handle(&self) -> ControlHandle {
        ControlHandle(self.backend.clone())
    }

    /// The number of the box's process, while it has one of its own.
    pub fn process_id(&self) -> Option<i32> {
        self.backend.process_id()
    }

    /// What becomes readable when the box's process ends, while it has one of its own (a pidfd). For a box
    /// in a machine [`Settings::end_bell`](crate::Settings::end_bell) rings.
    pub fn end_descriptor(&self) -> Option<OwnedFd> {
        self.backend.end_descriptor()
    }

    /// Sets the packets after which the box gives its turn back: its weight beside others; 0: when it has
    /// nothing to do. The box may not keep to it: then it is called out.
    pub fn set_quantum(&self, packets: u32) {
        if let Ok(status) = self.region.status() {
            status.set_quantum(packets);
        }
    }

    /// Sets the box's share, in hundredths of the usual one, of a worker's time that several boxes want who don't give
    /// their turns back by themselves. The kernel, which divides the time of processes, is told by who made the box.
    pub fn set_weight(&self, hundredths: u32) {
        self.backend.set_weight(hundredths);
    }

    /// What the box has used.
    pub fn usage(&self) -> Usage {
        self.backend.usage()
    }

    /// Bytes of memory that the box has for itself: variables, stack, the touched part of its heap, and
    /// page tables. The image and the area that it shares with the host are not in it, nor what the kernel
    /// keeps to run it. Nothing is left of a box that has ended.
    ///
    /// It reads `/proc`, so it is nothing to do for every packet.
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
