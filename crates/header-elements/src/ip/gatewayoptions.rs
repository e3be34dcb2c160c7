//! Processing of IPv4 options by a router (RFC 791, RFC 1812, 5.2.4).

use core::net::Ipv4Addr;

use packet::Timestamp;
use packet::view::ip4::{OPTION_END, OPTION_NOP, OPTION_RECORD_ROUTE, OPTION_TIMESTAMP};

/// The addresses and time that a router records in options.
pub(crate) struct Router<'a> {
    /// Its address on the outgoing interface.
    pub(crate) address: Ipv4Addr,
    /// Its other addresses.
    pub(crate) others: &'a [Ipv4Addr],
    /// The time of day to record.
    pub(crate) now: Timestamp,
}

/// Whether a header has options for a router.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouterOptions {
    /// No, and all options are well-formed.
    Absent,
    /// Yes: the header must be modified.
    Present,
    /// The byte at this offset of the header is invalid, and precedes all options for a router.
    Malformed(u8),
}

/// An option: its offset in the header, kind and length.
struct IpOption {
    at: usize,
    kind: u8,
    length: usize,
}

/// The option at `at`; `Ok(None)` at the end, or the offset of an invalid byte as the error.
fn next_option(header: &[u8], mut at: usize) -> Result<Option<IpOption>, u8> {
    loop {
        match header.get(at) {
            None | Some(&OPTION_END) => return Ok(None),
            Some(&OPTION_NOP) => at += 1,
            Some(&kind) => {
                let length = header.get(at + 1).copied().map_or(0, usize::from);
                if length < 2 || at + length > header.len() {
                    return Err((at + 1) as u8);
                }
                return Ok(Some(IpOption { at, kind, length }));
            }
        }
    }
}

/// Examines the options of a header, which must be given up to the end of its options.
pub(crate) fn find_router_options(header: &[u8]) -> RouterOptions {
    let mut at = 20;
    loop {
        match next_option(header, at) {
            Ok(None) => return RouterOptions::Absent,
            Ok(Some(IpOption { kind: OPTION_RECORD_ROUTE | OPTION_TIMESTAMP, .. })) => {
                return RouterOptions::Present;
            }
            Ok(Some(option)) => at = option.at + option.length,
            Err(at) => return RouterOptions::Malformed(at),
        }
    }
}

impl Router<'_> {
    /// Records route and time in the options of the header at the start of `bytes`, whose length is `length`. Returns
    /// whether it modified the header, or the offset of an invalid byte as the error.
    pub(crate) fn process(&self, bytes: &mut [u8], length: usize) -> Result<bool, u8> {
        let mut done = false;
        let mut at = 20;
        let length = length.min(bytes.len());
        while let Some(option) = next_option(&bytes[..length], at)? {
            // If an option is too short for a pointer or flag byte, the byte after the option is used, as its length
            // claims.
            let Some(rest) = bytes.get_mut(option.at..) else { break };
            let fault = match option.kind {
                OPTION_RECORD_ROUTE => self.record_route(rest, option.length).err(),
                OPTION_TIMESTAMP => self.record_time(rest, option.length).err(),
                _ => {
                    at = option.at + option.length;
                    continue;
                }
            };
            if let Some(offset) = fault {
                return Err((option.at + offset) as u8);
            }
            done = true;
            at = option.at + option.length;
        }
        Ok(done)
    }

    fn record_route(&self, option: &mut [u8], length: usize) -> Result<(), usize> {
        let pointer = option.get(2).copied().unwrap_or(0);
        let at = usize::from(pointer).wrapping_sub(1);
        if at >= 3 && at.saturating_add(4) <= length {
            put(option, at, self.address.octets());
            put(option, 2, [pointer.wrapping_add(4)]);
        } else if at != length {
            return Err(2);
        }
        Ok(())
    }

    fn record_time(&self, option: &mut [u8], length: usize) -> Result<(), usize> {
        let pointer = option.get(2).copied().unwrap_or(0);
        let flags = option.get(3).copied().unwrap_or(0);
        let at = usize::from(pointer).saturating_sub(1);
        if at < 4 {
            return Err(2);
        }
        let milliseconds = self.time_of_day().to_be_bytes();
        match flags & 0xf {
            0 if at + 4 <= length => {
                put(option, at, milliseconds);
                put(option, 2, [pointer.wrapping_add(4)]);
            }
            1 if at + 8 <= length => {
                put(option, at, self.address.octets());
                put(option, at + 4, milliseconds);
                put(option, 2, [pointer.wrapping_add(8)]);
            }
            // No room: the router increments the overflow nibble, unless it is at its maximum.
            0 | 1 if flags < 0xf0 => put(option, 3, [flags + 0x10]),
            3 if at + 8 <= length => {
                let address =
                    option.get(at..).and_then(|rest| rest.first_chunk::<4>()).map(|a| Ipv4Addr::from(*a));
                if address.is_some_and(|a| a == self.address || self.others.contains(&a)) {
                    put(option, at + 4, milliseconds);
                    put(option, 2, [pointer.wrapping_add(8)]);
                }
            }
            _ => return Err(3),
        }
        Ok(())
    }

    /// Milliseconds since midnight UTC.
    fn time_of_day(&self) -> u32 {
        let milliseconds = self.now.millis();
        milliseconds.rem_euclid(86_400_000) as u32
    }
}

