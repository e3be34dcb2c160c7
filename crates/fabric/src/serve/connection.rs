//! A connection to a daemon, and the threads that carry out its orders.

use super::answer::answer;
use crate::lifecycle::Fabric;
use crate::limits::{KEPT_ORDER_THREADS, MAX_ORDER_THREADS, ORDER_POLL_TIME};
use model::{BoxName, with_causes};
use protocol::fabric::{
    FabricError, FromFabric, MAX_ORDER_BYTES, Notice, Order, Reply, ToFabric, UnknownToFabric, VERSION,
};
use protocol::{Channel, ChannelError, Hello, Received, poll_briefly};
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An order, or what can be told of one of a later version.
type ReceivedOrder = Result<Option<Received<Result<ToFabric, UnknownToFabric>>>, ChannelError>;

/// A connection to a daemon.
#[derive(Debug)]
struct Connection {
    fabric: Fabric,
    channel: Arc<Channel>,
    /// Threads that wait for an order.
    waiting: AtomicUsize,
    /// Threads that wait or carry out an order.
    threads: AtomicUsize,
    /// Whether one of those that wait polls.
    is_polled: AtomicBool,
    /// The box that was started last, if there may be no spare for the next one like it.
    started: Mutex<Option<BoxName>>,
    closed: AtomicBool,
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
        started: Mutex::default(),
        closed: AtomicBool::new(false),
    });
    fabric.retell_news();
    let own = connection.clone();
    let news = std::thread::Builder::new().name("news".into()).spawn(move || own.send_news());
    let why = connection.run(true);
    connection.close();
    if let Ok(news) = news {
        // A thread that panicked needs no further cleanup.
        let _ = news.join();
    }
    why
}

/// Reports a violation of the protocol. Unlike `eprintln`, it does not panic when standard error is closed.
pub(crate) fn report(message: &str) {
    let _ = writeln!(std::io::stderr(), "clickbox fabric: {message}");
}

/// What is done after an order has been answered.
enum FollowUp {
    /// The sandbox of this box is created. The daemon stores the box meanwhile.
    Prepare(BoxName),
    /// A spare for the next box like this one is created, when no more orders come.
    MakeSpare(BoxName),
}

impl FollowUp {
    fn of(order: &Order) -> Option<Self> {
        match order {
            Order::DefineBox(order) if order.prepare => Some(Self::Prepare(order.definition.name.clone())),
            Order::StartBox(order) => Some(Self::MakeSpare(order.name.clone())),
            Order::LaunchBox(order) => Some(Self::MakeSpare(order.definition.name.clone())),
            _ => None,
        }
    }
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
    /// Receives an order that comes soon, unless another thread waits for one in this way.
    fn poll(&self) -> Option<ReceivedOrder> {
        if self.is_polled.swap(true, Ordering::SeqCst) {
            return None;
        }
        let polled = poll_briefly(ORDER_POLL_TIME, || match self.channel.try_receive_or(MAX_ORDER_BYTES) {
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
            let polled = self.poll();
            if polled.is_none()
                && let Some(name) = self.started().take()
            {
                self.leave();
                self.fabric.make_spare(&name);
                continue;
            }
            let received = polled.unwrap_or_else(|| self.channel.receive_or(MAX_ORDER_BYTES));
            self.leave();
            match received {
                Ok(Some(Received { message: Ok(ToFabric::Order { number, order }), descriptors })) => {
                    let follow_up = FollowUp::of(&order);
                    let (result, descriptors) = answer(&self.fabric, *order, descriptors);
                    let follow_up = follow_up.filter(|_| result.is_ok());
                    let reply = FromFabric::Reply(Reply { number, result });
                    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
                    if self.channel.send(&reply, &borrowed).is_err() {
                        return None;
                    }
                    match follow_up {
                        Some(FollowUp::Prepare(name)) => self.fabric.prepare(&name),
                        Some(FollowUp::MakeSpare(name)) => drop(self.started().replace(name)),
                        None => {}
                    }
                }
                // A daemon of a later version gives an order that this fabric cannot carry out.
                Ok(Some(Received { message: Err(UnknownToFabric::Order { number }), .. })) => {
                    let result = Err(FabricError::Unsupported);
                    if self.channel.send(&FromFabric::Reply(Reply { number, result }), &[]).is_err() {
                        return None;
                    }
                }
                Ok(Some(Received { message: Ok(ToFabric::Hello(_)), .. })) => {
                    return Some("the daemon greets twice".into());
                }
                Ok(None) => return None,
                Err(error) => return Some(with_causes(&error)),
            }
            if !stay && self.waiting.load(Ordering::SeqCst) >= KEPT_ORDER_THREADS {
                return None;
            }
        }
    }

    /// The thread that calls this waits no more. The last one that waited starts another one before it does what may take long.
    fn leave(self: &Arc<Self>) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.start_thread();
        }
    }

    fn started(&self) -> MutexGuard<'_, Option<BoxName>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
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
                report(&format!("the daemon's message is not understood: {why}"));
                own.close();
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

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.channel.shut_down();
        self.fabric.wake_news();
    }
}
