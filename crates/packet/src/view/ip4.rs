//! IPv4 headers (RFC 791, RFC 2474 and RFC 3168 for the type-of-service byte).

use super::protocol;
use crate::checksum::Sum;
use core::fmt;
use core::net::Ipv4Addr;

/// The reserved bit of the fragment field.
pub const RESERVED_FLAG: u16 = 0x8000;
/// The bit that forbids fragmentation.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// The bit that is set on all fragments but the last.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// The bits of the fragment offset, in units of 8 bytes.
pub const OFFSET_BITS: u16 = 0x1fff;

/// End of options.
pub const OPTION_END: u8 = 0;
/// One byte of padding.
pub const OPTION_NOP: u8 = 1;
/// Record route.
pub const OPTION_RECORD_ROUTE: u8 = 7;
/// Time stamp.
pub const OPTION_TIMESTAMP: u8 = 68;
/// Security.
pub const OPTION_SECURITY: u8 = 130;
/// Loose source route.
pub const OPTION_LOOSE_ROUTE: u8 = 131;
/// Stream identifier.
pub const OPTION_STREAM: u8 = 136;
/// Strict source route.
pub const OPTION_STRICT_ROUTE: u8 = 137;
/// Router alert.
pub const OPTION_ROUTER_ALERT: u8 = 148;

/// The first byte of a header without options: version 4, five words.
const PLAIN: u8 = 0x45;

/// An error in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// Fewer bytes than a header.
    TooShort,
    /// The version is not 4.
    Version,
    /// The header length is below 20.
    HeaderLength,
    /// The total length is below the header length or exceeds the available bytes.
    TotalLength,
    /// The header checksum is wrong.
    Checksum,
}

header! {
    /// An IPv4 header and what follows it.
    20 bytes;
    /// Version and header length together.
    version_length, set_version_length: u8 = 0;
    /// The type-of-service byte: DSCP and ECN together.
    tos, set_tos: u8 = 1;
    /// The length of header and payload that the header claims, in bytes.
    total_length, set_total_length: u16 = 2;
    /// The identification, equal in all fragments of a packet.
    identification, set_identification: u16 = 4;
    /// Flags and fragment offset together.
    fragment, set_fragment: u16 = 6;
    /// The time to live: remaining hops.
    ttl, set_ttl: u8 = 8;
    /// The protocol of the payload.
    protocol, set_protocol: u8 = 9;
    /// The header checksum.
    checksum, set_checksum: u16 = 10;
    /// The sender's address.
    source, set_source: Ipv4Addr = 12;
    /// The receiver's address.
    destination, set_destination: Ipv4Addr = 16;
}

impl<'a> View<'a> {
    /// Parses a header and checks it as `CheckIPHeader` does. Bytes beyond the total length are excluded from the
    /// payload.
    #[inline]
    pub fn check(bytes: &'a [u8], checksum: bool) -> Result<View<'a>, HeaderError> {
        let view = View::new(bytes).ok_or(HeaderError::TooShort)?;
        let total = usize::from(view.total_length());
        if view.version() != 4 {
            Err(HeaderError::Version)
        } else if view.header_length() < LENGTH {
            Err(HeaderError::HeaderLength)
        } else if total > bytes.len() || total < view.header_length() {
            Err(HeaderError::TotalLength)
        } else if checksum && !view.checksum_is_right() {
            Err(HeaderError::Checksum)
        } else {
            Ok(view)
        }
    }

    /// The destination and total length of a valid header without options: the fast path for nearly all packets. `None`
    /// does not mean that the header is invalid; `check` decides that.
    #[inline(always)]
    pub fn check_plain(bytes: &[u8], checksum: bool) -> Option<(Ipv4Addr, usize)> {
        let header: &[u8; LENGTH] = bytes.first_chunk()?;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let (words, _) = header.as_chunks();
        let is_plain = header[0] == PLAIN
            && (LENGTH..=bytes.len()).contains(&total)
            && (!checksum || Sum::ZERO.words32(words).finish() == 0);
        is_plain.then(|| (Ipv4Addr::new(header[16], header[17], header[18], header[19]), total))
    }

    /// The version, 4 in a sound header.
    #[inline]
    pub fn version(&self) -> u8 {
        self.fixed[0] >> 4
    }

    /// The header length that the header claims, 0 to 60 bytes.
    #[inline]
    pub fn header_length(&self) -> usize {
        usize::from(self.fixed[0] & 0xf) * 4
    }

    /// The differentiated services code point, 0 to 63.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.tos() >> 2
    }