fn put<const LENGTH: usize>(bytes: &mut [u8], at: usize, value: [u8; LENGTH]) {
    if let Some(bytes) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *bytes = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const ROUTER: Router = Router {
        address: Ipv4Addr::new(9, 9, 9, 9),
        others: &[Ipv4Addr::new(8, 8, 8, 8)],
        now: Timestamp::from_parts(86_401, 7_000_000),
    };

    #[track_caller]
    fn check(options: &[u8], result: Result<bool, u8>, after: &[u8]) {
        let mut bytes = vec![0; 20];
        bytes.extend(options);
        let length = bytes.len();
        assert_eq!(ROUTER.process(&mut bytes, length), result);
        assert_eq!(bytes[20..], *after);
    }

    #[test]
    fn routes_are_recorded() {
        check(&[1, 7, 7, 4, 0, 0, 0, 0], Ok(true), &[1, 7, 7, 8, 9, 9, 9, 9]);
        check(&[7, 7, 8, 1, 2, 3, 4, 0], Ok(true), &[7, 7, 8, 1, 2, 3, 4, 0]);
        check(&[7, 7, 6, 1, 2, 3, 4, 0], Err(22), &[7, 7, 6, 1, 2, 3, 4, 0]);
        check(&[7, 7, 0, 1, 2, 3, 4, 0], Err(22), &[7, 7, 0, 1, 2, 3, 4, 0]);
        check(&[7, 9, 4, 0, 0, 0, 0, 0], Err(21), &[7, 9, 4, 0, 0, 0, 0, 0]);
        check(&[148, 4, 0, 0], Ok(false), &[148, 4, 0, 0]);
        check(&[1, 1, 1, 7], Err(24), &[1, 1, 1, 7]);
    }

    #[test]
    fn times_are_recorded() {
        check(&[68, 8, 5, 0, 0, 0, 0, 0], Ok(true), &[68, 8, 9, 0, 0, 0, 3, 0xef]);
        check(&[68, 8, 9, 0, 1, 2, 3, 4], Ok(true), &[68, 8, 9, 0x10, 1, 2, 3, 4]);
        check(&[68, 8, 9, 0xf0, 1, 2, 3, 4], Err(23), &[68, 8, 9, 0xf0, 1, 2, 3, 4]);
        check(&[68, 8, 4, 0, 1, 2, 3, 4], Err(22), &[68, 8, 4, 0, 1, 2, 3, 4]);
        check(&[68, 8, 5, 2, 1, 2, 3, 4], Err(23), &[68, 8, 5, 2, 1, 2, 3, 4]);
        check(&[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0], Ok(true), &[68, 12, 13, 1, 9, 9, 9, 9, 0, 0, 3, 0xef]);
        check(&[68, 12, 5, 3, 8, 8, 8, 8, 0, 0, 0, 0], Ok(true), &[68, 12, 13, 3, 8, 8, 8, 8, 0, 0, 3, 0xef]);
        check(&[68, 12, 5, 3, 7, 8, 8, 8, 0, 0, 0, 0], Ok(true), &[68, 12, 5, 3, 7, 8, 8, 8, 0, 0, 0, 0]);
    }

    /// For any options, the header before them and their length stay, and `find_router_options` and `process` agree.
    #[test]
    fn any_options_are_processed_safely() {
        let mut random = random::Random::new(5);
        for _ in 0..20_000 {
            let length = 20 + random.below(41) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            for at in (20..length).step_by(5) {
                bytes[at] = [0, 1, 7, 68, 131][random.below(5) as usize];
            }
            let before = bytes.clone();
            let (options, result) = (find_router_options(&bytes), ROUTER.process(&mut bytes, length));
            assert_eq!((bytes.len(), &bytes[..20]), (length, &before[..20]), "{before:?}");
            match options {
                RouterOptions::Absent => assert_eq!((result, &bytes), (Ok(false), &before)),
                RouterOptions::Malformed(at) => assert_eq!((result, &bytes), (Err(at), &before)),
                RouterOptions::Present => {
                    assert!(matches!(result, Ok(true) | Err(20..)), "{before:?}: {result:?}")
                }
            }
        }
    }
}
