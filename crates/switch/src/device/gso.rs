//! Software segmentation: splits a frame that the kernel coalesced (GSO/GRO) back into packets, as a network card
//! would. The packets may be in tunnels of the host, such as VXLAN: each then has its own headers of the tunnels.

use super::headers::{
    ETHERNET, EXTENSIONS, IP4, IP6, TAG, TAGS, TCP, TCP_NUMBER, UDP, UDP_NUMBER, pseudo, put, put_length,
};
use super::ip_packet::IpPacket;
use super::offload::{MAX_MESSAGE, SegmentKind};
use super::rx_frame::{LargeFrame, RxFrame};

/// TCP flags that only the last packet keeps (FIN, PSH), and the one that only the first keeps (CWR).
const LAST_ONLY: u8 = 0x01 | 0x08;
const FIRST_ONLY: u8 = 0x80;
/// Tunnels in each other that are looked into. The kernel leaves one to the card.
pub(crate) const MAX_TUNNELS: usize = 2;

/// Splits one GSO frame into its packets, one at a time.
#[derive(Debug, Default)]
pub struct Segmenter {
    /// The frame, from the offset that `start` is to the one that `end` is.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    kind: Option<SegmentKind>,
    /// The packets around the one that is cut, from outside.
    tunnels: Vec<IpPacket>,
    is_ip6: bool,
    /// Offset of the IP header.
    network: usize,
    transport: usize,
    /// Offset of the payload.
    data: usize,
    /// Offset of the next packet's payload in the buffer. The others are offsets in the frame.
    next: usize,
    /// Payload bytes per packet.
    size: usize,
    /// Packets already taken.
    taken: u16,
}

impl Segmenter {
    /// Loads a frame and replaces the previous one. Returns false if the frame is not a GSO frame, was truncated, or
    /// has packets longer than `most` bytes.
    pub fn load(&mut self, frame: &RxFrame<'_>, most: usize) -> bool {
        self.bytes.resize(frame.length().max(self.bytes.len()), 0);
        (self.start, self.end) = (0, frame.length());
        let is_copied = frame.copy_raw_to(&mut self.bytes);
        self.begin(frame.large(), most) && is_copied
    }

    /// Like [`load`](Self::load), for the frame of the message in a buffer, which is exchanged for that of the previous frame.
    pub(crate) fn load_message(&mut self, message: &mut Vec<u8>, frame: LargeFrame, most: usize) -> bool {
        message.resize(message.len().max(MAX_MESSAGE), 0);
        std::mem::swap(&mut self.bytes, message);
        // A buffer that is used for the first time gets its length here.
        message.resize(message.len().max(MAX_MESSAGE), 0);
        (self.start, self.end) = frame.insert_tag(&mut self.bytes);
        self.begin(frame, most)
    }

    fn begin(&mut self, frame: LargeFrame, most: usize) -> bool {
        self.next = self.end;
        self.tunnels.clear();
        let offload = frame.offload;
        let (Some((kind, size)), Some((transport, _)), 0) =
            (offload.segmentation, offload.checksum, frame.cut)
        else {
            return false;
        };
        let Some(bytes) = self.bytes.get(self.start..self.end) else { return false };
        let number = number(kind);
        // A tunnel over IPv6 may begin like extension headers, so it is looked for first.
        let found = packet(bytes, transport, number, &mut self.tunnels).or_else(|| {
            self.tunnels.clear();
            network(bytes, transport)
        });
        let Some((network, is_ip6)) = found else { return false };
        let header = match kind {
            SegmentKind::Tcp => bytes.get(transport + 12).map_or(0, |byte| usize::from(byte >> 4) * 4),
            SegmentKind::Udp => UDP,
        };
        let least = if kind == SegmentKind::Tcp { TCP } else { UDP };
        let data = transport + header;
        if header < least || data >= bytes.len() || data + size > most {
            return false;
        }
        (self.kind, self.is_ip6, self.network, self.transport) = (Some(kind), is_ip6, network, transport);
        (self.data, self.next, self.size, self.taken) = (data, self.start + data, size, 0);
        true
    }

    /// The number of packets that are left.
    pub(crate) fn left(&self) -> usize {
        self.end.saturating_sub(self.next).div_ceil(self.size.max(1))
    }

