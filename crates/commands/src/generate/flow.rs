//! Conversations, one packet at a time.

use super::frame::{Frame, MAX_FRAME, Path, Size, Transport, address};
use packet::protocol;
use packet::view::ip4::MORE_FRAGMENTS;
use packet::view::tcp::flag::{ACK, FIN, PSH, SYN};
use random::Random;
use std::net::{IpAddr, Ipv4Addr};

/// The TCP options of packets that open a connection: segment size, selective acknowledgement, window scale.
const SYN_OPTIONS: [u8; 12] = [2, 4, 5, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7];
/// The text that payloads consist of.
const PAYLOAD_TEXT: &[u8] = b"GET /index.html HTTP/1.1\r\nHost: www.example.com\r\nAccept: */*\r\n\r\n";
/// The names in DNS queries.
const DNS_NAMES: &[&[&str]] =
    &[&["www", "example", "com"], &["mail", "example", "org"], &["cdn", "example", "net"]];

/// Whether a conversation continues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowState {
    Continues,
    Ended,
}

/// A conversation between a host inside the network and one outside.
pub(super) struct Flow {
    path: Path,
    ports: (u16, u16),
    kind: FlowKind,
    /// The number of steps done.
    stage: u32,
    /// The number of data packets.
    length: u32,
}

enum FlowKind {
    Tcp {
        /// The next sequence numbers of client and server.
        next: (u32, u32),
    },
    Dns {
        identifier: u16,
        name: usize,
    },
    Udp,
    /// UDP datagrams in two fragments.
    Fragmented,
    Ping {
        identifier: u16,
    },
}

impl Flow {
    /// Starts a random conversation.
    pub(super) fn new(random: &mut Random) -> Flow {
        let is_ip6 = random.below_u64(100) < 12;
        let inside = address(is_ip6, true, random.between(2, 60));
        let outside = address(is_ip6, false, random.between(1, 250));
        let identification = random.next() as u16;
        let path = Path { source: inside, destination: outside, inbound: false, identification, fragment: 0 };
        let client = random.between(32_768, 60_999) as u16;
        let (kind, server, length) = match random.below_u64(100) {
            0..=54 => {
                let next = (random.next() as u32, random.next() as u32);
                let server = [80, 443, 443, 443, 22, 25][random.below_u64(6) as usize];
                (FlowKind::Tcp { next }, server, random.between(3, 40) as u32)
            }
            55..=74 => {
                let name = random.below_u64(DNS_NAMES.len() as u64) as usize;
                (FlowKind::Dns { identifier: random.next() as u16, name }, 53, 2)
            }
            75..=89 => {
                (FlowKind::Udp, [443, 123, 5_004][random.below_u64(3) as usize], random.between(2, 20) as u32)
            }
            90..=92 if !is_ip6 => (FlowKind::Fragmented, 5_004, 2),
            _ => (FlowKind::Ping { identifier: random.next() as u16 }, 0, 2 * random.between(1, 5) as u32),
        };
        Flow { path, ports: (client, server), kind, stage: 0, length }
    }

    /// The next packet. `size` is preferred where the conversation allows several sizes.
    pub(super) fn step(&mut self, size: Size, random: &mut Random) -> (Frame, FlowState) {
        let stage = self.stage;
        self.stage += 1;
        self.path.identification = self.path.identification.wrapping_add(1);
        if let FlowKind::Tcp { .. } = self.kind {
            return self.step_tcp(stage, size, random);
        }
        let (path, ports) = match stage % 2 {
            0 => (self.path, self.ports),
            _ => (self.path.back(), (self.ports.1, self.ports.0)),
        };
        let headers = path.headers() + 8;
        let frame = match &self.kind {
            FlowKind::Dns { identifier, name } => {
                Frame::new(&path, &Transport::Udp { ports }, &dns(*identifier, DNS_NAMES[*name], stage == 1))
            }
            FlowKind::Ping { identifier } => {
                let echo = Transport::Echo {
                    reply: stage % 2 == 1,
                    identifier: *identifier,
                    sequence: stage as u16 / 2,
                };
                let length = if size == Size::Small { 18 } else { 56 };
                Frame::new(&path, &echo, &text(length, stage))
            }
            FlowKind::Fragmented => self.fragment(stage),
            _ => Frame::new(
                &path,
                &Transport::Udp { ports },
                &text(size.payload(headers, random).max(8), stage),
            ),
        };
        (frame, if self.stage >= self.length { FlowState::Ended } else { FlowState::Continues })
    }

