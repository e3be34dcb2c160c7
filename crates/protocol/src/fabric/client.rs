//! The daemon's side of the conversation.

use super::error::FabricError;
use super::order_channels::{Incoming, Meaning, OrderChannels, OwnOrder};
use super::orders::{Ask, OpenChannels};
use super::{FromFabric, MAX_REPLY_BYTES, Notice, Reply, ToFabric, UnknownFromFabric, VERSION};
use crate::channel::{Channel, ChannelError, Received};
use crate::codec;
use crate::hello::{Hello, StoreIdentity};
use crate::poll::poll_briefly;
use serde_bytes::ByteBuf;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// How long a thread that has sent an order polls for the answer before it sleeps: most orders take no longer.
const POLL_TIME: Duration = Duration::from_micros(250);

/// A connection to a fabric. Many threads may ask at once.
pub struct Client {
    channel: Channel,
    /// Channels for orders that need no other thread.
    orders: Arc<OrderChannels>,
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
    from: Source,
    order: PhantomData<A>,
}

/// Where the answer to an order comes from.
#[derive(Debug)]
enum Source {
    /// A channel that has this order only.
    Channel(OwnOrder),
    /// The thread that receives it on the channel of the conversation.
    Thread(Receiver<Outcome>),
}

/// An order on a channel of its own, as by [`Client::begin_alone`]. Its answer can be waited for at this descriptor.
#[derive(Debug)]
pub struct PendingAlone<A> {
    own: OwnOrder,
    order: PhantomData<A>,
}

