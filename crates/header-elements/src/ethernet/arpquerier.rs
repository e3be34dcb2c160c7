//! `ARPQuerier`: resolves the link addresses of neighbours.

use core::cell::RefCell;
use core::net::Ipv4Addr;

use alloc::rc::Rc;

use element::arguments::{ElementName, Ip4PrefixOrHost, Raw};
use element::prelude::*;
use packet::{ArpView, EtherType, Ip4Prefix, MacAddr, view::arp};

use super::arp::{Endpoint, FRAME_LENGTH, query};
use super::arpcache::{ArpCache, QueueResult};
use super::arptable::{Capacities, DEFAULTS, delete, insert, milliseconds, set_timer};
use super::header::{LENGTH, ethernet};
use super::vlan::{annotation, set_annotation};

/// Resolves next hops by ARP (RFC 826) and adds Ethernet headers to IP packets.
///
/// Input 0 takes IP packets whose destination annotation is the next hop. If its Ethernet address is known, the packet
/// leaves by output 0 with a header. If not, the packet waits, and an ARP query leaves by output 1 (or output 0, if
/// that is the only one). Input 1 takes ARP replies with their Ethernet headers; they update the table and release
/// waiting packets. For one address, up to 10 queries a second are sent at first, then one every two seconds.
///
/// Special destinations: a broadcast address gets FF-FF-FF-FF-FF-FF, a multicast group its group address (RFC 1112,
/// section 6.4), and packets for 0.0.0.0 are dropped. With a single argument, NAME stands for both addresses, as
/// defined by `AddressInfo`. `ARPTable` describes the capacities and handlers of the table.
/// ```click
/// InfiniteSource(LENGTH 46, LIMIT 2, STOP true) -> GetIPAddress(16) -> SetIPAddress(1.0.0.2)
///     -> a :: ARPQuerier(1.0.0.1/24, 2:2:2:2:2:2) -> c :: Classifier(0/040404040404 6/020202020202 12/0800, -);
/// a[1] -> ARPResponder(1.0.0.2 4:4:4:4:4:4) -> [1]a;
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// a.queries = 1
/// a.responses = 1
/// a.count = 1
/// a.broadcast = 1.0.0.255
/// right.count = 2
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "ARPQuerier",
    group = "ethernet",
    ports = "2/1-2",
    processing = "h/h",
    flow = "xy/x",
    upkeep,
    shards = "sum",
    sums = "stats, length, queries, responses, drops",
    lists = "table",
    logs,
    see = "ARPTable, ARPResponder, ARPFaker, AddressInfo",
    drops = "too_long, no_answer, table_full, table_cleared, no_own_address, no_destination",
    fates = "made, consumed, waiting, changed"
)]
pub struct ARPQuerierArgs {
    /// `ARPTable` to use. Its capacities and timeout then apply.
    table: Option<ElementName>,
    #[arg(flatten)]
    capacities: Capacities,
    /// Local broadcast address. By default that of the prefix, or 255.255.255.255.
    broadcast: Option<Ipv4Addr>,
    /// Age at which an address in use is queried again; 0 for never.
    #[arg(default = "60")]
    poll_timeout: Timestamp,
    /// Broadcast such repeated queries.
    #[arg(default = "false")]
    broadcast_poll: bool,
    // After the keywords, which may come first: `ARPQuerier(TABLE t, 1.0.0.1, 0:1:2:3:4:5)`.
    /// IPv4 address of this host, optionally with a prefix length.
    #[arg(position)]
    ip: Raw,
    /// Ethernet address of this host. If omitted, IP is a name that stands for both.
    #[arg(position)]
    eth: Option<Raw>,
}

pub struct ARPQuerier {
    host: OwnAddresses,
    table: Option<ElementName>,
    cache: Rc<RefCell<ArpCache>>,
    poll_after: i64,
    broadcast_poll: bool,
    queries: u64,
    responses: u64,
    drops: u64,
    zero_warned: bool,
}

