//! `ICMPRewriter`: rewrites ICMP errors about packets of other rewriters.

use core::net::Ipv4Addr;

use element::arguments::{Annotation, Raw};
use element::prelude::*;
use element::text;
use packet::checksum::{self, Delta};
use packet::view::icmp4;
use packet::{Icmp4View, Ip4View, Ip4ViewMut, protocol};

use super::flows::{Flows, Found};
use super::rewriter::annotations;
use super::translate::Annotations;
use flow::Ip4Flow;

/// Translates ICMP errors about rewritten packets, so that they match the original packets.
///
/// MAPS lists the rewriters to search, in order. The addresses and ports (or the ping identifier) of the packet quoted
/// in the error are replaced by the original ones, and so is the destination of the error itself. An error about a
/// known flow goes to output 0; if MAPS gives `NAME:OFFSET`, it goes to OFFSET plus the output of the flow's packets in
/// that direction. Other ICMP packets, and errors about unknown flows, go to output 1, or are dropped as `no_mapping`.
/// Other protocols are dropped as `not_icmp`.
///
/// ## Differences
///
/// Names in MAPS that are not rewriters are reported when the router starts.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53)
///     -> rw :: IPRewriter(pattern 1.0.0.1 2000-3000# - - 0 0)
///     -> ICMPError(7.7.7.7, timeexceeded) -> ICMPRewriter(rw)
///     -> CheckIPHeader -> CheckICMPHeader -> outer :: IPClassifier(dst host 10.0.0.1)
///     -> Strip(28) -> CheckIPHeader -> inner :: IPClassifier(src host 10.0.0.1 and udp src port 1000)
///     -> CheckUDPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "ICMPRewriter",
    group = "rewriting",
    ports = "1/1-",
    processing = "h/h",
    reads = "IPRewriter, TCPRewriter, UDPRewriter, IPAddrRewriter, IPAddrPairRewriter, ICMPPingRewriter",
    shards = "independent",
    flows = "keeps",
    see = "IPRewriter, IPAddrRewriter, TCPRewriter, ICMPPingRewriter",
    drops = "not_icmp, no_mapping",
    fates = "changed"
)]
pub(crate) struct ICMPRewriterArgs {
    /// Rewriters separated by spaces, each optionally followed by `:OFFSET`.
    #[arg(position)]
    maps: Raw,
    /// Set the destination annotation to the new destination.
    #[arg(default = "true")]
    dst_anno: bool,
    /// Annotation byte that errors about replies inherit from the first packet of their flow.
    reply_anno: Option<Annotation<1>>,
}

pub(crate) struct ICMPRewriter {
    names: Vec<(String, Option<u16>)>,
    rewriters: Vec<(Rc<Flows>, Option<u16>)>,
    annotations: Annotations,
}

/// Bytes before the packet embedded in an error.
const ICMP_HEADER: usize = icmp4::LENGTH;

/// The packet embedded in an ICMP error.
struct EmbeddedPacket {
    /// The addresses, and ports or identifier, of a reply to the packet.
    reply: Ip4Flow,
    protocol: u8,
    /// Offset of the packet's transport header in the error; `None` if it is missing.
    transport: Option<usize>,
}

/// Parses an error from its ICMP header on. Returns `None` if it is not an error or embeds no packet.
fn parse_embedded(message: &[u8]) -> Option<EmbeddedPacket> {
    let carried = Icmp4View::new(message)?.original_datagram()?;
    let header = Ip4View::new(carried)?;
    if header.version() != 4 || header.header_length() < 20 {
        return None;
    }
    let mut embedded = EmbeddedPacket {
        reply: Ip4Flow {
            source: header.destination().to_bits(),
            destination: header.source().to_bits(),
            ..Ip4Flow::default()
        },
        protocol: header.protocol(),
        transport: None,
    };
    let transport = carried.get(header.header_length()..).filter(|_| header.is_first_fragment());
    match (header.protocol(), transport) {
        (protocol::TCP | protocol::UDP | protocol::DCCP, Some([a, b, c, d, _, _, _, _, ..])) => {
            embedded.reply.source_port = u16::from_be_bytes([*c, *d]);
            embedded.reply.destination_port = u16::from_be_bytes([*a, *b]);
            embedded.transport = Some(ICMP_HEADER + header.header_length());
        }
        (protocol::ICMP, Some([icmp4::kind::ECHO, _, _, _, high, low, ..])) => {
            embedded.reply.source_port = u16::from_be_bytes([*high, *low]);
            embedded.transport = Some(ICMP_HEADER + header.header_length());
        }
        _ => {}
    }
    Some(embedded)
}

/// Replaces a 16-bit field, and adds the difference to `change` for the error's checksum.
fn replace(bytes: &mut [u8], at: usize, new: u16, change: &mut Delta) {
    if let Some(field) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *change = change.word(u16::from_be_bytes(*field), new);
        *field = new.to_be_bytes();
    }
}

