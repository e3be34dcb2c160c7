//! The daemon's side of the conversation.

use super::error::FabricError;
use super::orders::Ask;
use super::{FromFabric, MAX_REPLY_BYTES, Notice, Reply, ToFabric, UnknownFromFabric, VERSION};
use crate::channel::{Channel, ChannelError, Received};
use crate::codec;
use crate::hello::{Hello, StoreIdentity};
use crate::poll::poll_briefly;
use serde_bytes::ByteBuf;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// What the caller of an order gets.
type Outcome = (Result<ByteBuf, FabricError>, Vec<OwnedFd>);

/// Takes the outcome of an order, in the thread of the [`Reader`]. It is dropped if no reply will come.
type Caller = Box<dyn FnOnce(Outcome) + Send>;

/// Takes what the fabric tells unasked.
type NoticeHandler = Box<dyn Fn(Notice) + Send + Sync>;

/// A message of the fabric, or what can be told of one of a later version.
type FromFabricOrLater = Result<Option<Received<Result<FromFabric, UnknownFromFabric>>>, ChannelError>;

/// How long a thread that has sent an order receives the answer itself, before it leaves that to the [`Reader`]'s thread: most
/// orders take no longer.
const POLL_TIME: Duration = Duration::from_micros(250);

/// A connection to a fabric. Many threads may ask at once.
pub struct Client {
    channel: Channel,
    waiting: Mutex<Waiting>,
    /// The version that the fabric speaks.
    peer_version: u16,
    /// Set when the reader runs.
    notice_handler: OnceLock<NoticeHandler>,
    /// Whether a thread polls. Others sleep: many that poll would take the time of what they wait for.
    is_polled: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Waiting {
    /// The number of the last order.
    last: u64,
    callers: HashMap<u64, Caller>,
    /// The fabric has gone: no reply will come.
    closed: bool,
    /// Why another thread than the reader's has closed the connection.
    fault: Option<String>,
}

/// Why no more messages are received; `None` if the fabric has gone.
struct Ended(Option<String>);

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("callers", &self.callers.len()).finish_non_exhaustive()
    }
}

/// An order that was sent. Its answer is dropped with this.
#[derive(Debug)]
pub struct Pending<A> {
    outcome: Receiver<Outcome>,
    order: PhantomData<A>,
}

/// Receives what the fabric sends and no thread that waits has received. Exactly one thread runs it.
#[derive(Debug)]
pub struct Reader(Arc<Client>);

impl Client {
    /// Opens the conversation with the fabric of a store.
    ///
    /// # Errors
    ///
    /// The fabric has gone, serves another store, or speaks other versions.
    pub fn connect(channel: Channel, store: StoreIdentity) -> Result<(Arc<Self>, Reader), FabricError> {
        let ours = Hello { version: VERSION, store };
        channel.send(&ToFabric::Hello(ours), &[]).map_err(|_| FabricError::Disconnected)?;
        let peer_version = match channel.receive::<FromFabric>(MAX_REPLY_BYTES) {
            Ok(Some(Received { message: FromFabric::Hello(theirs), .. })) => {
                ours.agree(&theirs).map_err(|error| FabricError::Protocol(error.to_string()))?;
                theirs.version
            }
            Ok(Some(_)) => return Err(FabricError::Protocol("it does not begin with a greeting".into())),
            Ok(None) => return Err(FabricError::Disconnected),
            Err(error) => return Err(FabricError::Protocol(::model::with_causes(&error))),
        };
        let client = Arc::new(Self {
            channel,
            waiting: Mutex::default(),
            peer_version,
            notice_handler: OnceLock::new(),
            is_polled: AtomicBool::new(false),
        });
        Ok((client.clone(), Reader(client)))
    }

