//! Coalescing: joins consecutive TCP segments or UDP datagrams of a flow into GSO frames, which the kernel or the network card
//! splits again.
//!
//! It is the inverse of the [`Segmenter`](super::Segmenter): splitting a joined frame gives back the same frames, byte
//! for byte. What could not be given back is not joined: other lengths or header fields, other steps of the IPv4
//! identification, flags of the middle on the edge, wrong checksums.

use super::headers::{self, ETHERNET, EXTENSIONS, IP4, IP6, TAG, TAGS, TCP, TCP_NUMBER, UDP, UDP_NUMBER};
use super::offload::{HEADER, Offload, SegmentKind};
use crate::batch::Batch;

/// Minimum length in bytes of the frames that begin a group. Shorter ones are not looked at while no group is open, so
/// that small packets cost nothing.
const LEAST: usize = 256;
/// Maximum length in bytes of a joined frame. Devices split longer ones in software.
const MAX_JOINED: usize = u16::MAX as usize;
/// Maximum number of frames in a group, so that one message has a bounded number of parts.
const MAX_GROUP: usize = 64;
/// Maximum number of groups that frames can still join: flows that take turns in one batch.
const MAX_OPEN: usize = 8;
/// Maximum number of parts of a [`message`](Coalescer::message).
pub(crate) const MAX_PARTS: usize = MAX_GROUP + 1;
/// Room for the longest headers that are joined: Ethernet, two tags, IPv6, TCP with all its options.
const MAX_HEADERS: usize = ETHERNET + 2 * TAG + IP6 + 60;

/// Offsets of fields in a TCP header.
const SEQUENCE: usize = 4;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
/// Offsets of fields in a UDP header.
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;
/// TCP flags: the one that all segments of a group have, and those that only the last one may have (FIN, PSH).
const ACK: u8 = 0x10;
const LAST_ONLY: u8 = 0x01 | 0x08;

/// Groups the frames of one send call.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    groups: Vec<Group>,
    /// For each frame, by its place in the call, the place of the next one in its group.
    next: Vec<u32>,
    open: Vec<Open>,
    /// The headers of groups with several frames, after the offload header.
    headers: Vec<[u8; HEADER + MAX_HEADERS]>,
    /// UDP datagrams are not joined, because the other side does not take them.
    leaves_datagrams: bool,
    /// The frames of the last call that were not sent.
    skipped: Vec<u32>,
}

/// Frames that are sent as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// The place in the call of its first frame.
    first: u32,
    /// The number of its frames.
    pub(crate) frames: u32,
    /// Its place among the headers, and their length, if it has several frames.
    headers: u32,
    length: u32,
    is_udp: bool,
}

impl Group {
    const SINGLE: Self = Self { first: 0, frames: 1, headers: 0, length: 0, is_udp: false };
}

/// A group that frames can still join.
#[derive(Clone, Copy, Debug)]
struct Open {
    group: u32,
    /// The place in the call, and the headers, of its first frame.
    first: u32,
    layout: Layout,
    /// The place of its last frame.
    last: u32,
    /// Bytes of payload of each frame but the last.
    size: usize,
    /// Bytes of the joined frame.
    length: usize,
    /// The next sequence number and IPv4 identification.
    sequence: u32,
    identification: u16,
    /// The checksums of its first frame were verified.
    is_verified: bool,
}

/// Where the headers of a TCP segment or a UDP datagram are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    network: usize,
    transport: usize,
    data: usize,
    is_ip6: bool,
    is_udp: bool,
    /// The frame ends where the IP packet and its datagram do, and its IP header has no options.
    is_exact: bool,
}

impl Layout {
    /// The number of the transport protocol, and the offset of its checksum.
    fn protocol(&self) -> (u8, usize) {
        if self.is_udp { (UDP_NUMBER, UDP_CHECKSUM) } else { (TCP_NUMBER, CHECKSUM) }
    }
}

/// What a frame is to the coalescer.
enum Class {
    Segment(Layout),
    /// Certainly no part of a flow that is joined.
    Other,
    /// Possibly a part of any flow.
    Unclear,
}