    /// The congestion notification bits, 0 to 3.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.tos() & 3
    }

    /// Whether fragmentation is forbidden.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.fragment() & DONT_FRAGMENT != 0
    }

    /// Whether further fragments follow.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.fragment() & MORE_FRAGMENTS != 0
    }

    /// Offset of this fragment's payload in the whole packet, in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.fragment() & OFFSET_BITS) * 8
    }

    /// Whether the packet is a fragment.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.fragment() & (MORE_FRAGMENTS | OFFSET_BITS) != 0
    }

    /// Whether this packet contains the start of the transport header.
    #[inline]
    pub fn is_first_fragment(&self) -> bool {
        self.fragment() & OFFSET_BITS == 0
    }

    /// The checksum that the header should have.
    #[inline]
    pub fn computed_checksum(&self) -> u16 {
        let (before, after) = (&self.fixed[..10], &self.fixed[12..]);
        Sum::ZERO.bytes(before).bytes(after).bytes(self.options()).finish()
    }

    /// Whether the checksum is correct over the available part of the header.
    #[inline]
    pub fn checksum_is_right(&self) -> bool {
        let (words, _) = self.fixed.as_chunks();
        let sum = Sum::ZERO.words32(words);
        let sum = if self.header_length() > LENGTH { self.add_options(sum) } else { sum };
        sum.finish() == 0
    }

    /// Adds the options to a checksum. Out of line, because few packets have options.
    #[cold]
    #[inline(never)]
    fn add_options(self, sum: Sum) -> Sum {
        sum.bytes(self.options())
    }

    /// The options that are present, including padding.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        let length = self.header_length().saturating_sub(LENGTH).min(self.rest.len());
        &self.rest[..length]
    }

    /// Iterates over the options, up to the end or the first malformed one.
    #[inline]
    pub fn options_iter(&self) -> Options<'a> {
        Options { bytes: self.options() }
    }

    /// The payload, cut to the total length where that is valid, and to the available bytes.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let options = self.options().len();
        let end = usize::from(self.total_length()).saturating_sub(LENGTH).clamp(options, self.rest.len());
        &self.rest[options..end]
    }

    /// The last destination of a source route if there is one, else the destination: the address in the pseudo header
    /// of a transport checksum (RFC 1122, 4.1.3.4).
    pub fn final_destination(&self) -> Ipv4Addr {
        self.options_iter()
            .filter(|o| matches!(o.kind, OPTION_LOOSE_ROUTE | OPTION_STRICT_ROUTE) && o.data.len() >= 5)
            .find_map(|o| o.data.last_chunk::<4>())
            .map_or_else(|| self.destination(), |last| Ipv4Addr::from(*last))
    }

    /// The sum of the pseudo header, for a transport checksum over `length` bytes.
    #[inline]
    pub fn pseudo_header(&self, length: u16) -> Sum {
        let destination =
            if self.header_length() > LENGTH { self.final_destination() } else { self.destination() };
        Sum::ZERO.pseudo4(self.source(), destination, self.protocol(), length)
    }
}

impl ViewMut<'_> {
    /// Sets version 4 and the header length in bytes, a multiple of four up to 60.
    #[inline]
    pub fn set_header_length(&mut self, length: usize) {
        self.set_version_length(0x40 | (length / 4).min(15) as u8);
    }

    /// Sets the differentiated services code point; only the low 6 bits are used. The checksum is not updated.
    #[inline]
    pub fn set_dscp(&mut self, value: u8) {
        self.set_tos(self.view().tos() & 3 | value << 2);
    }

    /// Sets the congestion notification bits; only the low 2 bits are used. The checksum is not updated.
    #[inline]
    pub fn set_ecn(&mut self, value: u8) {
        self.set_tos(self.view().tos() & !3 | value & 3);
    }

    /// Computes and stores the checksum.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.set_checksum(self.view().computed_checksum());
    }

    /// Decrements the TTL and updates the checksum. A TTL of zero stays zero.
    #[inline]
    pub fn decrement_ttl(&mut self) {
        let Some(ttl) = self.fixed[8].checked_sub(1) else { return };
        // Equals `checksum::update` for a decrement of a word's upper byte. One's complement sums don't depend on the byte
        // order (RFC 1071, 2.B), so the upper byte is taken as the lower one: then nothing is swapped.
        let sum = u16::from_le_bytes([self.fixed[10], self.fixed[11]]);
        let sum = sum.wrapping_add(if sum >= 0xfffe { 2 } else { 1 });
        [self.fixed[10], self.fixed[11]] = sum.to_le_bytes();
        self.fixed[8] = ttl;
    }

    /// The options that are present, including padding.
    #[inline]
    pub fn options_mut(&mut self) -> &mut [u8] {
        let length = self.view().options().len();
        &mut self.rest[..length]
    }
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderOption<'a> {
    /// The kind, as a whole byte: copied flag, class and number.
    pub kind: u8,
    /// The bytes after kind and length.
    pub data: &'a [u8],
}