    /// Handshake, data and acknowledgements, teardown.
    fn step_tcp(&mut self, stage: u32, size: Size, random: &mut Random) -> (Frame, FlowState) {
        let FlowKind::Tcp { next } = &mut self.kind else { return (self.fragment(0), FlowState::Ended) };
        let closing = self.length + 3;
        // Servers send most of the data; in the handshake and the teardown the roles are fixed.
        let (from_client, flags) = match stage {
            0 => (true, SYN),
            1 => (false, SYN | ACK),
            2 => (true, ACK),
            _ if stage < closing && size == Size::Small => (random.below_u64(4) > 0, ACK),
            _ if stage < closing => (stage == 3 || random.below_u64(4) == 0, PSH | ACK),
            _ if stage == closing => (true, FIN | ACK),
            _ if stage == closing + 1 => (false, FIN | ACK),
            _ => (true, ACK),
        };
        let (path, ports) = if from_client {
            (self.path, self.ports)
        } else {
            (self.path.back(), (self.ports.1, self.ports.0))
        };
        let options = if flags & SYN != 0 { SYN_OPTIONS.to_vec() } else { Vec::new() };
        let payload = match flags & PSH != 0 {
            true => text(size.payload(path.headers() + 20, random).max(1), stage),
            false => Vec::new(),
        };
        let (sequence, other) = if from_client { (&mut next.0, next.1) } else { (&mut next.1, next.0) };
        let acknowledgement = if flags & ACK != 0 { other } else { 0 };
        let transport = Transport::Tcp { ports, sequence: *sequence, acknowledgement, flags, options };
        let control = u32::from(flags & (SYN | FIN) != 0);
        *sequence = sequence.wrapping_add(payload.len() as u32 + control);
        let state = if stage > closing + 1 { FlowState::Ended } else { FlowState::Continues };
        (Frame::new(&path, &transport, &payload), state)
    }

    /// One of the two fragments of a datagram.
    fn fragment(&self, stage: u32) -> Frame {
        // Both carry the identification of the first.
        let identification = self.path.identification.wrapping_sub(stage as u16);
        let path = Path { identification, ..self.path };
        let first = (MAX_FRAME - path.headers()) / 8 * 8;
        if stage == 0 {
            let path = Path { fragment: MORE_FRAGMENTS, ..path };
            Frame::new(&path, &Transport::Udp { ports: self.ports }, &text(first - 8, stage))
        } else {
            let transport = Transport::Fragment { protocol: protocol::UDP, offset: first as u16 };
            Frame::new(&path, &transport, &text(400, stage))
        }
    }
}

/// One packet of a port scan, which tries the ports of each host in turn.
pub(super) fn scan(number: u16, random: &mut Random) -> Frame {
    let path = Path {
        source: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 66)),
        destination: address(false, true, 2 + u64::from(number / 32)),
        inbound: true,
        identification: random.next() as u16,
        fragment: 0,
    };
    let ports = (54_321, number % 32 * 37 + 21);
    let sequence = random.next() as u32;
    Frame::new(
        &path,
        &Transport::Tcp { ports, sequence, acknowledgement: 0, flags: SYN, options: Vec::new() },
        &[],
    )
}

/// A payload of `length` bytes.
fn text(length: usize, start: u32) -> Vec<u8> {
    PAYLOAD_TEXT.iter().cycle().skip(start as usize % PAYLOAD_TEXT.len()).take(length).copied().collect()
}

/// A DNS query for an address, or its answer.
fn dns(identifier: u16, name: &[&str], answer: bool) -> Vec<u8> {
    let mut message = identifier.to_be_bytes().to_vec();
    message.extend(if answer { [0x81, 0x80] } else { [0x01, 0x00] });
    message.extend([0, 1, 0, u8::from(answer), 0, 0, 0, 0]);
    for label in name {
        message.push(label.len() as u8);
        message.extend(label.bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    if answer {
        // Name as a reference, type A, class IN, a TTL of one hour, address.
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 198, 51, 100, 7]);
    }
    message
}
