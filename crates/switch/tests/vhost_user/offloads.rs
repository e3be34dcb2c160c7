//! Work that is left to the other side: large frames, and checksums.

use super::{batch, connected, receive, serve, shake_hands, waits};
use crate::front_end::{
    CSUM, EVENT_INDEX, FROM_GUEST, FrontEnd, GUEST, GUEST_CSUM, GUEST_TSO4, GUEST_TSO6, GUEST_USO, HEADER,
    HOST_TSO4, HOST_USO, MERGEABLE, NEXT, RECEIVE, SIZE, TABLES, TO_GUEST, TRANSMIT, USUAL, WRITE, buffer,
};
use packet::MacAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use switch::driver::{LinkState, Null, Pipe, VhostUser};
use switch::{Batch, Counters, Driver, PortId, PortSettings, Reason, StaticTable, SwitchRunner};

/// Flags of TCP.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;
/// Kinds of large frames.
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
const CONGESTION: u8 = 0x80;

/// A packet of TCP or UDP.
#[derive(Clone, Copy, Debug)]
struct Flow {
    is_ip6: bool,
    is_udp: bool,
    sequence: u32,
    identification: u16,
    flags: u8,
}

const FLOW: Flow =
    Flow { is_ip6: false, is_udp: false, sequence: 0xffff_f000, identification: 0xfff0, flags: ACK };

impl Flow {
    fn transport(&self) -> usize {
        if self.is_ip6 { 54 } else { 34 }
    }

    /// Offset of the checksum behind the start of the transport header.
    fn field(&self) -> usize {
        if self.is_udp { 6 } else { 16 }
    }

    fn headers(&self) -> usize {
        self.transport() + if self.is_udp { 8 } else { 32 }
    }

    fn kind(&self) -> u8 {
        match (self.is_udp, self.is_ip6) {
            (true, _) => UDP,
            (false, true) => TCP6,
            (false, false) => TCP4,
        }
    }

    /// The frame with this payload. One that is not finished has the sum of the pseudo-header as its checksum.
    fn frame(&self, data: &[u8], is_finished: bool) -> Vec<u8> {
        let protocol = if self.is_udp { 17 } else { 6 };
        let length = (self.headers() - self.transport() + data.len()) as u16;
        let [l0, l1] = length.to_be_bytes();
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 9];
        let addresses = if self.is_ip6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, l0, l1, protocol, 64]);
            frame.extend([[1; 16], [2; 16]].concat());
            22..54
        } else {
            let [t0, t1] = (length + 20).to_be_bytes();
            let [i0, i1] = self.identification.to_be_bytes();
            frame.extend([8, 0, 0x45, 0, t0, t1, i0, i1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1]);
            frame.extend([10, 0, 0, 2]);
            let sum = !sum(&frame[14..34], 0);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            26..34
        };
        let pseudo = sum(&frame[addresses], u32::from(protocol) + u32::from(length));
        frame.extend([0, 80, 0, 81]);
        if self.is_udp {
            frame.extend([l0, l1, 0, 0]);
        } else {
            frame.extend(self.sequence.to_be_bytes());
            frame.extend([0, 0, 0, 1, 0x80, self.flags, 1, 1, 0, 0, 0, 0]);
            frame.extend([1; 12]);
        }
        frame.extend(data);
        let place = self.transport() + self.field();
        let sum = if is_finished { !sum(&frame[self.transport()..], pseudo.into()) } else { pseudo };
        frame[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    /// The frames that a network card makes of a large one.
    fn parts(&self, data: &[u8], size: usize) -> Vec<Vec<u8>> {
        let count = data.len().div_ceil(size);
        let part = |(number, piece): (usize, &[u8])| {
            let mut flags = self.flags;
            if number > 0 {
                flags &= !CWR;
            }
            if number + 1 < count {
                flags &= !(FIN | PSH);
            }
            let sequence = self.sequence.wrapping_add((number * size) as u32);
            let identification = self.identification.wrapping_add(number as u16);
            Flow { sequence, identification, flags, ..*self }.frame(piece, true)
        };
        data.chunks(size).enumerate().map(part).collect()
    }

    /// The header of a frame that is not finished; large, if there is a size.
    fn header(&self, size: usize) -> [u8; HEADER] {
        let kind = if size > 0 { self.kind() } else { 0 };
        header(1, kind, size, self.transport(), self.field())
    }
}

