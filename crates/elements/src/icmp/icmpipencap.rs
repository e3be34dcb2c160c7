//! `ICMPIPEncap`: wraps packets in ICMP messages.

use core::net::Ipv4Addr;

use element::arguments::{IcmpType, Word};
use element::prelude::*;
use packet::view::icmp4::kind;
use packet::{Icmp4ViewMut, protocol};

use crate::ip::HeaderTemplate;

/// Puts IPv4 and ICMP headers of one TYPE and CODE in front of each packet.
///
/// The IPv4 identification, which is the sequence number of echo, timestamp and information messages as well, counts
/// from 1 and leaves 0 out. The destination becomes the destination annotation.
/// ```click
/// InfiniteSource(LENGTH 28, LIMIT 2, STOP true)
///     -> e :: ICMPIPEncap(10.0.0.1, 10.0.0.2, unreachable, host)
///     -> CheckIPHeader -> i :: CheckICMPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// e.dst = 10.0.0.2
/// i.drops = 0
/// c.byte_count = 112
/// ```
#[derive(Args)]
#[element(name = "ICMPIPEncap", group = "icmp", see = "ICMPPingEncap, ICMPError")]
pub struct ICMPIPEncapArgs {
    /// The source address.
    #[arg(position)]
    src: Ipv4Addr,
    /// The destination address.
    #[arg(position)]
    dst: Ipv4Addr,
    /// The type, by number or name.
    #[arg(position, keyword = "TYPE")]
    kind: IcmpType,
    /// The code, by number or by a name that the type has.
    #[arg(position, default = "0")]
    code: Word,
    /// The identifier of messages that have one.
    #[arg(default = "0")]
    identifier: u16,
}

/// The element.
pub struct ICMPIPEncap {
    args: ICMPIPEncapArgs,
    code: u8,
    header: HeaderTemplate,
    sequence: u16,
}

impl ICMPIPEncap {
    /// Bytes of the ICMP header; a timestamp message has three times behind the usual eight.
    fn message_length(&self) -> usize {
        if matches!(self.args.kind.0, kind::TIMESTAMP | kind::TIMESTAMP_REPLY) { 20 } else { 8 }
    }

    fn is_numbered(&self) -> bool {
        use kind::*;
        matches!(
            self.args.kind.0,
            ECHO | ECHO_REPLY | TIMESTAMP | TIMESTAMP_REPLY | INFORMATION | INFORMATION_REPLY
        )
    }
}

impl Filter for ICMPIPEncap {
    type Args = ICMPIPEncapArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("src", "The source address.", |element| element.args.src.to_string()),
        Handler::write("src", "Sets the source address.", |element, cx, value| {
            element.args.src = cx.argument(value)?;
            element.header.set_source(element.args.src);
            Ok(())
        }),
        Handler::read("dst", "The destination address.", |element| element.args.dst.to_string()),
        Handler::write("dst", "Sets the destination address.", |element, cx, value| {
            element.args.dst = cx.argument(value)?;
            Ok(())
        }),
    ];

    fn new(args: ICMPIPEncapArgs, _: &mut Setup) -> Result<ICMPIPEncap, SetupError> {
        let code = args.kind.code(&args.code.0).ok_or_else(|| SetupError::new("invalid CODE"))?;
        let header = HeaderTemplate::new(protocol::ICMP, args.src).with(0, 0, 255);
        Ok(ICMPIPEncap { args, code, header, sequence: 1 })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let added = 20 + self.message_length();
        let Some(place) = packet.prepend(added) else {
            return Verdict::Drop(packet, "too_long");
        };
        place.fill(0);
        let bytes = packet.data_mut();
        let length = bytes.len() as u16;
        self.header.set_identification(self.sequence);
        self.header.write(bytes, length, self.args.dst);
        if let Some(mut message) = bytes.get_mut(20..).and_then(Icmp4ViewMut::new) {
            message.set_kind(self.args.kind.0);
            message.set_code(self.code);
            if self.is_numbered() {
                message.set_identifier(self.args.identifier);
                message.set_sequence(self.sequence);
            }
            message.fill_checksum();
        }
        packet.set_destination_ip(self.args.dst);
        packet.set_network(0, 20);
        self.sequence = self.sequence.checked_add(1).unwrap_or(1);
        Verdict::Pass(packet)
    }
}
