//! Checksums that the sender left to the network card.
//!
//! Between virtual devices, such as the ends of a veth pair, there is no card: the kernel passes the frame on with the sum of the
//! pseudo-header in the checksum's place, and a note. XDP programs do not see the note. So such a frame is recognised by its
//! sum. A frame with a valid checksum that looks alike gets the same checksum again.

use packet::checksum::{Sum, internet};
use std::net::{Ipv4Addr, Ipv6Addr};

const VLAN_TYPES: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Completes the TCP or UDP checksum of a frame, if it has only the sum of the pseudo-header.
#[inline]
pub(crate) fn complete(frame: &mut [u8]) {
    let Some((segment, pseudo, field)) = found(frame) else { return };
    let Some(covered) = frame.get_mut(segment) else { return };
    let Some(place) = covered.get(field..field + 2) else { return };
    let sum = pseudo.fold();
    if sum == 0 || place != sum.to_be_bytes() {
        return;
    }
    let checksum = match internet(covered) {
        0 => 0xffff,
        checksum => checksum,
    };
    if let Some(place) = covered.get_mut(field..field + 2) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The place of the TCP segment or UDP datagram in a frame, its pseudo-header, and the offset of its checksum.
#[inline]
fn found(frame: &[u8]) -> Option<(std::ops::Range<usize>, Sum, usize)> {
    let number = |at: usize| frame.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
    let (kind, start) = match number(12)? {
        tag if VLAN_TYPES.contains(&tag) => (number(16)?, 18),
        kind => (kind, 14),
    };
    let field = |protocol| match protocol {
        TCP => Some(16),
        UDP => Some(6),
        _ => None,
    };
    match kind {
        0x0800 => {
            let header: &[u8; 20] = frame.get(start..)?.first_chunk()?;
            let (length, whole) = (usize::from(header[0] & 15) * 4, usize::from(number(start + 2)?));
            // Fragments have no checksum of their own.
            if header[0] >> 4 != 4 || length < 20 || whole < length || number(start + 6)? & 0x3fff != 0 {
                return None;
            }
            let address = |at| Some(Ipv4Addr::from(*frame.get(start + at..)?.first_chunk::<4>()?));
            let covered = (whole - length) as u16;
            let pseudo = Sum::ZERO.pseudo4(address(12)?, address(16)?, header[9], covered);
            Some((start + length..start + whole, pseudo, field(header[9])?))
        }
        0x86dd => {
            let header: &[u8; 40] = frame.get(start..)?.first_chunk()?;
            let covered = number(start + 4)?;
            let address = |at| Some(Ipv6Addr::from(*frame.get(start + at..)?.first_chunk::<16>()?));
            let pseudo = Sum::ZERO.pseudo6(address(8)?, address(24)?, header[6], covered.into());
            let begin = start + 40;
            Some((begin..begin + usize::from(covered), pseudo, field(header[6])?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
