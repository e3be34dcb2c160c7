//! `ARPTable`: a neighbour table shared by several elements.

use core::cell::RefCell;

use alloc::rc::Rc;
use core::any::Any;

use element::Message;
use element::prelude::*;
use packet::MacAddr;

use super::arpcache::{ArpCache, Limits};

/// ARP table for several `ARPQuerier`s: keeps Ethernet addresses, and packets that wait for them.
///
/// The handler `table` prints one entry per line, oldest first: IP address, 1 if known or 0, Ethernet address, and
/// seconds since the last update.
///
/// ## Differences
/// With ENTRY_CAPACITY 0, a table holds 1,048,576 entries; in Click their number is unlimited.
/// ```click
/// t :: ARPTable;
/// Script(write t.insert 1.0.0.1 0:1:2:3:4:5, write t.insert 1.0.0.2 0:1:2:3:4:6, stop);
/// ```
/// ```expect
/// t.count = 2
/// t.length = 0
/// ```
#[derive(Args)]
#[element(
    name = "ARPTable",
    group = "ethernet",
    ports = "0/0",
    upkeep,
    shards = "sum",
    sums = "drops, length",
    lists = "table",
    see = "ARPQuerier",
    drops = "no_answer, table_full, table_cleared",
    fates = "waiting"
)]
pub struct ARPTableArgs {
    #[arg(flatten)]
    capacities: Capacities,
}

/// The capacity and timeout arguments of a table.
#[derive(ArgumentGroup)]
pub(super) struct Capacities {
    /// Total packets that may wait, 2048 by default; 0 for no limit.
    capacity: Option<u32>,
    /// Maximum number of entries; 0 (the default) for the highest possible number.
    entry_capacity: Option<u32>,
    /// Packets that may wait for one address; 0 (the default) for no limit.
    entry_packet_capacity: Option<u32>,
    /// When too many packets wait, one in this many is dropped; 2 by default.
    capacity_slim_factor: Option<u32>,
    /// Lifetime of an entry, 5 minutes by default; 0 for no expiry.
    timeout: Option<Timestamp>,
}

pub struct ARPTable {
    cache: Rc<RefCell<ArpCache>>,
}

/// The limits if no argument is given.
pub(super) const DEFAULTS: Limits =
    Limits { packets: 2048, entries: 0, packets_each: 0, slim: 2, timeout: 300_000 };

impl Capacities {
    /// The limits, with `now` for arguments that are not given.
    pub(super) fn limits(&self, now: Limits) -> Result<Limits, SetupError> {
        if self.capacity_slim_factor == Some(0) {
            return Err(SetupError::new("CAPACITY_SLIM_FACTOR cannot be zero"));
        }
        let or = |given: Option<u32>, now: usize| given.map_or(now, |given| given as usize);
        Ok(Limits {
            packets: or(self.capacity, now.packets),
            entries: or(self.entry_capacity, now.entries),
            packets_each: or(self.entry_packet_capacity, now.packets_each),
            slim: or(self.capacity_slim_factor, now.slim),
            timeout: self.timeout.map_or(now.timeout, milliseconds),
        })
    }
}

impl Element for ARPTable {
    type Args = ARPTableArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read_with("table", "The entries, one per line.", |table, cx, _| {
            Ok(table.cache.borrow().text(cx.now().millis()))
        }),
        Handler::read("drops", "Waiting packets that were dropped.", |table| {
            table.cache.borrow().drops().to_string()
        }),
        Handler::read("count", "Entries.", |table| table.cache.borrow().len().to_string()),
        Handler::read("length", "Waiting packets.", |table| table.cache.borrow().waiting().to_string()),
        Handler::action("insert", "Adds an entry: `IP ETH`.", |table, cx, value| {
            insert(&mut table.cache.borrow_mut(), cx, value)
        }),
        Handler::action("delete", "Deletes the entry of an `IP`.", |table, cx, value| {
            delete(&mut table.cache.borrow_mut(), cx, value)
        }),
        Handler::action("clear", "Deletes all entries and drops waiting packets.", |table, cx, _| {
            table.cache.borrow_mut().clear(cx);
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: ARPTableArgs, setup: &mut Setup) -> Result<ARPTable, SetupError> {
        let cache = ArpCache::new(args.capacities.limits(DEFAULTS)?, setup.environment().seed());
        Ok(ARPTable { cache: Rc::new(RefCell::new(cache)) })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.cache.borrow_mut().share(cx.element());
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        set_timer(cx, &self.cache.borrow(), 0);
        Ok(())
    }

    fn waiting(&self, waiting: &mut Waiting) {
        self.cache.borrow().report(waiting);
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        let mut cache = self.cache.borrow_mut();
        cache.expire(cx, cx.now().millis());
        set_timer(cx, &cache, 1);
    }

    fn reconfigure(&mut self, args: ARPTableArgs, _: &mut Setup) -> Result<(), SetupError> {
        self.cache.borrow_mut().limits = args.capacities.limits(DEFAULTS)?;
        Ok(())
    }

    fn inherit(&mut self, old: &mut ARPTable, _: &mut Context) {
        self.cache.borrow_mut().inherit(&mut old.cache.borrow_mut());
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Some(self.cache.clone())
    }

    /// The cache itself lives as long as the last element that uses it.
    fn cleanup(&mut self, _: &mut Context) {
        self.cache.borrow_mut().free_packets();
    }
}

/// Converts a span to milliseconds. A span that exceeds Click's clock ticks means no expiry, which is 0.
pub(super) fn milliseconds(span: Timestamp) -> i64 {
    let most = Timestamp::from_millis(u32::MAX.into());
    if span < Timestamp::ZERO || span >= most { 0 } else { span.millis() }
}

/// Sets the cache's expiry timer to its timeout plus `more` seconds from now.
pub(super) fn set_timer(cx: &Context, cache: &ArpCache, more: i64) {
    let timeout = cache.limits.timeout;
    if timeout != 0 {
        cx.set_timer_after(0, Timestamp::from_parts(timeout / 1000 + more, 0));
    }
}
pub(super) fn insert(cache: &mut ArpCache, cx: &mut Context, value: &str) -> Result<(), HandlerError> {
    let words = element::text::words(value);
    let mut problems = SetupError::default();
    let ip = address(cx, words.first(), "IP", &mut problems);
    let mac = address(cx, words.get(1), "ETH", &mut problems);
    if words.len() > 2 {
        problems.merge(Message::TooMany(None).into());
    }
    problems.into_result()?;
    if let (Some(ip), Some(mac)) = (ip, mac) {
        cache.set(cx, ip, mac, cx.now().millis());
    }
    Ok(())
}

/// Parses a required word as an address.
fn address<T: FromArgument>(
    cx: &Context,
    word: Option<&String>,
    keyword: &'static str,
    problems: &mut SetupError,
) -> Option<T> {
    match word.map(|word| cx.argument(word)) {
        Some(Ok(address)) => return Some(address),
        Some(Err(problem)) => problems.merge(SetupError::argument(keyword, problem)),
        None => problems.merge(Message::Missing { keyword }.into()),
    }
    None
}
pub(super) fn delete(cache: &mut ArpCache, cx: &mut Context, value: &str) -> Result<(), HandlerError> {
    let words = element::text::words(value);
    let mut problems = SetupError::default();
    let ip = address(cx, words.first(), "IP", &mut problems);
    if words.len() > 1 {
        problems.merge(Message::TooMany(None).into());
    }
    problems.into_result()?;
    if let Some(ip) = ip {
        cache.set(cx, ip, MacAddr::BROADCAST, cx.now().millis());
    }
    Ok(())
}
