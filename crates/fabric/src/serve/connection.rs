//! A connection to a daemon, and the threads that carry out its orders.

use super::answer::{answer, done};
use crate::error::OperationError;
use crate::lifecycle::Fabric;
use crate::limits::{
    KEPT_ORDER_THREADS, MAX_ORDER_CHANNELS, MAX_ORDER_THREADS, ORDER_POLL_TIME, SPARE_DELAY,
};
use model::{BoxName, with_causes};
use protocol::fabric::{
    FabricError, FromFabric, MAX_ORDER_BYTES, Notice, Order, Reply, ToFabric, UnknownToFabric, VERSION,
};
use protocol::{Channel, ChannelError, Hello, Received, poll_briefly};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// An order, or what can be told of one of a later version.
type ReceivedOrder = Result<Option<Received<Result<ToFabric, UnknownToFabric>>>, ChannelError>;

/// A connection to a daemon.
#[derive(Debug)]
struct Connection {
    fabric: Fabric,
    channel: Arc<Channel>,
    /// Threads that wait for an order at `channel`.
    waiting: AtomicUsize,
    /// Threads that wait or carry out an order.
    threads: AtomicUsize,
    /// Whether one of those that wait polls.
    is_polled: AtomicBool,
    /// Channels for one order at a time, each with its thread.
    order_channels: Mutex<Vec<Weak<Channel>>>,
    spare: SpareWish,
    closed: AtomicBool,
}

/// The wish for a spare. A thread fulfils it when orders come no more.
#[derive(Debug, Default)]
struct SpareWish {
    /// The box that was started last, if there may be no spare for the next one like it.
    started: Mutex<Option<BoxName>>,
    /// Notified when a box was started, or the connection closes.
    changed: Condvar,
    /// Orders that have come.
    orders: AtomicU64,
}

/// Serves a daemon until it closes the connection. Returns why the connection ended, if not by the daemon.
///
/// Orders are carried out at the same time, each in a thread: one that waits for a box delays no other.
pub fn serve(fabric: &Fabric, channel: &Arc<Channel>) -> Option<String> {
    if let Err(why) = greet(fabric, channel) {
        return Some(why);
    }
    let connection = Arc::new(Connection {
        fabric: fabric.clone(),
        channel: channel.clone(),
        waiting: AtomicUsize::new(0),
        threads: AtomicUsize::new(1),
        is_polled: AtomicBool::new(false),
        order_channels: Mutex::default(),
        spare: SpareWish::default(),
        closed: AtomicBool::new(false),
    });
    fabric.retell_news();
    let start = |name: &str, run: fn(&Connection)| {
        let own = connection.clone();
        std::thread::Builder::new().name(name.into()).spawn(move || run(&own))
    };
    let helpers = [start("news", Connection::send_news), start("spare", Connection::make_spares)];
    let why = connection.run(true);
    connection.close();
    for helper in helpers.into_iter().flatten() {
        // A thread that panicked needs no further cleanup.
        let _ = helper.join();
    }
    why
}

/// Reports a violation of the protocol. Unlike `eprintln`, it does not panic when standard error is closed.
pub(crate) fn report(message: &str) {
    let _ = writeln!(std::io::stderr(), "clickbox fabric: {message}");
}

/// Exchanges the first messages.
fn greet(fabric: &Fabric, channel: &Channel) -> Result<(), String> {
    let ours = Hello { version: VERSION, store: fabric.store() };
    let theirs = match channel.receive::<ToFabric>(MAX_ORDER_BYTES) {
        Ok(Some(Received { message: ToFabric::Hello(theirs), .. })) => theirs,
        Ok(Some(_)) => return Err("the daemon does not begin with a greeting".into()),
        Ok(None) => return Err("the daemon closed the connection without a greeting".into()),
        Err(error) => return Err(with_causes(&error)),
    };
    // The daemon learns from the greeting why it is refused.
    channel.send(&FromFabric::Hello(ours), &[]).map_err(|error| with_causes(&error))?;
    ours.agree(&theirs).map(drop).map_err(|error| error.to_string())
}

