//! The Internet checksum (RFC 1071, with updates by RFC 1624) and the 32-bit CRC of Click's CRC elements.
//!
//! Checksums are numbers in host byte order: the value 0x1234 is sent as the bytes 12 34.

use core::net::{Ipv4Addr, Ipv6Addr};

/// A one's complement sum under construction.
///
/// Pieces are added in any order. Each piece except the last must have an even length, because an odd length is padded
/// with a zero byte.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Sum(u64);

/// The effect of some header changes on a checksum that covers them: computed once, applied to many packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Delta(u32);

impl Sum {
    /// The sum of no data.
    pub const ZERO: Sum = Sum(0);

    /// Adds bytes; an odd length is padded with a zero byte.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        // The sum is kept in native byte order and swapped once at the end (RFC 1071, 2.B). Four independent
        // accumulators let the compiler vectorise the loop.
        let mut sums = [0u64; 4];
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            let (words, _) = block.as_chunks::<4>();
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum += u64::from(u32::from_ne_bytes(*word));
            }
        }
        let mut sum = sums[0] + sums[1] + sums[2] + sums[3];
        let (words, rest) = rest.as_chunks::<2>();
        for word in words {
            sum += u64::from(u16::from_ne_bytes(*word));
        }
        if let [last] = rest {
            sum += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        self.add(sum)
    }

    /// Adds whole 32-bit words. Faster than `bytes` where the compiler knows their number.
    #[inline]
    pub fn words32(self, words: &[[u8; 4]]) -> Sum {
        // A sum of 64-bit words is as good, and takes half as many additions.
        let (pairs, rest) = words.as_flattened().as_chunks();
        let sum = pairs.iter().fold(self, |sum, pair| sum.add(u64::from_ne_bytes(*pair)));
        let (last, _) = rest.as_chunks();
        last.iter().fold(sum, |sum, word| sum.add(u64::from(u32::from_ne_bytes(*word))))
    }

    /// Adds a 16-bit field.
    #[inline]
    pub fn word(self, word: u16) -> Sum {
        self.add(u64::from(word.to_be()))
    }

    /// Adds an IPv4 pseudo header: addresses, protocol, length of the transport header and data.
    #[inline]
    pub fn pseudo4(self, source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u16) -> Sum {
        let addresses = u64::from(source.to_bits().to_be()) + u64::from(destination.to_bits().to_be());
        self.add(addresses).word(u16::from(protocol)).word(length)
    }

    /// Adds an IPv6 pseudo header (RFC 8200, 8.1).
    #[inline]
    pub fn pseudo6(self, source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: u32) -> Sum {
        self.bytes(&source.octets())
            .bytes(&destination.octets())
            .word(u16::from(protocol))
            .add(u64::from(length.to_be()))
    }

    /// The sum folded to 16 bits, not complemented: 0xffff over data whose checksum is correct.
    #[inline]
    pub fn fold(self) -> u16 {
        let (sum, carry) = (self.0 as u32).overflowing_add((self.0 >> 32) as u32);
        u16::from_be(fold32(sum + u32::from(carry)))
    }

    /// The checksum: the complement of the sum. 0 over data that includes its correct checksum.
    #[inline]
    pub fn finish(self) -> u16 {
        !self.fold()
    }

    /// Adds with end-around carry, so that no amount of data overflows.
    #[inline]
    fn add(self, value: u64) -> Sum {
        let (sum, carry) = self.0.overflowing_add(value);
        Sum(sum + u64::from(carry))
    }
}

impl Delta {
    /// No change.
    pub const NONE: Delta = Delta(0);

    /// Adds a change of a 16-bit field.
    #[inline]
    pub fn word(self, old: u16, new: u16) -> Delta {
        Delta(fold32(self.0 + u32::from(!old) + u32::from(new)).into())
    }

    /// Adds a change of an aligned 32-bit field.
    #[inline]
    pub fn word32(self, old: u32, new: u32) -> Delta {
        self.word((old >> 16) as u16, (new >> 16) as u16).word(old as u16, new as u16)
    }

    /// The reverse change.
    #[inline]
    pub fn reverse(self) -> Delta {
        Delta(if self.0 == 0 { 0 } else { !self.0 & 0xffff })
    }

    /// The change, or `NONE` if it leaves every checksum unchanged.
    #[inline]
    pub fn normalised(self) -> Delta {
        if self.0 == 0xffff { Delta::NONE } else { self }
    }

    /// The checksum after the change. Never 0xffff, except where the change is `NONE`.
    #[inline]
    pub fn apply(self, checksum: u16) -> u16 {
        !fold32(u32::from(!checksum) + self.0)
    }
}

/// The Internet checksum of some bytes; 0 over data that includes its correct checksum.
#[inline]
pub fn internet(bytes: &[u8]) -> u16 {
    Sum::ZERO.bytes(bytes).finish()
}

/// The checksum after a change to a 16-bit field that it covers (RFC 1624, equation 3).
///
/// It never returns 0xffff, which is correct unless all the data is zero (see [`correct_zero`]).
#[inline]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold32(u32::from(!checksum) + u32::from(!old) + u32::from(new))
}