impl Coalescer {
    /// Says whether UDP datagrams are joined too. They are, unless something else is said.
    pub(crate) fn join_datagrams(&mut self, joins: bool) {
        self.leaves_datagrams = !joins;
    }

    /// Whether frames can possibly be joined.
    pub(crate) fn is_worthwhile(batch: &Batch, frames: &[u32]) -> bool {
        let mut long = frames.iter().filter(|number| length(batch, **number) >= LEAST);
        long.next().is_some() && long.next().is_some()
    }

    /// Puts each frame into a group of its own.
    pub(crate) fn separate(&mut self, batch: &Batch, frames: &[u32]) {
        self.clear(frames.len());
        for (place, _) in (0..).zip(frames).filter(|(_, number)| batch.frame(**number as usize).is_some()) {
            self.add(place);
        }
    }

    /// Groups frames. The order within each flow stays. `mtu`: the longest IP packet that may be joined.
    pub(crate) fn join(&mut self, batch: &Batch, frames: &[u32], mtu: usize) {
        self.clear(frames.len());
        for (place, number) in (0..).zip(frames) {
            let Some(frame) = batch.frame(*number as usize) else { continue };
            let is_long = frame.len() >= LEAST;
            let class = match is_long || !self.open.is_empty() {
                true => classify(frame, self.leaves_datagrams),
                false => Class::Other,
            };
            let layout = match class {
                Class::Segment(layout) => layout,
                Class::Other => {
                    self.add(place);
                    continue;
                }
                Class::Unclear => {
                    self.close_all(batch, frames);
                    self.add(place);
                    continue;
                }
            };
            let first = |open: &Open| frame_at(batch, frames, open.first);
            let found =
                self.open.iter().position(|open| is_same_flow(frame, &layout, first(open), &open.layout));
            if let Some(index) = found
                && let Some(open) = self.open.get_mut(index)
            {
                let before = frame_at(batch, frames, open.first);
                let joined = open.accept(before, frame, &layout);
                if joined.is_some() {
                    if let Some(next) = self.next.get_mut(open.last as usize) {
                        *next = place;
                    }
                    open.last = place;
                    if let Some(group) = self.groups.get_mut(open.group as usize) {
                        group.frames += 1;
                    }
                }
                if joined != Some(Joined::MayGoOn) {
                    self.close(batch, frames, index);
                }
                if joined.is_some() {
                    continue;
                }
            }
            let group = self.add(place);
            if is_long && let Some(open) = Open::new(frame, layout, mtu, group, place) {
                if self.open.len() == MAX_OPEN {
                    self.close(batch, frames, 0);
                }
                self.open.push(open);
            }
        }
        self.close_all(batch, frames);
    }

    /// Puts the frames of a group into groups of their own.
    pub(crate) fn split(&mut self, number: usize) {
        let Some(group) = self.groups.get(number).copied() else { return };
        let mut places = Vec::new();
        let mut place = group.first;
        for _ in 0..group.frames {
            places.push(Group { first: place, ..Group::SINGLE });
            place = self.next.get(place as usize).copied().unwrap_or_default();
        }
        self.groups.splice(number..=number, places);
    }

    /// The same for a group that the kernel refused. Before Linux 6.2 it refuses all datagrams, so no more of them are joined.
    pub(crate) fn split_refused(&mut self, number: usize) {
        self.leaves_datagrams |= self.groups.get(number).is_some_and(|group| group.is_udp);
        self.split(number);
    }

    /// The groups, in the order in which they are to be sent.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The number of frames of a group, and of their bytes.
    pub(crate) fn size(&self, group: &Group, batch: &Batch, frames: &[u32]) -> (u64, u64) {
        let bytes = self.members(group).map(|place| frame_at(batch, frames, place).len() as u64);
        (group.frames.into(), bytes.sum())
    }