impl Connection {
    /// Receives an order that comes soon on a channel, unless another thread waits for one in this way.
    fn poll(&self, channel: &Channel) -> Option<ReceivedOrder> {
        if self.is_polled.swap(true, Ordering::SeqCst) {
            return None;
        }
        let polled = poll_briefly(ORDER_POLL_TIME, || match channel.try_receive_or(MAX_ORDER_BYTES) {
            Err(ChannelError::WouldBlock) => None,
            received => Some(received),
        });
        self.is_polled.store(false, Ordering::SeqCst);
        polled
    }

    /// Carries out orders until the connection closes. `stay`: the thread stays when more threads wait than are needed.
    fn run(self: &Arc<Self>, stay: bool) -> Option<String> {
        loop {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let received =
                self.poll(&self.channel).unwrap_or_else(|| self.channel.receive_or(MAX_ORDER_BYTES));
            self.leave();
            let follow_up = match self.carry_out(&self.channel, received) {
                ControlFlow::Continue(follow_up) => follow_up,
                ControlFlow::Break(why) => return why,
            };
            // Another thread waits for orders meanwhile.
            if let Some(name) = follow_up {
                self.fabric.prepare(&name);
            }
            if !stay && self.waiting.load(Ordering::SeqCst) >= KEPT_ORDER_THREADS {
                return None;
            }
        }
    }

    /// Carries out the orders on an order channel until it ends.
    fn run_alone(self: &Arc<Self>, channel: &Channel) -> Option<String> {
        loop {
            let received = self.poll(channel).unwrap_or_else(|| channel.receive_or(MAX_ORDER_BYTES));
            match self.carry_out(channel, received) {
                ControlFlow::Continue(None) => {}
                ControlFlow::Continue(Some(name)) => {
                    // The next order is not to wait for it. If there is no thread, the start of the box makes up for it.
                    let fabric = self.fabric.clone();
                    drop(
                        std::thread::Builder::new()
                            .name("prepare".into())
                            .spawn(move || fabric.prepare(&name)),
                    );
                }
                ControlFlow::Break(why) => return why,
            }
        }
    }

    /// Carries out an order that was received on a channel. Returns the box whose sandbox is to be created now, while the daemon
    /// stores the box, or why the connection ends, if not by the daemon.
    fn carry_out(
        self: &Arc<Self>,
        channel: &Channel,
        received: ReceivedOrder,
    ) -> ControlFlow<Option<String>, Option<BoxName>> {
        let (number, order, descriptors) = match received {
            Ok(Some(Received { message: Ok(ToFabric::Order { number, order }), descriptors })) => {
                (number, *order, descriptors)
            }
            // A daemon of a later version gives an order that this fabric cannot carry out.
            Ok(Some(Received { message: Err(UnknownToFabric::Order { number }), .. })) => {
                let result = Err(FabricError::Unsupported);
                return match channel.send(&FromFabric::Reply(Reply { number, result }), &[]) {
                    Ok(()) => ControlFlow::Continue(None),
                    Err(_) => ControlFlow::Break(None),
                };
            }
            Ok(Some(Received { message: Ok(ToFabric::Hello(_)), .. })) => {
                return ControlFlow::Break(Some("the daemon greets twice".into()));
            }
            Ok(None) => return ControlFlow::Break(None),
            Err(error) => return ControlFlow::Break(Some(with_causes(&error))),
        };
        self.spare.orders.fetch_add(1, Ordering::SeqCst);
        let prepared = match &order {
            Order::DefineBox(order) if order.prepare => Some(order.definition.name.clone()),
            _ => None,
        };
        let started = match &order {
            Order::StartBox(order) => Some(order.name.clone()),
            Order::LaunchBox(order) => Some(order.definition.name.clone()),
            _ => None,
        };
        let (result, descriptors) = match order {
            Order::OpenChannels(order) => done(&order, self.open_channels(descriptors)),
            order => answer(&self.fabric, order, descriptors),
        };
        let is_done = result.is_ok();
        let reply = FromFabric::Reply(Reply { number, result });
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        if channel.send(&reply, &borrowed).is_err() {
            return ControlFlow::Break(None);
        }
        if let Some(name) = started.filter(|_| is_done) {
            *self.spare.started() = Some(name);
            self.spare.changed.notify_all();
        }
        ControlFlow::Continue(prepared.filter(|_| is_done))
    }

