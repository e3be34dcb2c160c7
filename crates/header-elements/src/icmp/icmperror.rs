//! `ICMPError`: answers an IPv4 packet with an error message.

use core::net::Ipv4Addr;

use element::arguments::{IcmpType, SpaceSeparated, Word};
use element::prelude::*;
use packet::view::icmp4::kind;
use packet::view::ip4::{OPTION_END, OPTION_LOOSE_ROUTE, OPTION_NOP, OPTION_STRICT_ROUTE};
use packet::{HEADROOM, Icmp4ViewMut, Ip4View, Ip4ViewMut, PacketType, annotation, protocol};

/// Turns each IPv4 packet into an ICMP error message to its sender (RFC 1812, section 4.3.2).
///
/// The message is an IPv4 packet from SRC with TYPE and CODE, and as much of the original packet as MTU leaves room
/// for. It sets the destination annotation, and the annotation that asks `FixIPSrc` for the address of the outgoing
/// interface. A source route is reversed.
///
/// Extra fields: `parameterproblem` points to the parameter-problem annotation, `redirect` names the destination
/// annotation as the gateway, and `unreachable` with `needfrag` carries PMTU.
///
/// No message is sent, and the packet is dropped, for ICMP errors (`is_error`), broadcasts and multicasts
/// (`broadcast`), fragments other than the first (`is_fragment`), invalid source addresses (`bad_source`), redirects of
/// source-routed packets (`is_routed`), and packets without a marked header (`no_ip_header`).
///
/// ## Differences
///
/// Each element numbers the IP identifications of its messages independently, starting at 1.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 3, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> e :: ICMPError(10.0.0.9, unreachable, port)
///     -> CheckIPHeader -> CheckICMPHeader
///     -> c :: Counter -> Discard;
/// ```
/// ```expect
/// e.src = 10.0.0.9
/// c.count = 3
/// c.byte_count = 192
/// ```
#[derive(Args)]
#[element(
    name = "ICMPError",
    group = "icmp",
    shards = "independent",
    see = "DecIPTTL, FixIPSrc, IPGWOptions",
    drops = "bad_source, no_ip_header, broadcast, is_error, is_fragment, is_routed",
    fates = "made, consumed"
)]
pub struct ICMPErrorArgs {
    /// Source of the messages.
    #[arg(position)]
    src: Ipv4Addr,
    /// ICMP type, by number or name: `unreachable`, `sourcequench`, `redirect`, `timeexceeded`, `parameterproblem`.
    #[arg(position, keyword = "TYPE")]
    kind: IcmpType,
    /// ICMP code, by number or by a name valid for the type.
    #[arg(position, default = "0")]
    code: Word,
    /// Further addresses that are invalid as a source, such as subnet broadcast addresses.
    #[arg(position, default = "")]
    badaddrs: SpaceSeparated<Ipv4Addr>,
    /// Maximum length of a message.
    #[arg(default = "576")]
    mtu: u32,
    /// Path MTU to report with `needfrag`.
    #[arg(default = "0")]
    pmtu: u32,
    /// Ask `FixIPSrc` to set the source address.
    #[arg(default = "true")]
    set_fix_anno: bool,
}

pub struct ICMPError {
    args: ICMPErrorArgs,
    code: u8,
    identification: u16,
}

/// The code "fragmentation needed" of unreachable messages.
const NEEDS_FRAGMENTATION: u8 = 4;
/// The code of parameter problems whose pointer gives the offset of the invalid byte.
const ERROR_AT_POINTER: u8 = 0;

/// The maximum length of an IPv4 header.
const MAX_HEADER_LENGTH: usize = 60;

impl ICMPError {
    fn is_unicast(&self, address: Ipv4Addr) -> bool {
        !(address.is_broadcast() || address.is_multicast() || self.args.badaddrs.0.contains(&address))
    }

    fn is_valid_source(&self, address: Ipv4Addr) -> bool {
        self.is_unicast(address) && !matches!(address.octets()[0], 0 | 127 | 240..)
    }

