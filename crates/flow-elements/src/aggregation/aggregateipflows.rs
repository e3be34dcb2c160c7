//! `AggregateIPFlows`: numbers TCP and UDP flows.

use core::hint::select_unpredictable;

use element::arguments::{ElementName, FileName};
use element::prelude::*;
use packet::view::tcp::flag;
use packet::{Ip4View, protocol};

use super::flow::{BOTH_ENDED, Flow, FlowInfo, Hosts, IdleTimeouts, ends, flow_info, plain_flow_key};
use super::flowrecords::FlowRecords;
use super::fragments::Fragments;
use flow::{NO_ENTRY, Seed, Table};

/// Numbers TCP and UDP flows: sets the aggregate annotation to the flow number and the paint to the direction.
///
/// Flow numbers start at 1; of several shards, each uses every n-th number. The paint is 0 in the direction of the flow's
/// first packet, and 1 for replies. With ICMP, an ICMP error gets the number of the flow that it refers to, and the direction plus 2. Packets that belong to no
/// flow go to output 1, or are dropped as `no_flow`.
///
/// A flow ends when no packet arrived for its timeout in packet time. A finished TCP flow (a FIN from both sides, or a
/// reset) also ends with the next SYN. Ended flows are removed every REAP.
///
/// With FRAGMENTS (the default on push paths), fragments wait for the first fragment, and later packets between the
/// same hosts wait behind them. If the first fragment does not arrive within FRAGMENT_TIMEOUT, they are dropped as
/// `lost_fragment`.
///
/// TRACEINFO names a file that gets an XML element for each ended flow: addresses and ports, start, duration, and
/// packets per direction. If SOURCE has handlers `filename` and `packet_filepos`, it also states where the flow starts
/// in the capture; packets are then processed one by one.
///
/// ## Differences
///
/// In TRACEINFO, flows that end together are ordered by number. The file ends with `</trace>` even on standard output.
/// A first fragment that arrives twice belongs to one flow; in Click, the second one starts another.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 3) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53) -> f :: AggregateIPFlows;
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true) -> UDPIPEncap(5.0.0.5, 53, 10.0.0.1, 1000) -> f;
/// f -> a :: AggregateCounter -> back :: CheckPaint(1);
/// back[0] -> replies :: Counter -> Discard;
/// back[1] -> forward :: Counter -> Discard;
/// ```
/// ```expect
/// a.nagg = 1
/// forward.count = 3
/// replies.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "AggregateIPFlows",
    group = "aggregation",
    ports = "1/1-2",
    processing = "a/ah",
    shards = "sum",
    flows = "keeps",
    logs,
    see = "AggregateCounter, AggregatePacketCounter",
    drops = "no_flow, lost_fragment, too_many_fragments",
    fates = "waiting"
)]
pub struct AggregateIPFlowsArgs {
    /// Idle timeout of a TCP flow in seconds.
    #[arg(default = "86400")]
    tcp_timeout: u32,
    /// Idle timeout in seconds of a TCP flow that both sides have closed.
    #[arg(default = "30")]
    tcp_done_timeout: u32,
    /// Idle timeout of a UDP flow.
    #[arg(default = "60")]
    udp_timeout: Timestamp,
    /// Maximum time that fragments wait.
    #[arg(default = "30")]
    fragment_timeout: Timestamp,
    /// Interval between removals of ended flows.
    #[arg(default = "20m")]
    reap: Timestamp,
    /// Assign ICMP errors to the flow that they refer to.
    #[arg(default = "false")]
    icmp: bool,
    /// Assign fragments to their flow.
    fragments: Option<bool>,
    /// File for flow records; `-` for standard output.
    traceinfo: Option<FileName>,
    /// Element that reads the packets from a file.
    source: Option<ElementName>,
}

/// Paint bit of ICMP errors, combined with the direction.
const ERROR_PAINT: u8 = 2;

