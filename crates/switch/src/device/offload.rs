//! What the kernel has left for a network card to do on a frame, which whoever takes the frame from it has to do.

use packet::checksum;

/// Bytes of the description of it that stands in front of a frame (`struct virtio_net_hdr`).
pub(super) const HEADER: usize = 10;

/// Flag: the checksum is to be filled in.
const NEEDS_CHECKSUM: u8 = 1;
/// Flag beside the kind of a joined frame: the sender uses explicit congestion notification.
const CONGESTION: u8 = 0x80;

/// Of which kind the packets are that a frame was joined of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// TCP segmenter.
    Tcp,
    /// UDP datagrams of one sender to one receiver.
    Udp,
}

/// What is left to do on a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offload {
    /// Where the bytes begin that a checksum is to cover up to the frame's end, and where it goes, counted from there. In
    /// its place is the sum of what else it covers.
    pub(super) checksum: Option<(usize, usize)>,
    /// The frame is to be taken apart: the kind of its packets, and bytes of data for each.
    pub(super) segmentation: Option<(SegmentKind, usize)>,
}

impl Offload {
    /// What the description says; numbers are in the machine's order.
    pub(super) fn new(header: [u8; HEADER]) -> Offload {
        let [flags, kind, _, _, size0, size1, start0, start1, place0, place1] = header;
        let number = |first, second| usize::from(u16::from_ne_bytes([first, second]));
        let kind = match kind & !CONGESTION {
            1 | 4 => Some(SegmentKind::Tcp),
            5 => Some(SegmentKind::Udp),
            _ => None,
        };
        let size = number(size0, size1);
        Offload {
            checksum: (flags & NEEDS_CHECKSUM != 0).then(|| (number(start0, start1), number(place0, place1))),
            segmentation: kind.filter(|_| size > 0).map(|kind| (kind, size)),
        }
    }

    /// The same for a frame into which so many bytes were put in front of what it is about.
    pub(super) fn shifted(self, by: usize) -> Offload {
        Offload { checksum: self.checksum.map(|(start, place)| (start + by, place)), ..self }
    }

    /// Fills in a frame's checksum; the frame must be whole.
    pub(super) fn fill_in(self, frame: &mut [u8]) {
        let Some((start, place)) = self.checksum else { return };
        let Some(covered) = frame.get_mut(start..) else { return };
        let sum = checksum::internet(covered);
        if let Some(field) = covered.get_mut(place..place + 2) {
            // A UDP checksum of 0 means that there is none; to the others both values are the same.
            let sum = if sum == 0 { 0xffff } else { sum };
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn descriptions_are_read() {
        let header = |flags, kind, [size, start, place]: [u16; 3]| {
            let ([a, b], [c, d], [e, f]) = (size.to_ne_bytes(), start.to_ne_bytes(), place.to_ne_bytes());
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
            Offload { checksum: Some((34, 6)), segmentation: None }.fill_in(&mut frame);
            assert_eq!(pseudo.bytes(&frame[34..]).finish(), 0, "{length}");
            // Places outside of the frame are nobody's.
            for checksum in [(34, 6 + frame.len()), (frame.len() + 1, 0), (frame.len(), 0)] {
                let before = frame.clone();
                Offload { checksum: Some(checksum), segmentation: None }.fill_in(&mut frame);
                assert_eq!(frame, before);
            }
        }
        let mut zero = [0xff, 0xff, 0, 0];
        Offload { checksum: Some((0, 2)), segmentation: None }.fill_in(&mut zero);
        assert_eq!(zero, [0xff, 0xff, 0xff, 0xff]);
    }
}
