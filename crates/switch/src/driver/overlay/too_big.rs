//! Answers to packets that are longer than the MTU: "fragmentation needed" (RFC 792, RFC 1191) and "packet too big"
//! (RFC 4443).

use super::format::ETHERNET;
use super::inner::{ICMP4_NUMBER, ICMP6_NUMBER, Inner};
use packet::checksum::{self, Sum};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Answers per second on average, and at once. A sender could otherwise have the port make a packet for each of its own
/// (RFC 4443, section 2.4 f).
const RATE: u32 = 100;
const BURST: u32 = 20;
/// The longest answers, from the IP header on: RFC 1812, section 4.3.2.3, and RFC 4443, section 2.4 c.
const MAX_ANSWER4: usize = 576;
const MAX_ANSWER6: usize = 1280;
/// The smallest MTU that a link with IPv6 may have (RFC 8200, section 5). Senders ignore smaller ones (RFC 8201, section 4).
const MIN_MTU6: u16 = 1280;
/// Lengths of headers.
const IP4: usize = 20;
const IP6: usize = 40;
const ICMP: usize = 8;
/// The hop limit of answers.
const HOPS: u8 = 64;
/// ICMP types and codes.
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
const PACKET_TOO_BIG: [u8; 2] = [2, 0];
/// ICMP messages that are no errors: errors are never answered with errors (RFC 1122, section 3.2.2).
const ECHO_REPLY: u8 = 0;
const ECHO: u8 = 8;
const TIMESTAMP: [u8; 2] = [13, 14];

/// Limits the rate of answers.
#[derive(Debug)]
pub(super) struct AnswerLimit {
    /// What is left at `at`, in answers.
    left: u32,
    at: Duration,
}

impl Default for AnswerLimit {
    fn default() -> Self {
        Self { left: BURST, at: Duration::ZERO }
    }
}

impl AnswerLimit {
    /// Whether an answer is allowed now.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let each = Duration::from_secs(1) / RATE;
        let new = now.saturating_sub(self.at).as_nanos() / each.as_nanos();
        if new >= u128::from(BURST) {
            (self.left, self.at) = (BURST, now);
        } else {
            // `new` is less than the burst.
            self.left = (self.left + new as u32).min(BURST);
            self.at += each * new as u32;
        }
        let is_allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_allowed
    }
}

/// The answer to a packet that is longer than the MTU, as a frame. It comes from the destination of the packet, as there is
/// no router here that has an address. `None`: the packet may be fragmented by a router and is just lost, or must not be
/// answered (RFC 1122, section 3.2.2; RFC 4443, section 2.4 e).
pub(super) fn answer(frame: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let inner = Inner::of(frame)?;
    let (addresses, rest) = frame.split_at_checked(12)?;
    let kind = rest.get(..inner.network - 12)?;
    // A tag takes room of what the path has for the packet.
    let mtu = mtu.saturating_sub((inner.network - ETHERNET) as u16);
    let (to, from) = addresses.split_at_checked(6)?;
    if to.first()? & 1 != 0 || from.first()? & 1 != 0 {
        return None;
    }
    let packet = frame.get(inner.network..inner.end)?;
    let mut answer = [from, to, kind].concat();
    if inner.is_ip6 {
        answer6(packet, &inner, mtu, &mut answer)?
    } else {
        answer4(packet, &inner, mtu, &mut answer)?
    }
    Some(answer)
}

