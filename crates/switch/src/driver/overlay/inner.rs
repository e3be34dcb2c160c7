//! What a tunnel reads and changes in the frames that it carries: flows, congestion marks, and the segment sizes that TCP
//! announces.

pub(super) use crate::device::IpPacket as Inner;
use packet::checksum;

/// Lengths of the fixed headers.
const IP4: usize = 20;
const IP6: usize = 40;
const TCP: usize = 20;
/// Protocol numbers.
pub(super) const ICMP4_NUMBER: u8 = 1;
pub(super) const TCP_NUMBER: u8 = 6;
pub(super) const UDP_NUMBER: u8 = 17;
pub(super) const ICMP6_NUMBER: u8 = 58;
/// TCP's flag SYN, and the options End, No-Operation and Maximum Segment Size (RFC 9293).
const SYN: u8 = 0x02;
const OPTION_END: u8 = 0;
const OPTION_NONE: u8 = 1;
const OPTION_MSS: [u8; 2] = [2, 4];
/// The range of source ports: RFC 7348 recommends the dynamic ports of RFC 6335.
const FIRST_PORT: u16 = 49_152;
/// The mark of a congested router (RFC 3168), and the bits of marks.
const CONGESTED: u8 = 3;

impl Inner {
    /// The mark of explicit congestion notification: the last two bits of the traffic class.
    pub(super) fn congestion(&self, frame: &[u8]) -> u8 {
        match frame.get(self.network..) {
            Some([_, class, ..]) if self.is_ip6 => class >> 4 & CONGESTED,
            Some([_, class, ..]) => class & CONGESTED,
            _ => 0,
        }
    }