    /// Whether no packet is left.
    pub fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// Writes the next packet to the start of `to`, with correct lengths, sequence numbers and checksums, and returns
    /// its length. Returns `None` if no packet is left, or if `to` is shorter than the limit that was given to
    /// [`load`](Self::load).
    pub fn take(&mut self, to: &mut [u8]) -> Option<usize> {
        let length = self.next_length();
        (length > 0 && self.write(to)).then(|| {
            self.advance();
            length
        })
    }

    /// Length in bytes of the next packet; 0 if no packet is left.
    #[inline]
    pub(super) fn next_length(&self) -> usize {
        let rest = self.end.saturating_sub(self.next);
        if rest == 0 { 0 } else { self.data + rest.min(self.size) }
    }

    /// Moves on to the packet behind the next one.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.next = self.end.min(self.next + self.size);
        self.taken = self.taken.wrapping_add(1);
    }

    /// Writes the next packet to the start of `to`, and leaves it the next one. Returns false if no packet is left or it doesn't
    /// fit.
    pub(super) fn write(&self, to: &mut [u8]) -> bool {
        let rest = self.bytes.get(self.next..self.end).unwrap_or_default();
        let data = rest.get(..self.size).unwrap_or(rest);
        let headers = self.bytes.get(self.start..self.start + self.data).unwrap_or_default();
        let frame = to.get_mut(..headers.len() + data.len()).filter(|_| !data.is_empty());
        let Some(frame) = frame else { return false };
        let (front, back) = frame.split_at_mut(headers.len());
        front.copy_from_slice(headers);
        back.copy_from_slice(data);
        let (done, is_last) = (self.next - self.start - self.data, data.len() == rest.len());
        self.write_network(frame);
        self.write_transport(frame, u32::try_from(done).unwrap_or(0), is_last);
        // The checksum of a tunnel covers the headers inside.
        self.tunnels.iter().rev().for_each(|tunnel| tunnel.shorten_tunnel(frame, self.taken));
        true
    }

    fn write_network(&self, frame: &mut [u8]) {
        let (network, header) = (self.network, self.transport - self.network);
        let length = frame.len() - network;
        let Some(ip) = frame.get_mut(network..network + header) else { return };
        if !self.is_ip6 {
            let number = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(self.taken);
            put(ip, 4, number);
        }
        put_length(ip, self.is_ip6, length);
    }

    fn write_transport(&self, frame: &mut [u8], done: u32, is_last: bool) {
        let (headers, segment) = frame.split_at_mut(self.transport);
        let length = segment.len() as u16;
        let checksum_offset = match self.kind {
            Some(SegmentKind::Tcp) => {
                let number = [segment[4], segment[5], segment[6], segment[7]];
                let number = u32::from_be_bytes(number).wrapping_add(done);
                segment[4..8].copy_from_slice(&number.to_be_bytes());
                let first = if done == 0 { 0 } else { FIRST_ONLY };
                let last = if is_last { 0 } else { LAST_ONLY };
                segment[13] &= !(first | last);
                16
            }
            _ => {
                put(segment, 4, length);
                6
            }
        };
        put(segment, checksum_offset, 0);
        let number = self.kind.map_or(0, number);
        let pseudo = pseudo(&headers[self.network..], self.is_ip6, number, length);
        let sum = pseudo.bytes(segment).finish();
        // In UDP a checksum of 0 means "none".
        let is_none = sum == 0 && self.kind == Some(SegmentKind::Udp);
        put(segment, checksum_offset, if is_none { 0xffff } else { sum });
    }
}

/// Offset of the IP header, and whether it is IPv6. `None` if the transport header does not directly follow it.
fn network(frame: &[u8], transport: usize) -> Option<(usize, bool)> {
    let mut start = ETHERNET;
    while TAGS.iter().any(|tag| frame.get(start - 2..start) == Some(tag)) {
        start += TAG;
    }
    let header = frame.get(start..transport)?;
    match frame.get(start - 2..start)? {
        [0x08, 0x00] if header.len() >= IP4 && usize::from(header[0] & 15) * 4 == header.len() => {
            Some((start, false))
        }
        [0x86, 0xdd] if header.len() == IP6 => Some((start, true)),
        [0x86, 0xdd] if header.len() > IP6 && EXTENSIONS.contains(&header[6]) => Some((start, true)),
        _ => None,
    }
}

