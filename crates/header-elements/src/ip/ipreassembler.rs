//! `IPReassembler`: reassembles IPv4 fragments.

use core::fmt::Write;

use element::arguments::Annotation;
use element::prelude::*;
use packet::view::ip4::{MORE_FRAGMENTS, OFFSET_BITS};
use packet::{Ip4View, Ip4ViewMut, annotation};

use super::reassembly::{ByteRange, Reassembly};

/// Reassembles fragmented IPv4 packets. Other packets pass.
///
/// A reassembled packet has the headers and annotations of the first fragment, and the timestamp of the fragment that
/// completed it; its extra length annotation is cleared. After 30 seconds, by packet timestamps, incomplete packets go
/// to output 1 with the fragments at their offsets, or are dropped as `timed_out`. If fragments take more than HIMEM
/// bytes, the oldest incomplete packets are removed in the same way (as `no_memory`) until a quarter of HIMEM is free.
/// Fragments with invalid lengths, and fragments beyond the end of the packet, are dropped as `bad_fragment`.
///
/// ## Differences
///
/// Fragments that arrive before the first one also wait for 30 seconds; Click takes them for old ones. Options of the
/// first fragment never displace data.
/// ```click
/// InfiniteSource(LENGTH 100, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> IPFragmenter(60) -> f :: Counter
///     -> IPReassembler -> CheckIPHeader -> u :: CheckUDPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// f.count = 6
/// u.drops = 0
/// c.count = 2
/// c.byte_count = 256
/// ```
#[derive(Args)]
#[element(
    name = "IPReassembler",
    group = "ip",
    ports = "1/1-2",
    processing = "a/ah",
    shards = "sum",
    lists = "dump",
    flows = "fragments",
    logs,
    see = "IPFragmenter",
    drops = "bad_fragment, no_ip_header, timed_out, no_memory",
    fates = "made, merged, waiting, changed"
)]
pub struct IPReassemblerArgs {
    /// Maximum bytes of waiting fragments.
    #[arg(default = "262144")]
    himem: u32,
    /// Annotation for the length of the longest fragment of a reassembled packet.
    max_mtu_anno: Option<Annotation<2>>,
}

pub struct IPReassembler {
    args: IPReassemblerArgs,
    /// Incomplete packets, bucketed by the first byte of the identification, oldest first.
    buckets: Vec<Vec<Reassembly>>,
    held: u64,
    reap_at: i64,
    fragments: u64,
    good: u64,
    failed: u64,
    bad: u64,
}

/// Seconds after which an incomplete packet is dropped.
const HOLD: i64 = 30;
/// Seconds between searches for expired packets.
const REAP_INTERVAL: i64 = 10;
/// Bytes that an incomplete packet counts for in addition to its data.
const OVERHEAD: u64 = 40;
/// Number of buckets for identifications.
const BUCKETS: usize = 256;

fn drop_incomplete(cx: &mut Context, reassembly: Reassembly, reason: Reason) {
    if cx.outputs() > 1 {
        cx.send(1, reassembly.packet);
    } else {
        cx.drop(reassembly.packet, reason);
    }
}

fn cost(reassembly: &Reassembly) -> u64 {
    OVERHEAD + reassembly.packet.transport().len() as u64
}

impl IPReassembler {
    fn reap(&mut self, cx: &mut Context, now: i64) {
        for bucket in &mut self.buckets {
            // Newest first, which is Click's order of dropping.
            for at in (0..bucket.len()).rev() {
                if bucket
                    .get(at)
                    .is_some_and(|reassembly| reassembly.packet.timestamp().seconds() < now - HOLD)
                {
                    let reassembly = bucket.remove(at);
                    self.held = self.held.saturating_sub(cost(&reassembly));
                    drop_incomplete(cx, reassembly, Reason::TIMED_OUT);
                }
            }
        }
        self.reap_at = now.saturating_add(REAP_INTERVAL);
    }

    fn free_memory(&mut self, cx: &mut Context, now: i64) {
        let enough = u64::from(self.args.himem >> 2) * 3;
        for age in [10, 5, 0] {
            for bucket in &mut self.buckets {
                for at in (0..bucket.len()).rev() {
                    let is_old =
                        |reassembly: &Reassembly| reassembly.packet.timestamp().seconds() < now - age;
                    if age > 0 && !bucket.get(at).is_some_and(is_old) {
                        continue;
                    }
                    let reassembly = bucket.remove(at);
                    self.held = self.held.saturating_sub(cost(&reassembly));
                    self.failed += 1;
                    drop_incomplete(cx, reassembly, Reason::NO_MEMORY);
                    if self.held <= enough {
                        return;
                    }
                }
            }
        }
        cx.log("IPReassembler: cannot free enough memory!");
    }

