//! Checksums that the sender left to the network card.
//!
//! Between virtual devices, such as the ends of a veth pair, there is no card: the kernel passes the frame on with the sum of the
//! pseudo-header in the checksum's place, and a note. XDP programs do not see the note. So such a frame is recognised by its
//! sum. A frame with a valid checksum that looks alike gets the same checksum again.

use crate::device::{IpPacket, MAX_TUNNELS};

/// Completes the TCP or UDP checksum of a frame, if it has only the sum of the pseudo-header. The packet may be in a tunnel of the
/// sender's host, whose checksum covers the completed one (as the kernel's "local checksum offload" computes it).
#[inline]
pub(crate) fn complete(frame: &mut [u8]) {
    if let Some(packet) = IpPacket::of(frame) {
        complete_in(frame, packet, MAX_TUNNELS);
    }
}

/// Returns where the checksum is that was completed, and what was there.
#[inline]
fn complete_in(frame: &mut [u8], packet: IpPacket, tunnels: usize) -> Option<(usize, u16)> {
    let completed = packet.complete_checksum(frame);
    if completed.is_some() || tunnels == 0 {
        return completed;
    }
    let (place, before) = complete_in(frame, packet.inside(frame)?, tunnels - 1)?;
    if !packet.has_correct_tunnel(frame) {
        // It only looked like a tunnel, or was damaged.
        frame.get_mut(place..place + 2)?.copy_from_slice(&before.to_be_bytes());
        return None;
    }
    Some((place, before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{TUNNELS, in_tunnel};
    use packet::checksum::Sum;

    const TCP: u8 = 6;
    const UDP: u8 = 17;

    /// A frame with a TCP segment or UDP datagram, and the sum of its pseudo-header.
    fn frame(is_ipv6: bool, has_tag: bool, protocol: u8, payload: usize) -> (Vec<u8>, Sum, usize) {
        let mut frame = vec![2; 12];
        if has_tag {
            frame.extend([0x81, 0, 0, 5]);
        }
        let (header, field) = if protocol == TCP { (20, 16) } else { (8, 6) };
        let length = header + payload;
        let pseudo = match is_ipv6 {
            false => {
                frame.extend([8, 0, 0x45, 0]);
                frame.extend((20 + length as u16).to_be_bytes());
                frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
                Sum::ZERO.pseudo4([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), protocol, length as u16)
            }
            true => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend((length as u16).to_be_bytes());
                frame.extend([protocol, 64]);
                frame.extend([0xfd; 16]);
                frame.extend([0xfe; 16]);
                Sum::ZERO.pseudo6([0xfd; 16].into(), [0xfe; 16].into(), protocol, length as u32)
            }
        };
        let start = frame.len();
        frame.extend((0..length).map(|byte| byte as u8));
        frame[start + field..start + field + 2].copy_from_slice(&pseudo.fold().to_be_bytes());
        (frame, pseudo, start)
    }

    #[test]
    fn partial_checksums_are_completed() {
        for (is_ipv6, has_tag) in [(false, false), (false, true), (true, false), (true, true)] {
            for (protocol, payload) in [(TCP, 0), (TCP, 33), (UDP, 1), (UDP, 100)] {
                let (mut frame, pseudo, start) = frame(is_ipv6, has_tag, protocol, payload);
                let length = frame.len();
                // Padding behind the packet is not covered.
                frame.extend([9; 7]);
                complete(&mut frame);
                assert_eq!(pseudo.bytes(&frame[start..length]).finish(), 0, "{is_ipv6} {has_tag} {protocol}");
                let completed = frame.clone();
                complete(&mut frame);
                assert_eq!(frame, completed);
            }
        }
    }

    /// The checksum of a tunnel covers the completed one. If it does not, the frame stays as it is.
    #[test]
    fn partial_checksums_in_tunnels_are_completed() {
        for (tunnel, over_ip6) in TUNNELS.into_iter().flat_map(|tunnel| [(tunnel, false), (tunnel, true)]) {
            for (is_ip6, protocol) in [(false, TCP), (false, UDP), (true, TCP), (true, UDP)] {
                let (open, ..) = frame(is_ip6, false, protocol, 33);
                let mut plain = open.clone();
                complete(&mut plain);
                let (expected, network) = in_tunnel(tunnel, over_ip6, &plain);
                let mut came = [&expected[..network], &open[14..]].concat();
                complete(&mut came);
                assert_eq!(came, expected, "{tunnel:?} {over_ip6} {is_ip6} {protocol}");
                complete(&mut came);
                assert_eq!(came, expected);
                // Here the sender's checksum does not cover the completed one.
                let (other, _) = in_tunnel(tunnel, over_ip6, &open);
                let mut came = other.clone();
                complete(&mut came);
                let is_covered = other[..network] != expected[..network];
                assert_eq!(came == other, is_covered, "{tunnel:?} {over_ip6}");
            }
        }
    }

    #[test]
    fn partial_checksums_behind_two_tags_and_extension_headers_are_completed() {
        let (mut frame, pseudo, start) = frame(true, true, TCP, 40);
        frame.splice(12..12, [0x88, 0xa8, 0, 9]);
        // A destination option of eight bytes.
        let (network, start) = (22, start + 4);
        frame.splice(start..start, [TCP, 0, 1, 4, 0, 0, 0, 0]);
        frame[network + 6] = 60;
        frame[network + 5] += 8;
        complete(&mut frame);
        assert_eq!(pseudo.bytes(&frame[start + 8..]).finish(), 0);
    }

    #[test]
    fn other_frames_stay_as_they_are() {
        let cases: [fn(&mut Vec<u8>); 6] = [
            // A wrong checksum, a fragment, another protocol, another version, a short frame, no payload at all.
            |frame| frame[14 + 20 + 16] ^= 1,
            |frame| frame[14 + 6] = 0x20,
            |frame| frame[14 + 9] = 47,
            |frame| frame[14] = 0x55,
            |frame| frame.truncate(40),
            |frame| frame[14 + 2..14 + 4].copy_from_slice(&[0, 4]),
        ];
        for (number, change) in cases.into_iter().enumerate() {
            let (mut frame, ..) = frame(false, false, TCP, 10);
            change(&mut frame);
            let before = frame.clone();
            complete(&mut frame);
            assert_eq!(frame, before, "{number}");
        }
        for length in 0..120 {
            let (mut frame, ..) = frame(true, true, UDP, 60);
            frame.truncate(length);
            complete(&mut frame);
        }
    }
}
