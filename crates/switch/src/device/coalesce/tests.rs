//! Tests of coalescing, against segmentation.

use super::*;
use crate::device::{RxFrame, Segmenter};
use random::Random;

/// A TCP segment, or a UDP datagram.
#[derive(Clone, Debug)]
struct Segment {
    tags: usize,
    is_ip6: bool,
    is_udp: bool,
    port: u16,
    sequence: u32,
    identification: u16,
    flags: u8,
    options: usize,
    data: usize,
}

const PLAIN: Segment = Segment {
    tags: 0,
    is_ip6: false,
    is_udp: false,
    port: 1,
    sequence: 1000,
    identification: 7,
    flags: ACK,
    options: 12,
    data: 1000,
};

impl Segment {
    /// The segment that follows in a GSO frame.
    fn after(&self) -> Segment {
        let sequence = self.sequence.wrapping_add(self.data as u32);
        Segment { sequence, identification: self.identification.wrapping_add(1), ..self.clone() }
    }

    fn network(&self) -> usize {
        ETHERNET + TAG * self.tags
    }

    fn transport(&self) -> usize {
        self.network() + if self.is_ip6 { IP6 } else { IP4 }
    }

    /// Bytes of the transport header.
    fn header(&self) -> usize {
        if self.is_udp { UDP } else { TCP + self.options }
    }

    fn protocol(&self) -> u8 {
        if self.is_udp { UDP_NUMBER } else { TCP_NUMBER }
    }