    /// Combines the mark of the outer header with that of the packet (RFC 6040, section 4.2). Returns false if the packet
    /// must be dropped, because it cannot carry the mark of a congested router.
    pub(super) fn combine_congestion(&self, frame: &mut [u8], outer: u8) -> bool {
        let mark = match (outer & CONGESTED, self.congestion(frame)) {
            (CONGESTED, 0) => return false,
            (CONGESTED, _) => CONGESTED,
            (1, 2) => 1,
            _ => return true,
        };
        let Some(ip) = frame.get_mut(self.network..) else { return true };
        if self.is_ip6 {
            if let Some(byte) = ip.get_mut(1) {
                *byte = *byte & !(CONGESTED << 4) | mark << 4;
            }
        } else if let Some(header) = ip.first_chunk_mut::<IP4>() {
            let before = u16::from_be_bytes([header[0], header[1]]);
            header[1] = header[1] & !CONGESTED | mark;
            let after = u16::from_be_bytes([header[0], header[1]]);
            let sum = checksum::update(u16::from_be_bytes([header[10], header[11]]), before, after);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        true
    }

    /// The bytes before the data of a TCP segment, from the start of the frame. `None` in other packets.
    pub(super) fn tcp_data(&self, frame: &[u8]) -> Option<usize> {
        let segment = self.segment(frame).filter(|_| self.protocol == TCP_NUMBER)?;
        let header = usize::from(segment.first_chunk::<TCP>()?[12] >> 4) * 4;
        (header >= TCP && header <= segment.len()).then_some(self.transport? + header)
    }

    /// The maximum segment size that a TCP packet with the flag SYN announces, and its offset.
    pub(super) fn announced_size(&self, frame: &[u8]) -> Option<(usize, u16)> {
        let data = self.tcp_data(frame)?;
        let start = self.transport?;
        let header = frame.get(start..data)?;
        if header.get(13)? & SYN == 0 {
            return None;
        }
        let mut at = TCP;
        loop {
            let option = header.get(at..)?;
            at += match *option.first()? {
                OPTION_END => return None,
                OPTION_NONE => 1,
                _ => {
                    let [kind, length, rest @ ..] = option else { return None };
                    if [*kind, *length] == OPTION_MSS {
                        return Some((start + at + 2, u16::from_be_bytes(*rest.first_chunk()?)));
                    }
                    usize::from(*length).max(2)
                }
            };
        }
    }

    /// The maximum segment size for an MTU: without the fixed headers of IP and TCP, whatever options there are (RFC 6691).
    pub(super) fn segment_size(&self, mtu: u16) -> u16 {
        mtu.saturating_sub(self.fixed_headers())
    }

    /// The length of the longest packet with segments of a maximum size.
    pub(super) fn packet_size(&self, segment_size: u16) -> u16 {
        segment_size.saturating_add(self.fixed_headers())
    }

    fn fixed_headers(&self) -> u16 {
        (if self.is_ip6 { IP6 } else { IP4 } + TCP) as u16
    }

    /// Lowers the maximum segment size that a TCP packet with the flag SYN announces to what the MTU allows, and updates
    /// the checksum (RFC 1624).
    pub(super) fn lower_segment_size(&self, frame: &mut [u8], mtu: u16) {
        let most = self.segment_size(mtu);
        let found = self.announced_size(frame).filter(|(_, size)| *size > most);
        let Some((at, before)) = found else { return };
        let start = self.transport.unwrap_or_default();
        // At an odd offset, the two bytes belong to different words of the checksum.
        let is_odd = (at - start) % 2 == 1;
        let [old, new] = [before, most].map(|size| if is_odd { size.swap_bytes() } else { size });
        if let Some(size) = frame.get_mut(at..at + 2) {
            size.copy_from_slice(&most.to_be_bytes());
        }
        if let Some(field) = frame.get_mut(start + 16..).and_then(<[u8]>::first_chunk_mut::<2>) {
            *field = checksum::update(u16::from_be_bytes(*field), old, new).to_be_bytes();
        }
    }

    /// A hash of the flow: of addresses, protocol, and the ports of TCP and UDP.
    pub(super) fn flow_hash(&self, frame: &[u8]) -> u64 {
        let [source, destination] = self.ends(frame);
        mix(words(destination, words(source, self.protocol.into())), self.ports(frame).into())
    }

    /// The hash of the flow in the other direction.
    pub(super) fn reverse_hash(&self, frame: &[u8]) -> u64 {
        let [source, destination] = self.ends(frame);
        let ports = self.ports(frame).rotate_left(16);
        mix(words(source, words(destination, self.protocol.into())), ports.into())
    }

    /// Source and destination address.
    fn ends<'f>(&self, frame: &'f [u8]) -> [&'f [u8]; 2] {
        let (from, length) = if self.is_ip6 { (8, 16) } else { (12, 4) };
        let start = self.network + from;
        [start, start + length].map(|start| frame.get(start..start + length).unwrap_or_default())
    }

    /// Source and destination port, or 0.
    fn ports(&self, frame: &[u8]) -> u32 {
        let at = self.transport.filter(|_| [TCP_NUMBER, UDP_NUMBER].contains(&self.protocol));
        let ports = at.and_then(|at| frame.get(at..)).and_then(<[u8]>::first_chunk);
        ports.map_or(0, |ports| u32::from_be_bytes(*ports))
    }
}

/// Adds a word to a hash.
fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// Adds whole words to a hash.
fn words(bytes: &[u8], hash: u64) -> u64 {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().fold(hash, |hash, word| mix(hash, u32::from_ne_bytes(*word).into()))
}

