//! Frames: Ethernet, PPPoE if the configuration needs it, IPv4, TCP or UDP, and a payload.

use super::flow::Flow;
use packet::checksum::Sum;
use random::Random;

/// Protocol numbers of IPv4.
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// Length in bytes of an Ethernet header, and of a PPPoE header with the PPP protocol number.
const ETHERNET: usize = 14;
const PPPOE: usize = 8;

/// Header lengths in bytes.
const IP: usize = 20;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// The start of a payload that the intrusion detection example reports.
const ATTACK: &[u8] = b"GET /evil";

/// The first PPPoE session that the broadband server example knows, and one that it does not know. The others follow the first.
pub(crate) const FIRST_SESSION: u16 = 0x17;
const UNKNOWN_SESSION: u16 = 0xff00;

/// The variation between the packets of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variation {
    /// Time to live.
    ttl: u8,
    /// Identification in the IPv4 header, and the low bits of TCP's sequence numbers.
    number: u16,
    /// Seed of the payload.
    payload: u64,
    /// Whether intrusion detection reports the payload.
    attack: bool,
    /// Whether a PPPoE frame belongs to an unknown session, to discovery, or to PPP control.
    pppoe: Pppoe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pppoe {
    Known,
    Unknown,
    Discovery,
    Control,
}

impl Variation {
    /// The plain packet of constant traffic.
    pub(crate) const PLAIN: Self =
        Self { ttl: 64, number: 1, payload: 1, attack: false, pppoe: Pppoe::Known };

    /// A packet of mixed traffic: one in 1,000 has an expired TTL, one in 200 UDP payloads is an attack, and of PPPoE
    /// frames one in 100 each has an unknown session, is discovery, or is control.
    pub(crate) fn draw(random: &mut Random) -> Self {
        let bits = random.next();
        let pppoe = match bits >> 32 & 0xffff {
            0..656 => Pppoe::Unknown,
            656..1312 => Pppoe::Discovery,
            1312..1968 => Pppoe::Control,
            _ => Pppoe::Known,
        };
        Self {
            ttl: if random.below_u64(1_000) == 0 { 1 } else { 48 + (bits & 63) as u8 },
            number: (bits >> 16) as u16,
            payload: bits,
            attack: random.below_u64(200) == 0,
            pppoe,
        }
    }
}