    fn add_fragment(&mut self, cx: &mut Context, packet: Packet, range: ByteRange) -> Verdict {
        let Some(header) = Ip4View::new(packet.network()) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        let bucket_number = usize::from(header.identification().swap_bytes()) % BUCKETS;
        let key = Reassembly::key(&header);
        let length = packet.network().len() as u16;
        let Some(bucket) = self.buckets.get_mut(bucket_number) else {
            return Verdict::Drop(packet, Reason::BAD_FRAGMENT);
        };
        let Some(at) = bucket.iter().rposition(|reassembly| reassembly.has_key(&key)) else {
            let Some(mut reassembly) = Reassembly::start(cx, packet, range) else { return Verdict::Taken };
            if let Some(Annotation(offset)) = self.args.max_mtu_anno {
                reassembly.packet.set_annotation_u16(offset, reassembly.packet.network().len() as u16);
            }
            self.held += OVERHEAD + range.end as u64;
            bucket.push(reassembly);
            return Verdict::Taken;
        };
        let Some(reassembly) = bucket.get_mut(at) else { return Verdict::Taken };
        let before = cost(reassembly);
        let longest = self
            .args
            .max_mtu_anno
            .map(|Annotation(offset)| (offset, reassembly.packet.annotation_u16(offset).max(length)));
        if range.end > reassembly.packet.transport().len() && !reassembly.has_more() {
            return Verdict::Drop(packet, Reason::BAD_FRAGMENT);
        }
        let time = packet.timestamp();
        let is_joined = reassembly.add(&packet, range);
        if let Some((offset, longest)) = longest {
            reassembly.packet.set_annotation_u16(offset, longest);
        }
        self.held = (self.held + cost(reassembly)).saturating_sub(before);
        if !is_joined {
            let reassembly = bucket.remove(at);
            self.held = self.held.saturating_sub(cost(&reassembly));
            cx.drop(reassembly.packet, Reason::NO_MEMORY);
            return Verdict::Drop(packet, Reason::NO_MEMORY);
        }
        cx.end(packet, Fate::Merged);
        if !reassembly.is_complete() {
            return Verdict::Taken;
        }
        let mut reassembly = bucket.remove(at);
        self.held = self.held.saturating_sub(cost(&reassembly));
        self.good += 1;
        reassembly.packet.set_timestamp(time);
        reassembly.packet.set_annotation_u32(annotation::IPREASSEMBLER.offset.into(), 0);
        let bytes = reassembly.packet.network_mut();
        let length = bytes.len() as u16;
        if let Some(mut header) = Ip4ViewMut::new(bytes) {
            header.set_total_length(length);
            header.fill_checksum();
        }
        Verdict::Pass(reassembly.packet)
    }

    fn dump(&self) -> String {
        let mut text = format!(
            "frags seen total:    {}\ngood reassemblies:   {}\nfailed reassemblies: {}\nbad fragments seen:  {}\n\
             cached chunk data:\n",
            self.fragments, self.good, self.failed, self.bad
        );
        for reassembly in self.buckets.iter().flat_map(|bucket| bucket.iter().rev()) {
            let Some(header) = Ip4View::new(reassembly.packet.network()) else { continue };
            let (source, destination, id) = (header.source(), header.destination(), header.identification());
            // The bytes at the ports' offset, whether received or not.
            let ports = reassembly.packet.transport().first_chunk().copied().unwrap_or([0; 4]);
            let [from, to] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
            let _ = write!(text, " ({source}, {from}, {destination}, {to}) {id}");
            for (start, end) in reassembly.chunks() {
                let _ = write!(text, " ({start},{end})");
            }
            text.push('\n');
        }
        text
    }
}

impl Filter for IPReassembler {
    type Args = IPReassemblerArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("dump", "Statistics, and the fragments of each incomplete packet.", |element| {
            element.dump()
        })];

    fn new(args: IPReassemblerArgs, _: &mut Setup) -> Result<IPReassembler, SetupError> {
        let buckets = (0..BUCKETS).map(|_| Vec::new()).collect();
        Ok(IPReassembler { args, buckets, held: 0, reap_at: 0, fragments: 0, good: 0, failed: 0, bad: 0 })
    }

    fn waiting(&self, waiting: &mut Waiting) {
        for reassembly in self.buckets.iter().flatten() {
            waiting.add(1, Some(reassembly.since));
        }
    }

    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let Some(header) = Ip4View::new(packet.network()) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        if !header.is_fragment() {
            return Verdict::Pass(packet);
        }
        let (field, total, header_length) =
            (header.fragment(), usize::from(header.total_length()), header.header_length());
        self.fragments += 1;
        if packet.timestamp().seconds() == 0 {
            packet.set_timestamp(cx.now());
        }
        let now = packet.timestamp().seconds();
        if now >= self.reap_at {
            self.reap(cx, now);
        }
        let start = usize::from(field & OFFSET_BITS) * 8;
        let range = ByteRange { start, end: start + total.saturating_sub(header_length) };
        let (length, held) = (range.end - range.start, packet.transport().len());
        let is_last = field & MORE_FRAGMENTS == 0;
        if length == 0 || range.end > 0xffff || (!range.end.is_multiple_of(8) && !is_last) || held < length {
            self.bad += 1;
            return Verdict::Drop(packet, Reason::BAD_FRAGMENT);
        }
        packet.truncate_by(held - length);
        if self.held > u64::from(self.args.himem) {
            self.free_memory(cx, now);
        }
        self.add_fragment(cx, packet, range)
    }
}