impl<A> AsFd for PendingAlone<A> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }
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
            orders: Arc::default(),
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

    /// Opens channels for orders, if the fabric can serve them.
    pub fn open_channels(&self, count: usize) -> Result<(), FabricError> {
        let failed = |error: std::io::Error| FabricError::System(error.to_string());
        let pairs = (0..count).map(|_| Channel::pair()).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let (near, far): (Vec<Channel>, Vec<Channel>) = pairs.into_iter().unzip();
        let descriptors: Vec<_> = far.iter().map(AsFd::as_fd).collect();
        match self.ask_with(OpenChannels {}, &descriptors) {
            Ok(_) => self.orders.add(near),
            // One of an earlier version.
            Err(FabricError::Unsupported) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sends an order with descriptors, and does not wait.
    pub fn begin<A: Ask>(&self, order: A, descriptors: &[BorrowedFd<'_>]) -> Result<Pending<A>, FabricError> {
        let order = match self.begin_own(order, descriptors)? {
            Ok(own) => return Ok(Pending { from: Source::Channel(own), order: PhantomData }),
            Err(order) => order,
        };
        let (sender, outcome) = sync_channel(1);
        // The caller waits, and the queue has room for its one reply.
        let number = self.register(Box::new(move |outcome| drop(sender.try_send(outcome))))?;
        let sent = self.channel.send(&ToFabric::Order { number, order: Box::new(order.into()) }, descriptors);
        sent.map_err(|error| self.not_sent(number, &error))?;
        Ok(Pending { from: Source::Thread(outcome), order: PhantomData })
    }

    /// Sends an order on a channel of its own. Returns the order if there is none.
    fn begin_own<A: Ask>(
        &self,
        order: A,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Result<OwnOrder, A>, FabricError> {
        let Some(channel) = self.orders.take() else { return Ok(Err(order)) };
        let number = {
            let mut waiting = self.waiting();
            waiting.last += 1;
            waiting.last
        };
        // It has no other message, so this waits for nothing.
        match channel.send(&ToFabric::Order { number, order: Box::new(order.into()) }, descriptors) {
            Ok(()) => Ok(Ok(OwnOrder::new(&self.orders, channel, number))),
            Err(ChannelError::Closed) => Err(self.ended()),
            Err(error) => {
                self.orders.put_back(channel);
                Err(FabricError::System(::model::with_causes(&error)))
            }
        }
    }

    /// Waits for the answer to an order that this client has sent, and the descriptors that come with it.
    pub fn wait<A: Ask>(
        &self,
        Pending { from, .. }: Pending<A>,
    ) -> Result<(A::Answer, Vec<OwnedFd>), FabricError> {
        let (result, descriptors) = match from {
            Source::Channel(own) => {
                let message = self.poll_own(&own).unwrap_or_else(|| own.receive());
                self.outcome(own, message)
            }
            Source::Thread(outcome) => match self.poll(|| outcome.try_recv().ok()) {
                Some(outcome) => outcome,
                // An error means that the reader dropped the caller because the fabric has gone.
                None => outcome.recv().map_err(|_| FabricError::Disconnected)?,
            },
        };
        Ok((decoded::<A>(result)?, descriptors))
    }

    /// Sends an order that is answered without another thread of this process. Returns the order if that is not possible now.
    pub fn begin_alone<A: Ask>(&self, order: A) -> Result<Result<PendingAlone<A>, A>, FabricError> {
        let begun = self.begin_own(order, &[])?;
        Ok(begun.map(|own| PendingAlone { own, order: PhantomData }))
    }

    /// The answer to an order if it comes soon; else the order.
    pub fn wait_briefly<A: Ask>(
        &self,
        pending: PendingAlone<A>,
    ) -> Result<Result<A::Answer, FabricError>, PendingAlone<A>> {
        match self.poll_own(&pending.own) {
            Some(message) => Ok(decoded::<A>(self.outcome(pending.own, message).0)),
            None => Err(pending),
        }
    }

    /// Waits for the answer to an order.
    pub fn wait_alone<A: Ask>(
        &self,
        PendingAlone { own, .. }: PendingAlone<A>,
    ) -> Result<A::Answer, FabricError> {
        let message = own.receive();
        decoded::<A>(self.outcome(own, message).0)
    }

    /// A message that comes soon on an order channel, unless another thread polls.
    fn poll_own(&self, own: &OwnOrder) -> Option<Incoming> {
        if self.is_polled.swap(true, Ordering::SeqCst) {
            return own.try_receive();
        }
        let found = poll_briefly(POLL_TIME, || own.try_receive());
        self.is_polled.store(false, Ordering::SeqCst);
        found
    }

    /// What the caller of an order gets.
    fn outcome(&self, mut own: OwnOrder, message: Incoming) -> Outcome {
        let result = match own.meaning(message) {
            Meaning::Reply(result, descriptors) => return (result, descriptors),
            Meaning::Later => Err(later()),
            Meaning::Truncated => Err(no_descriptors()),
            Meaning::End => Err(self.ended()),
            Meaning::Fault(why) => {
                self.waiting().fault = Some(why);
                Err(self.ended())
            }
        };
        (result, Vec::new())
    }

    /// Ends the conversation, and waits until no more orders are taken for this fabric. An order channel may end before the others.
    fn ended(&self) -> FabricError {
        self.close();
        let (sender, end) = sync_channel::<Outcome>(1);
        if self.register(Box::new(move |outcome| drop(sender.try_send(outcome)))).is_ok() {
            // The reader drops all callers when it ends.
            let _ = end.recv();
        }
        FabricError::Disconnected
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
    fn take(&self, received: Incoming, notice: &NoticeHandler) -> Result<(), Ended> {
        match received {
            Ok(Some(Received { message: Ok(message), descriptors })) => match message {
                FromFabric::Reply(Reply { number, result }) => self.answer(number, (result, descriptors)),
                FromFabric::Notice(found) => notice(found),
                FromFabric::Hello(_) => return Err(Ended(Some("it greets twice".to_string()))),
            },
            // A fabric of a later version has more errors and notices. They concern one order, or none.
            Ok(Some(Received { message: Err(UnknownFromFabric::Reply(reply)), .. })) => {
                self.answer(reply.number, (Err(later()), Vec::new()));
            }
            Ok(Some(Received { message: Err(UnknownFromFabric::Notice(_)), .. })) => {}
            Ok(None) => return Err(Ended(None)),
            // This process has no descriptors left for a long reply. It is unknown whose it was.
            Err(ChannelError::Truncated) => {
                let callers = std::mem::take(&mut self.waiting().callers);
                for caller in callers.into_values() {
                    caller((Err(no_descriptors()), Vec::new()));
                }
            }
            Err(error) => return Err(Ended(Some(::model::with_causes(&error)))),
        }
        Ok(())
    }

    /// Closes the connection. Callers that wait get [`FabricError::Disconnected`].
    pub fn close(&self) {
        self.channel.shut_down();
        self.orders.close();
    }
}

/// The error for an answer of a later version.
fn later() -> FabricError {
    FabricError::Protocol("the reply is one of a later version".into())
}

/// The error for an answer whose descriptors this process has no room for.
fn no_descriptors() -> FabricError {
    FabricError::System("the daemon has no file descriptors left".into())
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
        client.close();
        let mut waiting = client.waiting();
        waiting.closed = true;
        waiting.callers.clear();
        why.or_else(|| waiting.fault.take())
    }
}
