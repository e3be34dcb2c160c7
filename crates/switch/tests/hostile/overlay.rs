//! Packets of any bytes from the remote end of a tunnel.

use packet::checksum::Sum;
use switch::driver::{Encapsulation, OverlayEnds, OverlayReader, Read};
use switch::{MAX_FRAME, Reason};

const VNI: u32 = 42;

/// Each packet is refused under a declared reason, or brings frames that are inside it, not too short and not too long. The
/// first byte chooses the tunnel, the second one the traffic class, and the next two the MTU.
pub fn packet(bytes: &[u8]) {
    let [choice, class, high, low, rest @ ..] = bytes else { return };
    let encapsulation = if choice & 1 == 0 { Encapsulation::Vxlan } else { Encapsulation::Geneve };
    let [local, remote] = match choice & 2 {
        0 => ["192.0.2.1", "192.0.2.2"],
        _ => ["2001:db8::1", "2001:db8::2"],
    };
    let ends = OverlayEnds { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
    let port = encapsulation.default_port();
    let mut reader = OverlayReader::new(ends, encapsulation, VNI, port);
    let mtu = u16::from_be_bytes([*high, *low]);
    let mut packet = rest.to_vec();
    if choice & 4 != 0 {
        complete(&mut packet, encapsulation, remote.contains('.'), port);
    }
    match reader.read(&mut packet, *class, mtu) {
        Ok(Read::Frame(range)) => {
            let frame = packet.get(range).expect("inside the packet");
            assert!((14..=MAX_FRAME).contains(&frame.len()));
        }
        Ok(Read::Segments) => {
            let (mut space, mut count) = ([0; MAX_FRAME], 0);
            while let Some(length) = reader.take(&mut space) {
                assert!(length <= usize::from(mtu) + 14 && length >= 14);
                count += 1;
            }
            assert!(count > 0 && count <= packet.len() && reader.is_empty());
        }
        Ok(Read::Long) => {}
        Err(reason) => {
            let declared = [
                Reason::BAD_CHECKSUM,
                Reason::BAD_TUNNEL_HEADER,
                Reason::CRITICAL_OPTION,
                Reason::TUNNEL_CONTROL,
                Reason::CONGESTION_MARK,
            ];
            assert!(declared.contains(&reason));
        }
    }
}

/// Makes the outer headers right, so that what is behind them is reached.
fn complete(packet: &mut [u8], encapsulation: Encapsulation, is_ip4: bool, port: u16) {
    let udp = if is_ip4 { 20 } else { 0 };
    let length = packet.len().saturating_sub(udp).min(0xffff) as u16;
    let Some(headers) = packet.get_mut(..udp + 16) else { return };
    if is_ip4 {
        headers[0] = 0x45;
    }
    headers[udp + 2..udp + 4].copy_from_slice(&port.to_be_bytes());
    headers[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
    // Over IPv6 the sum of the pseudo-header stands for a checksum that a local sender left open.
    let [source, destination] = ["2001:db8::2", "2001:db8::1"].map(|text| text.parse().unwrap());
    let pseudo = Sum::ZERO.pseudo6(source, destination, 17, length.into()).fold();
    let checksum = if is_ip4 { 0 } else { pseudo };
    headers[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
    headers[udp + 12..udp + 15].copy_from_slice(&[0, 0, VNI as u8]);
    match encapsulation {
        Encapsulation::Vxlan => headers[udp + 8] |= 8,
        Encapsulation::Geneve => headers[udp + 10..udp + 12].copy_from_slice(&[0x65, 0x58]),
    }
}