fn header(flags: u8, kind: u8, size: usize, start: usize, field: usize) -> [u8; HEADER] {
    let [[s0, s1], [c0, c1], [f0, f1]] = [size, start, field].map(|number| (number as u16).to_le_bytes());
    [flags, kind, 0xff, 0xff, s0, s1, c0, c1, f0, f1, 0xff, 0xff]
}

/// The sum of the Internet checksum.
fn sum(bytes: &[u8], start: u32) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = start + bytes.chunks(2).map(word).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|byte| (byte * 7 / 3) as u8).collect()
}

/// A switch between a guest and a pipe.
struct Network {
    runner: SwitchRunner<StaticTable>,
    guest: PortId,
    end: Pipe,
    expected: Counters,
}

impl Network {
    fn new(features: u64) -> (Self, FrontEnd) {
        let (port, front_end) = connected(features);
        let mut runner = SwitchRunner::new(StaticTable::new()).unwrap();
        let guest = runner.add_port(Box::new(port), PortSettings::default()).unwrap();
        let (pipe, end) = Pipe::pair().unwrap();
        let other = runner.add_port(Box::new(pipe), PortSettings::default()).unwrap();
        let forward = runner.switch().forward_mut();
        forward.insert(MacAddr([2, 0, 0, 0, 0, 2]), other).unwrap();
        forward.insert(MacAddr([2, 0, 0, 0, 0, 3]), guest).unwrap();
        (Self { runner, guest, end, expected: Counters::default() }, front_end)
    }

    /// Frames that come from the guest. Checks that they are the expected ones, and all counters.
    fn come(&mut self, front_end: &mut FrontEnd, frames: &[Vec<u8>]) {
        while {
            self.runner.step();
            self.runner.waiting(self.guest) > 0
        } {}
        let mut got = Batch::new(4096);
        self.end.receive(&mut got).unwrap();
        assert_eq!(got.len(), frames.len());
        for (number, (found, expected)) in got.frames().zip(frames).enumerate() {
            assert!(found == expected, "frame {number}: {found:02x?} is not {expected:02x?}");
        }
        self.expected.received_frames += frames.len() as u64;
        self.expected.received_bytes += frames.iter().map(Vec::len).sum::<usize>() as u64;
        self.check();
        front_end.take_used(TRANSMIT);
        assert_eq!(front_end.used[TRANSMIT], front_end.available[TRANSMIT]);
    }

    /// Sends frames to the guest, of which it has room for `sent`.
    fn go(&mut self, frames: &[Vec<u8>], sent: usize) {
        let (batch, numbers) = batch(frames);
        assert_eq!(self.end.send(&batch, &numbers).unwrap().frames, frames.len() as u64);
        self.runner.step();
        self.expected.sent_frames += sent as u64;
        self.expected.sent_bytes += frames.iter().take(sent).map(Vec::len).sum::<usize>() as u64;
        self.expected.drop(Reason::FULL, (frames.len() - sent) as u64);
        self.check();
    }

    fn check(&mut self) {
        assert_eq!(self.runner.counters(self.guest), Some(self.expected));
        assert_eq!(self.runner.link_state(self.guest), Some(LinkState::Up));
    }
}

/// Frames for a guest.
fn for_guest(mut frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    frames.iter_mut().for_each(|frame| frame[5] = 3);
    frames
}

#[test]
fn large_frames_of_a_guest_are_cut() {
    for features in [0, TO_GUEST | EVENT_INDEX, TABLES] {
        let (mut network, mut front_end) = Network::new(USUAL | FROM_GUEST | features);
        for is_ip6 in [false, true] {
            for is_udp in [false, true] {
                let flow = Flow { is_ip6, is_udp, flags: CWR | ACK | PSH | FIN, ..FLOW };
                for (length, size) in
                    [(1, 1), (100, 1448), (1448, 1448), (2897, 1448), (65_400, 1400), (65_400, 100)]
                {
                    // The header is in the buffer of the frame, in one of its own, or cut.
                    for first in [4096, HEADER, 5, 0] {
                        let data = data(length);
                        let mut header = flow.header(size);
                        if !is_udp {
                            header[1] |= CONGESTION;
                        }
                        front_end.transmit_chain(0, &header, &flow.frame(&data, false), first);
                        network.come(&mut front_end, &flow.parts(&data, size));
                    }
                }
            }
        }
        // Several in one visit, and others between them.
        let mut expected = Vec::new();
        let mut number = 0;
        for round in 0..8u32 {
            let flow = Flow { sequence: round, is_ip6: round % 2 == 0, ..FLOW };
            let data = data(5000 + round as usize);
            number = front_end.transmit_chain(number, &flow.header(1000), &flow.frame(&data, false), 4096);
            expected.extend(flow.parts(&data, 1000));
            number = front_end.transmit_chain(number, &flow.header(0), &flow.frame(&data[..64], false), 4096);
            expected.push(flow.frame(&data[..64], true));
            number = front_end.transmit_chain(number, &[0; HEADER], &flow.frame(&data[..9], true), HEADER);
            expected.push(flow.frame(&data[..9], true));
        }
        network.come(&mut front_end, &expected);
    }
}