    /// What is written to the kernel for a group, in parts: the offload header, the headers of the joined frame, and the
    /// payload of each frame.
    pub(crate) fn message<'a>(
        &'a self,
        group: &'a Group,
        batch: &'a Batch,
        frames: &'a [u32],
    ) -> impl Iterator<Item = &'a [u8]> {
        let headers = self.headers.get(group.headers as usize).filter(|_| group.frames > 1);
        let front = headers.and_then(|headers| headers.get(..HEADER + group.length as usize));
        let data = front.map_or(0, |_| group.length as usize);
        let payloads =
            self.members(group).filter_map(move |place| frame_at(batch, frames, place).get(data..));
        std::iter::once(front.unwrap_or(&[0; HEADER])).chain(payloads)
    }

    /// Notes that the first `count` groups from `from` on were not sent.
    pub(crate) fn skip(&mut self, from: usize, count: usize, frames: &[u32]) {
        let Self { groups, next, skipped, .. } = self;
        for group in groups.iter().skip(from).take(count) {
            let places = members(next, group);
            skipped.extend(places.filter_map(|place| frames.get(place as usize)));
        }
    }

    /// The numbers of the frames that were not sent.
    pub(crate) fn skipped(&self) -> Vec<u32> {
        self.skipped.clone()
    }

    /// Forgets the last call.
    pub(crate) fn forget(&mut self) {
        self.clear(0);
    }

    /// The places of the frames of a group.
    fn members(&self, group: &Group) -> impl Iterator<Item = u32> {
        members(&self.next, group)
    }

    fn clear(&mut self, frames: usize) {
        self.groups.clear();
        self.skipped.clear();
        self.headers.clear();
        self.open.clear();
        self.next.clear();
        self.next.resize(frames, 0);
    }

    /// Adds a group with one frame.
    fn add(&mut self, place: u32) -> u32 {
        self.groups.push(Group { first: place, ..Group::SINGLE });
        self.groups.len() as u32 - 1
    }

    fn close_all(&mut self, batch: &Batch, frames: &[u32]) {
        while let Some(last) = self.open.len().checked_sub(1) {
            self.close(batch, frames, last);
        }
    }

    /// Completes an open group, which nothing joins any more.
    fn close(&mut self, batch: &Batch, frames: &[u32], index: usize) {
        let open = self.open.remove(index);
        let Some(group) = self.groups.get_mut(open.group as usize).filter(|group| group.frames > 1) else {
            return;
        };
        (group.headers, group.length) = (self.headers.len() as u32, open.layout.data as u32);
        group.is_udp = open.layout.is_udp;
        let (first, last) = (frame_at(batch, frames, open.first), frame_at(batch, frames, open.last));
        self.headers.push(open.headers(first, last));
    }
}

/// What became of a group that a frame joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joined {
    MayGoOn,
    Ended,
}

impl Open {
    /// A group that begins with a frame, unless no frame can follow it.
    fn new(frame: &[u8], layout: Layout, mtu: usize, group: u32, place: u32) -> Option<Self> {
        let Layout { network, transport, data, is_ip6, is_udp, is_exact } = layout;
        let segment = frame.get(transport..data)?;
        // The bits beside the length of the header are reserved.
        let is_plain = is_udp || (segment.get(FLAGS)? == &ACK && segment.get(FLAGS - 1)? & 0x0f == 0);
        let size = frame.get(data..)?.len();
        // One tag does not count in the length that a device takes.
        let is_too_long = frame.len() - network.min(ETHERNET + TAG) > mtu;
        if !is_exact || !is_plain || size == 0 || is_too_long {
            return None;
        }
        let identification = if is_ip6 { 0 } else { number(frame, network + 4) };
        Some(Self {
            group,
            first: place,
            layout,
            last: place,
            size,
            length: frame.len(),
            sequence: sequence(frame, &layout).wrapping_add(size as u32),
            identification: identification.wrapping_add(1),
            is_verified: false,
        })
    }