    /// Its frame, with correct checksums.
    fn frame(&self) -> Vec<u8> {
        let mut frame = vec![2; 12];
        (0..self.tags)
            .for_each(|tag| frame.extend([[0x88, 0xa8, 0, 9], [0x81, 0, 0, 7]][2 - self.tags + tag]));
        let length = self.header() + self.data;
        let protocol = self.protocol();
        if self.is_ip6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 3, (length >> 8) as u8, length as u8, protocol, 64]);
            frame.extend([1; 32]);
        } else {
            let [i0, i1] = self.identification.to_be_bytes();
            frame
                .extend([8, 0, 0x45, 0, 0, 0, i0, i1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        frame.extend([0, 80]);
        frame.extend(self.port.to_be_bytes());
        if self.is_udp {
            frame.extend([0; 4]);
        } else {
            frame.extend(self.sequence.to_be_bytes());
            let header = (TCP + self.options) as u8 * 4;
            frame.extend([0, 0, 0, 1, header, self.flags, 1, 1, 0, 0, 0, 0]);
            frame.resize(frame.len() + self.options, 1);
        }
        frame.extend((0..self.data).map(|byte| (byte * 7 + self.sequence as usize) as u8));
        self.correct(&mut frame);
        frame
    }

    /// Corrects the checksums of a changed frame.
    fn correct(&self, frame: &mut [u8]) {
        let length = frame.len() - self.transport();
        let (ip, segment) = frame[self.network()..].split_at_mut(self.transport() - self.network());
        if !self.is_ip6 {
            headers::put_length(ip, false, IP4 + length);
        }
        let checksum = if self.is_udp { UDP_CHECKSUM } else { CHECKSUM };
        if self.is_udp {
            headers::put(segment, UDP_LENGTH, length as u16);
        }
        headers::put(segment, checksum, 0);
        let sum = headers::pseudo(ip, self.is_ip6, self.protocol(), length as u16).bytes(segment).finish();
        headers::put(segment, checksum, if self.is_udp && sum == 0 { 0xffff } else { sum });
    }
}

/// Joins frames. Returns the number of frames in each group, and the frames that segmentation makes of the groups.
fn join(frames: &[Vec<u8>], mtu: usize) -> (Vec<u32>, Vec<Vec<u8>>) {
    // The frames of a call are some of a batch.
    let mut batch = Batch::new(2 * frames.len());
    for frame in frames {
        assert!(batch.push(b"of another call") && batch.push(frame));
    }
    let numbers: Vec<u32> = (0..frames.len() as u32).map(|number| 2 * number + 1).collect();
    let mut coalescer = Coalescer::default();
    // What was grouped before is forgotten.
    coalescer.join(&batch, &[1, 0], mtu);
    coalescer.join(&batch, &numbers, mtu);
    let mut again = Vec::new();
    for group in coalescer.groups() {
        let parts: Vec<&[u8]> = coalescer.message(group, &batch, &numbers).collect();
        assert!(parts.len() <= MAX_PARTS);
        let whole = parts.concat();
        let (header, whole) = whole.split_first_chunk::<HEADER>().unwrap();
        let before = again.len();
        if group.frames == 1 {
            assert_eq!(*header, [0; HEADER]);
            again.push(whole.to_vec());
        } else {
            assert!(whole.len() <= MAX_JOINED);
            let mut segmenter = Segmenter::default();
            assert!(segmenter.load(&RxFrame::of(whole, Offload::new(*header)), 2048));
            let mut buffer = [0; 2048];
            while let Some(length) = segmenter.take(&mut buffer) {
                again.push(buffer[..length].to_vec());
            }
        }
        let bytes: usize = again[before..].iter().map(Vec::len).sum();
        let expected = ((again.len() - before) as u64, bytes as u64);
        assert_eq!(coalescer.size(group, &batch, &numbers), expected);
    }
    let sizes = coalescer.groups().iter().map(|group| group.frames).collect();
    // Taken apart again, the frames are sent as they came.
    while let Some(number) = coalescer.groups().iter().position(|group| group.frames > 1) {
        coalescer.split(number);
    }
    assert_eq!(coalescer.groups().len(), frames.len());
    for group in coalescer.groups() {
        let parts: Vec<&[u8]> = coalescer.message(group, &batch, &numbers).collect();
        assert_eq!(parts, [&[0; HEADER][..], &frames[group.first as usize]]);
    }
    (sizes, again)
}

/// Checks that segments that follow each other are joined, and that each of them survives.
fn check_joined(segments: &[Segment], expected: &[u32]) {
    let frames: Vec<Vec<u8>> = segments.iter().map(Segment::frame).collect();
    let (sizes, again) = join(&frames, 1500);
    assert_eq!(sizes, expected, "{segments:?}");
    assert!(again == frames, "{segments:?}");
}

#[test]
fn segments_of_a_flow_are_joined() {
    for is_ip6 in [false, true] {
        for tags in 0..=2 {
            for options in [0, 12, 40] {
                for (data, size, flags) in [
                    (1000, 1000, ACK),
                    (300, 1, ACK | 8),
                    (1300, 999, ACK | 9),
                    (1300, 1300, ACK | 1),
                    (500, 500, ACK),
                ] {
                    let first = Segment {
                        is_ip6,
                        tags,
                        options,
                        data,
                        sequence: u32::MAX - 1,
                        identification: 0xffff,
                        ..PLAIN
                    };
                    let last = Segment { data: size, flags, ..first.after() };
                    check_joined(&[first.clone(), last.clone()], &[2]);
                    let goes_on = size == data && flags == ACK;
                    let sizes: &[u32] = if goes_on { &[3] } else { &[2, 1] };
                    check_joined(
                        &[first.clone(), last.clone(), Segment { flags: ACK, ..last.after() }],
                        sizes,
                    );
                }
            }
        }
    }
}

/// Datagrams of one length, of which the last may be shorter; a checksum of 0 means that there is none.
#[test]
fn datagrams_of_a_flow_are_joined() {
    for is_ip6 in [false, true] {
        for tags in 0..=2 {
            for (data, size) in [(1000, 1000), (300, 1), (1300, 999)] {
                let first = Segment { is_ip6, is_udp: true, tags, data, identification: 0xffff, ..PLAIN };
                let last = Segment { data: size, ..first.after() };
                check_joined(&[first.clone(), last.clone()], &[2]);
                let sizes: &[u32] = if size == data { &[3] } else { &[2, 1] };
                check_joined(&[first, last.clone(), last.after()], sizes);
            }
        }
        let first = Segment { is_ip6, is_udp: true, ..PLAIN };
        for odd in [
            Segment { data: 1001, ..first.after() },
            Segment { data: 0, ..first.after() },
            Segment { is_udp: false, ..first.after() },
            Segment { port: 2, ..first.after() },
        ] {
            check_joined(&[first.clone(), odd], &[1, 1]);
        }
        let place = first.transport() + UDP_CHECKSUM;
        for in_first in [false, true] {
            let mut frames = [first.frame(), first.after().frame()];
            headers::put(&mut frames[usize::from(!in_first)], place, 0);
            assert_eq!(join(&frames, 1500), (vec![1, 1], frames.to_vec()));
        }
        // The sum is 0, for which 0xffff is written.
        let mut frames = [first.frame(), first.after().frame()];
        let (sum, end) = (number(&frames[1], place), frames[1].len() - 2);
        let balanced = packet::checksum::Sum::ZERO.word(number(&frames[1], end)).word(sum).fold();
        headers::put(&mut frames[1], end, balanced);
        first.after().correct(&mut frames[1]);
        assert_eq!(number(&frames[1], place), 0xffff);
        assert_eq!(join(&frames, 1500), (vec![2], frames.to_vec()));
    }
}

/// Where the other side takes no datagrams, or has refused some, only TCP segments are joined.
#[test]
fn datagrams_that_are_refused_are_left_alone() {
    let datagram = Segment { is_udp: true, port: 9, ..PLAIN };
    let frames = [PLAIN.frame(), datagram.frame(), PLAIN.after().frame(), datagram.after().frame()];
    let mut batch = Batch::new(4);
    assert!(frames.iter().all(|frame| batch.push(frame)));
    let mut coalescer = Coalescer::default();
    let sizes = |coalescer: &mut Coalescer| -> Vec<u32> {
        coalescer.join(&batch, &[0, 1, 2, 3], 1500);
        coalescer.groups().iter().map(|group| group.frames).collect()
    };
    assert_eq!(sizes(&mut coalescer), [2, 2]);
    coalescer.split_refused(0);
    assert_eq!(sizes(&mut coalescer), [2, 2]);
    coalescer.split_refused(1);
    assert_eq!(coalescer.groups().len(), 3);
    assert_eq!(sizes(&mut coalescer), [2, 1, 1]);
    coalescer.join_datagrams(true);
    assert_eq!(sizes(&mut coalescer), [2, 2]);
    coalescer.join_datagrams(false);
    assert_eq!(sizes(&mut coalescer), [2, 1, 1]);
}

#[test]
fn groups_have_limits() {
    let chain = |first: Segment, count: usize| -> Vec<Segment> {
        std::iter::successors(Some(first), |segment| Some(segment.after())).take(count).collect()
    };
    check_joined(&chain(Segment { data: 256, ..PLAIN }, 150), &[64, 64, 22]);
    // 66 bytes of headers and 45 times 1448 of data are just shorter than the longest packet.
    check_joined(&chain(Segment { data: 1448, ..PLAIN }, 100), &[45, 45, 10]);
    // More flows than groups can be open: the oldest is closed.
    let flows: Vec<Segment> = (0..=MAX_OPEN as u16).map(|port| Segment { port, ..PLAIN }).collect();
    let mut both = flows.clone();
    both.extend(flows.iter().rev().map(Segment::after));
    let frames: Vec<Vec<u8>> = both.iter().map(Segment::frame).collect();
    let (sizes, _) = join(&frames, 1500);
    assert_eq!(sizes, [&[1][..], &[2; MAX_OPEN], &[1]].concat());
}

#[test]
fn only_what_segmentation_gives_back_is_joined() {
    let next = PLAIN.after();
    let odd = [
        Segment { sequence: next.sequence + 1, ..next.clone() },
        Segment { identification: next.identification + 1, ..next.clone() },
        Segment { identification: PLAIN.identification, ..next.clone() },
        Segment { options: 16, ..next.clone() },
        Segment { data: 1001, ..next.clone() },
        Segment { data: 0, ..next.clone() },
        Segment { port: 2, ..next.clone() },
        Segment { tags: 1, ..next.clone() },
    ];
    odd.iter().for_each(|odd| check_joined(&[PLAIN, odd.clone()], &[1, 1]));
    for flag in [0x02, 0x04, 0x20, 0x40, 0x80] {
        check_joined(&[PLAIN, Segment { flags: ACK | flag, ..next.clone() }], &[1, 1]);
    }
    // Push and end are kept on the last segment only.
    for flags in [ACK | 8, ACK | 1, ACK | 0x80, 0] {
        let first = Segment { flags, ..PLAIN };
        check_joined(&[first.clone(), first.after()], &[1, 1]);
    }
    // Each byte of the headers matters: changed in one of two segments, with checksums that are wrong or correct.
    for (is_ip6, is_udp) in [(false, false), (false, true), (true, false), (true, true)] {
        let first = Segment { is_ip6, is_udp, tags: 1, ..PLAIN };
        let next = first.after();
        for place in 0..first.transport() + first.header() {
            for (in_first, is_corrected) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut frames = [first.frame(), next.frame()];
                let changed = &mut frames[usize::from(!in_first)];
                changed[place] ^= 0x20;
                let original = changed.clone();
                if is_corrected {
                    first.correct(changed);
                }
                // What was corrected is as it was, unless the byte is that of a type or of a length.
                let is_same =
                    is_corrected && *changed == [first.frame(), next.frame()][usize::from(!in_first)];
                let (sizes, again) = join(&frames, 1500);
                let expected: &[u32] = if is_same { &[2] } else { &[1, 1] };
                assert_eq!(
                    (sizes, again),
                    (expected.to_vec(), frames.to_vec()),
                    "{is_ip6} {place} {original:?}"
                );
            }
        }
    }
}