/// Like [`update`], for a 32-bit field at an even offset.
#[inline]
pub fn update_word32(checksum: u16, old: u32, new: u32) -> u16 {
    let checksum = update(checksum, (old >> 16) as u16, (new >> 16) as u16);
    update(checksum, old as u16, new as u16)
}

/// Corrects a checksum that an update set to zero: over data that is all zero, the checksum is 0xffff.
#[inline]
pub fn correct_zero(checksum: u16, data: &[u8]) -> u16 {
    if checksum == 0 && data.iter().all(|byte| *byte == 0) { 0xffff } else { checksum }
}

/// Continues a CRC-32 (polynomial 0x04c11db7, most significant bit first, not inverted at the end) over some bytes.
///
/// Click's `SetCRC32` starts at 0xffffffff and appends the result with its lowest byte first.
pub fn crc32(start: u32, bytes: &[u8]) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<8>();
    let mut crc = start;
    for block in blocks {
        let [a, b, c, d, e, f, g, h] = *block;
        let head = crc ^ u32::from_be_bytes([a, b, c, d]);
        crc = CRC[7][(head >> 24) as usize]
            ^ CRC[6][(head >> 16 & 0xff) as usize]
            ^ CRC[5][(head >> 8 & 0xff) as usize]
            ^ CRC[4][(head & 0xff) as usize]
            ^ CRC[3][usize::from(e)]
            ^ CRC[2][usize::from(f)]
            ^ CRC[1][usize::from(g)]
            ^ CRC[0][usize::from(h)];
    }
    for byte in rest {
        crc = crc << 8 ^ CRC[0][((crc >> 24) as u8 ^ byte) as usize];
    }
    crc
}

/// The CRC of each byte followed by 0 to 7 zero bytes, so that one step processes eight bytes.
static CRC: [[u32; 256]; 8] = crc_tables();

const fn crc_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc >> 31 != 0 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before << 8 ^ tables[0][(before >> 24) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Adds both halves with end-around carry: adds the sum rotated by half its width, and takes the upper half.
#[inline]
fn fold32(sum: u32) -> u16 {
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// RFC 1071's definition, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn agrees_with_the_definition() {
        let bytes: Vec<u8> = (0..2000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in (0..200).chain(1400..1520).chain([2000]) {
            assert_eq!(internet(&bytes[..length]), plain(&bytes[..length]), "{length}");
        }
        for length in [0, 4, 8, 20, 2000] {
            let bytes = &bytes[..length];
            assert_eq!(Sum::ZERO.words32(bytes.as_chunks().0).finish(), plain(bytes), "{length}");
        }
        assert_eq!(Sum::ZERO.words32(&[[0xff; 4]; 5]).finish(), 0);
        assert_eq!(internet(&[]), 0xffff);
        assert_eq!(internet(&[0xff; 1000]), 0);
        assert_eq!(Sum(u64::MAX).finish(), 0);
    }

    #[test]
    fn pseudo_headers() {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(255, 254, 253, 252));
        let written = [10, 0, 0, 1, 255, 254, 253, 252, 0, 17, 0x12, 0x34];
        assert_eq!(Sum::ZERO.pseudo4(source, destination, 17, 0x1234).finish(), plain(&written));
        let (source, destination): (Ipv6Addr, Ipv6Addr) =
            (Ipv6Addr::LOCALHOST, "2001:db8::ff".parse().unwrap());
        let mut written = Vec::new();
        written.extend(source.octets());
        written.extend(destination.octets());
        written.extend([0, 1, 2, 3, 0, 0, 0, 58]);
        assert_eq!(Sum::ZERO.pseudo6(source, destination, 58, 0x0001_0203).finish(), plain(&written));
    }

    #[test]
    fn updates_equal_recomputing() {
        let mut bytes: Vec<u8> = (0..40u8).map(|i| i.wrapping_mul(37) + 5).collect();
        let before = internet(&bytes);
        let mut delta = Delta::NONE;
        let mut updated = before;
        for (at, new) in [(4usize, 0x1234u16), (10, 0xffff), (12, 0), (4, 0xabcd)] {
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            updated = update(updated, old, new);
            delta = delta.word(old, new);
        }
        assert_eq!(updated, internet(&bytes));
        assert_eq!(delta.apply(before), internet(&bytes));
        assert_eq!(delta.reverse().apply(updated), before);
        assert_eq!(Delta::NONE.apply(0xffff), 0xffff);
        assert_eq!(Delta::NONE.reverse(), Delta::NONE);
        assert_eq!(Delta::NONE.word32(7, 7).normalised(), Delta::NONE);
        assert_eq!(
            Delta::NONE.word32(0x0102_0304, 0xfffe_0001).apply(before),
            update_word32(before, 0x0102_0304, 0xfffe_0001)
        );
        assert_eq!(correct_zero(0, &[0; 4]), 0xffff);
        assert_eq!(correct_zero(0, &[0, 1]), 0);
    }

    #[test]
    fn crc_of_known_bytes() {
        // CRC-32/MPEG-2 of "123456789".
        assert_eq!(crc32(0xffff_ffff, b"123456789"), 0x0376_e6e7);
        let bytes: Vec<u8> = (0..100).collect();
        for split in 0..100 {
            assert_eq!(crc32(crc32(7, &bytes[..split]), &bytes[split..]), crc32(7, &bytes));
        }
        assert_eq!(crc32(5, &[]), 5);
    }
}