/// Adds the answer to an IPv4 packet.
fn answer4(packet: &[u8], inner: &Inner, mtu: u16, answer: &mut Vec<u8>) -> Option<()> {
    let header = packet.first_chunk::<IP4>()?;
    let [s0, s1, s2, s3, d0, d1, d2, d3] = *header.last_chunk::<8>()?;
    let (source, destination) = (Ipv4Addr::new(s0, s1, s2, s3), Ipv4Addr::new(d0, d1, d2, d3));
    let is_one = |address: Ipv4Addr| {
        !address.is_unspecified()
            && !address.is_multicast()
            && !address.is_broadcast()
            && !address.is_loopback()
    };
    let flags = u16::from_be_bytes([header[6], header[7]]);
    let (must_not_fragment, is_first) = (flags & 0x4000 != 0, flags & 0x1fff == 0);
    if !must_not_fragment || !is_first || !is_one(source) || !is_one(destination) {
        return None;
    }
    if inner.protocol == ICMP4_NUMBER {
        let kind = *packet.get(usize::from(header[0] & 15) * 4)?;
        if ![ECHO_REPLY, ECHO].contains(&kind) && !TIMESTAMP.contains(&kind) {
            return None;
        }
    }
    let quote = &packet[..packet.len().min(MAX_ANSWER4 - IP4 - ICMP)];
    let total = (IP4 + ICMP + quote.len()) as u16;
    let start = answer.len();
    let ([t0, t1], [m0, m1]) = (total.to_be_bytes(), mtu.to_be_bytes());
    // RFC 1812, section 4.3.2.5: errors have the precedence of internetwork control.
    answer.extend([0x45, 0xc0, t0, t1, 0, 0, 0x40, 0, HOPS, ICMP4_NUMBER, 0, 0]);
    answer.extend([d0, d1, d2, d3, s0, s1, s2, s3]);
    let sum = checksum::internet(&answer[start..]);
    put(answer, start + 10, sum);
    let [kind, code] = FRAGMENTATION_NEEDED;
    answer.extend([kind, code, 0, 0, 0, 0, m0, m1]);
    answer.extend(quote);
    let sum = checksum::internet(&answer[start + IP4..]);
    put(answer, start + IP4 + 2, sum);
    Some(())
}

/// Adds the answer to an IPv6 packet.
fn answer6(packet: &[u8], inner: &Inner, mtu: u16, answer: &mut Vec<u8>) -> Option<()> {
    let header = packet.first_chunk::<IP6>()?;
    let address =
        |at: usize| Ipv6Addr::from(*header.get(at..).and_then(<[u8]>::first_chunk::<16>).unwrap_or(&[0; 16]));
    let (source, destination) = (address(8), address(24));
    let is_one =
        |address: Ipv6Addr| !address.is_unspecified() && !address.is_multicast() && !address.is_loopback();
    if mtu < MIN_MTU6 || !is_one(source) || !is_one(destination) {
        return None;
    }
    // Errors have types below 128; 137 is a redirect.
    let at = inner.transport.filter(|_| inner.protocol == ICMP6_NUMBER);
    if let Some(at) = at {
        let kind = *packet.get(at - inner.network)?;
        if kind < 128 || kind == 137 {
            return None;
        }
    }
    let quote = &packet[..packet.len().min(MAX_ANSWER6 - IP6 - ICMP)];
    let length = (ICMP + quote.len()) as u16;
    let start = answer.len();
    let ([l0, l1], [m0, m1]) = (length.to_be_bytes(), mtu.to_be_bytes());
    answer.extend([0x60, 0, 0, 0, l0, l1, ICMP6_NUMBER, HOPS]);
    answer.extend(destination.octets().into_iter().chain(source.octets()));
    let [kind, code] = PACKET_TOO_BIG;
    answer.extend([kind, code, 0, 0, 0, 0, m0, m1]);
    answer.extend(quote);
    let sum = Sum::ZERO.pseudo6(destination, source, ICMP6_NUMBER, length.into());
    let sum = sum.bytes(&answer[start + IP6..]).finish();
    put(answer, start + IP6 + 2, sum);
    Some(())
}

