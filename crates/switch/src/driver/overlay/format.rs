//! The headers between UDP and an inner frame: VXLAN (RFC 7348, section 5) and GENEVE (RFC 8926, section 3.4).

use reason::Reason;

/// Length in bytes of a UDP header.
pub(super) const UDP: usize = 8;
/// Length of the header that precedes a frame, without options.
pub(super) const HEADER: usize = 8;
/// Length of the longest header: GENEVE with all options.
pub(super) const MAX_HEADER: usize = HEADER + 63 * 4;
/// Length of an Ethernet header: the shortest frame.
pub(super) const ETHERNET: usize = 14;

/// VXLAN's flag I: there is a VNI.
const HAS_VNI: u8 = 0x08;
/// The protocol number of Ethernet frames in GENEVE (Transparent Ethernet Bridging).
const ETHERNET_FRAMES: [u8; 2] = [0x65, 0x58];
/// GENEVE's flag O: a control packet.
const IS_CONTROL: u8 = 0x80;
/// GENEVE's flag C, and the bit in the type of an option: the receiver must understand it.
const IS_CRITICAL: u8 = 0x40;
const IS_CRITICAL_OPTION: u8 = 0x80;

/// How frames are encapsulated in UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encapsulation {
    /// VXLAN, RFC 7348.
    Vxlan,
    /// GENEVE, RFC 8926.
    Geneve,
}

impl Encapsulation {
    /// The UDP port that IANA assigned.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Vxlan => 4789,
            Self::Geneve => 6081,
        }
    }

    /// The header that precedes a frame of this network: a VNI of 24 bits.
    pub(super) fn header(self, vni: u32) -> [u8; HEADER] {
        let [_, a, b, c] = vni.to_be_bytes();
        let [p, q] = ETHERNET_FRAMES;
        match self {
            Self::Vxlan => [HAS_VNI, 0, 0, 0, a, b, c, 0],
            Self::Geneve => [0, 0, p, q, a, b, c, 0],
        }
    }

    /// The offset of the frame in the payload of a UDP datagram, or why the datagram is dropped.
    pub(super) fn frame_offset(self, payload: &[u8], vni: u32) -> Result<usize, Reason> {
        let (header, rest) = payload.split_first_chunk::<HEADER>().ok_or(Reason::BAD_TUNNEL_HEADER)?;
        let [flags, more, p, q, a, b, c, _] = *header;
        if u32::from_be_bytes([0, a, b, c]) != vni {
            return Err(Reason::BAD_TUNNEL_HEADER);
        }
        let options = match self {
            // The reserved bits are ignored.
            Self::Vxlan if flags & HAS_VNI == 0 => return Err(Reason::BAD_TUNNEL_HEADER),
            Self::Vxlan => 0,
            // The version is 0.
            Self::Geneve if flags & 0xc0 != 0 => return Err(Reason::BAD_TUNNEL_HEADER),
            Self::Geneve if more & IS_CONTROL != 0 => return Err(Reason::TUNNEL_CONTROL),
            Self::Geneve if more & IS_CRITICAL != 0 => return Err(Reason::CRITICAL_OPTION),
            Self::Geneve if [p, q] != ETHERNET_FRAMES => return Err(Reason::BAD_TUNNEL_HEADER),
            Self::Geneve => {
                let length = usize::from(flags & 0x3f) * 4;
                check_options(rest.get(..length).ok_or(Reason::BAD_TUNNEL_HEADER)?)?;
                length
            }
        };
        if rest.len() < options + ETHERNET {
            return Err(Reason::BAD_TUNNEL_HEADER);
        }
        Ok(HEADER + options)
    }
}

