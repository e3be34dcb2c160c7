//! `ICMPPingResponder`: answers echo requests.

use element::prelude::*;
use packet::checksum::{correct_zero, update};
use packet::view::icmp4::kind;
use packet::{Icmp4View, Icmp4ViewMut, Ip4View, Ip4ViewMut, protocol};

/// Turns ICMP echo requests into replies.
///
/// The reply goes to the request's source with a time to live of 255. It gets the destination annotation and the
/// current time as its timestamp, and its paint is cleared. Other packets go to output 1, or are dropped as `no_echo`.
/// The IPv4 header must be marked. Source routes are not reversed.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> ICMPPingEncap(10.0.0.1, 10.0.0.2)
///     -> ICMPPingResponder
///     -> i :: CheckIPHeader(BADSRC 10.0.0.1) -> CheckICMPHeader
///     -> first :: Counter -> ICMPPingResponder -> second :: Counter -> Discard;
/// ```
/// ```expect
/// i.drops = 0
/// first.count = 2
/// second.count = 0
/// ICMPPingResponder@7.losses = no_echo 2
/// ```
#[derive(Args)]
#[element(
    name = "ICMPPingResponder",
    group = "icmp",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    see = "ICMPSendPings, ICMPError",
    drops = "no_echo",
    fates = "changed"
)]
pub struct ICMPPingResponderArgs;

pub struct ICMPPingResponder;

fn is_request(packet: &Packet) -> bool {
    let message = Icmp4View::new(packet.transport());
    Ip4View::new(packet.network()).is_some_and(|header| header.protocol() == protocol::ICMP)
        && message.is_some_and(|message| message.kind() == kind::ECHO)
}

impl Filter for ICMPPingResponder {
    type Args = ICMPPingResponderArgs;

    fn new(_: ICMPPingResponderArgs, _: &mut Setup) -> Result<ICMPPingResponder, SetupError> {
        Ok(ICMPPingResponder)
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        if !is_request(&packet) {
            return Verdict::Divert(packet, Reason::NO_ECHO);
        }
        if let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) {
            let old = header.view();
            let (source, destination) = (old.source(), old.destination());
            let (fragment, ttl, protocol) = (old.fragment(), old.ttl(), old.protocol());
            // Exchanging the addresses does not change the checksum.
            let checksum = update(old.checksum(), fragment, 0);
            let hops = |ttl| u16::from_be_bytes([ttl, protocol]);
            header.set_checksum(update(checksum, hops(ttl), hops(255)));
            header.set_source(destination);
            header.set_destination(source);
            header.set_fragment(0);
            header.set_ttl(255);
            packet.set_destination_ip(source);
        }
        packet.set_timestamp(cx.now());
        packet.set_paint(0);
        if let Some(mut message) = Icmp4ViewMut::new(packet.transport_mut()) {
            let old = u16::from_be_bytes([kind::ECHO, message.view().code()]);
            message.set_checksum(update(message.view().checksum(), old, 0));
            message.set_kind(kind::ECHO_REPLY);
            message.set_code(0);
        }
        let bytes = packet.transport();
        let checksum = Icmp4View::new(bytes).map_or(0, |message| message.checksum());
        let corrected = correct_zero(checksum, bytes);
        if corrected != checksum
            && let Some(mut message) = Icmp4ViewMut::new(packet.transport_mut())
        {
            message.set_checksum(corrected);
        }
        Verdict::Pass(packet)
    }
}