#[test]
fn checksums_of_a_guest_are_finished() {
    let (mut network, mut front_end) = Network::new(USUAL | CSUM);
    for (is_ip6, is_udp) in [(false, false), (false, true), (true, false), (true, true)] {
        let flow = Flow { is_ip6, is_udp, ..FLOW };
        for length in [0, 1, 26, 1460] {
            let data = data(length);
            front_end.transmit_chain(0, &flow.header(0), &flow.frame(&data, false), 4096);
            network.come(&mut front_end, &[flow.frame(&data, true)]);
            // Other flags, and numbers without a flag, mean nothing.
            let header = header(2, 0, 9999, 9999, 9999);
            front_end.transmit_chain(0, &header, &flow.frame(&data, false), 4096);
            network.come(&mut front_end, &[flow.frame(&data, false)]);
        }
    }
    // A peer that has not accepted the feature has headers of any content.
    let (mut network, mut front_end) = Network::new(USUAL);
    for header in [FLOW.header(0), FLOW.header(100), [0xff; HEADER]] {
        let frame = FLOW.frame(&[1; 50], false);
        front_end.transmit_chain(0, &header, &frame, 4096);
        network.come(&mut front_end, &[frame]);
    }
}

/// What is wrong, the features, the header, the frame, and the reason for which it is dropped.
type HostileHeader = (&'static str, u64, [u8; HEADER], Vec<u8>, Reason);

/// Headers that cannot be right cost the frame, and nothing else.
#[test]
fn hostile_headers_cost_their_frame() {
    let (tcp, tcp6) = (FLOW, Flow { is_ip6: true, ..FLOW });
    let (large, large6) = (tcp.frame(&data(3000), false), tcp6.frame(&data(3000), false));
    let small = tcp.frame(&data(60), false);
    let at = tcp.transport();
    let changed = |place: usize, value: u8| {
        let mut frame = large.clone();
        frame[place] = value;
        frame
    };
    let [long, faulty, checksum] = [Reason::TOO_LONG, Reason::FAULTY, Reason::BAD_CHECKSUM];
    let all = USUAL | FROM_GUEST;
    let cases: Vec<HostileHeader> = vec![
        ("a checksum that starts behind the frame", all, header(1, 0, 0, 200, 16), small.clone(), checksum),
        ("one that starts at its end", all, header(1, 0, 0, small.len(), 0), small.clone(), checksum),
        ("a place behind the frame", all, header(1, 0, 0, at, 500), small.clone(), checksum),
        ("a place half in it", all, header(1, 0, 0, at, small.len() - at - 1), small.clone(), checksum),
        ("the greatest numbers", all, header(1, 0, 0, 0xffff, 0xffff), small.clone(), checksum),
        ("a checksum of no frame", all, header(1, 0, 0, 0, 0), vec![], checksum),
        ("a frame of 3000 bytes", all, header(1, 0, 0, at, 16), large.clone(), long),
        ("parts of size 0", all, header(1, TCP4, 0, at, 16), large.clone(), faulty),
        ("parts longer than a frame", all, header(1, TCP4, 2049, at, 16), large.clone(), long),
        ("parts as long as a frame", all, header(1, TCP4, 2048, at, 16), large.clone(), faulty),
        ("the greatest size", all, header(1, TCP4, 0xffff, at, 16), large.clone(), long),
        ("no checksum", all, header(0, TCP4, 1000, at, 16), large.clone(), faulty),
        ("an unknown kind", all, header(1, 2, 1000, at, 16), large.clone(), faulty),
        ("fragments of UDP", all, header(1, 3, 1000, at, 16), large.clone(), faulty),
        ("a kind of any bits", all, header(1, 0x7f, 1000, at, 16), large.clone(), faulty),
        ("no kind, with congestion", all, header(1, CONGESTION, 1000, at, 16), large.clone(), faulty),
        ("a start in the IP header", all, header(1, TCP4, 1000, 20, 16), large.clone(), faulty),
        ("a start in the data", all, header(1, TCP4, 1000, 90, 16), large.clone(), faulty),
        ("a start behind the frame", all, header(1, TCP4, 1000, 0xffff, 16), large.clone(), faulty),
        ("a start at 0", all, header(1, TCP4, 1000, 0, 0), large.clone(), faulty),
        ("no IP packet", all, tcp.header(1000), changed(12, 9), faulty),
        ("IPv4 options that are not there", all, tcp.header(1000), changed(14, 0x4f), faulty),
        ("a TCP header of 0 bytes", all, tcp.header(1000), changed(at + 12, 0), faulty),
        ("nothing but headers", all, tcp.header(1000), large[..tcp.headers()].to_vec(), faulty),
        ("nothing", all, tcp.header(1000), vec![], faulty),
        ("tags without end", all, tcp.header(1000), [0x81, 0].repeat(30_000), faulty),
        ("70,000 bytes", all, tcp.header(1000), vec![0; 70_000], long),
        ("what was not offered: IPv6", USUAL | CSUM | HOST_TSO4, tcp6.header(1000), large6.clone(), faulty),
        ("what was not offered: UDP", USUAL | CSUM | HOST_TSO4, header(1, UDP, 9, at, 6), large, faulty),
        ("what was not offered: TCP", USUAL | CSUM | HOST_USO, tcp6.header(1000), large6, faulty),
    ];
    for (name, features, header, frame, reason) in cases {
        let (mut network, mut front_end) = Network::new(features);
        for first in [4096, HEADER, 3] {
            let next = front_end.transmit_chain(0, &header, &frame, first);
            let good = tcp.frame(&data(33), false);
            front_end.transmit_chain(next, &tcp.header(0), &good, 4096);
            network.expected.drop(reason, 1);
            println!("{name}, {first} bytes first");
            network.come(&mut front_end, &[tcp.frame(&data(33), true)]);
        }
    }
    // A header that is not whole.
    let (mut network, mut front_end) = Network::new(all);
    for length in 0..HEADER {
        front_end.transmit_chain(0, &tcp.header(100)[..length], &[], 4096);
        network.expected.drop(faulty, 1);
        network.come(&mut front_end, &[]);
    }
}

/// Segments of a flow reach a guest as one frame, which another port cuts into the same ones.
#[test]
fn segments_to_a_guest_are_joined() {
    let (mut network, mut front_end) = Network::new(USUAL | TO_GUEST);
    let (mut other, mut other_end) = connected(USUAL | FROM_GUEST);
    for (is_ip6, is_udp) in [(false, false), (false, true), (true, false), (true, true)] {
        for (count, last, lengths) in
            [(2, 300, [2060, 4096]), (20, 1448, [1536, 700]), (31, 3, [2060, 3000]), (44, 999, [2000, 2060])]
        {
            let flow = Flow { is_ip6, is_udp, flags: ACK | PSH, ..FLOW };
            let payload = data((count - 1) * 1448 + last);
            let mut frames = for_guest(flow.parts(&payload, 1448));
            // A short frame of another kind comes between them, and behind.
            let short = for_guest(vec![Flow { is_udp: !is_udp, ..FLOW }.frame(&[5; 20], true)]).remove(0);
            frames.insert(1, short.clone());
            frames.push(short.clone());
            for number in 0..SIZE {
                front_end.add_buffer(lengths[usize::from(number) % 2]);
            }
            network.go(&frames, frames.len());
            let messages = front_end.received_messages();
            let lengths: Vec<usize> = messages.iter().map(|(_, frame)| frame.len()).collect();
            assert_eq!(lengths, [flow.headers() + payload.len(), short.len(), short.len()], "{count}");
            let (head, joined) = &messages[0];
            assert_eq!(
                head[..10],
                {
                    let mut expected = flow.header(1448);
                    expected[2..4].copy_from_slice(&(flow.headers() as u16).to_le_bytes());
                    expected
                }[..10]
            );
            for (header, frame) in &messages[1..] {
                assert_eq!((header, frame), (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], &short));
            }
            other_end.transmit_chain(0, head, joined, 4096);
            let (parts, faults) = receive(&mut other);
            assert_eq!(faults, [0; 2]);
            let whole: Vec<_> = frames.into_iter().filter(|frame| *frame != short).collect();
            assert!(parts == whole, "{count} segments, the last one of {last} bytes");
            other_end.take_used(TRANSMIT);
            restart(&mut front_end, &mut network);
        }
    }
}

