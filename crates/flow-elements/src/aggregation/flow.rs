//! Identification and state of flows.

use core::hint::select_unpredictable;
use core::net::Ipv4Addr;

use packet::view::tcp::flag;
use packet::{Icmp4View, Ip4View, Packet, protocol};

use super::flowrecords::Ends;

/// The hosts of a packet, the lower address first, and the protocol.
pub(super) type Hosts = (u32, u32, u8);

/// The state of a flow.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    pub(super) number: u32,
    /// Whether its first packet went from the higher of its two addresses to the lower.
    pub(super) reverse: bool,
    /// Bitmap of the directions that have ended.
    pub(super) ended: u8,
    /// Time of the last packet, in seconds.
    pub(super) last: i64,
}

/// Both directions have ended.
pub(super) const BOTH_ENDED: u8 = 3;

impl Flow {
    /// Processes the flags of a segment in direction `paint`.
    #[inline]
    pub(super) fn update(&mut self, flags: u8, paint: u8) {
        self.ended = self.ended_after(flags, paint);
    }

    /// The directions that have ended after a segment with these flags in direction `paint`. No branch depends on the flags.
    #[inline(always)]
    pub(super) fn ended_after(&self, flags: u8, paint: u8) -> u8 {
        let ended = select_unpredictable(flags & flag::SYN != 0, 0, self.ended);
        let ended = select_unpredictable(flags & flag::FIN != 0, self.ended | 1 << paint, ended);
        select_unpredictable(flags & flag::RST != 0, BOTH_ENDED, ended)
    }
}

/// The two ends of a flow.
pub(super) fn ends(key: u128, flow: &Flow) -> Ends {
    let low = (Ipv4Addr::from_bits((key >> 64) as u32), (key >> 48) as u16);
    let high = (Ipv4Addr::from_bits((key >> 16) as u32), key as u16);
    if flow.reverse { [high, low] } else { [low, high] }
}

/// Idle timeouts of flows, in seconds.
pub(super) struct IdleTimeouts {
    pub(super) udp: i64,
    pub(super) tcp: i64,
    pub(super) tcp_done: i64,
}

impl IdleTimeouts {
    /// The timeout of a flow, by IP protocol number.
    #[inline(always)]
    pub(super) fn seconds(&self, number: u8, flow: &Flow) -> i64 {
        match (number, flow.ended) {
            (protocol::UDP, _) => self.udp,
            (_, BOTH_ENDED) => self.tcp_done,
            _ => self.tcp,
        }
    }

    /// The timeout of a flow that has not ended in both directions. The protocol can't be predicted, so no branch depends on it.
    #[inline(always)]
    pub(super) fn seconds_of_live(&self, number: u8) -> i64 {
        select_unpredictable(number == protocol::UDP, self.udp, self.tcp)
    }
}

/// The flow information of a packet.
pub(super) struct FlowInfo {
    pub(super) hosts: Hosts,
    /// The key of its flow; `None` for a fragment other than the first.
    pub(super) key: Option<u128>,
    /// Whether it goes from the higher address or port to the lower.
    pub(super) reverse: bool,
    pub(super) is_error: bool,
    pub(super) is_fragment: bool,
    pub(super) identification: u16,
}

/// The flow key of a packet (protocol, then address and port of the lower end and of the higher), and whether the
/// packet goes from the higher address to the lower (for equal addresses, from the higher port).
#[inline]
fn flow_key(number: u8, [source, destination]: [u32; 2], ports: [u8; 4]) -> (u128, bool) {
    let [a, b, c, d] = ports;
    let from = u64::from(source) << 16 | u64::from(u16::from_be_bytes([a, b]));
    let to = u64::from(destination) << 16 | u64::from(u16::from_be_bytes([c, d]));
    let (low, high) = (from.min(to), from.max(to));
    (u128::from(number) << 96 | u128::from(low) << 48 | u128::from(high), from > to)
}

/// The key of an unfragmented TCP or UDP packet, like `flow_key`.
#[inline]
pub(super) fn plain_flow_key(packet: &Packet) -> Option<(u128, bool)> {
    let bytes = packet.network();
    let header = Ip4View::new(bytes)?;
    let number = header.protocol();
    let ports = *bytes.get(header.header_length()..)?.first_chunk()?;
    let (source, destination) = (header.source().to_bits(), header.destination().to_bits());
    // Which of them it is can't be predicted, so the protocols are a set of bits, and one branch tests both.
    let is_known = number < 64 && (1u64 << protocol::TCP | 1 << protocol::UDP) >> number & 1 != 0;
    let is_plain = is_known && !header.is_fragment() && (source | destination) != 0;
    is_plain.then(|| flow_key(number, [source, destination], ports))
}

/// The packet embedded in an ICMP error, from its IP header on.
fn embedded_packet(message: &[u8]) -> Option<&[u8]> {
    let carried = Icmp4View::new(message)?.original_datagram()?;
    let length = Ip4View::new(carried)?.header_length();
    (length >= 20 && carried.len() >= length).then_some(carried)
}

/// The flow information of a TCP or UDP packet, and with `errors` of a packet embedded in an ICMP error.
pub(super) fn flow_info(packet: &Packet, errors: bool) -> Option<FlowInfo> {
    let mut bytes = packet.network();
    let mut header = Ip4View::new(bytes)?;
    let mut is_error = false;
    if header.protocol() == protocol::ICMP && header.is_first_fragment() && errors {
        bytes = embedded_packet(packet.transport())?;
        header = Ip4View::new(bytes)?;
        is_error = true;
    }
    let number = header.protocol();
    let (source, destination) = (header.source().to_bits(), header.destination().to_bits());
    if !matches!(number, protocol::TCP | protocol::UDP) || (source == 0 && destination == 0) {
        return None;
    }
    let mut reverse = source > destination;
    let hosts = (source.min(destination), source.max(destination), number);
    let mut key = None;
    if header.is_first_fragment() {
        let ports: &[u8; 4] = bytes.get(header.header_length()..)?.first_chunk()?;
        let (found, turned) = flow_key(number, [source, destination], *ports);
        key = Some(found);
        reverse = turned;
    }
    let (is_fragment, identification) = (header.is_fragment(), header.identification());
    Some(FlowInfo { hosts, key, reverse, is_error, is_fragment, identification })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_end_and_open_directions() {
        for (flags, ended) in (0..=255u8).flat_map(|flags| (0..=BOTH_ENDED).map(move |ended| (flags, ended)))
        {
            for paint in [0, 1] {
                let mut flow = Flow { number: 1, reverse: false, ended, last: 0 };
                flow.update(flags, paint);
                let expected = match flags {
                    _ if flags & flag::RST != 0 => BOTH_ENDED,
                    _ if flags & flag::FIN != 0 => ended | 1 << paint,
                    _ if flags & flag::SYN != 0 => 0,
                    _ => ended,
                };
                assert_eq!(flow.ended, expected, "{flags:x} {ended} {paint}");
            }
        }
    }
}
