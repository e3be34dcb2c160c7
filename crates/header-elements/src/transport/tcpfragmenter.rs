//! `TCPFragmenter`: splits TCP segments.

use element::arguments::Annotation;
use element::prelude::*;
use packet::view::tcp::flag;
use packet::{HEADROOM, Ip4View, Ip4ViewMut, TcpView, TcpViewMut};

/// Splits TCP segments in packets longer than MTU into several segments.
///
/// The length counts from the marked IPv4 header. Each new packet has all headers, including the link header, with
/// correct lengths, sequence numbers and checksums. FIN stays with the last segment. If MTU and MTU_ANNO are both
/// given, the smaller limit applies.
///
/// ## Differences
///
/// Packets shorter than their headers state pass unchanged. If a part is shorter than a TCP header, its sequence number
/// and checksum stay unchanged.
/// ```click
/// InfiniteSource(DATA \<0001000200000001000000025010ffff00000000 6162636465666768696a6b6c6d6e6f70>, LIMIT 2, STOP true)
///     -> IPEncap(tcp, 10.0.0.1, 10.0.0.2) -> SetTCPChecksum
///     -> f :: TCPFragmenter(MTU 46) -> CheckIPHeader -> t :: CheckTCPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// f.count = 2
/// f.fragmented_count = 2
/// f.fragments = 6
/// t.drops = 0
/// c.byte_count = 272
/// c.count = 6
/// ```
#[derive(Args)]
#[element(
    name = "TCPFragmenter",
    group = "transport",
    processing = "h/h",
    order_insensitive,
    shards = "sum",
    sums = "fragments, fragmented_count, count",
    see = "IPFragmenter",
    fates = "made, consumed"
)]
pub struct TCPFragmenterArgs {
    /// Maximum packet length in bytes; 0 for no limit.
    #[arg(default = "0")]
    mtu: u16,
    /// Annotation that may hold a lower limit.
    mtu_anno: Option<Annotation<2>>,
}

pub struct TCPFragmenter {
    args: TCPFragmenterArgs,
    fragments: u64,
    fragmented: u64,
    count: u64,
}

/// The lengths of a packet's parts, in bytes.
struct Layout {
    /// Bytes before the IPv4 header.
    link: usize,
    /// Length of the IPv4 header.
    network: usize,
    /// Length of the TCP header.
    transport: usize,
    /// Length of the segment's data.
    data: usize,
    /// Bytes after the IPv4 packet.
    trailer: usize,
}

/// The parts of a packet; `None` if it is shorter than its headers say. Any protocol is parsed as TCP.
fn layout(packet: &Packet) -> Option<Layout> {
    let header = Ip4View::new(packet.network())?;
    let total = usize::from(header.total_length());
    let tcp = TcpView::new(packet.transport())?;
    let (network, transport) = (packet.network_header_length(), tcp.header_length());
    let data = total.checked_sub(network + transport)?;
    let trailer = packet.network().len().checked_sub(total)?;
    let link = usize::try_from(packet.network_offset()?).ok()?;
    Some(Layout { link, network, transport, data, trailer })
}

impl TCPFragmenter {
    fn limit(&self, packet: &Packet) -> usize {
        let annotated = self.args.mtu_anno.map_or(0, |Annotation(offset)| packet.annotation_u16(offset));
        match (self.args.mtu, annotated) {
            (mtu, 0) => mtu.into(),
            (0, annotated) => annotated.into(),
            (mtu, annotated) => mtu.min(annotated).into(),
        }
    }

    fn segment(
        &self,
        cx: &mut Context,
        whole: &Packet,
        layout: &Layout,
        at: usize,
        size: usize,
        mtu: usize,
    ) -> Option<Packet> {
        let front = layout.link + layout.network + layout.transport;
        // The trailer has the original's length, and the bytes at this offset of the original.
        let length = front + size + layout.trailer;
        let (head, data) = (whole.data().get(..length)?, whole.data().get(front + at..front + at + size)?);
        let mut part = cx.allocate(HEADROOM, length)?;
        part.data_mut().copy_from_slice(head);
        part.data_mut().get_mut(front..front + size)?.copy_from_slice(data);
        part.copy_annotations(whole);
        if let Some(mac) = whole.mac_offset() {
            part.set_mac(mac);
        }
        part.set_network(layout.link as isize, layout.network);
        if let Some(mut header) = Ip4ViewMut::new(part.network_mut()) {
            header.set_total_length((length - layout.link) as u16);
            header.fill_checksum();
        }
        let segment = (length - layout.link - layout.network) as u16;
        let pseudo = Ip4View::new(part.network())?.pseudo_header(segment);
        if let Some(mut tcp) = TcpViewMut::new(part.transport_mut()) {
            let (sequence, flags) = (tcp.view().sequence(), tcp.view().flags());
            tcp.set_sequence(sequence.wrapping_add(at as u32));
            if at + mtu < layout.data {
                tcp.set_flags(flags & !flag::FIN);
            }
            tcp.fill_checksum(pseudo);
        }
        Some(part)
    }
}

impl Filter for TCPFragmenter {
    type Args = TCPFragmenterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("fragments", "Segments sent.", |element| element.fragments.to_string()),
        Handler::read("fragmented_count", "Packets split.", |element| element.fragmented.to_string()),
        Handler::read("count", "Packets seen.", |element| element.count.to_string()),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: TCPFragmenterArgs, _: &mut Setup) -> Result<TCPFragmenter, SetupError> {
        if args.mtu == 0 && args.mtu_anno.is_none() {
            return Err(SetupError::new("At least one of MTU and MTU_ANNO must be set"));
        }
        Ok(TCPFragmenter { args, fragments: 0, fragmented: 0, count: 0 })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        self.count += 1;
        let mtu = self.limit(&packet);
        let Some(layout) = layout(&packet) else {
            return Verdict::Pass(packet);
        };
        let most = mtu.saturating_sub(layout.network + layout.transport);
        if most == 0 || layout.data < most {
            return Verdict::Pass(packet);
        }
        self.fragmented += 1;
        let mut at = 0;
        while at < layout.data {
            let size = most.min(layout.data - at);
            if let Some(part) = self.segment(cx, &packet, &layout, at, size, mtu) {
                self.fragments += 1;
                cx.send(0, part);
            }
            at += size;
        }
        cx.end(packet, Fate::Consumed);
        Verdict::Taken
    }
}