/// Iterates over the options of a header. Padding is skipped.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = HeaderOption<'a>;

    fn next(&mut self) -> Option<HeaderOption<'a>> {
        loop {
            match *self.bytes {
                [OPTION_NOP, ref rest @ ..] => self.bytes = rest,
                [kind, length, ..] if kind != OPTION_END => {
                    let data = self.bytes.get(2..usize::from(length))?;
                    self.bytes = &self.bytes[usize::from(length)..];
                    return Some(HeaderOption { kind, data });
                }
                _ => return None,
            }
        }
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} ", self.source(), self.destination())?;
        match self.protocol() {
            protocol::ICMP => f.write_str("icmp")?,
            protocol::TCP => f.write_str("tcp")?,
            protocol::UDP => f.write_str("udp")?,
            other => write!(f, "protocol {other}")?,
        }
        write!(f, " ttl {} length {}", self.ttl(), self.total_length())
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeaderError::TooShort => "shorter than an IP header",
            HeaderError::Version => "bad IP version",
            HeaderError::HeaderLength => "bad IP header length",
            HeaderError::TotalLength => "bad IP length",
            HeaderError::Checksum => "bad IP checksum",
        })
    }
}

impl core::error::Error for HeaderError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn packet() -> [u8; 28] {
        let mut bytes = [0; 28];
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_header_length(20);
        view.set_total_length(26);
        view.set_ttl(64);
        view.set_protocol(protocol::UDP);
        view.set_source(Ipv4Addr::new(10, 0, 0, 1));
        view.set_destination(Ipv4Addr::new(10, 0, 0, 2));
        view.fill_checksum();
        bytes
    }

    #[test]
    fn reads_and_writes() {
        let mut bytes = packet();
        let view = View::check(&bytes, true).unwrap();
        assert_eq!(view.to_string(), "10.0.0.1 > 10.0.0.2 udp ttl 64 length 26");
        assert_eq!((view.payload().len(), view.options().len()), (6, 0));
        assert_eq!(view.computed_checksum(), view.checksum());
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.decrement_ttl();
        assert!(view.view().checksum_is_right());
        view.set_dscp(46);
        view.set_ecn(3);
        view.set_fragment(MORE_FRAGMENTS | 3);
        let view = View::new(&bytes).unwrap();
        assert_eq!((view.ttl(), view.tos(), view.dscp(), view.ecn()), (63, 0xbb, 46, 3));
        assert!(
            view.is_fragment() && !view.is_first_fragment() && view.more_fragments() && !view.dont_fragment()
        );
        assert_eq!(view.fragment_offset(), 24);
    }

    #[test]
    fn faults() {
        let check = |at: usize, value: u8| {
            let mut bytes = packet();
            bytes[at] = value;
            View::check(&bytes, true).map(|_| ())
        };
        assert_eq!(View::check(&packet()[..19], true).map(|_| ()), Err(HeaderError::TooShort));
        assert_eq!(check(0, 0x65), Err(HeaderError::Version));
        assert_eq!(check(0, 0x44), Err(HeaderError::HeaderLength));
        assert_eq!(check(0, 0x48), Err(HeaderError::TotalLength));
        assert_eq!(check(3, 19), Err(HeaderError::TotalLength));
        assert_eq!(check(3, 29), Err(HeaderError::TotalLength));
        assert_eq!(check(8, 1), Err(HeaderError::Checksum));
    }

    #[test]
    fn options_stop_at_the_end_or_a_fault() {
        let list = |options: &[u8]| {
            let mut bytes = packet().to_vec();
            bytes.splice(20.., options.iter().copied());
            bytes[0] = 0x4f;
            let view = View::new(&bytes).unwrap();
            (
                view.options_iter().map(|o| (o.kind, o.data.len())).collect::<Vec<_>>(),
                view.final_destination(),
            )
        };
        let plain = Ipv4Addr::new(10, 0, 0, 2);
        assert_eq!(list(&[1, 148, 4, 0, 0, 1, 7, 3, 4, 0, 148, 4]), ([(148, 2), (7, 1)].to_vec(), plain));
        assert_eq!(list(&[131, 7, 4, 1, 2, 3, 4]), ([(131, 5)].to_vec(), Ipv4Addr::new(1, 2, 3, 4)));
        for bad in [&[148][..], &[148, 1], &[148, 0], &[148, 9, 1], &[]] {
            assert_eq!(list(bad), (Vec::new(), plain), "{bad:?}");
        }
    }

    #[test]
    fn a_smaller_time_to_live_updates_every_checksum() {
        let mut bytes = packet();
        for sum in 0..=u16::MAX {
            let mut view = ViewMut::new(&mut bytes).unwrap();
            view.set_checksum(sum);
            view.set_ttl(2);
            let protocol = u16::from(view.view().protocol());
            let (old, new) = (0x200 | protocol, 0x100 | protocol);
            view.decrement_ttl();
            assert_eq!(
                (view.view().ttl(), view.view().checksum()),
                (1, crate::checksum::update(sum, old, new)),
                "{sum:#x}"
            );
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        for first in 0..=255 {
            for length in 20..80 {
                let mut bytes = [first; 80];
                let mut view = ViewMut::new(&mut bytes[..length]).unwrap();
                view.fill_checksum();
                view.decrement_ttl();
                let _ = view.options_mut().len();
                let view = view.view();
                let _ = (view.options_iter().count(), view.payload().len(), view.pseudo_header(0).finish());
            }
        }
    }
}
