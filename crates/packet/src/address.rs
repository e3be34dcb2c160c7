//! Ethernet and IP addresses, in the text forms that Click reads and prints.
//!
//! IPv4 and IPv6 addresses use the types of `core::net`. This module adds the Ethernet address, address prefixes and
//! Click's notation. It parses literals only; names (`AddressInfo`) are resolved elsewhere.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// An Ethernet (EUI-48) address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

/// Text that is not an address of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// Not an Ethernet address.
    Mac,
    /// Not an IPv4 address.
    Ip4,
    /// Not an IPv4 address with a mask or prefix length.
    Ip4Prefix,
    /// Not an IPv6 address.
    Ip6,
    /// Not an IPv6 address with a mask or prefix length.
    Ip6Prefix,
}

/// An IPv4 address with a mask. As in Click, the mask need not be contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ip4Prefix {
    /// The address as written, including bits outside the mask.
    pub address: Ipv4Addr,
    /// The bits that are compared.
    pub mask: Ipv4Addr,
}

/// An IPv6 address with a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ip6Prefix {
    /// The address as written, including bits beyond the prefix.
    pub address: Ipv6Addr,
    /// The number of leading bits that are compared, 0 to 128.
    pub length: u8,
}

/// Prints an IPv6 address as Click does.
///
/// It differs from the standard library for addresses whose first 96 bits are zero: `::0.0.0.1` instead of `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip6Text(pub Ipv6Addr);

impl MacAddr {
    /// All bits set.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// All bits clear.
    pub const ZERO: MacAddr = MacAddr([0; 6]);

    /// Whether this is the broadcast address.
    #[inline]
    pub const fn is_broadcast(self) -> bool {
        self.to_u64() == 0xffff_ffff_ffff
    }

    /// Whether this is a group address; the broadcast address is one.
    #[inline]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether the address is locally administered.
    #[inline]
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }

    /// The address as a 48-bit number, first byte highest.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let b = self.0;
        u64::from_be_bytes([0, 0, b[0], b[1], b[2], b[3], b[4], b[5]])
    }

    /// The address in the low 48 bits of a number.
    #[inline]
    pub const fn from_u64(number: u64) -> MacAddr {
        let b = number.to_be_bytes();
        MacAddr([b[2], b[3], b[4], b[5], b[6], b[7]])
    }
}

impl FromStr for MacAddr {
    type Err = AddressError;

    /// Reads six groups of one or two hexadecimal digits, all separated by `:` or all by `-`.
    fn from_str(text: &str) -> Result<MacAddr, AddressError> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut bytes = [0; 6];
        let mut groups = text.split(separator);
        for byte in &mut bytes {
            let group = groups.next().ok_or(AddressError::Mac)?;
            if group.len() > 2 || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(AddressError::Mac);
            }
            *byte = u8::from_str_radix(group, 16).map_err(|_| AddressError::Mac)?;
        }
        if groups.next().is_some() { Err(AddressError::Mac) } else { Ok(MacAddr(bytes)) }
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02X}-{b:02X}-{c:02X}-{d:02X}-{e:02X}-{g:02X}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressError::Mac => "not an Ethernet address",
            AddressError::Ip4 => "not an IP address",
            AddressError::Ip4Prefix => "not an IP prefix",
            AddressError::Ip6 => "not an IPv6 address",
            AddressError::Ip6Prefix => "not an IPv6 prefix",
        })
    }
}

impl core::error::Error for AddressError {}

impl Ip4Prefix {
    /// The prefix that matches every address.
    pub const ALL: Ip4Prefix = Ip4Prefix { address: Ipv4Addr::UNSPECIFIED, mask: Ipv4Addr::UNSPECIFIED };

    /// The prefix of an address and a length; `None` if the length exceeds 32.
    pub fn new(address: Ipv4Addr, length: u8) -> Option<Ip4Prefix> {
        Some(Ip4Prefix { address, mask: ip4_mask(length)? })
    }

    /// The prefix that matches this address only.
    pub const fn host(address: Ipv4Addr) -> Ip4Prefix {
        Ip4Prefix { address, mask: Ipv4Addr::BROADCAST }
    }

    /// Reads `a.b.c.d/length` or `a.b.c.d/mask`. Trailing address bytes outside the mask may be omitted: `10/8`.
    pub fn parse(text: &str) -> Result<Ip4Prefix, AddressError> {
        let (address, mask) = text.rsplit_once('/').ok_or(AddressError::Ip4Prefix)?;
        let (address, written) = ip4_part(address).ok_or(AddressError::Ip4Prefix)?;
        let mask = match prefix_length(mask, 32) {
            Some(length) => ip4_mask(length),
            None => parse_ip4(mask).ok(),
        };
        let mask = mask.ok_or(AddressError::Ip4Prefix)?;
        let defined = ip4_mask(written * 8).unwrap_or(Ipv4Addr::BROADCAST);
        if mask.to_bits() & !defined.to_bits() != 0 {
            return Err(AddressError::Ip4Prefix);
        }
        Ok(Ip4Prefix { address, mask })
    }