/// The flows of a batch's packets, looked up together before the packets are handled one by one.
#[derive(Default)]
struct BatchLookup {
    /// The key of each unfragmented TCP or UDP packet; 0 for others.
    keys: Vec<u128>,
    /// Whether the packet goes from the higher address or port to the lower.
    reverse: Vec<bool>,
    /// The likely handle of its flow at the start of the batch, or `NO_ENTRY`.
    handles: Vec<u32>,
    /// Index of the next packet.
    next: usize,
    /// The time for packets without a timestamp, and its seconds.
    now: (Timestamp, i64),
}

pub struct AggregateIPFlows {
    flows: Table<u128, Flow>,
    lookup: BatchLookup,
    fragments: Fragments,
    next: u32,
    /// The distance of its numbers: shards take turns.
    step: u32,
    active: i64,
    reap_at: i64,
    /// Whether packets wait for their first fragment.
    waits_for_fragments: bool,
    warned: bool,
    records: FlowRecords,
    timeouts: IdleTimeouts,
    args: AggregateIPFlowsArgs,
}

impl AggregateIPFlows {
    /// Finds or creates the packet's flow, and sets the packet's annotations.
    fn annotate(&mut self, cx: &Context, packet: &mut Packet, info: &FlowInfo, key: u128) {
        let now = packet.timestamp().seconds();
        let number = info.hosts.2;
        let fresh = Flow { number: self.next, reverse: info.reverse, ended: 0, last: now };
        let handle = self.flows.find(key);
        let flow = match handle.and_then(|handle| self.flows.value(handle)).copied() {
            Some(flow) => {
                let is_tcp = Ip4View::new(packet.network()).is_some_and(|ip| ip.protocol() == protocol::TCP);
                let opens = is_tcp && packet.transport().get(13).is_some_and(|flags| flags & flag::SYN != 0);
                let is_dead = now - flow.last > self.timeouts.seconds(number, &flow)
                    || (flow.ended == BOTH_ENDED && opens);
                if is_dead { fresh } else { flow }
            }
            None => fresh,
        };
        if flow.number == self.next {
            self.next = self.next.wrapping_add(self.step);
            self.records.begin(cx, flow.number, packet);
            match handle.and_then(|handle| self.flows.value_mut(handle)) {
                Some(old) => {
                    self.records.end(cx, old.number, ends(key, old));
                    *old = flow;
                }
                None => _ = self.flows.insert(key, flow),
            }
        }
        let kind = if info.is_error { ERROR_PAINT } else { 0 };
        packet.set_aggregate(flow.number);
        packet.set_paint(kind | u8::from(info.reverse != flow.reverse));
    }