    /// The reason for which no error is sent about the packet, if there is one.
    fn suppression_reason(&self, packet: &Packet) -> Option<Reason> {
        let Some(header) = Ip4View::new(packet.network()) else {
            return Some(Reason::NO_IP_HEADER);
        };
        if header.protocol() == protocol::ICMP {
            let message = packet.network().get(header.header_length()..).filter(|message| message.len() >= 4);
            if message.and_then(|message| message.first()).is_none_or(|kind| kind::is_error(*kind)) {
                return Some(Reason::IS_ERROR);
            }
        }
        if !self.is_unicast(header.destination())
            || matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast)
        {
            return Some(Reason::BROADCAST);
        }
        if !self.is_valid_source(header.source()) {
            return Some(Reason::BAD_SOURCE);
        }
        (!header.is_first_fragment()).then_some(Reason::IS_FRAGMENT)
    }

    fn answer(&mut self, cx: &mut Context, packet: &Packet) -> Result<Option<Packet>, Reason> {
        if let Some(reason) = self.suppression_reason(packet) {
            return Err(reason);
        }
        let pointer = packet.annotation_u8(annotation::ICMP_PARAMPROB.offset.into());
        let kind = self.args.kind.0;
        let reports_pointer = kind == kind::PARAMETER_PROBLEM && self.code == ERROR_AT_POINTER;
        let mut header = [0; MAX_HEADER_LENGTH];
        let mut header_length = 20;
        if let Some((at, route)) = source_route(packet.network()) {
            if kind == kind::REDIRECT {
                return Err(Reason::IS_ROUTED);
            }
            // A source route that is itself invalid can't be reversed.
            if !(reports_pointer && (at..at + route.len()).contains(&pointer.into())) {
                header_length = reverse_route(route, &mut header);
            }
        }
        let start = header_length + 8;
        let room = (self.args.mtu as usize).saturating_sub(start);
        let quoted = packet.network().get(..room).unwrap_or(packet.network());
        let length = start + quoted.len();
        let Some(mut answer) = cx.allocate(HEADROOM, length) else { return Ok(None) };

        let Some((to_header, to_message)) = answer.data_mut().split_at_mut_checked(header_length) else {
            return Ok(None);
        };
        to_header.copy_from_slice(header.get(..header_length).unwrap_or(&[]));
        if let (Some(mut header), Some(original)) =
            (Ip4ViewMut::new(to_header), Ip4View::new(packet.network()))
        {
            header.set_header_length(header_length);
            header.set_total_length(length as u16);
            header.set_identification(self.identification);
            header.set_ttl(200);
            header.set_protocol(protocol::ICMP);
            header.set_source(self.args.src);
            header.set_destination(original.source());
            header.fill_checksum();
        }
        self.identification = self.identification.wrapping_add(1);
        to_message.fill(0);
        if let Some(target) = to_message.get_mut(8..) {
            target.copy_from_slice(quoted);
        }
        if let Some(mut message) = Icmp4ViewMut::new(to_message) {
            message.set_kind(kind);
            message.set_code(self.code);
            if reports_pointer {
                message.set_pointer(pointer);
            } else if kind == kind::REDIRECT {
                message.set_gateway(packet.destination_ip());
            } else if kind == kind::UNREACHABLE && self.code == NEEDS_FRAGMENTATION {
                message.set_next_mtu(self.args.pmtu as u16);
            }
            message.fill_checksum();
        }
        answer.set_network(0, header_length);
        let destination = Ip4View::new(answer.data()).map(|header| header.destination());
        answer.set_destination_ip(destination.unwrap_or(Ipv4Addr::UNSPECIFIED));
        if self.args.set_fix_anno {
            answer.set_annotation_u8(annotation::FIX_IP_SRC.offset.into(), 1);
        }
        answer.set_timestamp(cx.now());
        Ok(Some(answer))
    }
}