#[test]
fn lengths_and_checksums_are_exact() {
    let frames = [PLAIN.frame(), PLAIN.after().frame()];
    let joined = |change: &dyn Fn(&mut [Vec<u8>; 2]), mtu| {
        let mut frames = frames.clone();
        change(&mut frames);
        let (sizes, again) = join(&frames, mtu);
        assert_eq!(again, frames);
        sizes == [2]
    };
    let length = frames[0].len();
    assert!(joined(&|_| {}, length - ETHERNET) && !joined(&|_| {}, length - ETHERNET - 1));
    // Bytes after the end of the packet; a byte of data that is not as it was sent.
    assert!(!joined(&|frames| frames[0].push(0), 1500) && !joined(&|frames| frames[1].push(0), 1500));
    assert!(
        !joined(&|frames| frames[0][length - 1] ^= 1, 1500)
            && !joined(&|frames| frames[1][length - 1] ^= 1, 1500)
    );
    // Both 0 and 0xffff stand for zero, but segmentation gives 0.
    let zero = |field: usize, balance: usize, value: u16| {
        joined(
            &|frames| {
                let frame = &mut frames[1];
                let sum = number(frame, field);
                let balanced = packet::checksum::Sum::ZERO.word(number(frame, balance)).word(sum).fold();
                headers::put(frame, balance, balanced);
                let is_ip = field < PLAIN.transport();
                if is_ip {
                    // The address changes in both, so that the flow stays the same.
                    let balanced = [number(frame, balance), number(frame, balance + 2)];
                    PLAIN.correct(frame);
                    headers::put(frame, field, value);
                    let first = &mut frames[0];
                    (0..2).for_each(|word| headers::put(first, balance + 2 * word, balanced[word]));
                    PLAIN.correct(first);
                } else {
                    headers::put(frame, field, value);
                }
            },
            1500,
        )
    };
    // A word of the data, and the source address.
    let of_tcp = PLAIN.transport() + CHECKSUM;
    assert!(zero(of_tcp, length - 2, 0) && !zero(of_tcp, length - 2, 0xffff));
    assert!(zero(ETHERNET + 10, ETHERNET + 12, 0) && !zero(ETHERNET + 10, ETHERNET + 12, 0xffff));
}