/// Checks options, none of which is known: their lengths add up, and none is critical.
fn check_options(mut options: &[u8]) -> Result<(), Reason> {
    while let [_, _, kind, length, rest @ ..] = options {
        if kind & IS_CRITICAL_OPTION != 0 {
            return Err(Reason::CRITICAL_OPTION);
        }
        options = rest.get(usize::from(length & 0x1f) * 4..).ok_or(Reason::BAD_TUNNEL_HEADER)?;
    }
    if options.is_empty() { Ok(()) } else { Err(Reason::BAD_TUNNEL_HEADER) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The payload of a datagram: these bytes, and a frame without data.
    fn with_frame(header: &[u8]) -> Vec<u8> {
        [header, &[0; ETHERNET]].concat()
    }

    #[test]
    fn headers_are_those_of_the_standards() {
        // RFC 7348, section 5: flags R|R|R|R|I|R|R|R, 24 reserved bits, the VNI, 8 reserved bits.
        assert_eq!(Encapsulation::Vxlan.header(0x12_3456), [0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
        // RFC 8926, section 3.4: version 0, no options, O and C clear, protocol 0x6558, the VNI, 8 reserved bits.
        assert_eq!(Encapsulation::Geneve.header(0x12_3456), [0, 0, 0x65, 0x58, 0x12, 0x34, 0x56, 0]);
        for kind in [Encapsulation::Vxlan, Encapsulation::Geneve] {
            for vni in [0, 42, 0xff_ffff] {
                assert_eq!(kind.frame_offset(&with_frame(&kind.header(vni)), vni), Ok(HEADER));
            }
        }
        assert_eq!(
            [Encapsulation::Vxlan, Encapsulation::Geneve].map(Encapsulation::default_port),
            [4789, 6081]
        );
    }

    #[test]
    fn vxlan_headers_are_checked() {
        let cases: &[(&[u8], Result<usize, Reason>)] = &[
            (&[0x08, 0, 0, 0, 0, 0, 42, 0], Ok(8)),
            // Reserved bits are ignored.
            (&[0xff, 1, 2, 3, 0, 0, 42, 9], Ok(8)),
            (&[0xf7, 0, 0, 0, 0, 0, 42, 0], Err(Reason::BAD_TUNNEL_HEADER)),
            (&[0x08, 0, 0, 0, 0, 0, 43, 0], Err(Reason::BAD_TUNNEL_HEADER)),
            (&[0x08, 0, 0, 0, 1, 0, 42, 0], Err(Reason::BAD_TUNNEL_HEADER)),
        ];
        for (header, expected) in cases {
            assert_eq!(Encapsulation::Vxlan.frame_offset(&with_frame(header), 42), *expected, "{header:?}");
        }
        let whole = with_frame(cases[0].0);
        for length in 0..whole.len() {
            let result = Encapsulation::Vxlan.frame_offset(&whole[..length], 42);
            assert_eq!(result, Err(Reason::BAD_TUNNEL_HEADER), "{length}");
        }
    }

    #[test]
    fn geneve_headers_are_checked() {
        let bad = Err(Reason::BAD_TUNNEL_HEADER);
        let critical = Err(Reason::CRITICAL_OPTION);
        let cases: &[(&[u8], Result<usize, Reason>)] = &[
            (&[0, 0, 0x65, 0x58, 0, 0, 42, 0], Ok(8)),
            // Reserved bits are ignored.
            (&[0, 0x3f, 0x65, 0x58, 0, 0, 42, 9], Ok(8)),
            // Versions 1 to 3.
            (&[0x40, 0, 0x65, 0x58, 0, 0, 42, 0], bad),
            (&[0xc0, 0, 0x65, 0x58, 0, 0, 42, 0], bad),
            (&[0, 0x80, 0x65, 0x58, 0, 0, 42, 0], Err(Reason::TUNNEL_CONTROL)),
            (&[0, 0x40, 0x65, 0x58, 0, 0, 42, 0], critical),
            // IPv4 without Ethernet.
            (&[0, 0, 0x08, 0, 0, 0, 42, 0], bad),
            (&[0, 0, 0x65, 0x58, 0, 0, 41, 0], bad),
            // An option without data, and one with four bytes.
            (&[1, 0, 0x65, 0x58, 0, 0, 42, 0, 1, 2, 0x7f, 0], Ok(12)),
            (&[2, 0, 0x65, 0x58, 0, 0, 42, 0, 1, 2, 3, 1, 9, 9, 9, 9], Ok(16)),
            (&[2, 0, 0x65, 0x58, 0, 0, 42, 0, 1, 2, 3, 0, 1, 2, 4, 0xe0], Ok(16)),
            // A critical option, although the header does not say so.
            (&[1, 0, 0x65, 0x58, 0, 0, 42, 0, 1, 2, 0x80, 0], critical),
            // An option that is longer than all options.
            (&[1, 0, 0x65, 0x58, 0, 0, 42, 0, 1, 2, 3, 1], bad),
        ];
        for (header, expected) in cases {
            assert_eq!(Encapsulation::Geneve.frame_offset(&with_frame(header), 42), *expected, "{header:?}");
        }
        // The options are longer than the datagram.
        assert_eq!(
            Encapsulation::Geneve.frame_offset(&with_frame(&[63, 0, 0x65, 0x58, 0, 0, 42, 0]), 42),
            bad
        );
        let mut longest = vec![63, 0, 0x65, 0x58, 0, 0, 42, 0];
        longest.extend([1, 2, 3, 0x1f].into_iter().chain([0; 124]));
        longest.extend([1, 2, 3, 0x1e].into_iter().chain([0; 120]));
        assert_eq!(Encapsulation::Geneve.frame_offset(&with_frame(&longest), 42), Ok(MAX_HEADER));
    }
}
