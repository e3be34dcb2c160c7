//! Requests to a function for the state of its flows. Its process is hostile: each call has a time limit, only the answer to the
//! request that waits is taken, and it is no longer than a message.

use boundary::{DecodeError, MessageKind, Request};
use protocol::function::{MAX_STATES, StatesRequest, ToFunction};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between two attempts to send to a function that does not read.
const SEND_INTERVAL: Duration = Duration::from_millis(1);

/// Why a function did not answer rightly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StateCallError {
    /// It has left, or does not hand over the state of flows.
    Unable,
    /// It has left meanwhile.
    Ended,
    /// It did not answer in time.
    TimedOut,
    /// The request is longer than a message.
    Long,
    /// Its answer is none.
    Reply(DecodeError),
    /// It named what is no single flow.
    Flow,
}

impl fmt::Display for StateCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unable => f.write_str("it is gone, or takes no state of flows over"),
            Self::Ended => f.write_str("it left meanwhile"),
            Self::TimedOut => f.write_str("it did not answer in time"),
            Self::Long => f.write_str("the states are too long for a message"),
            Self::Reply(error) => write!(f, "its answer is invalid: {error}"),
            Self::Flow => f.write_str("it named something that is no single flow"),
        }
    }
}

/// How the state of a function's flows is asked for.
#[derive(Debug)]
pub(crate) struct StateCalls {
    /// That of its connection.
    socket: Arc<OwnedFd>,
    waiting: Mutex<Waiting>,
    is_leaving: AtomicBool,
}

/// The request that waits for its answer.
#[derive(Debug, Default)]
struct Waiting {
    number: u32,
    answer: Option<SyncSender<Vec<u8>>>,
    has_ended: bool,
}

impl StateCalls {
    pub(super) fn new(socket: Arc<OwnedFd>) -> Self {
        Self { socket, waiting: Mutex::default(), is_leaving: AtomicBool::new(false) }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the function leaves, so that its flows may be handed over.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    /// Sends a request, and waits for the answer. One thread calls.
    pub(crate) fn call(&self, request: &Request<'_>, timeout: Duration) -> Result<Vec<u8>, StateCallError> {
        let (sender, answers) = sync_channel(1);
        let number = {
            let mut waiting = self.waiting();
            if waiting.has_ended {
                return Err(StateCallError::Ended);
            }
            waiting.number = waiting.number.wrapping_add(1);
            waiting.answer = Some(sender);
            waiting.number
        };
        let answer = self.send(request, number, timeout).and_then(|rest| {
            answers.recv_timeout(rest).map_err(|error| match error {
                RecvTimeoutError::Timeout => StateCallError::TimedOut,
                RecvTimeoutError::Disconnected => StateCallError::Ended,
            })
        });
        self.waiting().answer = None;
        answer
    }

    /// Returns how much time is left.
    fn send(
        &self,
        request: &Request<'_>,
        number: u32,
        timeout: Duration,
    ) -> Result<Duration, StateCallError> {
        let message = request.encode(number);
        let kind = match message.kind {
            MessageKind::ListFlows => StatesRequest::List,
            MessageKind::ExportFlows => StatesRequest::Export,
            MessageKind::ImportFlows => StatesRequest::Import,
            _ => return Err(StateCallError::Unable),
        };
        if message.payload.len() > MAX_STATES {
            return Err(StateCallError::Long);
        }
        let bytes = ToFunction::States { kind, number, request: message.payload }.encode();
        let begin = Instant::now();
        loop {
            let rest = timeout.saturating_sub(begin.elapsed());
            match send(&self.socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(_) => return Ok(rest),
                // Other messages wait for the function.
                Err(Errno::AGAIN | Errno::INTR) if !rest.is_zero() => std::thread::sleep(SEND_INTERVAL),
                Err(Errno::AGAIN | Errno::INTR) => return Err(StateCallError::TimedOut),
                Err(_) => return Err(StateCallError::Ended),
            }
        }
    }

    /// Takes an answer. Returns whether one with this number was waited for.
    pub(crate) fn answer(&self, number: u32, reply: Vec<u8>) -> bool {
        let mut waiting = self.waiting();
        let is_right = number == waiting.number;
        let answer = if is_right { waiting.answer.take() } else { None };
        answer.is_some_and(|answer| answer.try_send(reply).is_ok())
    }

    /// Lets the request that waits fail, and all later ones: the function has gone.
    pub(crate) fn end(&self) {
        let mut waiting = self.waiting();
        waiting.has_ended = true;
        waiting.answer = None;
    }
}
