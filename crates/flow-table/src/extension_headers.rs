//! Walks the extension headers of an IPv6 packet (RFC 8200, 4).

use packet::protocol;

/// Extension headers that are walked. Each costs time, and real packets have fewer; the limit of Linux is 8 options a header
/// and no limit on headers, which attackers use against middleboxes (RFC 9098).
const MAX_HEADERS: usize = 12;

// Bits of the match field IPV6_EXTHDR (`enum ofp_ipv6exthdr_flags`).
const NO_NEXT: u16 = 1 << 0;
const ESP: u16 = 1 << 1;
const AUTHENTICATION: u16 = 1 << 2;
const DESTINATION: u16 = 1 << 3;
const FRAGMENT: u16 = 1 << 4;
pub(crate) const ROUTER: u16 = 1 << 5;
const HOP: u16 = 1 << 6;
const REPEATED: u16 = 1 << 7;
const OUT_OF_SEQUENCE: u16 = 1 << 8;

/// The fragment header.
#[derive(Clone, Copy)]
pub(crate) struct FragmentHeader {
    pub(crate) identification: u32,
    /// Whether the offset is not zero.
    pub(crate) is_later: bool,
}

/// What follows the extension headers.
pub(crate) struct UpperLayer<'a> {
    /// The first header that is not an extension header, or the one at which the walk stopped.
    pub(crate) protocol: u8,
    /// Where the extension header starts whose first byte names that header; `None` if the IPv6 header names it.
    pub(crate) named_at: Option<usize>,
    /// The bytes of that header; `None` if the walk stopped before it.
    pub(crate) payload: Option<&'a [u8]>,
    /// The bits of IPV6_EXTHDR.
    pub(crate) seen: u16,
    /// The fragment header, unless the packet is whole (RFC 6946).
    pub(crate) fragment: Option<FragmentHeader>,
}

/// Walks the headers that start with one of type `next`. `payload` ends where the packet ends.
pub(crate) fn walk(mut next: u8, mut payload: &[u8]) -> UpperLayer<'_> {
    let (mut seen, mut rank, mut fragment, mut destinations) = (0, 0, None, 0);
    let (whole, mut named_at) = (payload.len(), None);
    for _ in 0..MAX_HEADERS {
        // The bit, the rank in the recommended order (RFC 8200, 4.1), and the unit and surplus of the length.
        let (bit, own_rank, unit, surplus) = match next {
            protocol::HOP_BY_HOP => (HOP, 1, 8, 1),
            protocol::ROUTING => (ROUTER, 3, 8, 1),
            protocol::FRAGMENT => (FRAGMENT, 4, 0, 8),
            protocol::AH => (AUTHENTICATION, 5, 4, 2),
            protocol::ESP => (ESP, 6, 0, 0),
            // Destination options occur before the routing header, and last.
            protocol::DESTINATION if rank < 2 => (DESTINATION, 2, 8, 1),
            protocol::DESTINATION => (DESTINATION, 7, 8, 1),
            protocol::NO_NEXT => {
                return UpperLayer {
                    protocol: next,
                    named_at,
                    payload: None,
                    seen: seen | NO_NEXT,
                    fragment,
                };
            }
            _ => return UpperLayer { protocol: next, named_at, payload: Some(payload), seen, fragment },
        };
        destinations += u32::from(bit == DESTINATION);
        if seen & bit != 0 && (bit != DESTINATION || destinations > 2) {
            seen |= REPEATED;
        } else if own_rank < rank {
            seen |= OUT_OF_SEQUENCE;
        }
        rank = rank.max(own_rank);
        seen |= bit;
        let header = payload.first_chunk::<8>();
        let (Some(header), true) = (header, bit != ESP) else {
            break;
        };
        let here = Some(whole - payload.len());
        if bit == FRAGMENT {
            let place = u16::from_be_bytes([header[2], header[3]]);
            if place & !6 != 0 {
                let identification = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
                let is_later = place & !7 != 0;
                fragment = Some(FragmentHeader { identification, is_later });
                if is_later {
                    return UpperLayer { protocol: header[0], named_at: here, payload: None, seen, fragment };
                }
            }
        }
        let length = match unit {
            0 => surplus,
            unit => (usize::from(header[1]) + surplus) * unit,
        };
        let Some(rest) = payload.get(length..) else { break };
        (next, payload, named_at) = (header[0], rest, here);
    }
    UpperLayer { protocol: next, named_at, payload: None, seen, fragment }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits for a chain of headers of eight bytes each, before TCP.
    fn seen(chain: &[u8]) -> u16 {
        let mut bytes = Vec::new();
        for next in chain.iter().skip(1).chain([&6]) {
            bytes.extend([*next, 0, 0, 0, 0, 0, 0, 0]);
        }
        bytes.extend([0; 20]);
        walk(chain[0], &bytes).seen
    }

    /// OpenFlow 1.3.5, 7.2.3, IPV6_EXTHDR.
    #[test]
    fn headers_order_and_repetition_are_seen() {
        assert_eq!(seen(&[0]), HOP);
        assert_eq!(seen(&[0, 60, 43, 44, 60]), HOP | DESTINATION | ROUTER | FRAGMENT);
        assert_eq!(seen(&[43, 0]), HOP | ROUTER | OUT_OF_SEQUENCE);
        assert_eq!(seen(&[43, 43]), ROUTER | REPEATED);
        assert_eq!(seen(&[60, 43, 60, 60]), DESTINATION | ROUTER | REPEATED);
        assert_eq!(seen(&[59]), NO_NEXT);
        assert_eq!(seen(&[50]), ESP);
    }

    #[test]
    fn the_walk_ends() {
        let endless = [0; 4096];
        let found = walk(protocol::HOP_BY_HOP, &endless);
        assert!(found.payload.is_none() && found.protocol == protocol::HOP_BY_HOP);
        assert!(
            walk(protocol::ROUTING, &[6, 200, 0, 0, 0, 0, 0, 0]).payload.is_none(),
            "longer than the packet"
        );
    }
}