/// Writes one frame of `size` bytes to `out`, or longer if its headers are. With a number of PPPoE sessions it has a PPPoE header.
pub(crate) fn build(
    flow: &Flow,
    variation: &Variation,
    size: usize,
    sessions: Option<u16>,
    out: &mut Vec<u8>,
) {
    out.clear();
    out.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    let network = if sessions.is_some() { ETHERNET + PPPOE } else { ETHERNET };
    let transport = network + IP;
    let header = if flow.protocol == TCP { TCP_HEADER } else { UDP_HEADER };
    let size = size.max(transport + header);
    if let Some(sessions) = sessions {
        pppoe(flow, variation, size, sessions, out);
    } else {
        out.extend([8, 0]);
    }
    // IPv4
    out.extend([0x45, 0]);
    out.extend(((size - network) as u16).to_be_bytes());
    out.extend(variation.number.to_be_bytes());
    out.extend([0x40, 0, variation.ttl, flow.protocol, 0, 0]);
    out.extend(flow.source.to_be_bytes());
    out.extend(flow.destination.to_be_bytes());
    let sum = Sum::default().bytes(&out[network..transport]).finish();
    out[network + 10..network + 12].copy_from_slice(&sum.to_be_bytes());
    // TCP or UDP
    out.extend(flow.source_port.to_be_bytes());
    out.extend(flow.destination_port.to_be_bytes());
    let length = (size - transport) as u16;
    if flow.protocol == TCP {
        out.extend(variation.payload.to_be_bytes());
        out.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    } else {
        out.extend(length.to_be_bytes());
        out.extend([0, 0]);
    }
    payload(flow, variation, size, out);
    let pseudo = [&out[network + 12..network + 20], &[0, flow.protocol], &length.to_be_bytes()].concat();
    let sum = Sum::default().bytes(&pseudo).bytes(&out[transport..]).finish();
    let (at, sum) = match flow.protocol {
        TCP => (transport + 16, sum),
        // Zero would mean that there is no checksum.
        _ => (transport + 6, if sum == 0 { 0xffff } else { sum }),
    };
    out[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Appends EtherType, PPPoE header and PPP protocol. A subscriber keeps its session.
fn pppoe(flow: &Flow, variation: &Variation, size: usize, sessions: u16, out: &mut Vec<u8>) {
    let known = FIRST_SESSION + (flow.source % u32::from(sessions.max(1))) as u16;
    let (kind, code, session, protocol) = match variation.pppoe {
        Pppoe::Known => (0x8864u16, 0u8, known, 0x0021u16),
        Pppoe::Unknown => (0x8864, 0, UNKNOWN_SESSION, 0x0021),
        Pppoe::Discovery => (0x8863, 9, 0, 0x0021),
        Pppoe::Control => (0x8864, 0, known, 0xc021),
    };
    out.extend(kind.to_be_bytes());
    out.extend([0x11, code]);
    out.extend(session.to_be_bytes());
    // The length counts the bytes after it.
    out.extend(((size - ETHERNET - PPPOE + 2) as u16).to_be_bytes());
    out.extend(protocol.to_be_bytes());
}

/// Fills the frame up to `size` with a typical payload for its port.
fn payload(flow: &Flow, variation: &Variation, size: usize, out: &mut Vec<u8>) {
    let begin: &[u8] = match (flow.protocol, flow.destination_port) {
        (UDP, _) if variation.attack => ATTACK,
        (TCP, 80 | 8080) => b"GET /index.html HTTP/1.1\r\nHost: www.example.net\r\nAccept: */*\r\n\r\n",
        (_, 443) => &[0x17, 3, 3, 4, 0],
        (_, 53) => {
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x03net\x00\x00\x01\x00\x01"
        }
        _ => &[],
    };
    let room = size.saturating_sub(out.len());
    out.extend_from_slice(&begin[..begin.len().min(room)]);
    let mut random = Random::new(variation.payload);
    while out.len() < size {
        let bytes = random.next().to_be_bytes();
        let room = (size - out.len()).min(bytes.len());
        out.extend_from_slice(&bytes[..room]);
    }
}

/// The flow of an IPv4 frame, plain or in PPPoE; `None` for other and truncated frames.
pub(crate) fn flow_of(frame: &[u8]) -> Option<Flow> {
    let network = match frame.get(12..14)? {
        [0x08, 0x00] => ETHERNET,
        [0x88, 0x64] if frame.get(20..22)? == [0, 0x21] => ETHERNET + PPPOE,
        _ => return None,
    };
    let header = frame.get(network..network + IP)?;
    if header[0] >> 4 != 4 {
        return None;
    }
    let transport = network + usize::from(header[0] & 15) * 4;
    let word =
        |at: usize| -> Option<u32> { Some(u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?)) };
    let protocol = header[9];
    let ports = if matches!(protocol, TCP | UDP) { word(transport)? } else { 0 };
    Some(Flow {
        source: word(network + 12)?,
        destination: word(network + 16)?,
        source_port: (ports >> 16) as u16,
        destination_port: ports as u16,
        protocol,
    })
}

#[cfg(test)]
mod tests {
    use super::super::flow::generate_flows;
    use super::*;

    /// Asserts that the checksums of the IP header and of the segment with its pseudo header are correct.
    fn check_sums(frame: &[u8], network: usize) {
        assert_eq!(Sum::default().bytes(&frame[network..network + IP]).finish(), 0);
        let length = (frame.len() - network - IP) as u16;
        let pseudo =
            [&frame[network + 12..network + 20], &[0, frame[network + 9]], &length.to_be_bytes()].concat();
        assert_eq!(Sum::default().bytes(&pseudo).bytes(&frame[network + IP..]).finish(), 0);
    }

    #[test]
    fn frames_are_valid_and_carry_their_flow() {
        let mut random = Random::new(3);
        let mut frame = Vec::new();
        for flow in generate_flows(200, &mut random) {
            for (size, sessions, network) in
                [(64, None, 14), (64, Some(3), 22), (1500, None, 14), (1514, Some(1_000), 22)]
            {
                let variation = Variation { pppoe: Pppoe::Known, ..Variation::draw(&mut random) };
                build(&flow, &variation, size, sessions, &mut frame);
                assert_eq!(frame.len(), size);
                assert_eq!(flow_of(&frame), Some(flow));
                check_sums(&frame, network);
                if let Some(sessions) = sessions {
                    let session = u16::from_be_bytes([frame[16], frame[17]]);
                    assert!((FIRST_SESSION..FIRST_SESSION + sessions).contains(&session), "{session}");
                    assert_eq!(usize::from(u16::from_be_bytes([frame[18], frame[19]])), size - 20);
                }
            }
        }
    }
}