/// Takes away the buffers that are left, so that the next ones start at the first descriptor.
fn restart(front_end: &mut FrontEnd, network: &mut Network) {
    let left = usize::from(front_end.available[RECEIVE].wrapping_sub(front_end.used[RECEIVE]));
    let fill = for_guest(vec![Flow { is_udp: true, ..FLOW }.frame(&[6; 20], true); left]);
    network.go(&fill, left);
    assert_eq!(front_end.received(), fill);
}

/// Without the features, or without buffers that are long enough, each frame comes by itself.
#[test]
fn frames_come_single_where_joined_ones_are_not_taken() {
    for (features, joins4, joins6, joins_udp) in [
        (USUAL, false, false, false),
        (USUAL | FROM_GUEST, false, false, false),
        (USUAL | GUEST_CSUM, false, false, false),
        (USUAL | GUEST_TSO4 | GUEST_TSO6 | GUEST_USO, false, false, false),
        (USUAL | GUEST_CSUM | GUEST_TSO4 | (GUEST_USO & GUEST_USO >> 1), true, false, false),
        (USUAL | GUEST_CSUM | GUEST_TSO6, false, true, false),
        (USUAL | GUEST_CSUM | GUEST_USO, false, false, true),
        ((USUAL - MERGEABLE) | TO_GUEST, false, false, false),
    ] {
        for (is_ip6, is_udp, is_joined) in
            [(false, false, joins4), (true, false, joins6), (false, true, joins_udp), (true, true, joins_udp)]
        {
            let (mut network, mut front_end) = Network::new(features);
            let frames = for_guest(Flow { is_ip6, is_udp, ..FLOW }.parts(&data(10_000), 1000));
            (0..SIZE).for_each(|_| front_end.add_buffer(2060));
            network.go(&frames, frames.len());
            if is_joined {
                assert_eq!(front_end.received_messages().len(), 1, "{features:#x}");
            } else if features & MERGEABLE != 0 {
                assert_eq!(front_end.received(), frames, "{features:#x}");
            } else {
                let used = front_end.take_used(RECEIVE);
                assert_eq!(used.len(), frames.len());
                for ((number, length), frame) in used.into_iter().zip(&frames) {
                    let found = front_end.get(buffer(RECEIVE, number as u16), length as usize);
                    assert!(found[..10] == [0; 10] && found[HEADER..] == *frame);
                }
            }
        }
    }
}

