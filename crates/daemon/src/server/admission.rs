//! Which connections are kept when there are too many: each stage of a connection has its own limit, and each client
//! its share of it.
//!
//! Invariants:
//! - A connection without a complete, authorised request takes no room from connections that have one.
//! - A new connection is always accepted. If there are too many, one of the client that has the most is closed.
//! - A request that is being served is never aborted for another one.

use api::UserName;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Maximum connections of each listener that have not sent an authorised request. Any client can open these.
const MAX_NEW: usize = 256;

/// Maximum connections of each listener between two requests.
const MAX_IDLE: usize = 256;

/// Maximum concurrent requests of each listener.
pub(super) const MAX_REQUESTS: usize = 512;

/// Maximum concurrent requests of one client, so that one client cannot shut out the others.
const MAX_CLIENT_REQUESTS: usize = 384;

/// Maximum concurrent requests of one user of a file of tokens, so that a few users cannot shut out the others, nor the
/// administrator.
const MAX_USER_REQUESTS: usize = 64;

/// Connections that are closed at once when descriptors have run out: few, because each may be about to send a request.
const RELIEF: usize = 8;

/// Who a client is. Limits are shared between clients, not between connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// The user that connected to the Unix socket, if the kernel knows it.
    User(Option<u32>),
    /// The client's address over TCP.
    Address(IpAddr),
}

impl Peer {
    /// The client at an address. One client usually has a whole /64 of IPv6 addresses.
    pub(super) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address => address,
        })
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No authorised request has arrived.
    New,
    /// Its requests have been answered.
    Idle,
    /// A request is being served.
    Busy,
}

#[derive(Debug)]
struct Entry {
    opened: Instant,
    peer: Peer,
    stage: Stage,
    /// The user of the file of tokens whose request is being served.
    user: Option<UserName>,
    evicted: Arc<Notify>,
}

/// The connections of a listener, oldest first.
#[derive(Debug, Default)]
struct Table {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

impl Table {
    fn count(&self, stage: Stage, peer: Option<Peer>) -> usize {
        let counted = |entry: &&Entry| entry.stage == stage && peer.is_none_or(|peer| entry.peer == peer);
        self.entries.values().filter(counted).count()
    }

    /// The requests of a user that are being served, whatever addresses they come from.
    fn requests_of(&self, user: &UserName) -> usize {
        let is_theirs = |entry: &&Entry| entry.stage == Stage::Busy && entry.user.as_ref() == Some(user);
        self.entries.values().filter(is_theirs).count()
    }

    /// If more than `limit` connections are in a stage, closes the oldest one of the client that has the most. Returns whether
    /// it has closed one.
    fn shrink(&mut self, stage: Stage, limit: usize) -> bool {
        let mut counts = HashMap::<Peer, usize>::new();
        for entry in self.entries.values().filter(|entry| entry.stage == stage) {
            *counts.entry(entry.peer).or_default() += 1;
        }
        if counts.values().sum::<usize>() <= limit {
            return false;
        }
        let most = counts.values().copied().max();
        let oldest = self
            .entries
            .iter()
            .find(|(_, entry)| entry.stage == stage && counts.get(&entry.peer).copied() == most)
            .map(|(&number, _)| number);
        let entry = oldest.and_then(|number| self.entries.remove(&number));
        if let Some(entry) = &entry {
            entry.evicted.notify_one();
        }
        entry.is_some()
    }
}

/// The connections of a listener.
#[derive(Clone, Debug, Default)]
pub(super) struct Admission(Arc<Mutex<Table>>);

impl Admission {
    fn table(&self) -> MutexGuard<'_, Table> {
        // A panic leaves the table as it was: each change is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that are being served.
    #[cfg(test)]
    pub(super) fn requests(&self) -> usize {
        self.table().count(Stage::Busy, None)
    }

    /// Closes some connections without a request, because descriptors have run out: those that have not sent any first, unless
    /// they are younger than `grace`.
    pub(super) fn relieve(&self, grace: Duration) {
        let mut table = self.table();
        for _ in 0..RELIEF {
            let is_old = |entry: &&Entry| entry.stage == Stage::New && entry.opened.elapsed() >= grace;
            let young = table.count(Stage::New, None) - table.entries.values().filter(is_old).count();
            if !table.shrink(Stage::New, young) && !table.shrink(Stage::Idle, 0) {
                return;
            }
        }
    }

    /// Registers a new connection. If there are too many, another one is closed.
    pub(super) fn open(&self, peer: Peer) -> Arc<Connection> {
        let mut table = self.table();
        let (number, evicted) = (table.next, Arc::new(Notify::new()));
        table.next += 1;
        let opened = Instant::now();
        let entry = Entry { opened, peer, stage: Stage::New, user: None, evicted: evicted.clone() };
        table.entries.insert(number, entry);
        table.shrink(Stage::New, MAX_NEW);
        Arc::new(Connection { number, peer, evicted, admission: self.clone() })
    }
}

/// A registered connection. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    pub(super) peer: Peer,
    evicted: Arc<Notify>,
    admission: Admission,
}

