//! Reads the datagrams of a tunnel's remote end, which may be hostile.

use super::format::{ETHERNET, Encapsulation, UDP};
use super::inner::{Inner, TCP_NUMBER, UDP_NUMBER};
use super::segment_sizes::SegmentSizes;
use super::socket::OverlayEnds;
use crate::batch::MAX_FRAME;
use crate::device::{RxFrame, Segmenter};
use packet::checksum::Sum;
use reason::Reason;
use std::net::IpAddr;
use std::ops::Range;

/// Length of an IPv4 header without options.
const IP4: usize = 20;

/// The longest packets of TCP flows of which it is not known how long their segments may be: the MTU that each link with IPv6
/// has.
const CAUTIOUS_MTU: u16 = 1280;

/// What a datagram brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// A frame: these bytes of the packet.
    Frame(Range<usize>),
    /// A TCP packet that the sender left to be cut into segments, which [`OverlayReader::take`] returns.
    Segments,
    /// A frame that is too long.
    Long,
}

/// Reads datagrams of one tunnel.
#[derive(Debug)]
pub struct OverlayReader {
    ends: OverlayEnds,
    encapsulation: Encapsulation,
    vni: u32,
    udp_port: u16,
    segmenter: Segmenter,
    sizes: SegmentSizes,
}

impl OverlayReader {
    /// A reader for a tunnel.
    pub fn new(ends: OverlayEnds, encapsulation: Encapsulation, vni: u32, udp_port: u16) -> Self {
        Self {
            ends,
            encapsulation,
            vni,
            udp_port,
            segmenter: Segmenter::default(),
            sizes: SegmentSizes::default(),
        }
    }

    /// Notes the maximum segment size that the receiver of a flow from the remote end announced.
    pub(super) fn set_segment_size(&mut self, flow: u64, size: u16) {
        self.sizes.set(flow, size);
    }

    /// Reads a packet, which begins with its IPv4 header or, if the tunnel uses IPv6, with its UDP header. `class` is the
    /// traffic class of an IPv6 packet. Changes the frame: fills in an open checksum, notes a mark of congestion, and lowers
    /// the segment size that TCP announces to what the MTU allows. Returns the reason for which the packet is dropped.
    pub fn read(&mut self, packet: &mut [u8], class: u8, mtu: u16) -> Result<Read, Reason> {
        let bad = Reason::BAD_TUNNEL_HEADER;
        let (udp, class) = match self.ends.remote {
            IpAddr::V4(_) => {
                let header = packet.first_chunk::<IP4>().ok_or(bad)?;
                (usize::from(header[0] & 15) * 4, header[1])
            }
            IpAddr::V6(_) => (0, class),
        };
        let header = packet.get(udp..).and_then(<[u8]>::first_chunk::<UDP>).ok_or(bad)?;
        let [_, _, p0, p1, l0, l1, c0, c1] = *header;
        let (length, checksum) = (u16::from_be_bytes([l0, l1]), u16::from_be_bytes([c0, c1]));
        let datagram = packet.get_mut(udp..udp + usize::from(length)).ok_or(bad)?;
        let payload = datagram.get(UDP..).ok_or(bad)?;
        if u16::from_be_bytes([p0, p1]) != self.udp_port {
            return Err(bad);
        }
        let start = UDP + self.encapsulation.frame_offset(payload, self.vni)?;
        let frame = datagram.get_mut(start..).ok_or(bad)?;
        let inner = Inner::of(frame);
        let most = self.longest(frame, inner.as_ref(), mtu);
        // The headers of a packet that is cut into segments.
        let headers = inner.filter(|inner| inner.end > most).and_then(|inner| inner.tcp_data(frame));
        if let (Some(inner), None) = (&inner, headers) {
            inner.complete_checksum(frame);
        }
        // The outer checksum covers the completed one (as the kernel's "local checksum offload" computes it). That of a packet that
        // is cut into segments is completed only if it must be: the kernel leaves both open where it left the cutting.
        if let Err(reason) = self.check(datagram, checksum) {
            let (Some(inner), Some(_)) = (&inner, headers) else { return Err(reason) };
            inner.complete_checksum(datagram.get_mut(start..).unwrap_or_default());
            self.check(datagram, checksum)?;
        }
        let frame = datagram.get_mut(start..).ok_or(bad)?;
        if let Some(inner) = &inner {
            if !inner.combine_congestion(frame, class) {
                return Err(Reason::CONGESTION_MARK);
            }
            inner.lower_segment_size(frame, mtu);
        }
        if let (Some(Inner { transport: Some(transport), end, .. }), Some(headers)) = (inner, headers) {
            let whole = frame.get(..end).ok_or(bad)?;
            let large = RxFrame::tcp(whole, transport, most.saturating_sub(headers));
            let is_cut = headers < most && self.segmenter.load(&large, most);
            return Ok(if is_cut { Read::Segments } else { Read::Long });
        }
        let (start, length) = (udp + start, frame.len());
        Ok(if length <= MAX_FRAME { Read::Frame(start..start + length) } else { Read::Long })
    }