/// The addresses of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnAddresses {
    ip: Ipv4Addr,
    mac: MacAddr,
    broadcast: Ipv4Addr,
}

impl ARPQuerierArgs {
    fn host(&self, setup: &Setup) -> Result<OwnAddresses, SetupError> {
        let ip = Ip4PrefixOrHost::from_argument(&self.ip.0, setup)
            .map_err(|problem| SetupError::argument("IP", problem));
        let mac = MacAddr::from_argument(&self.eth.as_ref().unwrap_or(&self.ip).0, setup)
            .map_err(|problem| SetupError::argument("ETH", problem));
        let (prefix, mac) = match (ip, mac) {
            (Ok(ip), Ok(mac)) => (ip.0, mac),
            (Err(mut problem), Err(other)) => {
                problem.merge(other);
                return Err(problem);
            }
            (Err(problem), _) | (_, Err(problem)) => return Err(problem),
        };
        let broadcast = self.broadcast.unwrap_or_else(|| broadcast(prefix));
        Ok(OwnAddresses { ip: prefix.address, mac, broadcast })
    }
}

impl Element for ARPQuerier {
    type Args = ARPQuerierArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read_with("table", "The table, one entry per line.", |arp, cx, _| {
            Ok(arp.cache.borrow().text(cx.now().millis()))
        }),
        Handler::read("stats", "Dropped packets and sent queries, in words.", |arp| {
            let drops = arp.drops + arp.cache.borrow().drops();
            format!("{drops} packets killed\n{} ARP queries sent\n", arp.queries)
        }),
        Handler::read("count", "Entries in the table.", |arp| arp.cache.borrow().len().to_string()),
        Handler::read("length", "Waiting packets.", |arp| arp.cache.borrow().waiting().to_string()),
        Handler::read("queries", "Queries sent.", |arp| arp.queries.to_string()),
        Handler::read("responses", "Replies received.", |arp| arp.responses.to_string()),
        Handler::read("drops", "Packets dropped, except those that the table dropped.", |arp| {
            arp.drops.to_string()
        }),
        Handler::read("broadcast", "The local broadcast address.", |arp| arp.host.broadcast.to_string()),
        Handler::setting("broadcast", "Sets the local broadcast address.", |arp, cx, value| {
            arp.host.broadcast = cx.data(value)?;
            Ok(())
        }),
        Handler::read("ipaddr", "IPv4 address of this host.", |arp| arp.host.ip.to_string()),
        Handler::setting("ipaddr", "Sets the IPv4 address of this host.", |arp, cx, value| {
            arp.host.ip = cx.data(value)?;
            Ok(())
        }),
        Handler::action("insert", "Adds an entry to the table: `IP ETH`.", |arp, cx, value| {
            insert(&mut arp.cache.borrow_mut(), cx, value)
        }),
        Handler::action("delete", "Deletes the entry of an `IP`.", |arp, cx, value| {
            delete(&mut arp.cache.borrow_mut(), cx, value)
        }),
        Handler::action(
            "clear",
            "Deletes all entries, drops waiting packets, and resets the counts.",
            |arp, cx, _| {
                (arp.queries, arp.drops, arp.responses) = (0, 0, 0);
                arp.cache.borrow_mut().clear(cx);
                Ok(())
            },
        ),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: ARPQuerierArgs, setup: &mut Setup) -> Result<ARPQuerier, SetupError> {
        let cache = ArpCache::new(args.capacities.limits(DEFAULTS)?, setup.environment().seed());
        Ok(ARPQuerier {
            host: args.host(setup)?,
            table: args.table,
            cache: Rc::new(RefCell::new(cache)),
            poll_after: milliseconds(args.poll_timeout),
            broadcast_poll: args.broadcast_poll,
            queries: 0,
            responses: 0,
            drops: 0,
            zero_warned: false,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if let Some(table) = &self.table {
            let problem = match cx.runtime().find(cx.element(), &table.0) {
                Some(_) => "element type mismatch, expected ARPTable",
                None => "does not name an element",
            };
            self.cache = cx.import(&table.0).ok_or_else(|| SetupError::argument("TABLE", problem))?;
        }
        Ok(())
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if self.table.is_none() {
            set_timer(cx, &self.cache.borrow(), 0);
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        let now = cx.now().millis();
        if port != 0 {
            for packet in batch.drain() {
                self.learn(cx, &packet, now);
                cx.end(packet, Fate::Consumed);
            }
            return cx.recycle(batch);
        }
        let (mut last, mut index) = (None, None);
        batch.filter_map(|packet| {
            let packet = self.send(cx, packet, now, &mut last)?;
            if !cx.has_emitted_in_group_of(0) {
                index.get_or_insert(cx.emitted());
                return Some(packet);
            }
            cx.send(0, packet);
            None
        });
        cx.emit_at(index.unwrap_or(0), 0, batch);
    }

    fn waiting(&self, waiting: &mut Waiting) {
        if self.table.is_none() {
            self.cache.borrow().report(waiting);
        }
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        let mut cache = self.cache.borrow_mut();
        cache.expire(cx, cx.now().millis());
        set_timer(cx, &cache, 1);
    }

    fn reconfigure(&mut self, args: ARPQuerierArgs, setup: &mut Setup) -> Result<(), SetupError> {
        let host = args.host(setup)?;
        if self.table.is_none() {
            let mut cache = self.cache.borrow_mut();
            let limits = args.capacities.limits(cache.limits)?;
            if (host.ip, host.mac) != (self.host.ip, self.host.mac) {
                *cache = ArpCache::new(limits, setup.environment().seed());
            }
            cache.limits = limits;
        }
        self.host = host;
        self.poll_after = milliseconds(args.poll_timeout);
        self.broadcast_poll = args.broadcast_poll;
        Ok(())
    }

    fn inherit(&mut self, old: &mut ARPQuerier, _: &mut Context) {
        if self.host != old.host {
            return;
        }
        if self.table.is_none() && old.table.is_none() {
            self.cache.borrow_mut().inherit(&mut old.cache.borrow_mut());
        }
        (self.queries, self.responses, self.drops) = (old.queries, old.responses, old.drops);
    }
}

/// The last packet's neighbour, valid until the cache changes.
type LastNeighbour = Option<(Ipv4Addr, MacAddr)>;

impl ARPQuerier {
    /// Prepends a header to an IP packet and resolves its neighbour; `None` if the packet can't leave now.
    #[inline]
    fn send(
        &mut self,
        cx: &mut Context,
        mut packet: Packet,
        now: i64,
        last: &mut LastNeighbour,
    ) -> Option<Packet> {
        if self.host.ip.is_unspecified() {
            self.drops += 1;
            cx.drop(packet, Reason::NO_OWN_ADDRESS);
            return None;
        }
        let ip = packet.destination_ip();
        let known = last.filter(|(address, _)| *address == ip).map(|(_, mac)| mac);
        let destination = known.unwrap_or(MacAddr::BROADCAST);
        if packet.prepend_link_header(&ethernet(destination, self.host.mac, EtherType::IP4)).is_none() {
            self.drops += 1;
            cx.drop(packet, Reason::TOO_LONG);
            return None;
        }
        if known.is_some() {
            return Some(packet);
        }
        self.resolve(cx, packet, now, last)
    }

    /// Resolves the neighbour of a packet that has a header.
    fn resolve(
        &mut self,
        cx: &mut Context,
        mut packet: Packet,
        now: i64,
        last: &mut LastNeighbour,
    ) -> Option<Packet> {
        let ip = packet.destination_ip();
        *last = None;
        let mac = loop {
            let answer = self.cache.borrow_mut().lookup(ip, now, self.poll_after);
            if let Some((mac, poll)) = answer {
                if poll {
                    self.send_query(cx, &packet, if self.broadcast_poll { MacAddr::BROADCAST } else { mac });
                }
                *last = Some((ip, mac));
                break mac;
            }
            if ip == Ipv4Addr::BROADCAST || ip == self.host.broadcast {
                break MacAddr::BROADCAST;
            }
            if ip.is_multicast() {
                let [_, b, c, d] = ip.octets();
                break MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d]);
            }
            if ip.is_unspecified() {
                self.drops += 1;
                if !core::mem::replace(&mut self.zero_warned, true) {
                    let name = cx.name();
                    cx.log(&format!(
                        "{name} :: ARPQuerier: would query for 0.0.0.0; missing dest IP addr annotation?"
                    ));
                }
                cx.drop(packet, Reason::NO_DESTINATION);
                return None;
            }
            match self.enqueue(cx, ip, packet, now) {
                Some(known) => packet = known,
                None => return None,
            }
        };
        // The host's own address may have changed while the packet waited.
        if let Some(header) = packet.data_mut().first_chunk_mut() {
            *header = ethernet(mac, self.host.mac, EtherType::IP4);
        }
        Some(packet)
    }

    /// Queues a packet until its neighbour is known, unless it already is.
    fn enqueue(&mut self, cx: &mut Context, ip: Ipv4Addr, packet: Packet, now: i64) -> Option<Packet> {
        // Data for the query, saved because the packet is moved into the cache.
        let (time, tag) = (packet.timestamp(), annotation(&packet));
        let result = self.cache.borrow_mut().enqueue(cx, ip, packet, now);
        match result {
            QueueResult::Known(packet) => return Some(packet),
            QueueResult::Full(packet) => cx.drop(packet, Reason::TABLE_FULL),
            QueueResult::Queued(true) => self.query(cx, ip, MacAddr::BROADCAST, time, tag),
            QueueResult::Queued(false) => {}
        }
        None
    }

    /// Sends a query for the neighbour of a packet.
    fn send_query(&mut self, cx: &mut Context, packet: &Packet, destination: MacAddr) {
        let (ip, time, tag) = (packet.destination_ip(), packet.timestamp(), annotation(packet));
        self.query(cx, ip, destination, time, tag);
    }

    fn query(&mut self, cx: &mut Context, ip: Ipv4Addr, destination: MacAddr, time: Timestamp, tag: u16) {
        let sender = Endpoint { mac: self.host.mac, ip: self.host.ip };
        let Some(mut packet) = query(cx, sender, ip, destination) else { return };
        packet.set_timestamp(time);
        set_annotation(&mut packet, tag);
        self.queries += 1;
        cx.send(cx.outputs().saturating_sub(1), packet);
    }

    /// Processes a reply, and sends the packets that waited for it.
    fn learn(&mut self, cx: &mut Context, packet: &Packet, now: i64) {
        let Some((frame, body)) = packet.data().split_at_checked(LENGTH) else { return };
        let Some(view) = ArpView::new(body).filter(|_| packet.len() >= FRAME_LENGTH) else { return };
        self.responses += 1;
        let is_reply = super::header::read_u16(frame, 12) == Some(EtherType::ARP.0)
            && view.hardware() == arp::HARDWARE_ETHERNET
            && view.protocol() == EtherType::IP4.0
            && view.operation() == arp::REPLY;
        if !is_reply || view.sender_mac().is_group() {
            return;
        }
        let freed = self.cache.borrow_mut().insert(cx, view.sender_ip(), view.sender_mac(), now);
        let mut last = None;
        for packet in freed {
            if self.host.ip.is_unspecified() {
                self.drops += 1;
                cx.drop(packet, Reason::NO_OWN_ADDRESS);
            } else if let Some(packet) = self.resolve(cx, packet, now, &mut last) {
                cx.send(0, packet);
            }
        }
    }
}

/// The broadcast address of a prefix; for a single host, the limited broadcast address.
fn broadcast(prefix: Ip4Prefix) -> Ipv4Addr {
    let address = Ipv4Addr::from_bits(prefix.address.to_bits() | !prefix.mask.to_bits());
    if address == prefix.address { Ipv4Addr::BROADCAST } else { address }
}
