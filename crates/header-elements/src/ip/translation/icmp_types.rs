//! What types, codes and parameters of ICMP and ICMPv6 messages correspond (RFC 7915, sections 4.2 and 5.2).

use packet::view::{icmp4, icmp6};

/// The smallest MTU of IPv6.
const LEAST_MTU: u32 = 1280;

/// MTUs of networks, for routers that do not state theirs (RFC 1191, section 7).
const PLATEAUS: [u16; 10] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296, 68];

/// Fields of the IPv4 header and of the IPv6 header that correspond: each range of offsets, and the offset in the other one.
const FIELDS4: [(u32, u32, u32); 7] =
    [(0, 0, 0), (1, 1, 1), (2, 3, 4), (8, 8, 7), (9, 9, 6), (12, 15, 8), (16, 19, 24)];
const FIELDS6: [(u32, u32, u32); 7] =
    [(0, 0, 0), (1, 1, 1), (4, 5, 2), (6, 6, 9), (7, 7, 8), (8, 23, 12), (24, 39, 16)];

/// Type, code, and the word behind the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) code: u8,
    pub(super) parameter: u32,
}

impl Message {
    /// The ICMPv6 message for this ICMP message, if there is one. `quoted`: the total length of the packet that an error quotes.
    pub(super) fn to6(self, quoted: u16) -> Option<Message> {
        let Message { kind, code, parameter } = self;
        let message = |kind, code, parameter| Some(Message { kind, code, parameter });
        match (kind, code) {
            (icmp4::kind::ECHO, _) => message(icmp6::kind::ECHO, code, parameter),
            (icmp4::kind::ECHO_REPLY, _) => message(icmp6::kind::ECHO_REPLY, code, parameter),
            (icmp4::kind::UNREACHABLE, 0 | 1 | 5..=8 | 11 | 12) => message(icmp6::kind::UNREACHABLE, 0, 0),
            // A wrong protocol is an unrecognised next header.
            (icmp4::kind::UNREACHABLE, 2) => message(icmp6::kind::PARAMETER_PROBLEM, 1, 6),
            (icmp4::kind::UNREACHABLE, 3) => message(icmp6::kind::UNREACHABLE, 4, 0),
            (icmp4::kind::UNREACHABLE, 4) => {
                let stated = match parameter as u16 {
                    0 => PLATEAUS.into_iter().find(|plateau| *plateau < quoted).unwrap_or(68),
                    stated => stated,
                };
                message(icmp6::kind::TOO_BIG, 0, (u32::from(stated) + 20).max(LEAST_MTU))
            }
            (icmp4::kind::UNREACHABLE, 9 | 10 | 13 | 15) => message(icmp6::kind::UNREACHABLE, 1, 0),
            (icmp4::kind::TIME_EXCEEDED, _) => message(icmp6::kind::TIME_EXCEEDED, code, 0),
            (icmp4::kind::PARAMETER_PROBLEM, 0 | 2) => {
                message(icmp6::kind::PARAMETER_PROBLEM, 0, corresponding(parameter >> 24, &FIELDS4)?)
            }
            _ => None,
        }
    }

    /// The ICMP message for this ICMPv6 message, if there is one.
    pub(super) fn to4(self) -> Option<Message> {
        let Message { kind, code, parameter } = self;
        let message = |kind, code, parameter| Some(Message { kind, code, parameter });
        match (kind, code) {
            (icmp6::kind::ECHO, _) => message(icmp4::kind::ECHO, code, parameter),
            (icmp6::kind::ECHO_REPLY, _) => message(icmp4::kind::ECHO_REPLY, code, parameter),
            (icmp6::kind::UNREACHABLE, 0 | 2 | 3) => message(icmp4::kind::UNREACHABLE, 1, 0),
            (icmp6::kind::UNREACHABLE, 1) => message(icmp4::kind::UNREACHABLE, 10, 0),
            (icmp6::kind::UNREACHABLE, 4) => message(icmp4::kind::UNREACHABLE, 3, 0),
            (icmp6::kind::TOO_BIG, _) => {
                message(icmp4::kind::UNREACHABLE, 4, parameter.saturating_sub(20).min(0xffff))
            }
            (icmp6::kind::TIME_EXCEEDED, _) => message(icmp4::kind::TIME_EXCEEDED, code, 0),
            (icmp6::kind::PARAMETER_PROBLEM, 0) => {
                message(icmp4::kind::PARAMETER_PROBLEM, 0, corresponding(parameter, &FIELDS6)? << 24)
            }
            (icmp6::kind::PARAMETER_PROBLEM, 1) => message(icmp4::kind::UNREACHABLE, 2, 0),
            _ => None,
        }
    }
}