    /// The length of the longest frame that this one may be, or be cut into.
    fn longest(&self, frame: &[u8], inner: Option<&Inner>, mtu: u16) -> usize {
        let most = (usize::from(mtu) + ETHERNET).min(MAX_FRAME);
        let Some(inner) = inner.filter(|inner| inner.protocol == TCP_NUMBER) else { return most };
        let announced = self.sizes.find(inner.flow_hash(frame)).map(|size| inner.packet_size(size));
        let is_long = inner.end > most;
        announced
            .or(is_long.then_some(CAUTIOUS_MTU))
            .map_or(most, |packet| (inner.network + usize::from(packet)).min(most))
    }

    /// Whether no segment is left.
    pub fn is_empty(&self) -> bool {
        self.segmenter.is_empty()
    }

    /// Writes the next segment to the start of `to`, and returns its length.
    pub fn take(&mut self, to: &mut [u8; MAX_FRAME]) -> Option<usize> {
        self.segmenter.take(to)
    }

    /// Checks the UDP checksum. IPv4 needs none. Raw sockets do not check it.
    fn check(&self, datagram: &[u8], checksum: u16) -> Result<(), Reason> {
        let OverlayEnds { local, remote } = self.ends;
        if checksum == 0 {
            return if remote.is_ipv4() { Ok(()) } else { Err(Reason::BAD_CHECKSUM) };
        }
        let pseudo = pseudo_sum(remote, local, datagram.len());
        // The sender may have left it to a network card that the packet never passed.
        let is_open = checksum == pseudo.fold();
        if is_open || pseudo.bytes(datagram).finish() == 0 { Ok(()) } else { Err(Reason::BAD_CHECKSUM) }
    }
}