    /// Updates a flow when one of its packets leaves.
    fn record_packet(&mut self, packet: &Packet, key: u128) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        flow.last = packet.timestamp().seconds();
        self.records.count(flow.number, packet);
        let paint = packet.paint();
        if paint >= ERROR_PAINT
            || Ip4View::new(packet.network())
                .is_none_or(|ip| ip.protocol() != protocol::TCP || !ip.is_first_fragment())
        {
            return;
        }
        if let Some(flags) = packet.transport().get(13) {
            flow.update(*flags, paint);
        }
    }

    /// The fast path: marks the packet at `index` of a batch if it is not fragmented, its flow exists and nothing else
    /// has to happen. This covers nearly all packets. Returns false if `process` must handle the packet.
    #[inline(always)]
    fn annotate_fast(&mut self, index: usize, packet: &mut Packet) -> bool {
        let (Some(&seen), Some(&key), Some(&reverse)) =
            (self.lookup.handles.get(index), self.lookup.keys.get(index), self.lookup.reverse.get(index))
        else {
            return false;
        };
        let time = packet.timestamp();
        if time.is_zero() && !self.warned {
            return false;
        }
        let (time, now) = if time.is_zero() { self.lookup.now } else { (time, time.seconds()) };
        // It may be another flow: an earlier packet may have ended the one of the key, and another may have reused the handle.
        let Some((_, flow)) = self.flows.entry_mut(seen).filter(|(found, _)| *found == key) else {
            return false;
        };
        let number = (key >> 96) as u8;
        if flow.ended == BOTH_ENDED
            || now - flow.last > self.timeouts.seconds_of_live(number)
            || now >= self.reap_at
            || !self.fragments.is_empty()
            || self.records.is_open()
        {
            return false;
        }
        let paint = u8::from(reverse != flow.reverse);
        packet.set_timestamp(time);
        packet.set_aggregate(flow.number);
        packet.set_paint(paint);
        flow.last = now;
        self.active = now;
        // The protocol can't be predicted, so no branch depends on it.
        let flags = packet.transport().get(13).copied().unwrap_or_default();
        flow.ended =
            select_unpredictable(number == protocol::TCP, flow.ended_after(flags, paint), flow.ended);
        true
    }

    /// Sends the packets between two hosts that no longer have to wait, including those older than `oldest`.
    fn release(&mut self, cx: &mut Context, hosts: Hosts, oldest: i64) {
        while let Some((packet, flow)) = self.fragments.next_due(hosts, oldest) {
            match flow {
                Some(key) => {
                    self.record_packet(&packet, key);
                    cx.send(0, packet);
                }
                None => cx.drop(packet, Reason::LOST_FRAGMENT),
            }
        }
    }

    /// Removes expired flows, and sends fragments that have waited long enough at `now`.
    fn reap(&mut self, cx: &mut Context, now: i64) {
        let oldest = now - self.args.fragment_timeout.seconds();
        self.fragments.hosts().into_iter().for_each(|hosts| self.release(cx, hosts, oldest));
        let mut dead = Vec::new();
        for (handle, key, flow) in self.flows.iter() {
            let number = (key >> 96) as u8;
            let hosts = ((key >> 64) as u32, (key >> 16) as u32, number);
            if flow.last < now - self.timeouts.seconds(number, flow)
                && !self.fragments.has_packets_between(hosts)
            {
                dead.push((flow.number, handle));
            }
        }
        if self.records.is_open() {
            sorting::sort(&mut dead);
        }
        for (number, handle) in dead {
            if let Some((key, flow)) = self.flows.remove_handle(handle) {
                self.records.end(cx, number, ends(key, &flow));
            }
        }
    }

    /// Sets the current time on a packet without a timestamp.
    #[inline(never)]
    fn set_missing_timestamp(&mut self, cx: &Context, packet: &mut Packet) {
        if !self.warned {
            cx.log(&format!("{} :: AggregateIPFlows: warning: packet received without timestamp", cx.name()));
            self.warned = true;
        }
        packet.set_timestamp(cx.now());
    }

    /// Handles a packet in all cases. Passes it on, keeps it until its first fragment arrives, or rejects it.
    #[inline(never)]
    fn process(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let Some(info) = flow_info(&packet, self.args.icmp) else {
            return Verdict::Divert(packet, Reason::NO_FLOW);
        };
        match info.key {
            Some(key) => self.annotate(cx, &mut packet, &info, key),
            None => {
                packet.set_aggregate(0);
                packet.set_paint(if info.is_error { ERROR_PAINT } else { 0 } | u8::from(info.reverse));
            }
        }
        let now = packet.timestamp().seconds();
        if (self.waits_for_fragments && info.is_fragment) || self.fragments.has_packets_between(info.hosts) {
            if let Err(packet) = self.fragments.enqueue(packet, &info, cx.steady()) {
                return Verdict::Drop(packet, Reason::TOO_MANY_FRAGMENTS);
            }
            self.active = now;
            self.release(cx, info.hosts, now - self.args.fragment_timeout.seconds());
            return Verdict::Taken;
        }
        let Some(key) = info.key else { return Verdict::Divert(packet, Reason::NO_FLOW) };
        self.active = now;
        self.record_packet(&packet, key);
        Verdict::Pass(packet)
    }
}

