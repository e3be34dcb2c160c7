//! A frame received from a packet socket.

use super::offload::{HEADER, Offload, SegmentKind};
use super::ring::{ADDRESS, Slot};

/// Length of the two MAC addresses, and the offset at which a VLAN tag is inserted.
const ADDRESSES: usize = 12;
/// Length of a VLAN tag.
const TAG: usize = 4;
/// The EtherType of a VLAN tag if the kernel doesn't report one.
const TAG_TYPE: u16 = 0x8100;

/// A frame received from a packet socket.
///
/// The kernel removes the VLAN tag and reports it separately, and it may leave the checksum to the network card.
/// [`copy_to`](RxFrame::copy_to) inserts the tag and fills in the checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxFrame<'a> {
    frame: &'a [u8],
    tag: Option<[u8; TAG]>,
    offload: Offload,
    /// Bytes that were truncated from the end.
    pub cut: usize,
    /// The packet type: 0 for this host, 1 broadcast, 2 multicast, 3 for another host, 4 sent by this host.
    pub packet_type: u8,
    /// Receive time by the wall clock: seconds and nanoseconds.
    pub time: (i64, u32),
}

/// What is known about a GSO frame besides its bytes, which follow an offload header in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LargeFrame {
    tag: Option<[u8; TAG]>,
    /// The offloads that remain when the tag is inserted.
    pub(super) offload: Offload,
    /// Bytes in the buffer after the header.
    length: usize,
    /// Bytes that were truncated.
    pub(super) cut: usize,
}

impl LargeFrame {
    /// A GSO frame of `length` bytes with these offloads.
    pub(crate) fn new(offload: Offload, length: usize) -> Self {
        Self { tag: None, offload, length, cut: 0 }
    }

    /// Inserts the tag into the frame in a buffer. Returns where the frame then starts and ends.
    pub(super) fn insert_tag(self, message: &mut [u8]) -> (usize, usize) {
        let (start, end) = (HEADER, HEADER + self.length);
        let Some(tag) = self.tag else { return (start, end) };
        message.copy_within(start..start + ADDRESSES, start - TAG);
        if let Some(place) = message.get_mut(start - TAG + ADDRESSES..start + ADDRESSES) {
            place.copy_from_slice(&tag);
        }
        (start - TAG, end)
    }
}