    /// Like [`Ip4Prefix::parse`], but also accepts an address alone, as a prefix of that one address.
    pub fn parse_or_host(text: &str) -> Result<Ip4Prefix, AddressError> {
        Ip4Prefix::parse(text).or_else(|error| parse_ip4(text).map(Ip4Prefix::host).map_err(|_| error))
    }

    /// Whether an address matches the prefix.
    #[inline]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (self.address.to_bits() ^ address.to_bits()) & self.mask.to_bits() == 0
    }

    /// The prefix length, if the mask is contiguous.
    pub fn length(&self) -> Option<u8> {
        ip4_mask_length(self.mask)
    }

    /// The address with all bits outside the mask cleared.
    pub fn network(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() & self.mask.to_bits())
    }
}

impl fmt::Display for Ip4Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.length() {
            Some(length) => write!(f, "{}/{length}", self.address),
            None => write!(f, "{}/{}", self.address, self.mask),
        }
    }
}

impl Ip6Prefix {
    /// The prefix of an address and a length; `None` if the length exceeds 128.
    pub fn new(address: Ipv6Addr, length: u8) -> Option<Ip6Prefix> {
        (length <= 128).then_some(Ip6Prefix { address, length })
    }

    /// Reads `address/length` or `address/mask`; the mask must be contiguous.
    pub fn parse(text: &str) -> Result<Ip6Prefix, AddressError> {
        let (address, mask) = text.rsplit_once('/').ok_or(AddressError::Ip6Prefix)?;
        let address = parse_ip6(address).map_err(|_| AddressError::Ip6Prefix)?;
        let length = match prefix_length(mask, 128) {
            Some(length) => Some(length),
            None => parse_ip6(mask).ok().and_then(ip6_mask_length),
        };
        Ok(Ip6Prefix { address, length: length.ok_or(AddressError::Ip6Prefix)? })
    }

    /// Like [`Ip6Prefix::parse`], but also accepts an address alone, as a prefix of that one address.
    pub fn parse_or_host(text: &str) -> Result<Ip6Prefix, AddressError> {
        Ip6Prefix::parse(text).or_else(|error| {
            parse_ip6(text).map(|address| Ip6Prefix { address, length: 128 }).map_err(|_| error)
        })
    }

    /// The mask of this prefix length.
    pub fn mask(&self) -> Ipv6Addr {
        let hidden = 128 - u32::from(self.length.min(128));
        Ipv6Addr::from_bits(u128::MAX.checked_shl(hidden).unwrap_or(0))
    }

    /// Whether an address matches the prefix.
    #[inline]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        (self.address.to_bits() ^ address.to_bits()) & self.mask().to_bits() == 0
    }

    /// The address with all bits beyond the prefix cleared.
    pub fn network(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.address.to_bits() & self.mask().to_bits())
    }
}

impl fmt::Display for Ip6Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ip6Text(self.address), self.length)
    }
}

impl fmt::Display for Ip6Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.to_bits();
        if bits != 0 && bits >> 32 == 0 {
            return write!(f, "::{}", Ipv4Addr::from_bits(bits as u32));
        }
        fmt::Display::fmt(&self.0, f)
    }
}

/// Reads an IPv4 address: four decimal numbers up to 255, leading zeros allowed.
pub fn parse_ip4(text: &str) -> Result<Ipv4Addr, AddressError> {
    match ip4_part(text) {
        Some((address, 4)) => Ok(address),
        _ => Err(AddressError::Ip4),
    }
}

/// Reads an IPv6 address, including `::` and the form that ends in an IPv4 address.
pub fn parse_ip6(text: &str) -> Result<Ipv6Addr, AddressError> {
    text.parse().map_err(|_| AddressError::Ip6)
}

/// The mask with the first `length` bits set; `None` if the length exceeds 32.
pub fn ip4_mask(length: u8) -> Option<Ipv4Addr> {
    let hidden = 32u32.checked_sub(u32::from(length))?;
    Some(Ipv4Addr::from_bits(u32::MAX.checked_shl(hidden).unwrap_or(0)))
}

/// The length of a contiguous mask.
pub fn ip4_mask_length(mask: Ipv4Addr) -> Option<u8> {
    let bits = mask.to_bits();
    (bits.leading_ones() + bits.trailing_zeros() >= 32).then_some(bits.leading_ones() as u8)
}

