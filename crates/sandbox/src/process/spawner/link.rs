//! The host's end of the socket to one helper.

use crate::error::SetupError;
use crate::event_fd::EventFd;
use crate::lock::lock;
use crate::process::isolation::{Isolation, Layer, MissingLayer};
use crate::process::spawner::message::{LAYERS, Optional, Order, Reply};
use crate::process::spawner::socket::{Received, close, limit_replies, receive, send};
use crate::process::spawner::step::Step;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a thread that suspends a box waits for descriptors to become free.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// How long the helper may take for a reply. It makes a few system calls; a helper that takes longer was stopped. Without
/// a limit, no box in a process could be created or ended any more.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The layers that the helper enters, in the order of its results.
const LAYERS_OF_HELPER: [Layer; LAYERS] = [
    Layer::EmptyRoot,
    Layer::Network,
    Layer::Ipc,
    Layer::HostName,
    Layer::User,
    Layer::Capabilities,
    Layer::NoNewPrivileges,
    Layer::OwnPidNamespace,
    Layer::OwnUserNamespace,
    Layer::OutOfMemory,
];

/// What a new process is created from.
pub(crate) struct SpawnRequest<'a> {
    /// The image that it executes, which is not trusted. `None`: that of the host.
    pub(crate) image: Option<BorrowedFd<'a>>,
    pub(crate) region: BorrowedFd<'a>,
    pub(crate) mailbox_event: BorrowedFd<'a>,
    pub(crate) wake_event: Option<BorrowedFd<'a>>,
    /// The memory of the box that it is a copy of.
    pub(crate) snapshot: Option<BorrowedFd<'a>>,
    /// The packet pool that it shares with others.
    pub(crate) pool: Option<BorrowedFd<'a>>,
    /// Maximum bytes of its mappings.
    pub(crate) address_space: u64,
}

/// The host's end of the socket to one helper.
#[derive(Debug)]
pub(super) struct Link {
    /// Held from an order to its reply.
    socket: Mutex<OwnedFd>,
    /// The helper has ended.
    ended: AtomicBool,
    /// What the helper has entered.
    isolation: Isolation,
    /// Events that are not in use. Each thread that waits until a box has stopped takes one.
    events: Mutex<Vec<EventFd>>,
}

impl Link {
    /// Lets a new helper enter the isolation. Meanwhile it calls a function that returns the layers that are known to be
    /// missing.
    pub(super) fn new(
        socket: OwnedFd,
        changes_user: bool,
        meanwhile: impl FnOnce() -> Vec<MissingLayer>,
    ) -> Result<Self, SetupError> {
        limit_replies(socket.as_fd(), REPLY_TIMEOUT)?;
        let mut link = Self::entered(socket, Isolation::default())?;
        let mut missing = Vec::new();
        let entered = link.order_and(Order::Enter { changes_user }, &[], || missing = meanwhile())?;
        let (Reply::Entered { results }, ..) = entered else { return Err(SetupError::Gone) };
        let failed = LAYERS_OF_HELPER.into_iter().zip(results).filter_map(|(layer, result)| {
            let (step, errno) = result.err()?;
            Some(MissingLayer { layer, step: step.name(), errno })
        });
        missing.extend(failed);
        link.isolation = Isolation::new(missing);
        Ok(link)
    }

    /// The link to a helper that has entered its isolation already.
    pub(super) fn entered(socket: OwnedFd, isolation: Isolation) -> Result<Self, SetupError> {
        let event = EventFd::new().map_err(|error| SetupError::Spawner(error.cause))?;
        Ok(Self {
            socket: Mutex::new(socket),
            ended: AtomicBool::new(false),
            isolation,
            events: Mutex::new(vec![event]),
        })
    }

    /// The socket and the isolation, for the process that asked for the helper.
    pub(super) fn into_parts(self) -> (OwnedFd, Isolation) {
        (self.socket.into_inner().unwrap_or_else(PoisonError::into_inner), self.isolation)
    }

    /// What isolates the helper's boxes.
    pub(super) fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Whether the helper has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// Gives an order. Returns the reply, its descriptor, and whether descriptors were lost for want of room.
    fn order(
        &self,
        order: Order,
        descriptors: &[RawFd],
    ) -> Result<(Reply, Option<OwnedFd>, bool), SetupError> {
        self.order_and(order, descriptors, || ())
    }