/// The source port for the flow of a frame (RFC 7348, section 5): routers that balance flows keep its packets in order.
pub(super) fn source_port(frame: &[u8], inner: Option<&Inner>) -> u16 {
    // Without IP, the addresses of Ethernet are the flow.
    let hash =
        inner.map_or_else(|| words(frame.get(..12).unwrap_or_default(), 0), |inner| inner.flow_hash(frame));
    FIRST_PORT + (mix(hash, 1) >> 50) as u16
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An independent computation of the Internet checksum: word by word, carry by carry.
    pub(in super::super) fn slow_sum(parts: &[&[u8]]) -> u16 {
        let bytes = parts.concat();
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) * 256 + u32::from(pair.get(1).copied().unwrap_or(0));
            if sum > 0xffff {
                sum -= 0xffff;
            }
        }
        sum as u16
    }

    /// A TCP packet in a frame: tags before IP, TCP options, flags, and data. Its checksums are correct.
    pub(in super::super) fn tcp_frame(
        is_ip6: bool,
        tags: usize,
        options: &[u8],
        flags: u8,
        data: usize,
    ) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 7]));
        let header = TCP + options.len();
        assert_eq!(header % 4, 0);
        let length = (header + data) as u16;
        let [high, low] = length.to_be_bytes();
        let network = frame.len() + 2;
        if is_ip6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, high, low, TCP_NUMBER, 64]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        } else {
            let [total0, total1] = (length + 20).to_be_bytes();
            frame.extend([8, 0, 0x45, 0, total0, total1, 0, 1, 0x40, 0, 64, TCP_NUMBER, 0, 0]);
            frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
            let sum = !slow_sum(&[&frame[network..]]);
            frame[network + 10..network + 12].copy_from_slice(&sum.to_be_bytes());
        }
        let transport = frame.len();
        frame.extend([
            0x9c,
            0x40,
            0,
            80,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            2,
            (header as u8 / 4) << 4,
            flags,
            255,
            255,
            0,
            0,
            0,
            0,
        ]);
        frame.extend(options);
        frame.extend((0..data).map(|byte| byte as u8));
        let sum = !transport_sum(&frame, network, transport);
        frame[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    /// The sum over pseudo-header and segment: 0xffff if the checksum is correct.
    pub(in super::super) fn transport_sum(frame: &[u8], network: usize, transport: usize) -> u16 {
        let length = frame.len() - transport;
        let [l0, l1] = (length as u16).to_be_bytes();
        let is_ip6 = frame[network] >> 4 == 6;
        let (addresses, protocol) = match is_ip6 {
            true => (&frame[network + 8..network + 40], frame[network + 6]),
            false => (&frame[network + 12..network + 20], frame[network + 9]),
        };
        slow_sum(&[addresses, &[0, protocol, l0, l1], &frame[transport..]])
    }

    #[test]
    fn headers_are_found() {
        for (is_ip6, tags) in [(false, 0), (true, 0), (false, 1), (true, 2)] {
            let mut frame = tcp_frame(is_ip6, tags, &[], 0x10, 9);
            let (network, end) = (14 + 4 * tags, frame.len());
            // Padding is no part of the packet.
            frame.extend([0; 7]);
            let transport = Some(network + if is_ip6 { 40 } else { 20 });
            let expected = Inner { network, is_ip6, protocol: TCP_NUMBER, transport, end };
            assert_eq!(Inner::of(&frame), Some(expected));
            assert_eq!(expected.tcp_data(&frame), Some(end - 9));
            for length in 0..end {
                assert_eq!(Inner::of(&frame[..length]), None, "{length}");
            }
        }
        // A fragment has no transport header that is looked at.
        let mut fragment = tcp_frame(false, 0, &[], 0x10, 9);
        fragment[20] = 0x20;
        assert_eq!(Inner::of(&fragment).unwrap().transport, None);
        // Three tags, ARP, another version, a header that is too short.
        assert_eq!(Inner::of(&tcp_frame(false, 3, &[], 0x10, 9)), None);
        for (at, byte) in [(13, 6), (14, 0x65), (14, 0x44)] {
            let mut frame = tcp_frame(false, 0, &[], 0x10, 9);
            frame[at] = byte;
            assert_eq!(Inner::of(&frame), None);
        }
    }

    #[test]
    fn extension_headers_are_skipped() {
        let with = |chain: &[u8], last: u8| {
            let mut frame = vec![2; 12];
            frame.extend([
                0x86,
                0xdd,
                0x60,
                0,
                0,
                0,
                0,
                chain.len() as u8 * 8 + 8,
                *chain.first().unwrap_or(&last),
                64,
            ]);
            frame.extend([1; 32]);
            for at in 0..chain.len() {
                frame.extend([*chain.get(at + 1).unwrap_or(&last), 0, 0, 0, 0, 0, 0, 0]);
            }
            frame.extend([0; 8]);
            Inner::of(&frame).map(|inner| (inner.protocol, inner.transport))
        };
        assert_eq!(with(&[], UDP_NUMBER), Some((UDP_NUMBER, Some(54))));
        assert_eq!(with(&[0, 60], UDP_NUMBER), Some((UDP_NUMBER, Some(54 + 16))));
        assert_eq!(with(&[60; 4], TCP_NUMBER), Some((TCP_NUMBER, Some(54 + 32))));
        assert_eq!(with(&[60; 5], TCP_NUMBER), Some((60, None)));
        assert_eq!(with(&[0], 44), Some((44, None)));
        assert_eq!(with(&[43], 59), Some((59, Some(54 + 8))));
    }

    #[test]
    fn open_checksums_are_filled_in_and_others_stay() {
        for is_ip6 in [false, true] {
            let whole = tcp_frame(is_ip6, 1, &[], 0x18, 333);
            let inner = Inner::of(&whole).unwrap();
            let transport = inner.transport.unwrap();
            let mut same = whole.clone();
            inner.complete_checksum(&mut same);
            assert_eq!(same, whole);
            // As the kernel leaves it: the sum of the pseudo-header, not complemented.
            let (mut open, length) = (whole.clone(), whole.len() - transport);
            let [l0, l1] = (length as u16).to_be_bytes();
            let addresses = if is_ip6 { 26..58 } else { 30..38 };
            let pseudo = slow_sum(&[&whole[addresses], &[0, TCP_NUMBER, l0, l1]]);
            open[transport + 16..transport + 18].copy_from_slice(&pseudo.to_be_bytes());
            inner.complete_checksum(&mut open);
            assert_eq!(open, whole);
            // A damaged packet is not repaired.
            let mut damaged = whole.clone();
            damaged[transport + 30] ^= 1;
            let before = damaged.clone();
            inner.complete_checksum(&mut damaged);
            assert_eq!(damaged, before);
            // A correct checksum that happens to be the pseudo-header's sum: choose the last word so.
            let mut chance = whole.clone();
            chance[transport + 16..transport + 18].copy_from_slice(&pseudo.to_be_bytes());
            let at = chance.len() - 3;
            chance[at..at + 2].fill(0);
            let rest = transport_sum(&chance, inner.network, transport);
            chance[at..at + 2].copy_from_slice(&(!rest).to_be_bytes());
            assert_eq!(transport_sum(&chance, inner.network, transport), 0xffff);
            let before = chance.clone();
            inner.complete_checksum(&mut chance);
            assert_eq!(chance, before);
        }
    }

    #[test]
    fn announced_segment_sizes_are_lowered() {
        let mss = |size: u16| [2, 4, (size >> 8) as u8, size as u8];
        let odd = [&[1][..], &mss(1460), &[1, 1, 0]].concat();
        let cases: &[(&[u8], u8, Option<usize>)] = &[
            (&mss(1460), 0x02, Some(22)),
            (&mss(1460), 0x12, Some(22)),
            (&[&[1, 1, 4, 2][..], &mss(9000)].concat(), 0x02, Some(26)),
            (&odd, 0x02, Some(23)),
            // Small enough, no SYN, behind the end of options, a length of 0 that would never end, cut off.
            (&mss(536), 0x02, None),
            (&mss(1460), 0x10, None),
            (&[&[0, 0, 0, 0][..], &mss(1460)].concat(), 0x02, None),
            (&[9, 0, 0, 0], 0x02, None),
            (&[1, 1, 2, 4], 0x02, None),
            (&[1, 1, 1, 2], 0x02, None),
        ];
        for is_ip6 in [false, true] {
            for (options, flags, at) in cases {
                let before = tcp_frame(is_ip6, 0, options, *flags, 0);
                let inner = Inner::of(&before).unwrap();
                let transport = inner.transport.unwrap();
                // RFC 6691: the MTU without the fixed headers, although this TCP header has options.
                let most: u16 = if is_ip6 { 1450 - 60 } else { 1450 - 40 };
                let mut expected = before.clone();
                if let Some(at) = at {
                    expected[transport + at..transport + at + 2].copy_from_slice(&most.to_be_bytes());
                    expected[transport + 16..transport + 18].fill(0);
                    let sum = !transport_sum(&expected, 14, transport);
                    expected[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
                }
                let announced = inner.announced_size(&before);
                assert!(at.is_none() || announced.is_some_and(|(_, size)| size > most), "{options:?}");
                assert_eq!(inner.packet_size(most), 1450);
                let mut after = before;
                inner.lower_segment_size(&mut after, 1450);
                assert_eq!(after, expected, "{options:?}");
            }
        }
    }

    #[test]
    fn congestion_marks_are_combined() {
        // RFC 6040, figure 4: rows are the inner marks, columns the outer ones; 4 is a drop.
        const FIGURE: [[u8; 4]; 4] = [[0, 0, 0, 4], [1, 1, 1, 3], [2, 1, 2, 3], [3, 3, 3, 3]];
        for is_ip6 in [false, true] {
            for (inner_mark, row) in (0u8..).zip(FIGURE) {
                for (outer, expected) in (0u8..).zip(row) {
                    let mut frame = tcp_frame(is_ip6, 0, &[], 0x10, 1);
                    let mark = |mark: u8, frame: &mut [u8]| match is_ip6 {
                        true => frame[15] |= mark << 4,
                        false => {
                            frame[15] |= mark;
                            frame[24..26].fill(0);
                            let sum = !slow_sum(&[&frame[14..34]]);
                            frame[24..26].copy_from_slice(&sum.to_be_bytes());
                        }
                    };
                    let mut wanted = frame.clone();
                    mark(inner_mark, &mut frame);
                    let inner = Inner::of(&frame).unwrap();
                    assert_eq!(inner.congestion(&frame), inner_mark);
                    // The other six bits of the outer class do not matter.
                    let is_kept = inner.combine_congestion(&mut frame, 0xb8 | outer);
                    assert_eq!(is_kept, expected != 4, "inner {inner_mark}, outer {outer}");
                    if is_kept {
                        mark(expected, &mut wanted);
                        assert_eq!(frame, wanted, "inner {inner_mark}, outer {outer}");
                    }
                }
            }
        }
    }

    #[test]
    fn source_ports_follow_flows() {
        let frame = |is_ip6, port: u16| {
            let mut frame = tcp_frame(is_ip6, 0, &[], 0x10, 5);
            let at = Inner::of(&frame).unwrap().transport.unwrap();
            frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
            frame
        };
        let port_of = |frame: &[u8]| source_port(frame, Inner::of(frame).as_ref());
        for is_ip6 in [false, true] {
            let mut ports: Vec<u16> = (0..1000).map(|port| port_of(&frame(is_ip6, port))).collect();
            assert!(ports.iter().all(|port| *port >= 49_152));
            // What is not part of the flow does not matter.
            let mut other = frame(is_ip6, 7);
            *other.last_mut().unwrap() ^= 1;
            assert_eq!(port_of(&other), ports[7]);
            ports.sort_unstable();
            ports.dedup();
            assert!(ports.len() > 900, "{} ports for 1000 flows", ports.len());
        }
        // The other direction is the same flow.
        for is_ip6 in [false, true] {
            let there = frame(is_ip6, 7);
            let inner = Inner::of(&there).unwrap();
            let (mut back, at) = (there.clone(), inner.transport.unwrap());
            back[at..at + 4].rotate_left(2);
            let (from, length) = if is_ip6 { (22, 16) } else { (26, 4) };
            back[from..from + 2 * length].rotate_left(length);
            assert_eq!(inner.reverse_hash(&there), inner.flow_hash(&back));
            assert_eq!(inner.reverse_hash(&back), inner.flow_hash(&there));
            assert_ne!(inner.flow_hash(&there), inner.flow_hash(&back));
        }
        // Without IP, the addresses count.
        let arp = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 6][..], &[0; 28]].concat();
        let mut other = arp.clone();
        other[11] = 3;
        assert!(port_of(&arp) != port_of(&other) && port_of(&arp) >= 49_152);
        assert_eq!(source_port(&[], None), source_port(&[], None));
    }
}