/// The length of a contiguous mask.
pub fn ip6_mask_length(mask: Ipv6Addr) -> Option<u8> {
    let bits = mask.to_bits();
    (bits.leading_ones() + bits.trailing_zeros() >= 128).then_some(bits.leading_ones() as u8)
}

/// Reads one to four dotted numbers; returns the address and the number of bytes that were written.
fn ip4_part(text: &str) -> Option<(Ipv4Addr, u8)> {
    let mut bytes = [0u8; 4];
    let mut written = 0;
    for part in text.as_bytes().split(|byte| *byte == b'.') {
        let byte = bytes.get_mut(usize::from(written))?;
        if part.is_empty() {
            return None;
        }
        for digit in part {
            let value = digit.wrapping_sub(b'0');
            *byte = byte.checked_mul(10)?.checked_add(value).filter(|_| value < 10)?;
        }
        written += 1;
    }
    Some((bytes.into(), written))
}

/// Reads a decimal prefix length, with an optional leading `+`.
fn prefix_length(text: &str, most: u8) -> Option<u8> {
    text.parse().ok().filter(|length| *length <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn mac_forms() {
        let mac = MacAddr([1, 2, 3, 10, 11, 12]);
        for text in ["1:2:3:a:b:c", "01-02-03-0A-0b-0C", "01:02:03:0a:0b:0c"] {
            assert_eq!(text.parse(), Ok(mac), "{text}");
        }
        for text in
            ["", "1:2:3:a:b", "1:2:3:a:b:c:d", "1:2-3:a:b:c", "001:2:3:a:b:c", "1:2:3:a:b:", "+1:2:3:a:b:c"]
        {
            assert_eq!(text.parse::<MacAddr>(), Err(AddressError::Mac), "{text}");
        }
        assert_eq!(mac.to_string(), "01-02-03-0A-0B-0C");
        assert_eq!(MacAddr::from_u64(mac.to_u64()), mac);
        assert!(MacAddr::BROADCAST.is_broadcast() && MacAddr::BROADCAST.is_group() && !mac.is_broadcast());
    }

    #[test]
    fn ip4_forms() {
        assert_eq!(parse_ip4("1.2.3.004"), Ok(Ipv4Addr::new(1, 2, 3, 4)));
        for text in ["", "1.2.3", "1.2.3.256", "1.2.3.4.5", "1.2.3.4 ", "1..2.3", "+1.2.3.4"] {
            assert_eq!(parse_ip4(text), Err(AddressError::Ip4), "{text}");
        }
    }

    #[test]
    fn prefixes() {
        let show = |text| Ip4Prefix::parse_or_host(text).map(|p| p.to_string());
        assert_eq!(show("10/8").as_deref(), Ok("10.0.0.0/8"));
        assert_eq!(show("1.2.3.4").as_deref(), Ok("1.2.3.4/32"));
        assert_eq!(show("1.2.3.4/255.255.0.0").as_deref(), Ok("1.2.3.4/16"));
        assert_eq!(show("1.2.3.4/255.0.255.0").as_deref(), Ok("1.2.3.4/255.0.255.0"));
        assert_eq!(show("0.0.0.0/0").as_deref(), Ok("0.0.0.0/0"));
        for text in ["10/16", "1.2.3.4/33", "1.2.3.4/", "/8", "1.2.3/24/24"] {
            assert_eq!(show(text), Err(AddressError::Ip4Prefix), "{text}");
        }
        let prefix = Ip4Prefix::parse("10.1.0.0/16").unwrap();
        assert!(prefix.contains(Ipv4Addr::new(10, 1, 9, 9)) && !prefix.contains(Ipv4Addr::new(10, 2, 0, 0)));
        assert_eq!(Ip4Prefix::parse("10.1.2.3/16").unwrap().network(), Ipv4Addr::new(10, 1, 0, 0));
    }

    #[test]
    fn ip6_prefixes() {
        let show = |text| Ip6Prefix::parse_or_host(text).map(|p| p.to_string());
        assert_eq!(show("fe80::1/10").as_deref(), Ok("fe80::1/10"));
        assert_eq!(show("3ffe:1::/ffff:ffff::").as_deref(), Ok("3ffe:1::/32"));
        assert_eq!(show("::1").as_deref(), Ok("::0.0.0.1/128"));
        assert_eq!(show("::/0").as_deref(), Ok("::/0"));
        for text in ["::/129", "::/f0f::", "1.2.3.4/8", "::1/", ":::"] {
            assert_eq!(show(text), Err(AddressError::Ip6Prefix), "{text}");
        }
        assert!(Ip6Prefix::parse("fe80::/10").unwrap().contains("fe80::9".parse().unwrap()));
        assert!(Ip6Prefix::parse("::/0").unwrap().contains("fe80::9".parse().unwrap()));
    }
}
