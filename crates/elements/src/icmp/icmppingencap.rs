//! `ICMPPingEncap`: wraps packets in echo requests.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::view::icmp4::kind;
use packet::{Icmp4ViewMut, protocol};

use crate::ip::HeaderTemplate;

/// Puts IPv4 and ICMP echo request headers in front of each packet.
///
/// The sequence number, which is the IPv4 identification as well, counts from 1 and leaves 0 out. The destination becomes
/// the destination annotation.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> e :: ICMPPingEncap(10.0.0.1, 10.0.0.2, IDENTIFIER 7)
///     -> CheckIPHeader -> i :: CheckICMPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// e.src = 10.0.0.1
/// i.drops = 0
/// c.byte_count = 72
/// ```
#[derive(Args)]
#[element(
    name = "ICMPPingEncap",
    group = "icmp",
    see = "ICMPPingSource, ICMPPingResponder, ICMPPingRewriter"
)]
pub struct ICMPPingEncapArgs {
    /// The source address.
    #[arg(position)]
    src: Ipv4Addr,
    /// The destination address.
    #[arg(position)]
    dst: Ipv4Addr,
    /// The identifier of the requests.
    #[arg(default = "0")]
    identifier: u16,
}

/// The element.
pub struct ICMPPingEncap {
    args: ICMPPingEncapArgs,
    header: HeaderTemplate,
    sequence: u16,
}

/// Bytes of both headers.
const HEADERS: usize = 28;

impl Filter for ICMPPingEncap {
    type Args = ICMPPingEncapArgs;
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

    fn new(args: ICMPPingEncapArgs, _: &mut Setup) -> Result<ICMPPingEncap, SetupError> {
        let header = HeaderTemplate::new(protocol::ICMP, args.src).with(0, 0, 255);
        Ok(ICMPPingEncap { args, header, sequence: 1 })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        if packet.prepend(HEADERS).is_none() {
            return Verdict::Drop(packet, "too_long");
        }
        let bytes = packet.data_mut();
        let length = bytes.len() as u16;
        self.header.set_identification(self.sequence);
        self.header.write(bytes, length, self.args.dst);
        if let Some(mut message) = bytes.get_mut(20..).and_then(Icmp4ViewMut::new) {
            message.set_kind(kind::ECHO);
            message.set_code(0);
            message.set_identifier(self.args.identifier);
            message.set_sequence(self.sequence);
            message.fill_checksum();
        }
        packet.set_destination_ip(self.args.dst);
        packet.set_network(0, 20);
        self.sequence = self.sequence.checked_add(1).unwrap_or(1);
        Verdict::Pass(packet)
    }
}