impl<'a> RxFrame<'a> {
    /// Reads the frame in a slot of `size` bytes, truncated to `snap` bytes.
    ///
    /// # Safety
    /// This process owns the slot, the kernel has filled it, it is at least `size` bytes long, and it is not returned
    /// to the kernel while the result is in use.
    #[inline]
    pub(super) unsafe fn from_slot(slot: &Slot<'a>, size: usize, snap: usize) -> RxFrame<'a> {
        let start = slot.start();
        // SAFETY: the caller's contract; every slot has room for the header and the address, and the frame is clamped
        // to the slot.
        let (header, address, offload, frame) = unsafe {
            let header = start.cast::<libc::tpacket2_hdr>().read();
            let address = start.add(ADDRESS).cast::<libc::sockaddr_ll>().read();
            let offset = usize::from(header.tp_mac).clamp(HEADER, size);
            let offload = Offload::new(start.add(offset - HEADER).cast::<[u8; HEADER]>().read());
            let length = (header.tp_snaplen as usize).min(size - offset).min(snap);
            (header, address, offload, std::slice::from_raw_parts(start.add(offset), length))
        };
        let tag =
            (header.tp_status & libc::TP_STATUS_VLAN_VALID != 0 && frame.len() >= ADDRESSES).then(|| {
                let known = header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                let [t0, t1] = if known { header.tp_vlan_tpid } else { TAG_TYPE }.to_be_bytes();
                let [c0, c1] = header.tp_vlan_tci.to_be_bytes();
                [t0, t1, c0, c1]
            });
        RxFrame {
            frame,
            tag,
            offload,
            cut: (header.tp_len as usize).saturating_sub(frame.len()),
            packet_type: address.sll_pkttype,
            time: (header.tp_sec.into(), header.tp_nsec),
        }
    }

    /// Reads what a TAP device passed: a frame, after an offload header or without. Returns `None` if the header is not
    /// whole.
    pub(crate) fn from_tap(bytes: &'a [u8], has_header: bool) -> Option<RxFrame<'a>> {
        if !has_header {
            return Some(RxFrame { frame: bytes, ..RxFrame::default() });
        }
        let (header, frame) = bytes.split_first_chunk()?;
        Some(RxFrame { frame, offload: Offload::new(*header), ..RxFrame::default() })
    }

    /// A TCP packet that is to be cut into segments with this many bytes of data. `transport` is the offset of its TCP header.
    pub(crate) fn tcp(frame: &'a [u8], transport: usize, size: usize) -> RxFrame<'a> {
        let segmentation = (size > 0).then_some((SegmentKind::Tcp, size));
        let offload = Offload { checksum: Some((transport, 16)), segmentation };
        RxFrame { frame, offload, ..RxFrame::default() }
    }

    /// The same frame with all its bytes, where the slot held only the first of them.
    pub(super) fn whole(self, frame: &'a [u8]) -> RxFrame<'a> {
        RxFrame { frame, cut: 0, ..self }
    }

    /// The same frame after it was copied to a buffer, behind room for an offload header. It fits.
    pub(crate) fn moved<'b>(self, message: &'b mut [u8]) -> RxFrame<'b> {
        let place = message.get_mut(HEADER..HEADER + self.frame.len()).unwrap_or_default();
        if place.len() == self.frame.len() {
            place.copy_from_slice(self.frame);
        }
        RxFrame { frame: place, ..self }
    }

    /// What is known about a GSO frame besides its bytes.
    pub(crate) fn large(&self) -> LargeFrame {
        LargeFrame { tag: self.tag, offload: self.offload(), length: self.frame.len(), cut: self.cut }
    }

    /// Whether the kernel coalesced several packets into this frame, which must be segmented.
    #[inline]
    pub fn is_gso(&self) -> bool {
        self.offload.segmentation.is_some()
    }

    /// The offloads that remain after [`copy_raw_to`](Self::copy_raw_to).
    pub(super) fn offload(&self) -> Offload {
        self.offload.shifted(self.tag.map_or(0, |_| TAG))
    }

    /// Length in bytes, with the VLAN tag and without truncated bytes.
    #[inline]
    pub fn length(&self) -> usize {
        self.frame.len() + self.tag.map_or(0, |_| TAG)
    }

    /// Copies the frame to the start of `to`, with the tag inserted and, if the frame is whole, the checksum filled in.
    /// Returns false if it doesn't fit.
    #[inline]
    pub fn copy_to(&self, to: &mut [u8]) -> bool {
        let fits = self.copy_raw_to(to);
        if fits && self.cut == 0 && self.offload.checksum.is_some() {
            self.offload().fill_in(to.get_mut(..self.length()).unwrap_or_default());
        }
        fits
    }

    /// Where the checksum is that the sender left to the network card, in the frame with its tag: the offset of the first byte that it
    /// covers, and the offset of its field from there. The field holds the sum of the pseudo-header.
    pub fn partial_checksum(&self) -> Option<(usize, usize)> {
        self.offload().checksum
    }

    /// Copies the frame to the start of `to`, with the tag inserted and the checksum left as it came. Returns false if
    /// it doesn't fit.
    #[inline]
    pub fn copy_raw_to(&self, to: &mut [u8]) -> bool {
        let Some(to) = to.get_mut(..self.length()) else { return false };
        match (self.tag, self.frame.split_at_checked(ADDRESSES)) {
            (Some(tag), Some((addresses, rest))) => {
                to[..ADDRESSES].copy_from_slice(addresses);
                to[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
                to[ADDRESSES + TAG..].copy_from_slice(rest);
            }
            _ => to.copy_from_slice(self.frame),
        }
        true
    }
}

#[cfg(test)]
impl<'a> RxFrame<'a> {
    /// A frame with these offloads.
    pub(super) fn of(frame: &'a [u8], offload: Offload) -> RxFrame<'a> {
        RxFrame { frame, offload, ..RxFrame::default() }
    }
}

/// The bytes of a slot that is in no ring, with any contents.
#[cfg(any(test, fuzzing))]
#[derive(Debug)]
pub(crate) struct SlotBytes(Vec<u128>);

#[cfg(any(test, fuzzing))]
impl SlotBytes {
    /// Bytes of such a slot.
    const SIZE: usize = 2176;

    /// A slot that begins with these bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let word = |chunk: &[u8]| {
            let mut word = [0; 16];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            u128::from_ne_bytes(word)
        };
        let mut words: Vec<u128> = bytes.chunks(16).map(word).collect();
        words.resize(Self::SIZE / 16, 0);
        Self(words)
    }

    /// The frame in it, truncated to `snap` bytes.
    pub(crate) fn frame(&self, snap: usize) -> RxFrame<'_> {
        let slot = Slot::of(&self.0);
        // SAFETY: the slot has this size and is aligned, and nothing writes to it while it is borrowed.
        unsafe { RxFrame::from_slot(&slot, Self::SIZE, snap) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_completed_in_a_tagged_frame() {
        let bytes = [1; 20];
        let offload = Offload { checksum: Some((14, 2)), segmentation: None };
        let frame = RxFrame { tag: Some([0x81, 0, 0, 7]), ..RxFrame::of(&bytes, offload) };
        let mut buffer = [0; 24];
        assert!(frame.copy_to(&mut buffer));
        assert_eq!(packet::checksum::internet(&[&[1, 1][..], &buffer[18..]].concat()), 0);
        let cut = RxFrame { cut: 1, ..frame };
        assert!(cut.copy_to(&mut buffer) && buffer[16..] == [1; 8]);
    }

    #[test]
    fn a_vlan_tag_follows_the_addresses() {
        let bytes: [u8; 20] = std::array::from_fn(|byte| byte as u8);
        let plain = RxFrame { frame: &bytes, ..RxFrame::default() };
        let tagged = RxFrame { tag: Some([0x81, 0, 0, 7]), ..plain };
        let mut buffer = [0; 24];
        assert!(plain.copy_to(&mut buffer) && buffer[..20] == bytes);
        assert!(tagged.copy_to(&mut buffer));
        assert_eq!(
            (&buffer[..12], &buffer[12..16], &buffer[16..]),
            (&bytes[..12], &[0x81, 0, 0, 7][..], &bytes[12..])
        );
        assert!(!tagged.copy_to(&mut buffer[..23]) && !plain.copy_to(&mut buffer[..19]));
    }
}