/// The same for a packet whose headers have correct lengths. The packets around it are collected.
fn packet(frame: &[u8], transport: usize, number: u8, tunnels: &mut Vec<IpPacket>) -> Option<(usize, bool)> {
    let mut packet = IpPacket::of(frame)?;
    while packet.transport != Some(transport) || packet.protocol != number {
        if tunnels.len() == MAX_TUNNELS {
            return None;
        }
        tunnels.push(packet);
        packet = packet.inside(frame)?;
    }
    Some((packet.network, packet.is_ip6))
}

/// The IP protocol of the packets of a GSO frame.
fn number(kind: SegmentKind) -> u8 {
    match kind {
        SegmentKind::Tcp => TCP_NUMBER,
        SegmentKind::Udp => UDP_NUMBER,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ip_packet::tests::{TUNNELS, Tunnel, in_tunnel};
    use super::super::offload::Offload;
    use super::*;

    /// A GSO frame: Ethernet, an optional tag, IP, a transport header and numbered bytes of payload.
    fn joined(is_ip6: bool, kind: SegmentKind, tagged: bool, data: usize) -> (Vec<u8>, usize) {
        let mut frame = vec![2; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 7]);
        }
        let number = if kind == SegmentKind::Tcp { TCP_NUMBER } else { UDP_NUMBER };
        if is_ip6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0xff, 0xff, number, 64]);
            frame.extend([1; 32]);
        } else {
            frame.extend([8, 0, 0x45, 0, 0xff, 0xff, 0xff, 0xfe, 0x40, 0, 64, number, 9, 9, 10, 0, 0, 1]);
            frame.extend([10, 0, 0, 2]);
        }
        let transport = frame.len();
        match kind {
            SegmentKind::Tcp => {
                // Ports, sequence numbers, a header of 24 bytes; FIN, PSH, ACK, CWR.
                frame.extend([0, 1, 0, 2, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 1, 0x60, 0x99, 1, 1, 8, 8, 0, 0]);
                frame.extend([1, 1, 1, 1]);
            }
            SegmentKind::Udp => frame.extend([0, 1, 0, 2, 0xff, 0xff, 8, 8]),
        }
        frame.extend((0..data).map(|byte| byte as u8));
        (frame, transport)
    }

    fn check(is_ip6: bool, kind: SegmentKind, tagged: bool, data: usize, size: usize) {
        let (whole, transport) = joined(is_ip6, kind, tagged, data);
        let offload = Offload { checksum: Some((transport, 6)), segmentation: Some((kind, size)) };
        let mut segmenter = Segmenter::default();
        assert!(segmenter.load(&RxFrame::of(&whole, offload), 2048));
        let header = transport + if kind == SegmentKind::Tcp { 24 } else { 8 };
        let network = transport - if is_ip6 { IP6 } else { IP4 };
        let mut buffer = [0; 2048];
        let (mut came, mut count) = (Vec::new(), 0u16);
        while let Some(length) = segmenter.take(&mut buffer) {
            let frame = &buffer[..length];
            assert_eq!(frame[..network], whole[..network]);
            let ip = &frame[network..transport];
            let length_field = u16::from_be_bytes(if is_ip6 { [ip[4], ip[5]] } else { [ip[2], ip[3]] });
            assert_eq!(usize::from(length_field), frame.len() - network - if is_ip6 { IP6 } else { 0 });
            if !is_ip6 {
                assert_eq!(packet::checksum::internet(ip), 0);
                assert_eq!(u16::from_be_bytes([ip[4], ip[5]]), 0xfffeu16.wrapping_add(count));
            }
            let segment = &frame[transport..];
            let number = if kind == SegmentKind::Tcp { TCP_NUMBER } else { UDP_NUMBER };
            assert_eq!(pseudo(ip, is_ip6, number, segment.len() as u16).bytes(segment).finish(), 0);
            let is_last = came.len() + size >= data;
            if kind == SegmentKind::Tcp {
                let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
                assert_eq!(sequence, 0xffff_fff0u32.wrapping_add(came.len() as u32));
                let flags = 0x10 | if count == 0 { 0x80 } else { 0 } | if is_last { 9 } else { 0 };
                assert_eq!(segment[13], flags);
            } else {
                assert_eq!(usize::from(u16::from_be_bytes([segment[4], segment[5]])), segment.len());
            }
            assert!(frame.len() - header == size || is_last);
            came.extend_from_slice(&frame[header..]);
            count += 1;
        }
        assert!(segmenter.is_empty());
        assert_eq!(came, whole[header..]);
        assert_eq!(usize::from(count), data.div_ceil(size));
    }

    #[test]
    fn large_frames_are_segmented() {
        for is_ip6 in [false, true] {
            for kind in [SegmentKind::Tcp, SegmentKind::Udp] {
                for tagged in [false, true] {
                    for (data, size) in [(1, 1), (100, 100), (101, 100), (65_000, 1448), (2896, 1448)] {
                        check(is_ip6, kind, tagged, data, size);
                    }
                }
            }
        }
    }

    /// Each packet has its own headers of the tunnel, with correct lengths and checksums; and its other bytes are those that it has
    /// without a tunnel.
    #[test]
    fn large_frames_in_tunnels_are_segmented() {
        let kinds = [SegmentKind::Tcp, SegmentKind::Udp];
        let inner = kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
        for ((kind, is_ip6), tunnel, over_ip6) in inner.flat_map(|inner| {
            TUNNELS.into_iter().flat_map(move |tunnel| [(inner, tunnel, false), (inner, tunnel, true)])
        }) {
            let (mut frame, transport) = joined(is_ip6, kind, false, 5000);
            let length = frame.len() - ETHERNET;
            put_length(&mut frame[ETHERNET..transport], is_ip6, length);
            let (whole, network) = in_tunnel(tunnel, over_ip6, &frame);
            let offload = Offload { checksum: Some((transport, 6)), segmentation: Some((kind, 1400)) };
            let (mut plain, mut segmenter) = (Segmenter::default(), Segmenter::default());
            assert!(plain.load(&RxFrame::of(&frame, offload), 2048));
            let offload = offload.shifted(network - ETHERNET);
            assert!(segmenter.load(&RxFrame::of(&whole, offload), 2048), "{tunnel:?}");
            let (mut expected, mut buffer, mut count) = ([0; 2048], [0; 2048], 0u16);
            while let Some(length) = plain.take(&mut expected) {
                let taken = segmenter.take(&mut buffer).unwrap();
                let packet = &buffer[..taken];
                assert_eq!(packet[network..], expected[ETHERNET..length], "{tunnel:?} {is_ip6} {over_ip6}");
                let outer = IpPacket::of(packet).unwrap();
                assert_eq!(outer.end, packet.len(), "{tunnel:?} {over_ip6}");
                assert!(outer.has_correct_tunnel(packet), "{tunnel:?} {over_ip6}");
                let start = outer.transport.unwrap();
                if !over_ip6 {
                    let ip = &packet[ETHERNET..start];
                    assert_eq!(packet::checksum::internet(ip), 0);
                    assert_eq!([ip[4], ip[5]], 0xffffu16.wrapping_add(count).to_be_bytes());
                }
                let mut same = whole[start..network].to_vec();
                match tunnel {
                    Tunnel::Vxlan { has_checksum } | Tunnel::Geneve { has_checksum } => {
                        same[4..6].copy_from_slice(&((packet.len() - start) as u16).to_be_bytes());
                        assert_eq!(packet[start + 6..start + 8] != [0, 0], has_checksum);
                        same[6..8].copy_from_slice(&packet[start + 6..start + 8]);
                    }
                    Tunnel::Bridge { has_checksum: true } => {
                        same[4..6].copy_from_slice(&packet[start + 4..start + 6]);
                    }
                    _ => {}
                }
                assert_eq!(packet[start..network], same);
                count += 1;
            }
            assert!(segmenter.is_empty() && count == 4);
        }
    }

    #[test]
    fn tunnels_in_tunnels_are_segmented_and_more_are_refused() {
        let (mut frame, transport) = joined(false, SegmentKind::Tcp, false, 5000);
        let length = frame.len() - ETHERNET;
        put_length(&mut frame[ETHERNET..transport], false, length);
        let vxlan = Tunnel::Vxlan { has_checksum: true };
        let load = |frame: &[u8], network: usize| {
            let offload =
                Offload { checksum: Some((transport, 6)), segmentation: Some((SegmentKind::Tcp, 1400)) };
            let mut segmenter = Segmenter::default();
            segmenter
                .load(&RxFrame::of(frame, offload.shifted(network - ETHERNET)), 2048)
                .then_some(segmenter)
        };
        let (one, first) = in_tunnel(vxlan, false, &frame);
        let (two, second) = in_tunnel(vxlan, true, &one);
        let network = first + second - ETHERNET;
        let mut segmenter = load(&two, network).unwrap();
        let mut buffer = [0; 2048];
        let mut count = 0;
        while let Some(length) = segmenter.take(&mut buffer) {
            let packet = &buffer[..length];
            let outer = IpPacket::of(packet).unwrap();
            let middle = outer.inside(packet).unwrap();
            assert!(outer.has_correct_tunnel(packet) && middle.has_correct_tunnel(packet));
            assert_eq!((outer.end, middle.end), (length, length));
            count += 1;
        }
        assert_eq!(count, 4);
        let (three, third) = in_tunnel(vxlan, true, &two);
        assert!(load(&three, network + third - ETHERNET).is_none());
        // The place of the checksum is in no packet of this kind.
        assert!(load(&one, first + 1).is_none());
    }

    /// Linux puts the limit of nested tunnels (RFC 2473) into an option between the two IP headers.
    #[test]
    fn tunnels_with_extension_headers_are_segmented() {
        let (mut frame, transport) = joined(true, SegmentKind::Tcp, false, 5000);
        let length = frame.len() - ETHERNET;
        put_length(&mut frame[ETHERNET..transport], true, length);
        let (mut whole, network) = in_tunnel(Tunnel::Ip, true, &frame);
        whole.splice(network..network, [41, 0, 4, 1, 4, 1, 1, 0]);
        whole[ETHERNET + 6] = 60;
        let length = whole.len() - ETHERNET;
        put_length(&mut whole[ETHERNET..network], true, length);
        let offload =
            Offload { checksum: Some((transport, 6)), segmentation: Some((SegmentKind::Tcp, 1400)) };
        let (mut plain, mut segmenter) = (Segmenter::default(), Segmenter::default());
        assert!(plain.load(&RxFrame::of(&frame, offload), 2048));
        assert!(segmenter.load(&RxFrame::of(&whole, offload.shifted(network + 8 - ETHERNET)), 2048));
        let (mut expected, mut buffer) = ([0; 2048], [0; 2048]);
        while let Some(length) = plain.take(&mut expected) {
            let taken = segmenter.take(&mut buffer).unwrap();
            assert_eq!(buffer[network + 8..taken], expected[ETHERNET..length]);
            assert_eq!(IpPacket::of(&buffer[..taken]).unwrap().end, taken);
        }
        assert!(segmenter.is_empty());
    }

    #[test]
    fn frames_that_cannot_be_segmented_are_refused() {
        let (whole, transport) = joined(false, SegmentKind::Tcp, false, 3000);
        let offload =
            Offload { checksum: Some((transport, 16)), segmentation: Some((SegmentKind::Tcp, 1448)) };
        let mut segmenter = Segmenter::default();
        let refused = |bytes: &[u8], offload: Offload, segmenter: &mut Segmenter| {
            assert!(!segmenter.load(&RxFrame::of(bytes, offload), 2048));
            assert!(segmenter.is_empty() && segmenter.take(&mut [0; 2048]).is_none());
        };
        refused(&whole, Offload::default(), &mut segmenter);
        refused(&whole, Offload { segmentation: Some((SegmentKind::Tcp, 2000)), ..offload }, &mut segmenter);
        // The inner header of a tunnel does not directly follow the IP header.
        refused(&whole, offload.shifted(8), &mut segmenter);
        for length in 0..transport + 24 {
            refused(&whole[..length], offload, &mut segmenter);
        }
        let mut short = whole.clone();
        short[transport + 12] = 0x40;
        refused(&short, offload, &mut segmenter);
        let mut cut = RxFrame::of(&whole, offload);
        cut.cut = 1;
        assert!(!segmenter.load(&cut, 2048));
        assert!(segmenter.load(&RxFrame::of(&whole, offload), 2048));
        assert_eq!(segmenter.take(&mut [0; 100]), None);
    }
}
