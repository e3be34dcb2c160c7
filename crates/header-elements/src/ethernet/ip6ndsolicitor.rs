//! `IP6NDSolicitor`: resolves the Ethernet addresses of IPv6 neighbours.

use alloc::collections::BTreeMap;
use core::net::Ipv6Addr;

use element::prelude::*;
use packet::{EtherType, Ip6Text, MacAddr};

use super::header::ethernet;
use super::neighbour::{Endpoint, parse_advertisement, solicit};

/// Resolves next hops by IPv6 neighbour discovery (RFC 4861) and adds Ethernet headers to IPv6 packets.
///
/// Input 0 takes IPv6 packets whose destination annotation is the next hop, input 1 neighbour advertisements as
/// Ethernet frames. A packet for an unknown address waits, one per address, while a solicitation leaves by the last
/// output. If another packet takes its place, it is dropped as `replaced`. An address expires two minutes after its
/// last advertisement, and is queried again after one minute if it is in use.
/// ```click
/// asker :: IP6NDSolicitor(2001:db8::1, 2:2:2:2:2:2);
/// InfiniteSource(DATA \<6000000000003b4020010db800000000000000000000000120010db8000000000000000000000002>, LIMIT 1)
///     -> GetIP6Address(24) -> asker;
/// asker[0] -> Discard;
/// asker[1] -> c :: Classifier(0/3333ff000002 54/87, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// Idle -> [1] asker;
/// DriverManager(wait 1ms, stop);
/// ```
/// ```expect
/// right.count = 1
/// right.byte_count = 86
/// wrong.count = 0
/// asker.table = 2001:db8::2 0 00-00-00-00-00-00
/// ```
/// ## Differences
/// At most 65,536 addresses are stored, known or queried. A packet for one more is dropped as `full`. In Click their
/// number is unlimited.
#[derive(Args)]
#[element(
    name = "IP6NDSolicitor",
    group = "ethernet",
    ports = "2/1-2",
    processing = "h/h",
    flow = "xy/x",
    upkeep,
    shards = "sum",
    sums = "stats",
    lists = "table",
    logs,
    see = "IP6NDAdvertiser, GetIP6Address, ARPQuerier",
    drops = "too_long, replaced, full",
    fates = "made, consumed, waiting, changed"
)]
pub struct IP6NDSolicitorArgs {
    /// IPv6 address of this host.
    #[arg(position)]
    ip: Ipv6Addr,
    /// Ethernet address of this host.
    #[arg(position)]
    eth: MacAddr,
}

/// Maximum known or requested addresses, so that a sender to invented addresses can't claim more memory.
const MAX_ADDRESSES: usize = 1 << 16;
/// Milliseconds between scans of the table.
const SCAN_INTERVAL: i64 = 15_000;
/// Milliseconds after which an address is queried again.
const REFRESH_AGE: i64 = 60_000;
/// Milliseconds after which an address is removed.
const EXPIRY_AGE: i64 = 120_000;

pub struct IP6NDSolicitor {
    host: Endpoint,
    /// Neighbours by the sum of the first and last byte of their address, newest first, which is the order of `table`.
    neighbours: BTreeMap<u8, Vec<Neighbour>>,
    count: usize,
    queries: u64,
    drops: u64,
}

struct Neighbour {
    ip: Ipv6Addr,
    mac: MacAddr,
    /// Time of the last advertisement in milliseconds; `None` if there was none.
    advertised: Option<i64>,
    /// Whether to query the address again when it is used.
    polling: bool,
    waiting: Option<Packet>,
    /// Since when it waits.
    since: Timestamp,
}

