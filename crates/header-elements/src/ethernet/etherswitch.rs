//! `EtherSwitch`: a learning Ethernet switch.

use element::prelude::*;
use packet::MacAddr;

use flow::{Seed, Table};

use super::header::addresses;
use super::listing::in_click_order;

/// Learning Ethernet switch: forwards frames between its ports and learns which addresses are behind which port.
///
/// The source address of each frame is learned for its input port. A frame for a learned address goes to that port
/// only, or is dropped as `same_port` if it came from there. All other frames go to every port except their own. An
/// address expires TIMEOUT seconds after its last frame, measured by timestamp annotations. With TIMEOUT 0 nothing is
/// learned.
///
/// ## Differences
/// At most 1,048,576 addresses are learned; in Click their number is unlimited. Unless TIMEOUT is 0, a packet too short
/// for both addresses is dropped as `too_short`; Click reads whatever follows it.
/// ```click
/// a :: InfiniteSource(DATA \<020202020202 040404040404 0800>, LIMIT 2) -> [0] s :: EtherSwitch;
/// b :: InfiniteSource(DATA \<040404040404 020202020202 0800>, LIMIT 3, ACTIVE false, STOP true) -> [1] s;
/// Idle -> [2] s;
/// s[0] -> c :: Counter -> Discard;
/// s[1] -> d :: Counter -> Discard;
/// s[2] -> e :: Counter -> Discard;
/// Script(wait 1s, write b.active true);
/// ```
/// ```expect
/// c.count = 3
/// d.count = 2
/// e.count = 2
/// s.table = 04-04-04-04-04-04 0\n02-02-02-02-02-02 1
/// ```
#[derive(Args)]
#[element(
    name = "EtherSwitch",
    group = "ethernet",
    ports = "2-/=",
    processing = "h/h",
    flow = "#/[^#]",
    see = "Hub, HostEtherFilter",
    drops = "too_short, same_port",
    fates = "copied"
)]
pub struct EtherSwitchArgs {
    /// Lifetime of an address in seconds; 0 to learn nothing.
    #[arg(default = "300")]
    timeout: Timestamp,
}

/// Maximum learned addresses, so that a sender that invents source addresses can't claim more memory.
const MAX_ADDRESSES: usize = 1 << 20;

pub struct EtherSwitch {
    table: Table<[u8; 6], LearnedAddress>,
    /// Lifetime of an address, in whole seconds.
    timeout: Timestamp,
    /// Number of addresses learned.
    learned: u64,
}

/// A learned address: its port, and when it was last seen.
#[derive(Clone, Copy)]
struct LearnedAddress {
    port: usize,
    seen: Timestamp,
    /// Number of addresses learned before it.
    sequence: u64,
}

impl Element for EtherSwitch {
    type Args = EtherSwitchArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("table", "Addresses with their ports, one per line.", |switch| {
            let mut entries: Vec<_> = switch.table.iter().map(|(_, mac, entry)| (mac, *entry)).collect();
            sorting::sort_by_key(&mut entries, |(_, entry)| entry.sequence);
            let lines = in_click_order(entries.into_iter()).into_iter();
            lines.map(|(mac, entry)| format!("{} {}\n", MacAddr(mac), entry.port)).collect()
        }),
        Handler::read("timeout", "Lifetime of an address in seconds.", |switch| {
            switch.timeout.seconds().to_string()
        }),
        Handler::setting("timeout", "Sets the lifetime of an address.", |switch, cx, value| {
            let span = cx.argument(value).map_err(|_| HandlerError::new("expected timeout (integer)"))?;
            switch.timeout = whole_seconds(span);
            Ok(())
        }),
    ];

    fn new(args: EtherSwitchArgs, setup: &mut Setup) -> Result<EtherSwitch, SetupError> {
        let seed = setup.environment().seed();
        let timeout = whole_seconds(args.timeout);
        Ok(EtherSwitch { table: Table::new(Seed::new(seed, !seed)), timeout, learned: 0 })
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        for packet in batch.drain() {
            if self.timeout.is_zero() {
                broadcast(cx, port, packet);
                continue;
            }
            let Some((destination, source)) = addresses(packet.data()) else {
                cx.drop(packet, Reason::TOO_SHORT);
                continue;
            };
            self.learn(source, port, packet.timestamp());
            match self.find(destination, packet.timestamp()) {
                None => broadcast(cx, port, packet),
                Some(output) if output == port => cx.drop(packet, Reason::SAME_PORT),
                Some(output) => cx.send(output, packet),
            }
        }
        cx.recycle(batch);
    }

    fn inherit(&mut self, old: &mut EtherSwitch, cx: &mut Context) {
        core::mem::swap(&mut self.table, &mut old.table);
        self.learned = old.learned;
        let ports = cx.outputs();
        let removed: Vec<u32> = self
            .table
            .iter()
            .filter(|(_, _, entry)| entry.port >= ports)
            .map(|(handle, ..)| handle)
            .collect();
        for handle in removed {
            self.table.remove_handle(handle);
        }
    }
}

impl EtherSwitch {
    #[inline]
    fn learn(&mut self, source: MacAddr, port: usize, seen: Timestamp) {
        if let Some(known) = self.table.get_mut(source.0) {
            *known = LearnedAddress { port, seen, sequence: known.sequence };
        } else if self.table.len() < MAX_ADDRESSES {
            let entry = LearnedAddress { port, seen, sequence: self.learned };
            self.learned += 1;
            // An error, beyond 2^32 entries, means that the address is not learned.
            let _ = self.table.insert(source.0, entry);
        }
    }

    /// The port of an address, if it was learned and has not expired.
    #[inline]
    fn find(&mut self, destination: MacAddr, now: Timestamp) -> Option<usize> {
        if destination.is_group() {
            return None;
        }
        let handle = self.table.find(destination.0)?;
        let entry = *self.table.value(handle)?;
        if now < entry.seen + self.timeout {
            return Some(entry.port);
        }
        self.table.remove_handle(handle);
        None
    }
}

/// Sends a packet to all outputs except `port`, the last output first.
fn broadcast(cx: &mut Context, port: usize, packet: Packet) {
    let Some(last) = (0..cx.outputs()).find(|output| *output != port) else {
        return cx.drop(packet, Reason::NO_OTHER_PORT);
    };
    for output in (last + 1..cx.outputs()).rev().filter(|output| *output != port) {
        if let Some(copy) = cx.duplicate(&packet) {
            cx.send(output, copy);
        }
    }
    cx.send(last, packet);
}

fn whole_seconds(span: Timestamp) -> Timestamp {
    let half = i64::from(span.subsecond_nanos() >= 500_000_000);
    Timestamp::from_parts((span.seconds() + half).max(0), 0)
}
