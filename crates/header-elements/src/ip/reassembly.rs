//! A partially received IPv4 packet.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::view::ip4::{MORE_FRAGMENTS, OFFSET_BITS};
use packet::{Ip4View, Ip4ViewMut};

/// The byte range of a fragment's data in the whole packet's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The fields that the fragments of a packet share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatagramKey {
    identification: u16,
    protocol: u8,
    source: Ipv4Addr,
    destination: Ipv4Addr,
}

/// An incomplete packet. Received data are at their final offsets; missing data are zero.
pub(super) struct Reassembly {
    /// The packet. Its more-fragments flag is set until the last fragment arrives.
    pub(super) packet: Packet,
    /// Since when it waits for its other fragments.
    pub(super) since: Timestamp,
    key: DatagramKey,
    /// The received ranges, sorted and not adjacent.
    chunks: Vec<ByteRange>,
}

impl Reassembly {
    /// The key of a fragment's packet.
    pub(super) fn key(header: &Ip4View) -> DatagramKey {
        DatagramKey {
            identification: header.identification(),
            protocol: header.protocol(),
            source: header.source(),
            destination: header.destination(),
        }
    }

    /// Whether the packet has this key.
    #[inline]
    pub(super) fn has_key(&self, key: &DatagramKey) -> bool {
        self.key == *key
    }

    /// Creates a packet from the first fragment to arrive; `None` if the pool is exhausted, which is counted.
    pub(super) fn start(cx: &mut Context, fragment: Packet, range: ByteRange) -> Option<Reassembly> {
        let header = Ip4View::new(fragment.network())?;
        let key = Reassembly::key(&header);
        let mut packet = if range.start == 0 {
            fragment
        } else {
            let front = fragment.headroom() as isize + fragment.network_offset().unwrap_or(0);
            let headroom = usize::try_from(front).unwrap_or(0);
            let Some(mut packet) = cx.pool().allocate_with(headroom, 20 + range.end) else {
                cx.drop(fragment, Reason::NO_BUFFER);
                return None;
            };
            cx.count(Fate::Made, 1);
            let bytes = packet.data_mut();
            bytes.fill(0);
            for (to, from) in bytes.iter_mut().zip(header.fixed()) {
                *to = *from;
            }
            if let Some(to) = bytes.get_mut(20 + range.start..) {
                to.iter_mut().zip(fragment.transport()).for_each(|(to, from)| *to = *from);
            }
            packet.set_network(0, 20);
            packet.set_timestamp(fragment.timestamp());
            cx.end(fragment, Fate::Merged);
            packet
        };
        if let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) {
            let field = header.view().fragment();
            header.set_fragment(field & !OFFSET_BITS);
        }
        Some(Reassembly { packet, since: cx.steady(), key, chunks: vec![range] })
    }

    /// Whether the last fragment is missing.
    pub(super) fn has_more(&self) -> bool {
        Ip4View::new(self.packet.network()).is_some_and(|header| header.more_fragments())
    }

    /// Whether all data have been received.
    pub(super) fn is_complete(&self) -> bool {
        let whole = ByteRange { start: 0, end: self.packet.transport().len() };
        !self.has_more() && self.chunks == [whole]
    }

    /// The received ranges.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (usize, usize)> {
        self.chunks.iter().map(|chunk| (chunk.start, chunk.end))
    }

    /// Copies a fragment's data to their offset. Returns false if the packet would be too long.
    pub(super) fn add(&mut self, fragment: &Packet, range: ByteRange) -> bool {
        let length = self.packet.transport().len();
        if range.end > length && self.packet.append(range.end - length).is_none() {
            return false;
        }
        if let Some(to) = self.packet.transport_mut().get_mut(range.start..range.end) {
            to.iter_mut().zip(fragment.transport()).for_each(|(to, from)| *to = *from);
        }
        if range.start == 0 && !self.take_headers(fragment) {
            return false;
        }
        let is_last = Ip4View::new(fragment.network()).is_some_and(|header| !header.more_fragments());
        if is_last && let Some(mut header) = Ip4ViewMut::new(self.packet.network_mut()) {
            let field = header.view().fragment();
            header.set_fragment(field & !MORE_FRAGMENTS);
        }
        self.insert(range);
        true
    }

    /// Copies the headers and annotations of the first fragment.
    fn take_headers(&mut self, first: &Packet) -> bool {
        let field = Ip4View::new(self.packet.network()).map_or(0, |header| header.fragment());
        let header_length = first.network_header_length();
        let (Some(network), Some(transport)) = (first.network_offset(), first.transport_offset()) else {
            return false;
        };
        // If the header is in the headroom, only the header is restored, not what precedes it.
        let front = usize::try_from(transport).unwrap_or(0).max(header_length);
        let now = usize::try_from(self.packet.transport_offset().unwrap_or(0)).unwrap_or(0);
        if front > now {
            if self.packet.prepend(front - now).is_none() {
                return false;
            }
        } else {
            self.packet.strip(now - front);
        }
        let link = front - header_length;
        if let Some((to_link, to_network)) = self.packet.data_mut().split_at_mut_checked(link) {
            to_link.iter_mut().zip(first.data()).for_each(|(to, from)| *to = *from);
            let header = first.network().get(..header_length).unwrap_or(&[]);
            to_network.iter_mut().zip(header).for_each(|(to, from)| *to = *from);
        }
        self.packet.set_network(link as isize, header_length);
        if let Some(mac) = first.mac_offset().filter(|_| network >= 0) {
            self.packet.set_mac(mac);
        }
        if let Some(mut header) = Ip4ViewMut::new(self.packet.network_mut()) {
            header.set_fragment(field);
        }
        self.packet.copy_annotations(first);
        true
    }

    /// Adds a range and merges adjacent ones.
    fn insert(&mut self, mut range: ByteRange) {
        let from = self.chunks.partition_point(|chunk| chunk.end < range.start);
        let mut to = from;
        while let Some(chunk) = self.chunks.get(to).filter(|chunk| chunk.start <= range.end) {
            range.start = range.start.min(chunk.start);
            range.end = range.end.max(chunk.end);
            to += 1;
        }
        self.chunks.splice(from..to, [range]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Pool;

    #[test]
    fn adjacent_chunks_are_merged() {
        let pool = Pool::new(2);
        let key = Reassembly::key(&Ip4View::new(&[0; 20]).unwrap());
        let mut reassembly = Reassembly {
            packet: pool.packet(&[0; 20]).unwrap(),
            since: Timestamp::ZERO,
            key,
            chunks: Vec::new(),
        };
        let mut check = |start, end, expected: &[(usize, usize)]| {
            reassembly.insert(ByteRange { start, end });
            assert_eq!(reassembly.chunks().collect::<Vec<_>>(), expected);
        };
        check(16, 24, &[(16, 24)]);
        check(40, 48, &[(16, 24), (40, 48)]);
        check(0, 8, &[(0, 8), (16, 24), (40, 48)]);
        check(8, 16, &[(0, 24), (40, 48)]);
        check(8, 12, &[(0, 24), (40, 48)]);
        check(20, 44, &[(0, 48)]);
        check(64, 72, &[(0, 48), (64, 72)]);
        check(0, 100, &[(0, 100)]);
    }
}