#[test]
fn nothing_overtakes_within_a_flow() {
    let (first, acknowledgement) = (PLAIN, Segment { data: 0, ..PLAIN.after() });
    let second = Segment { identification: 9, ..PLAIN.after() };
    check_joined(&[first.clone(), acknowledgement.clone(), second.clone(), second.after()], &[1, 1, 2]);
    // One of another flow does not matter.
    let other = Segment { port: 9, data: 0, ..PLAIN };
    let segments = [first.clone(), other.clone(), first.after(), other];
    let frames: Vec<Vec<u8>> = segments.iter().map(Segment::frame).collect();
    assert_eq!(join(&frames, 1500).0, [2, 1, 1]);
    // Neither does another protocol, but a fragment may belong to any flow.
    let changed = |place: usize, value: u8| {
        let mut frame = Segment { port: 9, ..PLAIN }.frame();
        frame[place] = value;
        frame
    };
    let mut cases = vec![(changed(ETHERNET + 9, 17), true), (changed(12, 0x88), true), (vec![0; 13], true)];
    cases.extend([(changed(ETHERNET + 6, 0x20), false), (changed(ETHERNET + 7, 1), false)]);
    let mut six = Segment { is_ip6: true, ..PLAIN }.frame();
    for (next, is_other) in [(17, true), (58, true), (0, false), (43, false), (44, false), (60, false)] {
        six[ETHERNET + 6] = next;
        cases.push((six.clone(), is_other));
    }
    cases.push((frames[0][..20].to_vec(), false));
    for (between, is_other) in cases {
        let sizes = join(&[frames[0].clone(), between, frames[2].clone()], 1500).0;
        assert_eq!(sizes, if is_other { vec![2, 1] } else { vec![1, 1, 1] });
    }
}

