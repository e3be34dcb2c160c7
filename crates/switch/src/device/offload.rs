//! Offloads: work that the sender of a frame, the kernel or a guest, left to the network card, and that the receiver of the
//! frame must do instead.

use packet::checksum;

/// Length of the offload header that precedes a frame (`struct virtio_net_hdr`).
pub(crate) const HEADER: usize = 10;

/// Maximum length of a GSO frame after its offload header: Ethernet, two tags, and the longest packet.
pub(crate) const MAX_MESSAGE: usize = HEADER + 14 + 8 + (1 << 16);

/// Flag `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum must be filled in.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;
/// Flag in the GSO type (`VIRTIO_NET_HDR_GSO_ECN`): the sender uses explicit congestion notification.
pub(crate) const CONGESTION: u8 = 0x80;

/// GSO types (`VIRTIO_NET_HDR_GSO_...`).
pub(crate) const TCP_OVER_IP4: u8 = 1;
pub(crate) const TCP_OVER_IP6: u8 = 4;
pub(crate) const UDP: u8 = 5;

/// The kind of packets in a GSO frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// TCP segments.
    Tcp,
    /// UDP datagrams of one flow.
    Udp,
}

/// The offloads that remain for a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    /// Offset of the first byte that the checksum covers (it covers all bytes to the end of the frame), and the offset
    /// of the checksum field relative to it. The field holds the sum of the pseudo-header.
    pub(crate) checksum: Option<(usize, usize)>,
    /// Segmentation of a GSO frame: the kind of its packets and the payload bytes per packet.
    pub(crate) segmentation: Option<(SegmentKind, usize)>,
}

impl Offload {
    /// Parses the offload header. Numbers are in native byte order.
    pub(crate) fn new(header: [u8; HEADER]) -> Offload {
        let [flags, kind, _, _, size0, size1, start0, start1, offset0, offset1] = header;
        let number = |first, second| usize::from(u16::from_ne_bytes([first, second]));
        let kind = match kind & !CONGESTION {
            TCP_OVER_IP4 | TCP_OVER_IP6 => Some(SegmentKind::Tcp),
            UDP => Some(SegmentKind::Udp),
            _ => None,
        };
        let size = number(size0, size1);
        Offload {
            checksum: (flags & NEEDS_CHECKSUM != 0)
                .then(|| (number(start0, start1), number(offset0, offset1))),
            segmentation: kind.filter(|_| size > 0).map(|kind| (kind, size)),
        }
    }

    /// The offload header of a frame with `length` bytes of headers.
    pub(super) fn header(self, is_ip6: bool, length: usize) -> [u8; HEADER] {
        let kind = match self.segmentation {
            None => 0,
            Some((SegmentKind::Tcp, _)) if is_ip6 => TCP_OVER_IP6,
            Some((SegmentKind::Tcp, _)) => TCP_OVER_IP4,
            Some((SegmentKind::Udp, _)) => UDP,
        };
        let flags = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        let (size, (start, field_offset)) =
            (self.segmentation.map_or(0, |(_, size)| size), self.checksum.unwrap_or_default());
        let [[l0, l1], [s0, s1], [c0, c1], [f0, f1]] =
            [length, size, start, field_offset].map(|number| (number as u16).to_ne_bytes());
        [flags, kind, l0, l1, s0, s1, c0, c1, f0, f1]
    }

    /// The same offloads after `by` bytes were inserted before the bytes that they refer to.
    pub(super) fn shifted(self, by: usize) -> Offload {
        Offload { checksum: self.checksum.map(|(start, field_offset)| (start + by, field_offset)), ..self }
    }

    /// Fills in the frame's checksum, if that remains to be done. The frame must be whole. Returns false if the checksum's
    /// place is outside the frame, which then stays as it is.
    pub(crate) fn fill_in(self, frame: &mut [u8]) -> bool {
        let Some((start, field_offset)) = self.checksum else { return true };
        let Some(covered) = frame.get_mut(start..).filter(|covered| covered.len() >= field_offset + 2) else {
            return false;
        };
        let sum = checksum::internet(covered);
        if let Some(field) = covered.get_mut(field_offset..field_offset + 2) {
            // In UDP a checksum of 0 means "none"; the other protocols accept either value.
            let sum = if sum == 0 { 0xffff } else { sum };
            field.copy_from_slice(&sum.to_be_bytes());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn offload_headers_are_parsed() {
        let header = |flags, kind, [size, start, field_offset]: [u16; 3]| {
            let ([a, b], [c, d], [e, f]) =
                (size.to_ne_bytes(), start.to_ne_bytes(), field_offset.to_ne_bytes());
            Offload::new([flags, kind, 0, 0, a, b, c, d, e, f])
        };
        assert_eq!(header(0, 0, [0, 34, 16]), Offload::default());
        assert_eq!(header(2, 0, [0, 0, 0]), Offload::default());
        assert_eq!(header(1, 0, [0, 34, 6]), Offload { checksum: Some((34, 6)), segmentation: None });
        for (kind, joined) in
            [(1, SegmentKind::Tcp), (0x81, SegmentKind::Tcp), (4, SegmentKind::Tcp), (5, SegmentKind::Udp)]
        {
            let expected = Offload { checksum: Some((34, 16)), segmentation: Some((joined, 1448)) };
            assert_eq!(header(1, kind, [1448, 34, 16]), expected);
            assert_eq!(header(1, kind, [0, 34, 16]).segmentation, None);
        }
        assert_eq!(header(1, 0, [0, 34, 6]).shifted(4).checksum, Some((38, 6)));
    }

    #[test]
    fn a_checksum_is_completed() {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        for length in [8u16, 9, 100] {
            let mut frame = vec![7u8; 34 + usize::from(length)];
            let pseudo = checksum::Sum::ZERO.pseudo4(source, destination, 17, length);
            frame[34 + 6..34 + 8].copy_from_slice(&pseudo.fold().to_be_bytes());
            assert!(Offload { checksum: Some((34, 6)), segmentation: None }.fill_in(&mut frame));
            assert_eq!(pseudo.bytes(&frame[34..]).finish(), 0, "{length}");
            // Offsets outside the frame are refused.
            for checksum in
                [(34, 6 + frame.len()), (frame.len() + 1, 0), (frame.len(), 0), (frame.len() - 2, 1)]
            {
                let before = frame.clone();
                assert!(!Offload { checksum: Some(checksum), segmentation: None }.fill_in(&mut frame));
                assert_eq!(frame, before);
            }
            let before = frame.clone();
            assert!(Offload::default().fill_in(&mut frame) && frame == before);
        }
        let mut zero = [0xff, 0xff, 0, 0];
        assert!(Offload { checksum: Some((0, 2)), segmentation: None }.fill_in(&mut zero));
        assert_eq!(zero, [0xff, 0xff, 0xff, 0xff]);
    }
}