fn corresponding(offset: u32, fields: &[(u32, u32, u32)]) -> Option<u32> {
    fields.iter().find(|(first, last, _)| (*first..=*last).contains(&offset)).map(|(.., other)| *other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn messages_correspond_as_specified() {
        let to6 = |kind, code, parameter| {
            let message = Message { kind, code, parameter }.to6(1500)?;
            Some((message.kind, message.code, message.parameter))
        };
        // The code of each "destination unreachable", in order.
        let codes = [0, 0, 1, 4, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1];
        for (code, expected) in (0..).zip(codes) {
            let expected = match code {
                2 => Some((4, 1, 6)),
                4 => Some((2, 0, 1512)),
                14 => None,
                _ => Some((1, expected, 0)),
            };
            // The next plateau below 1,500 is 1,492.
            assert_eq!(to6(3, code, 0), expected, "{code}");
        }
        assert_eq!((to6(3, 4, 1400), to6(3, 4, 600)), (Some((2, 0, 1420)), Some((2, 0, 1280))));
        assert_eq!((to6(8, 0, 9), to6(0, 0, 9)), (Some((128, 0, 9)), Some((129, 0, 9))));
        assert_eq!((to6(11, 1, 0), to6(12, 0, 9 << 24)), (Some((3, 1, 0)), Some((4, 0, 6))));
        let pointers: Vec<Option<u32>> =
            (0..21).map(|pointer| to6(12, 0, pointer << 24).map(|found| found.2)).collect();
        let [n, address, to] = [None, Some(8), Some(24)];
        let header = [Some(0), Some(1), Some(4), Some(4), n, n, n, n, Some(7), Some(6), n, n];
        assert_eq!(pointers, [&header[..], &[address; 4], &[to; 4], &[n]].concat());
        for (kind, code) in [(12, 1), (5, 0), (13, 0), (3, 16), (10, 0)] {
            assert_eq!(to6(kind, code, 0), None, "{kind} {code}");
        }
        let to4 = |kind, code, parameter| {
            let message = Message { kind, code, parameter }.to4()?;
            Some((message.kind, message.code, message.parameter))
        };
        assert_eq!((to4(128, 0, 9), to4(129, 0, 9)), (Some((8, 0, 9)), Some((0, 0, 9))));
        for (code, expected) in [(0, 1), (1, 10), (2, 1), (3, 1), (4, 3)] {
            assert_eq!(to4(1, code, 0), Some((3, expected, 0)));
        }
        assert_eq!((to4(2, 0, 1500), to4(2, 0, u32::MAX)), (Some((3, 4, 1480)), Some((3, 4, 0xffff))));
        assert_eq!((to4(3, 0, 0), to4(4, 1, 40)), (Some((11, 0, 0)), Some((3, 2, 0))));
        let pointers: Vec<Option<u32>> =
            (0..41).map(|pointer| to4(4, 0, pointer).map(|found| found.2 >> 24)).collect();
        let header = [Some(0), Some(1), n, n, Some(2), Some(2), Some(9), Some(8)];
        assert_eq!(pointers, [&header[..], &[Some(12); 16], &[Some(16); 16], &[n]].concat());
        for (kind, code) in [(1, 5), (1, 6), (4, 2), (130, 0), (135, 0), (137, 0)] {
            assert_eq!(to4(kind, code, 0), None, "{kind} {code}");
        }
    }
}