/// Writes a two-byte field, if it is inside `bytes`.
fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::inner::tests::{slow_sum, tcp_frame, transport_sum};
    use super::*;

    #[test]
    fn long_ipv4_packets_are_answered() {
        for tags in [0, 1] {
            let frame = tcp_frame(false, tags, &[], 0x10, 1600);
            let answer = answer(&frame, 1450).unwrap();
            let network = 14 + 4 * tags;
            // Back to the sender, with the same tags.
            assert_eq!((&answer[..6], &answer[6..12]), (&frame[6..12], &frame[..6]));
            assert_eq!(answer[12..network], frame[12..network]);
            let ip = &answer[network..];
            assert_eq!(ip.len(), 576);
            assert_eq!(&ip[..10], [0x45, 0xc0, 2, 64, 0, 0, 0x40, 0, 64, 1]);
            // From the destination of the packet to its source.
            assert_eq!(&ip[12..20], [192, 0, 2, 2, 192, 0, 2, 1]);
            assert_eq!(slow_sum(&[&ip[..20]]), 0xffff);
            let [m0, m1] = (1450 - 4 * tags as u16).to_be_bytes();
            assert_eq!((&ip[20..22], &ip[24..28]), (&[3, 4][..], &[0, 0, m0, m1][..]));
            assert_eq!(slow_sum(&[&ip[20..]]), 0xffff);
            assert_eq!(ip[28..], frame[network..network + 548]);
        }
    }

    #[test]
    fn long_ipv6_packets_are_answered() {
        for tags in [0, 2] {
            let frame = tcp_frame(true, tags, &[], 0x10, 1600);
            let answer = answer(&frame, 1430).unwrap();
            let network = 14 + 4 * tags;
            assert_eq!((&answer[..6], &answer[6..12]), (&frame[6..12], &frame[..6]));
            let ip = &answer[network..];
            assert_eq!((ip.len(), &ip[..8]), (1280, &[0x60, 0, 0, 0, 4, 216, 58, 64][..]));
            assert_eq!(
                (&ip[8..24], &ip[24..40]),
                (&frame[network + 24..network + 40], &frame[network + 8..network + 24])
            );
            let [m0, m1] = (1430 - 4 * tags as u16).to_be_bytes();
            assert_eq!((&ip[40..42], &ip[44..48]), (&[2, 0][..], &[0, 0, m0, m1][..]));
            assert_eq!(transport_sum(&answer, network, network + 40), 0xffff);
            assert_eq!(ip[48..], frame[network..network + 1232]);
        }
        // Short packets are quoted whole.
        let short = tcp_frame(true, 0, &[], 0x10, 1300);
        assert_eq!(answer(&short, 1300).map(|answer| answer.len()), Some(14 + 1280));
    }

    #[test]
    fn some_packets_are_not_answered() {
        let change = |is_ip6: bool, changes: &[(usize, u8)]| {
            let mut frame = tcp_frame(is_ip6, 0, &[], 0x10, 1600);
            changes.iter().for_each(|(at, byte)| frame[*at] = *byte);
            answer(&frame, 1450).is_some()
        };
        // IPv4: may be fragmented; a later fragment; group and unspecified addresses; ICMP errors.
        let unanswered4: &[&[(usize, u8)]] = &[
            &[(20, 0)],
            &[(21, 1)],
            &[(0, 1)],
            &[(6, 1)],
            &[(26, 224)],
            &[(30, 239)],
            &[(26, 127)],
            &[(26, 0), (27, 0), (28, 0), (29, 0)],
            &[(30, 255), (31, 255), (32, 255), (33, 255)],
            &[(23, 1), (34, 3)],
            &[(23, 1), (34, 5)],
            &[(23, 1), (34, 11)],
            &[(12, 0x88)],
        ];
        assert!(unanswered4.iter().all(|changes| !change(false, changes)));
        for kind in [0, 8, 13, 14] {
            assert!(change(false, &[(23, 1), (34, kind)]));
        }
        let unanswered6: &[&[(usize, u8)]] =
            &[&[(22, 0xff)], &[(38, 0xff)], &[(20, 58), (54, 1)], &[(20, 58), (54, 137)], &[(0, 0x33)]];
        assert!(unanswered6.iter().all(|changes| !change(true, changes)));
        assert!(change(true, &[(20, 58), (54, 128)]));
        // A link with IPv6 has at least 1,280 bytes.
        assert!(answer(&tcp_frame(true, 0, &[], 0x10, 1600), 1279).is_none());
        assert!(answer(&tcp_frame(false, 0, &[], 0x10, 1600), 1279).is_some());
    }

    #[test]
    fn the_rate_of_answers_is_limited() {
        let mut limit = AnswerLimit::default();
        let mut count = |now: u64| (0..100).filter(|_| limit.take(Duration::from_millis(now))).count();
        assert_eq!([0, 0, 9, 10, 35, 40].map(&mut count), [20, 0, 0, 1, 2, 1]);
        assert_eq!([1000, 1000, 5000, 4000].map(&mut count), [20, 0, 20, 0]);
    }
}