    /// Serves further channels, each in a thread.
    fn open_channels(self: &Arc<Self>, descriptors: Vec<OwnedFd>) -> Result<(), OperationError> {
        for descriptor in descriptors {
            let channel = Arc::new(Channel::from(descriptor));
            {
                let mut all = self.order_channels();
                all.retain(|channel| channel.strong_count() > 0);
                // They are shut down together, when this is set.
                if self.closed.load(Ordering::SeqCst) || all.len() >= MAX_ORDER_CHANNELS {
                    return Err(OperationError::Limit("order channels", MAX_ORDER_CHANNELS));
                }
                all.push(Arc::downgrade(&channel));
            }
            let own = self.clone();
            let run = move || {
                if let Some(why) = own.run_alone(&channel) {
                    own.refuse(&why);
                }
            };
            let started = std::thread::Builder::new().name("order".into()).spawn(run);
            started.map_err(|error| OperationError::system("start a thread", error))?;
        }
        Ok(())
    }

    fn order_channels(&self) -> MutexGuard<'_, Vec<Weak<Channel>>> {
        self.order_channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread that calls this waits no more. The last one that waited starts another one before it does what may take long.
    fn leave(self: &Arc<Self>) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.start_thread();
        }
    }

    fn start_thread(self: &Arc<Self>) {
        if self.closed.load(Ordering::SeqCst)
            || self.threads.fetch_add(1, Ordering::SeqCst) >= MAX_ORDER_THREADS
        {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let own = self.clone();
        let run = move || {
            if let Some(why) = own.run(false) {
                own.refuse(&why);
            }
            own.threads.fetch_sub(1, Ordering::SeqCst);
        };
        if std::thread::Builder::new().name("order".into()).spawn(run).is_err() {
            // The other threads carry out the orders, later.
            self.threads.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Tells the daemon of news until the connection closes.
    fn send_news(&self) {
        let closed = || self.closed.load(Ordering::SeqCst);
        while self.fabric.wait_for_news(closed) {
            if self.channel.send(&FromFabric::Notice(Notice::News), &[]).is_err() {
                return self.fabric.retell_news();
            }
        }
    }

    /// Closes the connection, in another thread than the first.
    fn refuse(&self, why: &str) {
        report(&format!("the daemon's message is not understood: {why}"));
        self.close();
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.channel.shut_down();
        self.order_channels().iter().filter_map(Weak::upgrade).for_each(|channel| channel.shut_down());
        self.fabric.wake_news();
        // A thread that has just looked whether it is closed waits now.
        drop(self.spare.started());
        self.spare.changed.notify_all();
    }

    /// Makes spares for boxes like those that are started, until the connection closes.
    fn make_spares(&self) {
        let is_open = || !self.closed.load(Ordering::SeqCst);
        while is_open() {
            let started = self.spare.started();
            let waited = self.spare.changed.wait_while(started, |started| started.is_none() && is_open());
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            loop {
                let seen = self.spare.orders.load(Ordering::SeqCst);
                std::thread::sleep(SPARE_DELAY);
                if self.spare.orders.load(Ordering::SeqCst) == seen || !is_open() {
                    break;
                }
            }
            let name = self.spare.started().take();
            if let Some(name) = name.filter(|_| is_open()) {
                self.fabric.make_spare(&name);
            }
        }
    }
}

impl SpareWish {
    fn started(&self) -> MutexGuard<'_, Option<BoxName>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
