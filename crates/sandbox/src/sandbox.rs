//! A box: its mailbox, its ports and its lifecycle.

use crate::box_message::BoxMessage;
use crate::error::{CreateError, SystemError};
use crate::lifecycle::{Backend, ControlHandle, Doorbell, State, Usage};
use crate::mailbox::{CallError, EventChannel, Mailbox};
use crate::shared_region::{HostPort, SharedRegion};
use crate::snapshot::{Snapshot, SnapshotError};
use boundary::{Diagnostic, Message, Reply, Request};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a waiting caller polls for a reply without yielding the processor.
const SPIN_TIME: Duration = Duration::from_micros(250);

/// How long it polls in total before it sleeps until the box rings.
const YIELD_TIME: Duration = Duration::from_millis(2);

/// How often in a row a box may wake a caller without having sent or taken anything. After that the caller ignores the
/// box's rings. Stops a box that rings without end from keeping the caller's processor busy until the time limit. A
/// correct box causes one such ring at most, if it rings while the caller wakes for another reason.
const MAX_EMPTY_RINGS: u32 = 64;

/// A box. Dropping it kills it.
///
/// It owns the mailbox, which one caller uses at a time. Everything else is in its [`ControlHandle`], which threads share:
/// the methods here that are named after one of the handle's are shorthands.
#[derive(Debug)]
pub struct Sandbox {
    control: ControlHandle,
    mailbox: Mailbox,
    ports: Vec<Option<HostPort>>,
}

impl Sandbox {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        region: Arc<SharedRegion>,
        mailbox: Mailbox,
        ports: Vec<HostPort>,
    ) -> Self {
        let ports = ports.into_iter().map(Some).collect();
        Self { control: ControlHandle::new(backend, region), mailbox, ports }
    }

    /// Observes and controls the box from any thread.
    pub fn control_handle(&self) -> ControlHandle {
        self.control.clone()
    }

    /// As [`ControlHandle::start`].
    pub fn start(&self) -> Result<(), CreateError> {
        self.control.start()
    }

    /// As [`ControlHandle::state`].
    pub fn state(&self) -> State {
        self.control.state()
    }

    /// As [`ControlHandle::is_ready`].
    pub fn is_ready(&self) -> bool {
        self.control.is_ready()
    }

    /// As [`ControlHandle::suspend`].
    pub fn suspend(&self) {
        self.control.suspend();
    }

    /// As [`ControlHandle::resume`].
    pub fn resume(&self) {
        self.control.resume();
    }

    /// As [`ControlHandle::stop`].
    pub fn stop(&self) {
        self.control.stop();
    }

    /// As [`ControlHandle::kill`].
    pub fn kill(&self) {
        self.control.kill();
    }

    /// As [`ControlHandle::usage`].
    pub fn usage(&self) -> Usage {
        self.control.usage()
    }

    /// As [`ControlHandle::process_id`].
    pub fn process_id(&self) -> Option<i32> {
        self.control.process_id()
    }

    /// As [`ControlHandle::end_descriptor`].
    pub fn end_descriptor(&self) -> Option<OwnedFd> {
        self.control.end_descriptor()
    }

    /// As [`ControlHandle::set_quantum`].
    pub fn set_quantum(&self, packets: u32) {
        self.control.set_quantum(packets);
    }

    /// As [`ControlHandle::set_weight`].
    pub fn set_weight(&self, hundredths: u32) {
        self.control.set_weight(hundredths);
    }

    /// As [`ControlHandle::private_memory`].
    pub fn private_memory(&self) -> Result<usize, SystemError> {
        self.control.private_memory()
    }

    /// As [`ControlHandle::doorbell`].
    pub fn doorbell(&self) -> Doorbell {
        self.control.doorbell()
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
        let (mut positions, mut empty_rings) = (self.mailbox.positions(), 0);
        loop {
            if self.mailbox.flush()? {
                self.doorbell().ring();
            }
            let (reply, wants_room) = self.mailbox.reply()?;
            if wants_room {
                self.doorbell().ring();
            }
            if let Some(reply) = reply
                && reply.number == number
            {
                return match Reply::decode(&reply).map_err(CallError::Reply)? {
                    Reply::Done(value) => Ok(value.to_vec()),
                    Reply::Failed(reason) => Err(CallError::Refused(BoxMessage::new(reason))),
                    Reply::Missing(reason) => Err(CallError::Missing(BoxMessage::new(reason))),
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
                continue;
            }
            if waited < YIELD_TIME {
                std::thread::yield_now();
                continue;
            }
            let before = std::mem::replace(&mut positions, self.mailbox.positions());
            empty_rings = if positions == before { empty_rings + 1 } else { 0 };
            // Cleared before the last check for frames and for the end, so that a ring after that ends the wait.
            self.control.clear_mailbox_ring();
            if matches!(self.state(), State::Ended(_)) {
                return Err(CallError::Ended);
            }
            if self.mailbox.prepare_sleep()? {
                match empty_rings {
                    0..=MAX_EMPTY_RINGS => self.control.wait_for_mailbox_ring(timeout - waited),
                    _ => drop(self.control.wait(timeout - waited)),
                }
                self.mailbox.end_sleep();
            }
        }
    }

    /// Gives the ports of a box that runs no configuration other addresses, and the box new seeds and the time, as a copy gets
    /// them. It takes them before the next request. It must have answered one: while it starts, it reads the ones before.
    pub fn renew(&self, addresses: &[[u8; 6]]) -> Result<(), CreateError> {
        self.mailbox.region().renew(addresses)
    }

    /// Installs a configuration under a name.
    pub fn install(&mut self, name: &str, configuration: &str, timeout: Duration) -> Result<(), CallError> {
        self.call(&Request::Install { name, configuration }, timeout).map(drop)
    }

    /// Takes a snapshot as soon as the box is idle, at most after `timeout`. [`Host::restore`](crate::Host::restore)
    /// creates copies of it. The box is suspended meanwhile and then resumes.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::NotIdle`] if the box was not idle in time. [`SnapshotError::Busy`] if it is, but packets,
    /// replies or events are in transit, which only its host can take.
    pub fn snapshot(&mut self, timeout: Duration) -> Result<Snapshot, SnapshotError> {
        self.control.snapshot(timeout)
    }

    /// The next event of the box.
    pub fn event(&mut self) -> Result<Option<Message>, CallError> {
        self.mailbox.events().next(&self.doorbell())
    }

    /// The events of the box, for a thread that reads them while another one waits for a reply.
    pub fn events(&self) -> Events {
        Events { channel: self.mailbox.events(), doorbell: self.doorbell() }
    }

    /// The host's end of a ring pair, for the switch. It can be taken once. The pairs of the first port come first.
    pub fn take_port(&mut self, index: usize) -> Option<HostPort> {
        self.ports.get_mut(index)?.take()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The events of a box: log lines and file output. Several handles of one box share one queue.
#[derive(Clone, Debug)]
pub struct Events {
    channel: EventChannel,
    doorbell: Doorbell,
}

impl Events {
    /// The next event of the box.
    pub fn next_event(&self) -> Result<Option<Message>, CallError> {
        self.channel.next(&self.doorbell)
    }
}
