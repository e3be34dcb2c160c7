//! `ICMP6Error`: answers an IPv6 packet with an error message.

use core::net::Ipv6Addr;

use element::prelude::*;
use packet::view::{icmp6, ip6, protocol};
use packet::{Icmp6View, Icmp6ViewMut, Ip6View, Ip6ViewMut, PacketType, annotation};

/// Turns each IPv6 packet into an ICMPv6 error message to its sender (RFC 4443, RFC 4861).
///
/// The message has the given TYPE and CODE, and quotes up to 568 bytes of the packet. Its source is SRC; its
/// destination, also in the destination annotation, is the packet's source. It sets the fix-source annotation, but
/// `FixIPSrc` is for IPv4 packets only. Packets without a marked header are dropped as `no_ip_header`, ICMPv6 errors as
/// `is_error`, and packets not addressed to a single host as `broadcast`.
///
/// Extra fields: "packet too big" (2, 0) states an MTU of 1500; "parameter problem" (4, 0) states the offset in the
/// ICMP_PARAMPROB annotation; a redirect (137, 0) states the destination annotation as the target.
/// ```click
/// InfiniteSource(DATA \<6000000000003b0220010db800000000000000000000000120010db8000000000000000000000002>, LIMIT 2, STOP true)
///     -> CheckIP6Header -> ICMP6Error(2001:db8::9, 3, 0)
///     -> c :: Classifier(6/3aff 8/20010db8000000000000000000000009 24/20010db8000000000000000000000001 40/0300, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// right.byte_count = 176
/// wrong.count = 0
/// ```
/// ## Differences
/// Click answers errors too, contrary to its documentation. It writes the number of bytes and the offset of the
/// parameter in host byte order.
#[derive(Args)]
#[element(
    name = "ICMP6Error",
    group = "icmp",
    shards = "independent",
    see = "DecIP6HLIM, ICMPError, IP6NDSolicitor",
    drops = "no_ip_header, broadcast, is_error",
    fates = "made, consumed"
)]
pub struct ICMP6ErrorArgs {
    /// Source of the messages.
    #[arg(position)]
    src: Ipv6Addr,
    /// ICMPv6 type: 1 to 4, or 137 for a redirect.
    #[arg(position)]
    r#type: i32,
    /// ICMPv6 code.
    #[arg(position)]
    code: i32,
}

/// Maximum bytes of the original packet in an error.
const MAX_QUOTED: usize = 568;
/// The MTU in "packet too big" messages: that of Ethernet.
const ETHERNET_MTU: u32 = 1500;
const REDIRECT: u8 = 137;
/// Length of the two addresses in a redirect.
const REDIRECT_ADDRESSES_LENGTH: usize = 32;

pub struct ICMP6Error {
    source: Ipv6Addr,
    kind: u8,
    code: u8,
    args: ICMP6ErrorArgs,
}

impl Filter for ICMP6Error {
    type Args = ICMP6ErrorArgs;

    fn new(args: ICMP6ErrorArgs, _: &mut Setup) -> Result<ICMP6Error, SetupError> {
        let kind = u8::try_from(args.r#type).unwrap_or(0);
        Ok(ICMP6Error { source: args.src, kind, code: args.code as u8, args })
    }

    fn initialize(&mut self, _: &mut Context) -> Result<(), SetupError> {
        let ICMP6ErrorArgs { src, r#type, code } = self.args;
        if r#type < 0 || code < 0 || src.is_unspecified() {
            return Err(SetupError::new("not configured -a"));
        }
        match self.kind {
            1..=4 | REDIRECT => Ok(()),
            _ => Err(SetupError::new(
                format!("ICMP6 type {type} is not an error or redirect type", type = r#type),
            )),
        }
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let destination = match reply_destination(&packet) {
            Ok(destination) => destination,
            Err(reason) => return Verdict::Drop(packet, reason),
        };
        match self.answer(&packet, destination).and_then(|bytes| cx.packet(&bytes)) {
            Some(mut answer) => {
                cx.end(packet, Fate::Consumed);
                answer.set_network(0, ip6::LENGTH);
                answer.set_destination_ip6(destination);
                answer.set_annotation_u8(annotation::FIX_IP_SRC.offset.into(), 1);
                Verdict::Pass(answer)
            }
            None => {
                cx.end(packet, Fate::Consumed);
                Verdict::Taken
            }
        }
    }
}

/// The destination of the error, or the reason for which none is sent.
fn reply_destination(packet: &Packet) -> Result<Ipv6Addr, Reason> {
    let header = Ip6View::new(packet.network()).ok_or(Reason::NO_IP_HEADER)?;
    if header.next_header() == protocol::ICMP6 {
        let message = packet.network().get(ip6::LENGTH..).and_then(Icmp6View::new);
        if message.is_none_or(|message| message.is_error()) {
            return Err(Reason::IS_ERROR);
        }
    }
    if header.destination().is_multicast()
        || matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast)
    {
        return Err(Reason::BROADCAST);
    }
    Ok(header.source())
}

impl ICMP6Error {
    fn answer(&self, packet: &Packet, destination: Ipv6Addr) -> Option<Vec<u8>> {
        let mut message = vec![0; icmp6::LENGTH];
        if self.kind == REDIRECT {
            match Ip6View::new(packet.network()).filter(|_| self.code == 0) {
                Some(header) => {
                    message.extend(packet.destination_ip6().octets());
                    message.extend(header.destination().octets());
                }
                None => message.resize(icmp6::LENGTH + REDIRECT_ADDRESSES_LENGTH, 0),
            }
        }
        message.extend(packet.data().iter().take(MAX_QUOTED));
        let mut bytes = vec![0; ip6::LENGTH];
        let mut header = Ip6ViewMut::new(&mut bytes)?;
        header.set_version_class_flow(6 << 28);
        header.set_payload_length(message.len() as u16);
        header.set_next_header(protocol::ICMP6);
        header.set_hop_limit(255);
        header.set_source(self.source);
        header.set_destination(destination);
        let pseudo = header.view().pseudo_header(protocol::ICMP6, message.len() as u32);
        let mut view = Icmp6ViewMut::new(&mut message)?;
        view.set_kind(self.kind);
        view.set_code(self.code);
        match (self.kind, self.code) {
            (icmp6::kind::TOO_BIG, 0) => view.set_parameter(ETHERNET_MTU),
            (icmp6::kind::PARAMETER_PROBLEM, 0) => {
                view.set_parameter(packet.annotation_u8(annotation::ICMP_PARAMPROB.offset.into()).into());
            }
            _ => {}
        }
        view.fill_checksum(pseudo);
        bytes.append(&mut message);
        Some(bytes)
    }
}