    /// Lets a frame of the same flow join the group, if that can be undone. `first`: the group's first frame.
    fn accept(&mut self, first: &[u8], frame: &[u8], layout: &Layout) -> Option<Joined> {
        let Layout { network, transport, data, is_ip6, .. } = *layout;
        let size = frame.get(data..)?.len();
        let flags = if self.layout.is_udp { ACK } else { *frame.get(transport + FLAGS)? };
        let fits = *layout == self.layout
            && (1..=self.size).contains(&size)
            && self.length + size <= MAX_JOINED
            && flags & !LAST_ONLY == ACK
            && (layout.is_udp || sequence(frame, layout) == self.sequence)
            && (is_ip6 || number(frame, network + 4) == self.identification)
            && has_same_headers(first, frame, layout);
        if !fits {
            return None;
        }
        self.is_verified = self.is_verified || is_correct(first, layout);
        if !self.is_verified || !is_correct(frame, layout) {
            return None;
        }
        self.length += size;
        self.sequence = self.sequence.wrapping_add(size as u32);
        self.identification = self.identification.wrapping_add(1);
        let most = self.size * MAX_GROUP + data;
        let is_last = size < self.size || flags != ACK || self.length >= most;
        Some(if is_last { Joined::Ended } else { Joined::MayGoOn })
    }

    /// The headers of the joined frame, after the offload header.
    fn headers(&self, first: &[u8], last: &[u8]) -> [u8; HEADER + MAX_HEADERS] {
        let Layout { network, transport, data, is_ip6, is_udp, .. } = self.layout;
        let mut bytes = [0; HEADER + MAX_HEADERS];
        let offload = Offload {
            checksum: Some((transport, self.layout.protocol().1)),
            segmentation: Some((if is_udp { SegmentKind::Udp } else { SegmentKind::Tcp }, self.size)),
        };
        let (front, rest) = bytes.split_at_mut(HEADER);
        front.copy_from_slice(&offload.header(is_ip6, data));
        let (Some(to), Some(from)) = (rest.get_mut(..data), first.get(..data)) else { return bytes };
        to.copy_from_slice(from);
        let (ip, segment) = to.split_at_mut(transport);
        let ip = ip.get_mut(network..).unwrap_or_default();
        headers::put_length(ip, is_ip6, self.length - network);
        let length = (self.length - transport) as u16;
        if is_udp {
            headers::put(segment, UDP_LENGTH, length);
        } else if let (Some(flags), Some(of_last)) = (segment.get_mut(FLAGS), last.get(transport + FLAGS)) {
            *flags |= of_last;
        }
        let (protocol, checksum) = self.layout.protocol();
        headers::put(segment, checksum, headers::pseudo(ip, is_ip6, protocol, length).fold());
        bytes
    }
}

/// Finds the headers of a TCP segment or a UDP datagram.
fn classify(frame: &[u8], leaves_datagrams: bool) -> Class {
    let is_joined = |protocol: u8| protocol == TCP_NUMBER || (protocol == UDP_NUMBER && !leaves_datagrams);
    let mut network = ETHERNET;
    while TAGS.iter().any(|tag| frame.get(network - 2..network) == Some(tag)) && network < ETHERNET + 2 * TAG
    {
        network += TAG;
    }
    let ip = frame.get(network..).unwrap_or_default();
    let rest = ip.len();
    let (is_ip6, protocol, header, length) = match (frame.get(network - 2..network), ip) {
        (Some([0x08, 0x00]), [version, _, l0, l1, _, _, f0, f1, _, protocol, ..]) => {
            if !is_joined(*protocol) {
                return Class::Other;
            }
            // Only the flag "don't fragment" may be set.
            if version >> 4 != 4 || f0 & 0xbf != 0 || *f1 != 0 {
                return Class::Unclear;
            }
            let header = usize::from(version & 15) * 4;
            (false, *protocol, header, usize::from(u16::from_be_bytes([*l0, *l1])))
        }
        (Some([0x86, 0xdd]), [_, _, _, _, l0, l1, next, ..]) => {
            if !is_joined(*next) {
                return if EXTENSIONS.contains(next) { Class::Unclear } else { Class::Other };
            }
            (true, *next, IP6, usize::from(u16::from_be_bytes([*l0, *l1])) + IP6)
        }
        (Some([0x08, 0x00] | [0x86, 0xdd]), _) => return Class::Unclear,
        _ => return Class::Other,
    };
    let (transport, is_udp) = (network + header, protocol == UDP_NUMBER);
    let least = if is_udp { UDP } else { TCP };
    let Some(segment) = frame.get(transport..).filter(|segment| segment.len() >= least && header >= IP4)
    else {
        return Class::Unclear;
    };
    let (data, is_whole) = match is_udp {
        true => (transport + UDP, usize::from(number(segment, UDP_LENGTH)) == segment.len()),
        false => (transport + usize::from(segment[12] >> 4) * 4, true),
    };
    let is_exact = length == rest
        && is_whole
        && (is_ip6 || header == IP4)
        && (transport + least..=frame.len()).contains(&data);
    Class::Segment(Layout { network, transport, data, is_ip6, is_udp, is_exact })
}