    /// The version that the fabric speaks.
    pub fn peer_version(&self) -> u16 {
        self.peer_version
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an order and waits for its answer.
    pub fn ask<A: Ask>(&self, order: A) -> Result<A::Answer, FabricError> {
        self.ask_with(order, &[]).map(|(answer, _)| answer)
    }

    /// Sends an order with descriptors, and waits for its answer and the descriptors that come with it.
    pub fn ask_with<A: Ask>(
        &self,
        order: A,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(A::Answer, Vec<OwnedFd>), FabricError> {
        let pending = self.begin(order, descriptors)?;
        self.wait(pending)
    }

    /// Sends an order with descriptors, and does not wait.
    pub fn begin<A: Ask>(&self, order: A, descriptors: &[BorrowedFd<'_>]) -> Result<Pending<A>, FabricError> {
        let (sender, outcome) = sync_channel(1);
        // The caller waits, and the queue has room for its one reply.
        let number = self.register(Box::new(move |outcome| drop(sender.try_send(outcome))))?;
        let sent = self.channel.send(&ToFabric::Order { number, order: Box::new(order.into()) }, descriptors);
        sent.map_err(|error| self.not_sent(number, &error))?;
        Ok(Pending { outcome, order: PhantomData })
    }

    /// Waits for the answer to an order that this client has sent, and the descriptors that come with it.
    pub fn wait<A: Ask>(
        &self,
        Pending { outcome, .. }: Pending<A>,
    ) -> Result<(A::Answer, Vec<OwnedFd>), FabricError> {
        let (result, descriptors) = match self.poll(|| outcome.try_recv().ok()) {
            Some(outcome) => outcome,
            // An error means that the reader dropped the caller because the fabric has gone.
            None => outcome.recv().map_err(|_| FabricError::Disconnected)?,
        };
        Ok((decoded::<A>(result)?, descriptors))
    }

    /// Sends an order, and has the reader's thread pass the answer to `answered`, which must not wait for anything. It is
    /// dropped if the fabric ends before. Returns false, and drops it, if the order could not be sent without waiting.
    pub fn try_begin<A: Ask>(
        &self,
        order: A,
        answered: impl FnOnce(Result<A::Answer, FabricError>) + Send + 'static,
    ) -> Result<bool, FabricError> {
        let number = self.register(Box::new(move |(result, _)| answered(decoded::<A>(result))))?;
        match self.channel.try_send(&ToFabric::Order { number, order: Box::new(order.into()) }) {
            Ok(()) => Ok(true),
            Err(ChannelError::WouldBlock) => {
                self.waiting().callers.remove(&number);
                Ok(false)
            }
            Err(error) => Err(self.not_sent(number, &error)),
        }
    }

    /// Registers who takes the outcome of the next order. Returns its number.
    fn register(&self, caller: Caller) -> Result<u64, FabricError> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(FabricError::Disconnected);
        }
        waiting.last += 1;
        let number = waiting.last;
        waiting.callers.insert(number, caller);
        Ok(number)
    }

    /// The error for an order that could not be sent.
    fn not_sent(&self, number: u64, error: &ChannelError) -> FabricError {
        self.waiting().callers.remove(&number);
        match error {
            ChannelError::Closed => FabricError::Disconnected,
            error => FabricError::System(::model::with_causes(error)),
        }
    }

    /// Receives what the fabric sends, in this thread too, until `look` finds something, but only for a moment, and unless
    /// another thread does.
    pub fn poll<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let notice = self.notice_handler.get()?;
        if self.is_polled.swap(true, Ordering::SeqCst) {
            return None;
        }
        let found = poll_briefly(POLL_TIME, || {
            look().or_else(|| {
                match self.channel.try_receive_or(MAX_REPLY_BYTES) {
                    Err(ChannelError::WouldBlock) => {}
                    received => {
                        if let Err(Ended(Some(why))) = self.take(received, notice) {
                            self.waiting().fault = Some(why);
                            self.channel.shut_down();
                        }
                    }
                }
                look()
            })
        });
        self.is_polled.store(false, Ordering::SeqCst);
        found
    }

    /// Passes an outcome to the caller of an order.
    fn answer(&self, number: u64, outcome: Outcome) {
        let caller = self.waiting().callers.remove(&number);
        if let Some(caller) = caller {
            caller(outcome);
        }
    }

    /// Passes a message on.
    fn take(&self, received: FromFabricOrLater, notice: &NoticeHandler) -> Result<(), Ended> {
        match received {
            Ok(Some(Received { message: Ok(message), descriptors })) => match message {
                FromFabric::Reply(Reply { number, result }) => self.answer(number, (result, descriptors)),
                FromFabric::Notice(found) => notice(found),
                FromFabric::Hello(_) => return Err(Ended(Some("it greets twice".to_string()))),
            },
            // A fabric of a later version has more errors and notices. They concern one order, or none.
            Ok(Some(Received { message: Err(UnknownFromFabric::Reply(reply)), .. })) => {
                let error = FabricError::Protocol("the reply is one of a later version".into());
                self.answer(reply.number, (Err(error), Vec::new()));
            }
            Ok(Some(Received { message: Err(UnknownFromFabric::Notice(_)), .. })) => {}
            Ok(None) => return Err(Ended(None)),
            // This process has no descriptors left for a long reply. It is unknown whose it was.
            Err(ChannelError::Truncated) => {
                let message = "the daemon has no file descriptors left".to_string();
                let callers = std::mem::take(&mut self.waiting().callers);
                for caller in callers.into_values() {
                    caller((Err(FabricError::System(message.clone())), Vec::new()));
                }
            }
            Err(error) => return Err(Ended(Some(::model::with_causes(&error)))),
        }
        Ok(())
    }

    /// Closes the connection. Callers that wait get [`FabricError::Disconnected`].
    pub fn close(&self) {
        self.channel.shut_down();
    }
}

/// The answer to an order.
fn decoded<A: Ask>(result: Result<ByteBuf, FabricError>) -> Result<A::Answer, FabricError> {
    let (answer, _) = codec::decode(&result?).map_err(|error| FabricError::Protocol(error.to_string()))?;
    Ok(answer)
}

impl Reader {
    /// Passes replies to their callers, and notices to `notice`, until the connection closes. Returns why it closed; `None`
    /// if the fabric has gone.
    pub fn run(self, notice: impl Fn(Notice) + Send + Sync + 'static) -> Option<String> {
        let Self(client) = self;
        let notice = client.notice_handler.get_or_init(|| Box::new(notice));
        let why = loop {
            let received = client.channel.receive_or(MAX_REPLY_BYTES);
            if let Err(Ended(why)) = client.take(received, notice) {
                break why;
            }
        };
        client.channel.shut_down();
        let mut waiting = client.waiting();
        waiting.closed = true;
        waiting.callers.clear();
        why.or_else(|| waiting.fault.take())
    }
}
