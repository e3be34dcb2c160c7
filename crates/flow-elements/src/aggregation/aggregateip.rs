//! `AggregateIP`: sets a packet's aggregate to a header field.

use element::prelude::*;
use packet::{Ip4View, TcpView, protocol};

use super::field::{Field, Header};

/// Sets the aggregate annotation of each packet to the value of a header field.
///
/// FIELD is one of:
///
/// - a name, such as `ip src`, `tcp dport` or `ip sport` (the port of TCP or UDP);
/// - a position in bytes: `ip[OFFSET:LENGTH]`, `tcp [FIRST-LAST]` or `data [OFFSET]`;
/// - a position in bits, in braces instead of brackets.
///
/// A suffix `/BITS` takes the first bits, and `& MASK` the bits under a mask. The field must lie within one aligned
/// 32-bit word. Packets without the field go to output 1, or are dropped as `no_field`.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 1000, 5.0.0.5, 53)
///     -> i :: AggregateIP(ip src/8) -> a :: AggregateCounter -> AggregatePacketCounter(ANNO NONE) -> Discard;
/// ```
/// ```expect
/// i.field = ip src/8
/// i.bit_length = 8
/// a.nagg = 1
/// ```
#[derive(Args)]
#[element(
    name = "AggregateIP",
    group = "aggregation",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    see = "AggregateIPFlows, AggregateCounter",
    drops = "no_field"
)]
pub struct AggregateIPArgs {
    /// Header field to read.
    #[arg(position)]
    field: Field,
    /// Append the value to the bits that the annotation already holds.
    #[arg(default = "false")]
    incremental: bool,
    /// Keep part of an IP address in its bit position.
    #[arg(default = "false")]
    unshift_ip_addr: bool,
}

pub struct AggregateIP {
    field: Field,
    incremental: bool,
    /// Offset of the word with the field in its header.
    word: usize,
    shift: u32,
    mask: u32,
}

impl AggregateIP {
    /// Offset of the field's header from the IP header.
    #[inline]
    fn start(&self, packet: &Packet) -> Option<usize> {
        let header = Ip4View::new(packet.network())?;
        if self.field.header == Header::Ip {
            return Some(0);
        }
        let transport = packet.network_header_length();
        let number = header.protocol();
        let is_there = header.is_first_fragment() && packet.has_transport();
        match self.field.header {
            _ if !is_there => None,
            Header::TcpOrUdp => matches!(number, protocol::TCP | protocol::UDP).then_some(transport),
            Header::Payload if number == protocol::TCP => {
                Some(transport + TcpView::new(packet.transport())?.header_length())
            }
            Header::Payload => (number == protocol::UDP).then_some(transport + 8),
            Header::Protocol(wanted) => (number == wanted).then_some(transport),
            _ => Some(transport),
        }
    }

    #[inline]
    fn value(&self, packet: &Packet) -> Option<u32> {
        let start = self.start(packet)? + self.word;
        let word = packet.network().get(start..)?.first_chunk()?;
        Some(u32::from_be_bytes(*word) >> self.shift & self.mask)
    }
}

impl Filter for AggregateIP {
    type Args = AggregateIPArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("header", "Header that contains the field; empty for IP.", |this| {
            if this.field.header == Header::Ip { String::new() } else { this.field.header.to_string() }
        }),
        Handler::read("bit_offset", "Offset of the field in bits.", |this| this.field.offset.to_string()),
        Handler::read("bit_length", "Length of the field in bits.", |this| this.field.length.to_string()),
        Handler::read("field", "The field.", |this| this.field.to_string()),
    ];

    fn new(args: AggregateIPArgs, _: &mut Setup) -> Result<AggregateIP, SetupError> {
        let field = args.field;
        let last = field.offset + field.length - 1;
        if field.offset / 32 != last / 32 {
            return Err(SetupError::new("field specification does not fit within a single word"));
        }
        if field.length == 32 && args.incremental {
            return Err(SetupError::new("'INCREMENTAL' is incompatible with field length 32"));
        }
        let (mask, shift) = (u32::MAX >> (32 - field.length), 31 - last % 32);
        let stays = args.unshift_ip_addr && field.header == Header::Ip && (96..160).contains(&field.offset);
        let (mask, shift) = if stays { (mask << shift, 0) } else { (mask, shift) };
        let word = field.offset as usize / 32 * 4;
        Ok(AggregateIP { field, incremental: args.incremental, word, shift, mask })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let Some(value) = self.value(&packet) else { return Verdict::Divert(packet, Reason::NO_FIELD) };
        let before = if self.incremental { packet.aggregate() << self.field.length } else { 0 };
        packet.set_aggregate(before.wrapping_add(value));
        Verdict::Pass(packet)
    }
}
