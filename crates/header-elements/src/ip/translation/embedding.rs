//! IPv4 addresses in IPv6 addresses (RFC 6052).

use core::net::{Ipv4Addr, Ipv6Addr};

use element::prelude::*;
use packet::Ip6Prefix;

/// The prefix of IPv4-mapped addresses.
const MAPPED: Ip6Prefix = Ip6Prefix { address: Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), length: 96 };

/// The octet that is always zero, bits 64 to 71 (RFC 6052, section 2.2).
const RESERVED: usize = 8;

/// Where IPv4 addresses are within IPv6 addresses.
pub(in super::super) struct Embedding {
    prefix: Ip6Prefix,
    /// Whether IPv4-mapped addresses stand for IPv4 addresses too.
    mapped: bool,
}

impl Embedding {
    /// The embedding behind a prefix, or without one that of IPv4-compatible addresses.
    pub(in super::super) fn new(prefix: Option<Ip6Prefix>) -> Result<Embedding, SetupError> {
        let compatible = Ip6Prefix { address: Ipv6Addr::UNSPECIFIED, length: 96 };
        let embedding = Embedding { prefix: prefix.unwrap_or(compatible), mapped: prefix.is_none() };
        match embedding.prefix.length {
            32 | 40 | 48 | 56 | 64 | 96 => Ok(embedding),
            _ => Err(SetupError::argument("PREFIX", "the length must be 32, 40, 48, 56, 64 or 96")),
        }
    }

    /// The places of the four octets.
    fn places(&self) -> [usize; 4] {
        let start = usize::from(self.prefix.length / 8);
        // The reserved octet is skipped.
        core::array::from_fn(|number| {
            let place = start + number;
            place + usize::from(start <= RESERVED && place >= RESERVED)
        })
    }

    /// The address that stands for an IPv4 address.
    pub(super) fn embed(&self, address: Ipv4Addr) -> Ipv6Addr {
        let kept = u128::MAX << (128 - u32::from(self.prefix.length));
        let mut octets = (self.prefix.address.to_bits() & kept).to_be_bytes();
        for (place, octet) in self.places().into_iter().zip(address.octets()) {
            if let Some(to) = octets.get_mut(place) {
                *to = octet;
            }
        }
        octets.into()
    }

    /// The IPv4 address that an address stands for. What follows the IPv4 address does not matter.
    pub(super) fn extract(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let octets = address.octets();
        let has_prefix = |prefix: &Ip6Prefix| {
            (address.to_bits() ^ prefix.address.to_bits()) >> (128 - u32::from(prefix.length)) == 0
        };
        if self.mapped && has_prefix(&MAPPED) {
            return address.octets().last_chunk::<4>().map(|octets| (*octets).into());
        }
        let is_reserved_zero = self.prefix.length == 96 || octets[RESERVED] == 0;
        let found = self.places().map(|place| octets.get(place).copied().unwrap_or(0));
        (has_prefix(&self.prefix) && is_reserved_zero).then(|| found.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedding(prefix: &str) -> Embedding {
        let (address, length) = prefix.split_once('/').unwrap();
        let prefix = Ip6Prefix { address: address.parse().unwrap(), length: length.parse().unwrap() };
        Embedding::new(Some(prefix)).unwrap()
    }

    #[test]
    fn addresses_are_those_of_the_specification() {
        // RFC 6052, section 2.4.
        let cases = [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
            ("64:ff9b::/96", "64:ff9b::192.0.2.33"),
        ];
        let address = Ipv4Addr::new(192, 0, 2, 33);
        for (prefix, expected) in cases {
            let (embedding, expected) = (embedding(prefix), expected.parse::<Ipv6Addr>().unwrap());
            assert_eq!(embedding.embed(address), expected, "{prefix}");
            assert_eq!(embedding.extract(expected), Some(address), "{prefix}");
            assert_eq!(embedding.extract("fec0::1".parse().unwrap()), None, "{prefix}");
        }
        assert_eq!(embedding("2001:db8::/32").extract("2001:db8:c000:221:100::".parse().unwrap()), None);
        for length in [0, 31, 97, 128] {
            let prefix = Ip6Prefix { address: Ipv6Addr::UNSPECIFIED, length };
            assert!(Embedding::new(Some(prefix)).is_err(), "{length}");
        }
        let without = Embedding::new(None).unwrap();
        assert_eq!(without.embed(address), "::192.0.2.33".parse::<Ipv6Addr>().unwrap());
        for text in ["::192.0.2.33", "::ffff:192.0.2.33"] {
            assert_eq!(without.extract(text.parse().unwrap()), Some(address));
        }
        assert_eq!(without.extract("::1:192.0.2.33".parse().unwrap()), None);
    }
}