/// The sum of the pseudo-header of a UDP datagram.
pub(super) fn pseudo_sum(source: IpAddr, destination: IpAddr, length: usize) -> Sum {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            Sum::ZERO.pseudo4(source, destination, UDP_NUMBER, length as u16)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            Sum::ZERO.pseudo6(source, destination, UDP_NUMBER, length as u32)
        }
        _ => Sum::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::super::inner::tests::{slow_sum, tcp_frame, transport_sum};
    use super::*;

    const ENDS4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
    const ENDS6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

    fn reader([local, remote]: [&str; 2], encapsulation: Encapsulation) -> OverlayReader {
        let ends = OverlayEnds { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
        OverlayReader::new(ends, encapsulation, 42, encapsulation.default_port())
    }

    /// A packet from the remote end, with this frame. Its UDP checksum is correct, or 0 over IPv4.
    fn packet(reader: &OverlayReader, frame: &[u8]) -> Vec<u8> {
        let length = (16 + frame.len()) as u16;
        let [[l0, l1], [p0, p1]] = [length, reader.udp_port].map(u16::to_be_bytes);
        let mut udp = vec![0xc0, 1, p0, p1, l0, l1, 0, 0];
        udp.extend(reader.encapsulation.header(42));
        udp.extend(frame);
        match (reader.ends.remote, reader.ends.local) {
            (IpAddr::V6(remote), IpAddr::V6(local)) => {
                let sum = slow_sum(&[&remote.octets(), &local.octets(), &[0, 17, l0, l1], &udp]);
                udp[6..8].copy_from_slice(&(!sum).to_be_bytes());
                udp
            }
            _ => {
                // The addresses are not looked at: the kernel has compared them.
                let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                ip.extend(udp);
                ip
            }
        }
    }

    #[test]
    fn frames_are_unpacked() {
        for kind in [Encapsulation::Vxlan, Encapsulation::Geneve] {
            for ends in [ENDS4, ENDS6] {
                let mut reader = reader(ends, kind);
                for frame in [vec![7; 14], tcp_frame(true, 1, &[], 0x18, 1300), vec![1; MAX_FRAME]] {
                    let mut packet = packet(&reader, &frame);
                    let Ok(Read::Frame(range)) = reader.read(&mut packet, 0, 1450) else { panic!() };
                    assert_eq!(packet[range], frame);
                }
                let mut long = packet(&reader, &[1; MAX_FRAME + 1]);
                assert_eq!(reader.read(&mut long, 0, 1450), Ok(Read::Long));
            }
        }
    }

    #[test]
    fn damaged_packets_are_refused() {
        let frame = tcp_frame(false, 0, &[], 0x18, 100);
        for ends in [ENDS4, ENDS6] {
            let mut reader = reader(ends, Encapsulation::Vxlan);
            let whole = packet(&reader, &frame);
            for length in 0..whole.len() {
                let result = reader.read(&mut whole[..length].to_vec(), 0, 1450);
                assert_eq!(result, Err(Reason::BAD_TUNNEL_HEADER), "{length}");
            }
            let udp = whole.len() - frame.len() - 16;
            // Another port; a length that ends in the headers, or is greater than the packet.
            for (at, byte) in [(udp + 3, 0), (udp + 4, 0), (udp + 4, 0xff)] {
                let mut packet = whole.clone();
                packet[at] = byte;
                if at == udp + 4 && byte == 0 {
                    packet[udp + 5] = 7;
                }
                assert_eq!(reader.read(&mut packet, 0, 1450), Err(Reason::BAD_TUNNEL_HEADER), "{at}");
            }
        }
        // Over IPv6 each bit counts, and there must be a checksum. Over IPv4 one that is there must be right.
        let mut reader6 = reader(ENDS6, Encapsulation::Vxlan);
        let whole = packet(&reader6, &frame);
        for at in [0, 6, 40, whole.len() - 1] {
            let mut packet = whole.clone();
            packet[at] ^= 0x10;
            assert_eq!(reader6.read(&mut packet, 0, 1450), Err(Reason::BAD_CHECKSUM), "{at}");
        }
        let mut without = whole.clone();
        without[6..8].fill(0);
        assert_eq!(reader6.read(&mut without, 0, 1450), Err(Reason::BAD_CHECKSUM));
        let mut reader4 = reader(ENDS4, Encapsulation::Vxlan);
        let mut wrong = packet(&reader4, &frame);
        wrong[26] = 1;
        assert_eq!(reader4.read(&mut wrong, 0, 1450), Err(Reason::BAD_CHECKSUM));
    }

    /// Packets that Open vSwitch 3.1 sent: a ping in GENEVE, without a UDP checksum, with one, with an option, with a critical
    /// one, and over IPv6.
    #[test]
    fn packets_of_open_vswitch_are_read() {
        /// The headers, the frame, the addresses, and where the frame begins.
        type Recorded = (&'static str, &'static str, [&'static str; 2], Result<usize, Reason>);
        const OPEN_VSWITCH: [Recorded; 5] = [
            (
                "45000056000040004011b693c0000202c0000201be3617c1004200000000655800002a00",
                "268ab0279aa072bab2e4a2420800450000240d7e0000400159470a0900020a0900010000b6783d7500020001020304050607",
                ENDS4,
                Ok(36),
            ),
            (
                "45000056000040004011b693c0000202c0000201be3617c10042d4e10000655800002a00",
                "268ab0279aa072bab2e4a2420800450000240d8b00004001593a0a0900020a0900010000b63c3db200010001020304050607",
                ENDS4,
                Ok(36),
            ),
            (
                "4500005e000040004011b68bc0000202c0000201be3617c1004abe9a0200655800002a000102010100001234",
                "268ab0279aa072bab2e4a2420800450000240e200000400158a50a0900020a0900010000b6053de900010001020304050607",
                ENDS4,
                Ok(44),
            ),
            (
                "4500005e000040004011b68bc0000202c0000201be3617c1004a3e5a0240655800002a000102810100001234",
                "268ab0279aa072bab2e4a2420800450000240fa10000400157240a0900020a0900010000b59b3e5300010001020304050607",
                ENDS4,
                Err(Reason::CRITICAL_OPTION),
            ),
            (
                "be3617c10042fd700000655800002a00",
                "268ab0279aa072bab2e4a24208004500002410850000400156400a0900020a0900010000b5313ebd00010001020304050607",
                ENDS6,
                Ok(16),
            ),
        ];
        let bytes = |text: &str| -> Vec<u8> {
            let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(digit).collect()
        };
        for (headers, frame, ends, start) in OPEN_VSWITCH {
            let (mut reader, mut packet) =
                (reader(ends, Encapsulation::Geneve), bytes(&[headers, frame].concat()));
            let length = packet.len();
            let expected = start.map(|start| Read::Frame(start..length));
            assert_eq!(reader.read(&mut packet, 0, 1450), expected, "{headers}");
            assert!(packet.ends_with(&bytes(frame)));
        }
    }

    #[test]
    fn checksums_that_a_local_sender_left_open_are_accepted() {
        let mut reader = reader(ENDS6, Encapsulation::Vxlan);
        let frame = tcp_frame(false, 0, &[], 0x18, 100);
        let whole = packet(&reader, &frame);
        // The outer one is open.
        let ([l0, l1], octets) = ((whole.len() as u16).to_be_bytes(), |text: &str| {
            text.parse::<std::net::Ipv6Addr>().unwrap().octets()
        });
        let pseudo = slow_sum(&[&octets(ENDS6[1]), &octets(ENDS6[0]), &[0, 17, l0, l1]]);
        let mut open = whole.clone();
        open[6..8].copy_from_slice(&pseudo.to_be_bytes());
        assert_eq!(reader.read(&mut open, 0, 1450), Ok(Read::Frame(16..whole.len())));
        // The inner one is open, and the outer one covers what it will be.
        let mut open = whole.clone();
        let pseudo = slow_sum(&[&frame[26..34], &[0, 6, 0, 120]]);
        open[16 + 50..16 + 52].copy_from_slice(&pseudo.to_be_bytes());
        assert_eq!(reader.read(&mut open, 0, 1450), Ok(Read::Frame(16..whole.len())));
        assert_eq!(open[16..], frame);
        // The same in a packet that is longer than the MTU, which this end lowered after the connection began: it is cut.
        let frame = tcp_frame(false, 0, &[], 0x18, 1390);
        let whole = packet(&reader, &frame);
        let pseudo = slow_sum(&[&frame[26..34], &[0, 6, 5, 130]]);
        let mut open = whole.clone();
        open[16 + 50..16 + 52].copy_from_slice(&pseudo.to_be_bytes());
        assert_eq!(reader.read(&mut open, 0, 1230), Ok(Read::Segments));
        let mut lengths = Vec::new();
        while let Some(length) = reader.take(&mut [0; MAX_FRAME]) {
            lengths.push(length);
        }
        assert_eq!(lengths, [1244, 254]);
        let mut wrong = whole;
        wrong[100] ^= 1;
        assert_eq!(reader.read(&mut wrong, 0, 1230), Err(Reason::BAD_CHECKSUM));
    }

    #[test]
    fn large_tcp_packets_are_cut() {
        // Without an announced segment size, with one that fits, and with one above the MTU.
        for (is_ip6, announced, most) in
            [(false, None, 1294), (true, None, 1294), (false, Some(1000), 1054), (true, Some(1400), 1464)]
        {
            let mut reader = reader(ENDS4, Encapsulation::Geneve);
            let frame = tcp_frame(is_ip6, 0, &[1; 12], 0x18, 5000);
            if let Some(size) = announced {
                reader.set_segment_size(Inner::of(&frame).unwrap().flow_hash(&frame), size);
            }
            let mut packet = packet(&reader, &frame);
            assert_eq!(reader.read(&mut packet, 0, 1450), Ok(Read::Segments));
            let (mut data, mut space) = (Vec::<u8>::new(), [0; MAX_FRAME]);
            while let Some(length) = reader.take(&mut space) {
                let segment = &space[..length];
                let inner = Inner::of(segment).unwrap();
                assert!(length <= most && (reader.is_empty() || length == most) && inner.end == length);
                assert_eq!(transport_sum(segment, 14, inner.transport.unwrap()), 0xffff);
                data.extend(&segment[inner.tcp_data(segment).unwrap()..]);
            }
            assert!(reader.is_empty());
            assert_eq!(data, frame[frame.len() - 5000..]);
        }
        // The headers alone are longer than the MTU; other protocols are not cut.
        let mut reader = reader(ENDS4, Encapsulation::Geneve);
        let frame = tcp_frame(true, 0, &[], 0x18, 5000);
        let mut packet = packet(&reader, &frame);
        assert_eq!(reader.read(&mut packet.clone(), 0, 60), Ok(Read::Long));
        packet[36 + 20] = 17;
        assert_eq!(reader.read(&mut packet, 0, 1450), Ok(Read::Long));
    }

    #[test]
    fn marks_and_segment_sizes_are_taken_over() {
        for ends in [ENDS4, ENDS6] {
            let mut reader = reader(ends, Encapsulation::Vxlan);
            let mut frame = tcp_frame(true, 0, &[2, 4, 5, 0xb4], 0x02, 0);
            let class = |packet: &mut Vec<u8>, class: u8| {
                if ends == ENDS4 {
                    packet[1] = class;
                }
            };
            // The packet cannot carry the mark.
            let mut bytes = packet(&reader, &frame);
            class(&mut bytes, 3);
            assert_eq!(reader.read(&mut bytes, 3, 1450), Err(Reason::CONGESTION_MARK));
            frame[15] |= 2 << 4;
            let mut bytes = packet(&reader, &frame);
            class(&mut bytes, 3);
            let Ok(Read::Frame(range)) = reader.read(&mut bytes, 3, 1450) else { panic!() };
            let frame = &bytes[range];
            assert_eq!((frame[15] >> 4 & 3, &frame[74..78]), (3, &[2, 4, 5, 0x6e][..]));
            assert_eq!(transport_sum(frame, 14, 54), 0xffff);
        }
    }
}