impl Element for IP6NDSolicitor {
    type Args = IP6NDSolicitorArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read(
            "table",
            "The addresses, one per line: IPv6 address, whether it is known, Ethernet address.",
            |asker| {
                let all = asker.neighbours.values().flatten();
                let line = |one: &Neighbour| {
                    format!("{} {} {}\n", Ip6Text(one.ip), u8::from(one.advertised.is_some()), one.mac)
                };
                all.map(line).collect()
            },
        ),
        Handler::read("stats", "Dropped packets and sent solicitations, in words.", |asker| {
            format!("{} packets killed\n{} ND Solicitation Message sent\n", asker.drops, asker.queries)
        }),
    ];

    fn new(args: IP6NDSolicitorArgs, _: &mut Setup) -> Result<IP6NDSolicitor, SetupError> {
        let host = Endpoint { mac: args.eth, ip: args.ip };
        Ok(IP6NDSolicitor { host, neighbours: BTreeMap::new(), count: 0, queries: 0, drops: 0 })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        cx.set_timer_after(0, Timestamp::from_millis(SCAN_INTERVAL));
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        for packet in batch.drain() {
            if port == 0 {
                self.send(cx, packet);
            } else {
                self.learn(cx, packet.data());
                cx.end(packet, Fate::Consumed);
            }
        }
        cx.recycle(batch);
    }

    fn waiting(&self, waiting: &mut Waiting) {
        for one in self.neighbours.values().flatten() {
            waiting.add(usize::from(one.waiting.is_some()), Some(one.since));
        }
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        let now = cx.now().millis();
        for bucket in self.neighbours.values_mut() {
            bucket.retain_mut(|one| {
                let age = one.advertised.map_or(0, |advertised| now - advertised);
                one.polling |= age > REFRESH_AGE;
                age <= EXPIRY_AGE
            });
        }
        self.neighbours.retain(|_, bucket| !bucket.is_empty());
        self.count = self.neighbours.values().map(Vec::len).sum();
        cx.set_timer_after(0, Timestamp::from_millis(SCAN_INTERVAL));
    }

    fn inherit(&mut self, old: &mut IP6NDSolicitor, _: &mut Context) {
        if self.host == old.host {
            core::mem::swap(&mut self.neighbours, &mut old.neighbours);
            core::mem::swap(&mut self.count, &mut old.count);
        }
    }
}

impl IP6NDSolicitor {
    fn bucket(&mut self, ip: Ipv6Addr) -> &mut Vec<Neighbour> {
        let [first, .., last] = ip.octets();
        self.neighbours.entry(first.wrapping_add(last)).or_default()
    }

    fn neighbour(&mut self, ip: Ipv6Addr) -> Option<&mut Neighbour> {
        self.bucket(ip).iter_mut().find(|one| one.ip == ip)
    }

    /// Sends a packet, or queues it and sends a solicitation.
    fn send(&mut self, cx: &mut Context, mut packet: Packet) {
        let (ip, host) = (packet.destination_ip6(), self.host);
        if let Some(one) = self.neighbour(ip) {
            let mac = one.mac;
            if one.advertised.is_none() {
                let replaced = one.waiting.replace(packet);
                one.since = cx.steady();
                if let Some(replaced) = replaced {
                    self.drops += 1;
                    cx.drop(replaced, Reason::REPLACED);
                }
                return self.send_solicitation(cx, ip);
            }
            if core::mem::take(&mut one.polling) {
                self.send_solicitation(cx, ip);
            }
            return match packet.prepend_link_header(&ethernet(mac, host.mac, EtherType::IP6)) {
                Some(()) => cx.send(0, packet),
                None => cx.drop(packet, Reason::TOO_LONG),
            };
        }
        if self.count >= MAX_ADDRESSES {
            return cx.drop(packet, Reason::FULL);
        }
        self.count += 1;
        let (waiting, since) = (Some(packet), cx.steady());
        let new = Neighbour { ip, mac: MacAddr::ZERO, advertised: None, polling: false, waiting, since };
        self.bucket(ip).insert(0, new);
        self.send_solicitation(cx, ip);
    }

    fn send_solicitation(&mut self, cx: &mut Context, ip: Ipv6Addr) {
        self.queries += 1;
        if let Some(query) = solicit(cx, self.host, ip) {
            cx.send(cx.outputs().saturating_sub(1), query);
        }
    }

    /// Stores the address of an advertisement that was solicited, and sends the packet that waits for it.
    fn learn(&mut self, cx: &mut Context, frame: &[u8]) {
        let now = cx.now().millis();
        let Some(found) = parse_advertisement(frame) else { return };
        let Some(one) = self.neighbour(found.ip) else { return };
        if one.advertised.is_some() && one.mac != found.mac {
            cx.log("IP6NDSolicitor overwriting an entry");
        }
        (one.mac, one.advertised, one.polling) = (found.mac, Some(now), false);
        if let Some(packet) = one.waiting.take() {
            self.send(cx, packet);
        }
    }
}