impl Filter for AggregateIPFlows {
    type Args = AggregateIPFlowsArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::action("clear", "Sends all waiting packets and forgets all flows.", |flows, cx, _| {
            flows.reap(cx, i64::from(i32::MAX));
            Ok(())
        })];

    fn new(args: AggregateIPFlowsArgs, setup: &mut Setup) -> Result<AggregateIPFlows, SetupError> {
        // The file position of a packet is available only while it is the last one read.
        if args.traceinfo.is_some() {
            setup.require_one_shard("TRACEINFO")?;
        }
        setup.unbatched = args.source.is_some() && args.traceinfo.is_some();
        Ok(AggregateIPFlows {
            flows: Table::new(Seed::new(0, 0)),
            lookup: BatchLookup::default(),
            fragments: Fragments::default(),
            next: 1 + setup.shard.index,
            step: setup.shard.count,
            active: 0,
            reap_at: 0,
            waits_for_fragments: false,
            warned: false,
            records: FlowRecords::default(),
            timeouts: IdleTimeouts {
                udp: args.udp_timeout.seconds(),
                tcp: args.tcp_timeout.into(),
                tcp_done: args.tcp_done_timeout.into(),
            },
            args,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        match &self.args.source {
            Some(name) if cx.runtime().find(cx.element(), &name.0).is_none() => {
                Err(SetupError::argument("SOURCE", "does not name an element"))
            }
            _ => Ok(()),
        }
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let word = || cx.hash_seed();
        self.flows = Table::new(Seed::new(word(), word()));
        let source = self.args.source.as_ref().map(|name| name.0.clone());
        if let Some(FileName(path)) = &self.args.traceinfo {
            self.records = FlowRecords::open(cx, path, source)?;
        }
        let pushes = cx.is_push_input(0);
        self.waits_for_fragments = self.args.fragments.unwrap_or(pushes);
        if self.waits_for_fragments && !pushes {
            return Err(SetupError::new(
                "'FRAGMENTS true' is incompatible with pull; run this element in a push context",
            ));
        }
        Ok(())
    }

    /// Looks up the flows of all packets together, so that their cache misses overlap.
    fn begin(&mut self, cx: &mut Context, batch: &Batch) {
        let BatchLookup { keys, reverse, handles, next, now } = &mut self.lookup;
        *next = 0;
        if keys.len() < batch.len() {
            keys.resize(batch.len(), 0);
            reverse.resize(batch.len(), false);
            handles.resize(batch.len(), NO_ENTRY);
        }
        *now = (cx.now(), cx.now().seconds());
        for ((packet, key), turned) in batch.iter().zip(&mut *keys).zip(reverse) {
            (*key, *turned) = plain_flow_key(packet).unwrap_or_default();
        }
        self.flows.find_likely(keys.get(..batch.len()).unwrap_or(&[]), handles);
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        let goes_on = self.annotate_fast(self.lookup.next, packet);
        self.lookup.next += usize::from(goes_on);
        goes_on
    }

    fn waiting(&self, waiting: &mut Waiting) {
        self.fragments.report(waiting);
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let index = self.lookup.next;
        self.lookup.next += 1;
        if self.annotate_fast(index, &mut packet) {
            return Verdict::Pass(packet);
        }
        if packet.timestamp().is_zero() {
            self.set_missing_timestamp(cx, &mut packet);
        }
        let verdict = self.process(cx, packet);
        if self.active >= self.reap_at {
            if self.reap_at > 0 {
                self.reap(cx, self.active);
            }
            self.reap_at = self.active + self.args.reap.seconds();
        }
        verdict
    }

    fn inherit(&mut self, old: &mut AggregateIPFlows, _: &mut Context) {
        core::mem::swap(&mut self.flows, &mut old.flows);
        self.fragments = core::mem::take(&mut old.fragments);
        (self.next, self.active, self.reap_at) = (old.next, old.active, old.reap_at);
        self.records.inherit(&mut old.records);
    }

    fn cleanup(&mut self, cx: &mut Context) {
        if self.records.is_open() {
            let mut left: Vec<_> =
                self.flows.iter().map(|(_, key, flow)| (flow.number, ends(key, flow))).collect();
            sorting::sort(&mut left);
            left.into_iter().for_each(|(number, ends)| self.records.end(cx, number, ends));
            self.records.close(cx);
        }
    }
}
