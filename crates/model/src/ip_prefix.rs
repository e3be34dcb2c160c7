//! IP addresses and prefixes in the text form of the API, and lists of them that are bound to a port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// Maximum prefixes that are bound to a port. Bounds the time for which a switch looks at a frame.
pub const MAX_BOUND_PREFIXES: usize = 32;

/// An IPv4 or IPv6 address, or a prefix: an address and the number of its leading bits that count, as in `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpPrefix {
    address: IpAddr,
    length: u8,
}

/// Why a text or a list is not one of addresses that can be bound to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpPrefixError {
    /// The text is no address or prefix.
    Form,
    /// Bits after the prefix are set.
    HostBits,
    /// No station has the address: it is unspecified, a multicast or a broadcast address.
    NoStation(IpAddr),
    /// The list has too many entries.
    TooMany(usize),
}

impl fmt::Display for IpPrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("expected an IP address or prefix, as in 192.0.2.1 or 2001:db8::/64"),
            Self::HostBits => f.write_str("the address has bits that are not in the prefix"),
            Self::NoStation(address) => write!(f, "{address} is the address of no station"),
            Self::TooMany(count) => {
                write!(f, "{count} addresses for a port: it can have at most {MAX_BOUND_PREFIXES}")
            }
        }
    }
}

impl std::error::Error for IpPrefixError {}

impl IpPrefix {
    /// The address: the first one of a prefix.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// The number of leading bits that count.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// The number of bits of the address.
    const fn width(address: IpAddr) -> u8 {
        if address.is_ipv4() { 32 } else { 128 }
    }
}

impl FromStr for IpPrefix {
    type Err = IpPrefixError;

    fn from_str(text: &str) -> Result<Self, IpPrefixError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| IpPrefixError::Form)?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let length = match length {
            Some(length) if is_number(length) => length.parse().map_err(|_| IpPrefixError::Form)?,
            Some(_) => return Err(IpPrefixError::Form),
            None => Self::width(address),
        };
        if length > Self::width(address) {
            return Err(IpPrefixError::Form);
        }
        let is_broadcast = address == Ipv4Addr::BROADCAST;
        if is_broadcast || address.is_unspecified() || address.is_multicast() {
            return Err(IpPrefixError::NoStation(address));
        }
        let trailing = match address {
            IpAddr::V4(address) => address.to_bits().trailing_zeros(),
            IpAddr::V6(address) => address.to_bits().trailing_zeros(),
        };
        match trailing >= u32::from(Self::width(address) - length) {
            true => Ok(Self { address, length }),
            false => Err(IpPrefixError::HostBits),
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.length == Self::width(self.address) {
            true => self.address.fmt(f),
            false => write!(f, "{}/{}", self.address, self.length),
        }
    }
}

as_text!(
    IpPrefix,
    "IpPrefix",
    "^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$",
    "An IPv4 or IPv6 address, or a prefix such as 192.0.2.0/24."
);

/// The IP addresses that are bound to a port: at most [`MAX_BOUND_PREFIXES`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<IpPrefix>", into = "Vec<IpPrefix>")]
pub struct BoundAddresses(Vec<IpPrefix>);

impl BoundAddresses {
    /// Whether no address is bound.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The addresses and prefixes.
    pub fn iter(&self) -> impl Iterator<Item = IpPrefix> {
        self.0.iter().copied()
    }
}

impl TryFrom<Vec<IpPrefix>> for BoundAddresses {
    type Error = IpPrefixError;

    fn try_from(prefixes: Vec<IpPrefix>) -> Result<Self, IpPrefixError> {
        match prefixes.len() {
            0..=MAX_BOUND_PREFIXES => Ok(Self(prefixes)),
            count => Err(IpPrefixError::TooMany(count)),
        }
    }
}

impl From<BoundAddresses> for Vec<IpPrefix> {
    fn from(addresses: BoundAddresses) -> Self {
        addresses.0
    }
}

impl schemars::JsonSchema for BoundAddresses {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BoundAddresses".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "array",
            "items": generator.subschema_for::<IpPrefix>(),
            "maxItems": MAX_BOUND_PREFIXES,
            "description": "The IP addresses that are bound to a port."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_written_as_they_are_read() {
        for text in ["192.0.2.1", "192.0.2.0/24", "128.0.0.0/1", "2001:db8::1", "2001:db8::/64", "fe80::1"] {
            let prefix: IpPrefix = text.parse().expect(text);
            assert_eq!(prefix.to_string(), text);
            let json = serde_json::to_string(&prefix).expect("JSON");
            assert_eq!(serde_json::from_str::<IpPrefix>(&json).expect("the prefix"), prefix);
        }
        assert_eq!("192.0.2.1/32".parse::<IpPrefix>().expect("an address").to_string(), "192.0.2.1");
        for (text, why) in [
            ("", IpPrefixError::Form),
            ("192.0.2", IpPrefixError::Form),
            ("192.0.2.0/33", IpPrefixError::Form),
            ("192.0.2.0/+24", IpPrefixError::Form),
            ("192.0.2.0/", IpPrefixError::Form),
            ("2001:db8::/129", IpPrefixError::Form),
            ("192.0.2.1/24", IpPrefixError::HostBits),
            ("2001:db8::1/64", IpPrefixError::HostBits),
            ("0.0.0.0/0", IpPrefixError::NoStation("0.0.0.0".parse().expect("an address"))),
            ("255.255.255.255", IpPrefixError::NoStation(Ipv4Addr::BROADCAST.into())),
            ("224.0.0.1", IpPrefixError::NoStation("224.0.0.1".parse().expect("an address"))),
            ("ff02::1", IpPrefixError::NoStation("ff02::1".parse().expect("an address"))),
        ] {
            assert_eq!(text.parse::<IpPrefix>(), Err(why), "{text}");
        }
    }

    #[test]
    fn lists_are_bounded() {
        let prefix: IpPrefix = "192.0.2.1".parse().expect("an address");
        let list = |count| BoundAddresses::try_from(vec![prefix; count]);
        assert!(list(MAX_BOUND_PREFIXES).is_ok());
        assert_eq!(list(MAX_BOUND_PREFIXES + 1), Err(IpPrefixError::TooMany(MAX_BOUND_PREFIXES + 1)));
        let json = serde_json::to_string(&vec![prefix; 33]).expect("JSON");
        assert!(serde_json::from_str::<BoundAddresses>(&json).is_err());
    }
}