/// The 16-bit field at `at`.
fn field(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

/// Updates a checksum field, if it is present, and adds the difference to `change`.
fn update(bytes: &mut [u8], at: usize, by: Delta, change: &mut Delta) {
    if let Some(sum) = field(bytes, at) {
        replace(bytes, at, by.normalised().apply(sum), change);
    }
}

/// Restores the original addresses and ports of the embedded packet, which are those of `to` reversed.
fn restore(message: &mut [u8], embedded: &EmbeddedPacket, to: Ip4Flow) {
    let mut change = Delta::NONE;
    let mut addresses = Delta::NONE;
    let source = to.destination.to_be_bytes();
    let destination = to.source.to_be_bytes();
    for (at, [a, b, c, d]) in [(ICMP_HEADER + 12, source), (ICMP_HEADER + 16, destination)] {
        replace(message, at, u16::from_be_bytes([a, b]), &mut addresses);
        replace(message, at + 2, u16::from_be_bytes([c, d]), &mut addresses);
    }
    let mut covered = addresses;
    update(message, ICMP_HEADER + 10, addresses, &mut covered);
    if let Some(transport) = embedded.transport {
        if embedded.protocol == protocol::ICMP {
            let mut identifier = Delta::NONE;
            replace(message, transport + 4, to.destination_port, &mut identifier);
            change = identifier;
            update(message, transport + 2, identifier, &mut change);
            if let (Some(sum), Some(rest)) = (field(message, transport + 2), message.get(transport..)) {
                let sum = checksum::correct_zero(sum, rest);
                replace(message, transport + 2, sum, &mut change);
            }
        } else {
            let mut ports = addresses;
            let mut only_ports = Delta::NONE;
            for (at, port) in [(transport, to.destination_port), (transport + 2, to.source_port)] {
                let old = field(message, at).unwrap_or(0);
                ports = ports.word(old, port);
                replace(message, at, port, &mut only_ports);
            }
            change = only_ports;
            match embedded.protocol {
                protocol::TCP => update(message, transport + 16, ports, &mut change),
                protocol::UDP if field(message, transport + 6) != Some(0) => {
                    update(message, transport + 6, ports, &mut change);
                }
                _ => {}
            }
        }
    }
    let sum = field(message, 2).unwrap_or(0);
    let sum = change.normalised().apply(covered.normalised().apply(sum));
    replace(message, 2, sum, &mut change);
}

impl ICMPRewriter {
    /// The flow of the embedded packet, and the output for the error.
    fn find(&self, cx: &Context, embedded: &EmbeddedPacket) -> Option<(Found, u16)> {
        self.rewriters.iter().find_map(|(rewriter, offset)| {
            let found = rewriter.lookup_flow(embedded.protocol, embedded.reply, true, None, cx)?;
            Some((found, offset.map_or(0, |offset| offset.saturating_add(found.output))))
        })
    }

    fn rewrite(&self, cx: &Context, packet: &mut Packet) -> Option<u16> {
        let embedded = parse_embedded(packet.transport())?;
        let (found, output) = self.find(cx, &embedded)?;
        let to = found.rewritten;
        let old = embedded.reply.destination;
        let mut header = Ip4ViewMut::new(packet.network_mut())?;
        if header.view().destination().to_bits() == old {
            let new = Ipv4Addr::from_bits(to.destination);
            let sum = Delta::NONE.word32(old, to.destination).normalised().apply(header.view().checksum());
            header.set_destination(new);
            header.set_checksum(sum);
            if self.annotations.destination {
                packet.set_destination_ip(new);
            }
        }
        if found.side.reply
            && let Some(offset) = self.annotations.reply
        {
            packet.set_annotation_u8(offset, found.reply_annotation);
        }
        restore(packet.transport_mut(), &embedded, to);
        Some(output)
    }
}

impl Element for ICMPRewriter {
    type Args = ICMPRewriterArgs;

    fn new(args: ICMPRewriterArgs, setup: &mut Setup) -> Result<ICMPRewriter, SetupError> {
        let mut names = Vec::new();
        for word in text::words(&args.maps.0) {
            match word.split_once(':') {
                None => names.push((word, None)),
                Some((name, offset)) => {
                    let offset = u16::from_argument(offset, setup)
                        .map_err(|_| SetupError::new(format!("{word} not an IP rewriter")))?;
                    names.push((name.to_string(), Some(offset)));
                }
            }
        }
        if names.is_empty() {
            return Err(SetupError::new("no IP rewriters supplied"));
        }
        let annotations = annotations(args.dst_anno, args.reply_anno);
        Ok(ICMPRewriter { names, rewriters: Vec::new(), annotations })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let mut problems = SetupError::default();
        for (name, offset) in &self.names {
            match cx.import::<Flows>(name) {
                None => problems.merge(SetupError::new(format!("{name} not an IP rewriter"))),
                Some(flows)
                    if offset.is_some_and(|offset| usize::from(offset) + flows.outputs > cx.outputs()) =>
                {
                    let count = cx.outputs();
                    let outputs = if count == 1 { "output" } else { "outputs" };
                    problems.merge(SetupError::new(format!(
                        "{name} port offset requires more than {count} {outputs}"
                    )));
                }
                Some(flows) => self.rewriters.push((flows, *offset)),
            }
        }
        if self.rewriters.is_empty() {
            problems.merge(SetupError::new("no IP rewriters supplied"));
        }
        problems.into_result()
    }

    fn push(&mut self, cx: &mut Context, _: usize, mut batch: Batch) {
        for mut packet in batch.drain() {
            if Ip4View::new(packet.network()).is_none_or(|header| header.protocol() != protocol::ICMP) {
                cx.drop(packet, Reason::NOT_ICMP);
                continue;
            }
            match self.rewrite(cx, &mut packet) {
                Some(output) => cx.send(output.into(), packet),
                None => cx.drop(packet, Reason::NO_MAPPING),
            }
        }
        cx.recycle(batch);
    }
}