/// Whether two packets belong to one direction of a flow.
fn is_same_flow(frame: &[u8], layout: &Layout, other: &[u8], of_other: &Layout) -> bool {
    let ports = |frame: &[u8], layout: &Layout| {
        frame.get(layout.transport..).and_then(<[u8]>::first_chunk::<4>).copied()
    };
    ports(frame, layout) == ports(other, of_other)
        && (layout.is_ip6, layout.is_udp) == (of_other.is_ip6, of_other.is_udp)
        && addresses(frame, layout) == addresses(other, of_other)
}

/// The addresses of an IP header.
fn addresses<'a>(frame: &'a [u8], layout: &Layout) -> Option<&'a [u8]> {
    let range = if layout.is_ip6 { 8..IP6 } else { 12..IP4 };
    frame.get(layout.network + range.start..layout.network + range.end)
}

/// Whether two frames with one layout have the same headers, apart from what differs between the segments of a GSO frame.
fn has_same_headers(one: &[u8], other: &[u8], layout: &Layout) -> bool {
    let Layout { network, transport, data, is_ip6, is_udp, .. } = *layout;
    let same = |start: usize, end: usize| one.get(start..end) == other.get(start..end);
    let same_ip = match is_ip6 {
        true => same(network, network + 4) && same(network + 6, transport),
        // Without length, identification and checksum.
        false => {
            same(network, network + 2) && same(network + 6, network + 10) && same(network + 12, transport)
        }
    };
    // Without sequence number, flags and checksum; the ports are those of the flow.
    let same_tcp = || {
        same(transport + 8, transport + FLAGS)
            && same(transport + 14, transport + CHECKSUM)
            && same(transport + 18, data)
    };
    same(0, network) && same_ip && (is_udp || same_tcp())
}

/// Whether a packet has the checksums that segmentation would give it: never 0xffff, but in UDP never 0.
fn is_correct(frame: &[u8], layout: &Layout) -> bool {
    let Layout { network, transport, is_ip6, .. } = *layout;
    let (Some(ip), Some(segment)) = (frame.get(network..transport), frame.get(transport..)) else {
        return false;
    };
    let is_ip_correct = is_ip6 || (packet::checksum::internet(ip) == 0 && number(ip, 10) != 0xffff);
    let (protocol, checksum) = layout.protocol();
    let never = if layout.is_udp { 0 } else { 0xffff };
    let pseudo = headers::pseudo(ip, is_ip6, protocol, segment.len() as u16);
    is_ip_correct && number(segment, checksum) != never && pseudo.bytes(segment).finish() == 0
}

/// The places of the frames of a group, from the next place of each.
fn members(next: &[u32], group: &Group) -> impl Iterator<Item = u32> {
    let following = |place: &u32| next.get(*place as usize).copied();
    std::iter::successors(Some(group.first), following).take(group.frames as usize)
}

fn frame_at<'a>(batch: &'a Batch, frames: &[u32], place: u32) -> &'a [u8] {
    frames.get(place as usize).and_then(|number| batch.frame(*number as usize)).unwrap_or_default()
}

fn length(batch: &Batch, number: u32) -> usize {
    batch.frame(number as usize).map_or(0, <[u8]>::len)
}

/// A two-byte field; 0 outside the bytes.
fn number(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |field| u16::from_be_bytes(*field))
}

fn sequence(frame: &[u8], layout: &Layout) -> u32 {
    let field = frame.get(layout.transport + SEQUENCE..).and_then(<[u8]>::first_chunk);
    field.map_or(0, |field| u32::from_be_bytes(*field))
}

#[cfg(test)]
mod tests;