    /// Gives an order and calls a function before it waits for the reply.
    fn order_and(
        &self,
        order: Order,
        descriptors: &[RawFd],
        meanwhile: impl FnOnce(),
    ) -> Result<(Reply, Option<OwnedFd>, bool), SetupError> {
        let socket = lock(&self.socket);
        let ended = || {
            self.ended.store(true, Relaxed);
            SetupError::Gone
        };
        let failed = |errno| match errno {
            libc::EPIPE | libc::ECONNRESET => ended(),
            // A late reply would be taken for the next one, so this link is of no more use.
            libc::EAGAIN => {
                self.ended.store(true, Relaxed);
                SetupError::NoReply
            }
            errno => SetupError::Spawner(io::Error::from_raw_os_error(errno)),
        };
        send(socket.as_raw_fd(), &order.encode(), descriptors).map_err(failed)?;
        meanwhile();
        let Received { words, descriptors, truncated, .. } =
            receive(socket.as_raw_fd()).map_err(failed)?.ok_or_else(ended)?;
        let [first, rest @ ..] = descriptors;
        rest.into_iter().filter(|descriptor| *descriptor >= 0).for_each(close);
        // SAFETY: the descriptor was just received, and nothing else uses it.
        let descriptor = (first >= 0).then(|| unsafe { OwnedFd::from_raw_fd(first) });
        let reply = Reply::decode(words).ok_or_else(ended)?;
        Ok((reply, descriptor, truncated))
    }

    /// Creates a process. Returns its id as the helper sees it, and its pidfd.
    pub(super) fn spawn(&self, request: &SpawnRequest<'_>) -> Result<(i32, OwnedFd), SetupError> {
        let SpawnRequest { image, region, mailbox_event, wake_event, snapshot, pool, address_space } =
            request;
        let address_space = *address_space;
        let choices = [wake_event, snapshot, pool, image];
        let [wake_event, snapshot, pool, image] = choices.map(Option::is_some);
        let optional = Optional { wake_event, snapshot, pool, image };
        let chosen = choices.into_iter().map(Option::as_ref);
        let all = [Some(region), Some(mailbox_event)].into_iter().chain(chosen);
        let descriptors: Vec<RawFd> = all.flatten().map(AsRawFd::as_raw_fd).collect();
        match self.order(Order::Spawn { optional, address_space }, &descriptors)? {
            (Reply::Spawned { process }, Some(descriptor), _) => Ok((process, descriptor)),
            (Reply::Spawned { process }, None, _) => {
                // It lost its pidfd for want of room: it cannot be used.
                self.order(Order::Discard { process }, &[])?;
                let cause = io::Error::from_raw_os_error(libc::EMFILE);
                Err(SetupError::Child { step: Step::SendProcess.name(), cause })
            }
            (Reply::Failed { step: Step::CreateProcess, errno }, ..) => {
                Err(SetupError::Clone(io::Error::from_raw_os_error(errno)))
            }
            (Reply::Failed { step, errno }, ..) => {
                let cause = io::Error::from_raw_os_error(errno);
                Err(SetupError::Child { step: step.name(), cause })
            }
            (Reply::Ended { .. } | Reply::Entered { .. }, ..) => Err(SetupError::Gone),
        }
    }

    /// How a process ended, whose pidfd is readable: its exit status, or the negated number of the signal that ended it.
    /// The helper forgets it. `None` if the helper has ended, and its processes with it.
    pub(super) fn reap(&self, process: i32) -> Option<i32> {
        match self.order(Order::Reap { process }, &[]) {
            Ok((Reply::Ended { status }, ..)) => Some(status),
            _ => None,
        }
    }

    /// Signals the event when a process has stopped. If the helper has ended, the process ends too.
    pub(super) fn watch_stop(&self, process: i32, event: &EventFd) -> Result<(), i32> {
        let socket = lock(&self.socket);
        let event = event.as_fd().as_raw_fd();
        send(socket.as_raw_fd(), &Order::WatchStop { process }.encode(), &[event])
    }

    /// An event that is not signalled, for [`watch_stop`](Self::watch_stop). It waits while there are no descriptors.
    pub(super) fn take_event(&self) -> EventFd {
        loop {
            if let Some(event) = lock(&self.events).pop() {
                return event;
            }
            match EventFd::new() {
                Ok(event) => return event,
                Err(_) => std::thread::sleep(RETRY_INTERVAL),
            }
        }
    }

    /// Keeps an event that the helper does not use any more.
    pub(super) fn keep_event(&self, event: EventFd) {
        event.rang();
        let mut events = lock(&self.events);
        if events.is_empty() {
            events.push(event);
        }
    }
}