/// Without mergeable buffers, a chain that is long enough takes a joined frame.
#[test]
fn a_long_chain_takes_a_joined_frame() {
    let (mut network, mut front_end) = Network::new((USUAL - MERGEABLE) | TO_GUEST);
    // Two chains of 17 pages, and short ones.
    for number in 0..34 {
        let flags = if number % 17 == 16 { WRITE } else { WRITE | NEXT };
        front_end.describe(RECEIVE, number, GUEST + buffer(RECEIVE, number), 4096, flags, number + 1);
    }
    front_end.make_available(RECEIVE, 0);
    front_end.make_available(RECEIVE, 17);
    for number in 34..40 {
        front_end.describe(RECEIVE, number, GUEST + buffer(RECEIVE, number), 2060, WRITE, 0);
        front_end.make_available(RECEIVE, number);
    }
    let payload = data(44 * 1448);
    let frames = for_guest(FLOW.parts(&payload, 1448));
    network.go(&frames, frames.len());
    let headers = FLOW.headers();
    assert_eq!(front_end.take_used(RECEIVE), [(0, (HEADER + headers + payload.len()) as u32)]);
    let found: Vec<u8> = (0..17).flat_map(|number| front_end.get(buffer(RECEIVE, number), 4096)).collect();
    let mut header = FLOW.header(1448);
    header[2..4].copy_from_slice(&(headers as u16).to_le_bytes());
    header[10..].copy_from_slice(&[1, 0]);
    assert_eq!(found[..HEADER], header);
    assert!(found[HEADER + headers..HEADER + headers + payload.len()] == payload);
    // The other long chain takes one more; then frames are single.
    let three = for_guest(FLOW.parts(&data(3000), 1000));
    network.go(&three, 3);
    assert_eq!(front_end.take_used(RECEIVE), [(17, (HEADER + headers + 3000) as u32)]);
    network.go(&three, 3);
    let length = (HEADER + headers + 1000) as u32;
    assert_eq!(front_end.take_used(RECEIVE), [(34, length), (35, length), (36, length)]);
}