/// Flows that take turns, with losses and changes of all kinds: what segmentation makes of the groups is what was
/// joined, and in the same order within each flow.
#[test]
fn joining_is_undone_by_segmentation() {
    let mut random = Random::new(17);
    let (mut all, mut groups) = (0, 0);
    for round in 0..10 {
        let mut flows: Vec<Segment> = (0..1 + random.below(11) as u16)
            .map(|port| Segment {
                port,
                is_ip6: random.below(2) > 0,
                is_udp: random.below(3) == 0,
                tags: random.below(3) as usize,
                options: [0, 12, 20][random.below(3) as usize],
                data: [100, 536, 1440][random.below(3) as usize],
                sequence: random.next() as u32,
                identification: random.next() as u16,
                flags: ACK,
            })
            .collect();
        let mut frames = Vec::new();
        for _ in 0..200 {
            let flow = random.below(flows.len() as u32) as usize;
            for _ in 0..=random.below(12) {
                let mut segment = flows[flow].clone();
                match random.below(40) {
                    0 => segment.flags |= 1 << random.below(8),
                    1 => segment.data = random.below(segment.data as u32 + 20) as usize,
                    2 => segment.sequence = segment.sequence.wrapping_add(random.below(3)),
                    3 => segment.identification = segment.identification.wrapping_add(random.below(3) as u16),
                    4 => segment.flags |= 8,
                    _ => {}
                }
                let mut frame = segment.frame();
                if random.below(30) == 0 {
                    let place = random.below(frame.len().min(100) as u32) as usize;
                    frame[place] ^= 1 << random.below(8);
                    if random.below(2) == 0 && frame.len() > segment.transport() + TCP {
                        segment.correct(&mut frame);
                    }
                }
                let next = segment.after();
                flows[flow] = Segment { flags: ACK, data: flows[flow].data, ..next };
                // Some are lost, some come twice, some are cut.
                match random.below(60) {
                    0 => continue,
                    1 => frames.push(frame.clone()),
                    2 => frame.truncate(random.below(frame.len() as u32) as usize),
                    _ => {}
                }
                frames.push(frame);
            }
        }
        let (sizes, again) = join(&frames, 1500);
        (all, groups) = (all + frames.len(), groups + sizes.len());
        let flow = |frame: &Vec<u8>| match classify(frame, false) {
            Class::Segment(layout) => {
                let ports = frame[layout.transport..layout.transport + 4].to_vec();
                addresses(frame, &layout)
                    .map(|addresses| [addresses, &ports, &[layout.protocol().0]].concat())
            }
            _ => None,
        };
        let key = |frame: &&Vec<u8>| flow(frame);
        for of_flow in frames.iter().map(flow).collect::<std::collections::BTreeSet<_>>() {
            let [before, after] = [&frames, &again]
                .map(|frames| frames.iter().filter(|frame| key(frame) == of_flow).collect::<Vec<_>>());
            assert!(before == after, "round {round}, flow {of_flow:?}");
        }
    }
    assert!(groups * 3 < all * 2, "{all} frames, {groups} groups");
}