impl Connection {
    /// Waits until this connection must be closed for another one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Begins an authorised request. Returns `None` if too many are being served, or if the connection is being closed.
    pub(super) fn begin(self: &Arc<Self>, user: Option<UserName>) -> Option<Serving> {
        let mut table = self.admission.table();
        let full = table.count(Stage::Busy, None) >= MAX_REQUESTS
            || table.count(Stage::Busy, Some(self.peer)) >= MAX_CLIENT_REQUESTS
            || user.as_ref().is_some_and(|user| table.requests_of(user) >= MAX_USER_REQUESTS);
        let entry = table.entries.get_mut(&self.number)?;
        if full {
            return None;
        }
        (entry.stage, entry.user) = (Stage::Busy, user);
        Some(Serving(self.clone()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.admission.table().entries.remove(&self.number);
    }
}

/// A request that is being served, until the end of its response.
#[derive(Debug)]
pub(super) struct Serving(Arc<Connection>);

impl Drop for Serving {
    fn drop(&mut self) {
        let mut table = self.0.admission.table();
        if let Some(entry) = table.entries.get_mut(&self.0.number) {
            entry.stage = Stage::Idle;
        }
        table.shrink(Stage::Idle, MAX_IDLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn is_evicted(connection: &Connection) -> bool {
        connection.evicted().now_or_never().is_some()
    }

    fn at(text: &str) -> Peer {
        Peer::at(text.parse().unwrap())
    }

    #[test]
    fn the_oldest_silent_connection_of_the_greediest_client_is_closed() {
        let admission = Admission::default();
        let first = admission.open(at("192.0.2.1"));
        let greedy: Vec<_> = (1..MAX_NEW).map(|_| admission.open(at("192.0.2.2"))).collect();
        assert!(!is_evicted(&greedy[0]));
        let later: Vec<_> = (0..10).map(|_| admission.open(at("192.0.2.1"))).collect();
        let evicted: Vec<_> = greedy.iter().map(|connection| is_evicted(connection)).collect();
        assert!(evicted[..10].iter().all(|&evicted| evicted) && !evicted[10..].contains(&true));
        assert!(!is_evicted(&first) && !later.iter().any(|connection| is_evicted(connection)));
        // With equal shares the oldest is closed.
        let admission = Admission::default();
        let each: Vec<_> =
            (0..=MAX_NEW).map(|number| admission.open(Peer::User(Some(number as u32)))).collect();
        assert!(is_evicted(&each[0]) && !each[1..].iter().any(|connection| is_evicted(connection)));
    }

    #[test]
    fn connections_without_requests_are_closed_for_their_descriptors() {
        let admission = Admission::default();
        let busy = admission.open(at("192.0.2.1"));
        let _serving = busy.begin(None).unwrap();
        let idle = admission.open(at("192.0.2.1"));
        drop(idle.begin(None).unwrap());
        let new: Vec<_> = (0..RELIEF).map(|_| admission.open(at("192.0.2.2"))).collect();
        admission.relieve(Duration::ZERO);
        assert!(new.iter().all(|connection| is_evicted(connection)) && !is_evicted(&idle));
        // One that has just been opened may be about to send a request.
        let young = admission.open(at("192.0.2.2"));
        admission.relieve(Duration::from_secs(60));
        assert!(is_evicted(&idle) && !is_evicted(&busy) && !is_evicted(&young));
    }

    #[test]
    fn silent_connections_take_no_room_from_requests() {
        let admission = Admission::default();
        let busy = admission.open(at("192.0.2.1"));
        let serving = busy.begin(None).unwrap();
        let idle = admission.open(at("192.0.2.1"));
        drop(idle.begin(None).unwrap());
        let silent: Vec<_> = (0..2 * MAX_NEW).map(|_| admission.open(at("192.0.2.1"))).collect();
        assert!(!is_evicted(&busy) && !is_evicted(&idle));
        assert_eq!(silent.iter().filter(|connection| is_evicted(connection)).count(), MAX_NEW);
        drop((silent, serving));
        assert_eq!(admission.table().count(Stage::New, None), 0);
        assert_eq!(admission.table().count(Stage::Idle, None), 2);
        drop((busy, idle));
        assert!(admission.table().entries.is_empty());
    }

    #[test]
    fn one_client_cannot_occupy_all_requests() {
        let admission = Admission::default();
        let open = |peer| {
            let connection = admission.open(peer);
            let serving = connection.begin(None);
            (connection, serving)
        };
        let mut greedy: Vec<_> = (0..=MAX_CLIENT_REQUESTS).map(|_| open(at("2001:db8::1"))).collect();
        assert_eq!(greedy.iter().filter(|(_, serving)| serving.is_none()).count(), 1);
        // The same client at another of its addresses.
        assert!(open(at("2001:db8::2")).1.is_none());
        let rest = MAX_REQUESTS - MAX_CLIENT_REQUESTS;
        let others: Vec<_> = (0..=rest).map(|_| open(at("2001:db8:0:1::1"))).collect();
        assert_eq!(others.iter().filter(|(_, serving)| serving.is_none()).count(), 1);
        greedy.remove(0);
        assert!(open(at("192.0.2.1")).1.is_some());
        // The others' idle connections are closed when they are too many, the oldest first.
        let connections: Vec<_> = greedy.into_iter().map(|(connection, _)| connection).collect();
        assert!(is_evicted(&connections[0]) && !is_evicted(&connections[MAX_CLIENT_REQUESTS - 2]));
    }

    #[test]
    fn one_user_cannot_occupy_all_requests_from_many_addresses() {
        let admission = Admission::default();
        let open = |number: u32, user: &str| {
            let connection = admission.open(Peer::at(std::net::Ipv4Addr::from_bits(number).into()));
            let serving = connection.begin(Some(user.parse().unwrap()));
            (connection, serving)
        };
        let greedy: Vec<_> = (0..2 * MAX_USER_REQUESTS as u32).map(|number| open(number, "alice")).collect();
        assert_eq!(greedy.iter().filter(|(_, serving)| serving.is_some()).count(), MAX_USER_REQUESTS);
        assert!(open(0, "bob").1.is_some());
        drop(greedy);
        assert!(open(0, "alice").1.is_some());
    }
}