/// The first source-route option with a valid pointer: its offset in the header, and its bytes.
fn source_route(header: &[u8]) -> Option<(usize, &[u8])> {
    let end = usize::from(header.first()? & 0xf) * 4;
    let header = header.get(..end)?;
    let mut at = 20;
    loop {
        match *header.get(at..)? {
            [OPTION_NOP, ..] => at += 1,
            [kind, length, ref rest @ ..] if kind != OPTION_END && length >= 2 => {
                let option = header.get(at..at + usize::from(length))?;
                let pointer = rest.first().copied().unwrap_or(0);
                let is_sound =
                    pointer >= 4 && pointer.is_multiple_of(4) && usize::from(pointer) <= option.len() + 1;
                if matches!(kind, OPTION_LOOSE_ROUTE | OPTION_STRICT_ROUTE) && is_sound {
                    return Some((at, option));
                }
                at += usize::from(length);
            }
            _ => return None,
        }
    }
}

/// Writes the visited part of a source route in reverse into a header's options. Returns the header's length.
fn reverse_route(route: &[u8], header: &mut [u8; MAX_HEADER_LENGTH]) -> usize {
    let (Some(&kind), Some(&pointer)) = (route.first(), route.get(2)) else { return 20 };
    let hops = route.get(3..usize::from(pointer) - 1).unwrap_or(&[]);
    let length = 3 + hops.len();
    let (_, options) = header.split_at_mut(20);
    if let [to_kind, to_length, to_pointer, to_hops @ ..] = options {
        (*to_kind, *to_length, *to_pointer) = (kind, length as u8, 4);
        for (to, hop) in to_hops.chunks_exact_mut(4).zip(hops.rchunks_exact(4)) {
            to.copy_from_slice(hop);
        }
    }
    (20 + length).next_multiple_of(4).min(MAX_HEADER_LENGTH)
}

impl Filter for ICMPError {
    type Args = ICMPErrorArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("src", "Source of the messages.", |element| element.args.src.to_string()),
        Handler::setting("src", "Sets the source of the messages.", |element, cx, value| {
            element.args.src = cx.data(value)?;
            Ok(())
        }),
        Handler::read("mtu", "Maximum length of a message.", |element| element.args.mtu.to_string()),
        Handler::setting("mtu", "Sets the maximum length of a message.", |element, cx, value| {
            element.args.mtu = cx.data(value)?;
            Ok(())
        }),
        Handler::read("pmtu", "Path MTU to report.", |element| element.args.pmtu.to_string()),
        Handler::setting("pmtu", "Sets the path MTU to report.", |element, cx, value| {
            element.args.pmtu = cx.data(value)?;
            Ok(())
        }),
    ];
    const LIVE_RECONFIGURE: bool = true;

    fn new(args: ICMPErrorArgs, _: &mut Setup) -> Result<ICMPError, SetupError> {
        if !kind::is_error(args.kind.0) {
            return Err(SetupError::new(format!("ICMP type {} is not an error type", args.kind.0)));
        }
        let code = args
            .kind
            .code(&args.code.0)
            .ok_or_else(|| SetupError::new("argument 2 takes ICMP code (integer between 0 and 255)"))?;
        Ok(ICMPError { args, code, identification: 1 })
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        match self.answer(cx, &packet) {
            Ok(answer) => {
                cx.end(packet, Fate::Consumed);
                answer.map_or(Verdict::Taken, Verdict::Pass)
            }
            Err(reason) => Verdict::Drop(packet, reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_reversed() {
        let mut header = vec![0; 36];
        header[0] = 0x49;
        header[20..32].copy_from_slice(&[1, 131, 11, 12, 1, 1, 1, 1, 2, 2, 2, 2]);
        let (at, route) = source_route(&header).unwrap();
        assert_eq!((at, route.len()), (21, 11));
        let mut answer = [0; MAX_HEADER_LENGTH];
        assert_eq!(reverse_route(route, &mut answer), 32);
        assert_eq!(answer[20..32], [131, 11, 4, 2, 2, 2, 2, 1, 1, 1, 1, 0]);
        // No hop of the route has been visited.
        header[23] = 4;
        assert_eq!(reverse_route(source_route(&header).unwrap().1, &mut answer), 24);
        for (at, value) in [(23, 5), (23, 0), (23, 16), (22, 200), (22, 1), (21, 0)] {
            let mut wrong = header.clone();
            wrong[at] = value;
            assert!(source_route(&wrong).is_none(), "{at}");
        }
        assert!(source_route(&[]).is_none() && source_route(&header[..30]).is_none());
    }
}