/// A guest with too few buffers for a joined frame gets as many of its segments as it has room for.
#[test]
fn a_crowded_guest_gets_the_first_segments() {
    let frames = for_guest(FLOW.parts(&data(20_000), 1000));
    for buffers in [0, 1, 5, 10, 11] {
        let (mut network, mut front_end) = Network::new(USUAL | TO_GUEST);
        (0..buffers).for_each(|_| front_end.add_buffer(2060));
        // 20,000 bytes and the headers take 10 buffers.
        let sent = if buffers < 10 { buffers } else { frames.len() };
        let (batch, numbers) = batch(&frames);
        network.end.send(&batch, &numbers).unwrap();
        network.runner.step();
        network.expected.sent_frames = sent as u64;
        network.expected.sent_bytes = frames.iter().take(sent).map(Vec::len).sum::<usize>() as u64;
        network.expected.drop(Reason::FULL, (frames.len() - sent) as u64);
        network.check();
        if buffers < 10 {
            assert_eq!(front_end.received(), frames[..buffers]);
        } else {
            assert_eq!(front_end.received_messages().len(), 1);
        }
    }
    // Buffers of some bytes take no joined frame: each would take hundreds.
    let (mut network, mut front_end) = Network::new(USUAL | TO_GUEST);
    (0..SIZE).for_each(|_| front_end.add_buffer(200));
    network.go(&frames, 10);
    assert_eq!(front_end.received(), frames[..10]);
}

/// What a guest has handed over is passed on when it has gone, and nothing waits unnoticed.
#[test]
fn the_parts_of_a_frame_survive_their_guest() {
    let path = super::socket_path("parts");
    let mut port = VhostUser::server(UnixListener::bind(&path).unwrap().into()).unwrap();
    let connect = || FrontEnd::new(UnixStream::connect(&path).unwrap(), USUAL | FROM_GUEST);
    let mut front_end = connect();
    assert!(serve(&mut port));
    shake_hands(&mut port, &front_end);
    let data = data(30_000);
    let expected = FLOW.parts(&data, 1000);
    let take = |port: &mut VhostUser, count: usize| -> Vec<Vec<u8>> {
        let mut batch = Batch::new(count);
        port.receive(&mut batch).unwrap();
        batch.frames().map(<[u8]>::to_vec).collect()
    };
    front_end.transmit_chain(0, &FLOW.header(1000), &FLOW.frame(&data, false), 4096);
    assert_eq!(take(&mut port, 7), expected[..7]);
    assert_eq!(front_end.take_used(TRANSMIT).len(), 1);
    assert!(port.is_ready() && !port.prepare_sleep().unwrap() && port.waiting() == 23);
    drop(front_end);
    assert!(serve(&mut port) && waits(&port));
    assert!(port.is_ready());
    assert_eq!(take(&mut port, 20), expected[7..27]);
    // The next guest's frames come after them.
    let mut front_end = connect();
    assert!(serve(&mut port));
    shake_hands(&mut port, &front_end);
    front_end.transmit_chain(0, &FLOW.header(0), &FLOW.frame(&[1], false), 4096);
    assert_eq!(take(&mut port, 9), [&expected[27..], &[FLOW.frame(&[1], true)]].concat());
    assert!(!port.is_ready() && port.prepare_sleep().unwrap() && port.waiting() == 0);
    port.end_sleep();
    std::fs::remove_file(path).unwrap();
}

/// Parts that wait in a driver that is replaced are lost as `down`.
#[test]
fn the_parts_that_are_lost_with_a_driver_are_counted() {
    let (mut network, mut front_end) = Network::new(USUAL | FROM_GUEST);
    front_end.transmit_chain(0, &FLOW.header(50), &FLOW.frame(&data(60_000), false), 4096);
    network.runner.step();
    let waiting = network.runner.waiting(network.guest);
    let came = 1200 - waiting;
    assert!(waiting > 0 && came > 0);
    network.expected.received_frames = came;
    network.expected.received_bytes = came * (FLOW.headers() as u64 + 50);
    network.check();
    network.runner.set_driver(network.guest, Box::new(Null)).unwrap();
    network.expected.drop(Reason::DOWN, waiting);
    assert_eq!(network.runner.counters(network.guest), Some(network.expected));
    let books = network.runner.port_books(network.guest).unwrap();
    assert_eq!((network.runner.waiting(network.guest), books.came), (0, 1200));
}
