//! Addresses of controllers as text.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of a controller that states none (IANA).
pub const DEFAULT_PORT: u16 = 6653;

/// The address of a controller: `tcp:ADDRESS` or `tcp:ADDRESS:PORT`, with IPv6 addresses in brackets.
///
/// Names are not resolved: that would stop all sessions while it takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControllerAddress(pub SocketAddr);

/// The reason why a text is no address of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerAddressError {
    /// It does not begin with `tcp:`.
    Method,
    /// An IP address does not follow.
    Address,
    /// The port is not a number from 1 to 65535.
    Port,
}

impl fmt::Display for ControllerAddressError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Method => "the address of a controller begins with `tcp:`",
            Self::Address => "an IP address is expected after `tcp:`, an IPv6 address in brackets",
            Self::Port => "the port of a controller is a number from 1 to 65535",
        })
    }
}

impl std::error::Error for ControllerAddressError {}

impl FromStr for ControllerAddress {
    type Err = ControllerAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("tcp:").ok_or(ControllerAddressError::Method)?;
        let (address, port) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or(ControllerAddressError::Address)?,
            None => rest.find(':').map_or((rest, ""), |at| rest.split_at(at)),
        };
        let address: IpAddr = address.parse().map_err(|_| ControllerAddressError::Address)?;
        if address.is_ipv6() != rest.starts_with('[') {
            return Err(ControllerAddressError::Address);
        }
        let port = match port.strip_prefix(':') {
            Some(digits) => digits.parse().ok().filter(|port| *port != 0),
            None => port.is_empty().then_some(DEFAULT_PORT),
        };
        Ok(Self(SocketAddr::new(address, port.ok_or(ControllerAddressError::Port)?)))
    }
}

impl fmt::Display for ControllerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "tcp:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown) in [
            ("tcp:127.0.0.1", "tcp:127.0.0.1:6653"),
            ("tcp:127.0.0.1:6633", "tcp:127.0.0.1:6633"),
            ("tcp:[::1]:1", "tcp:[::1]:1"),
            ("tcp:[::1]", "tcp:[::1]:6653"),
        ] {
            assert_eq!(
                text.parse::<ControllerAddress>().map(|address| address.to_string()),
                Ok(shown.into())
            );
        }
        for (text, expected) in [
            ("127.0.0.1", ControllerAddressError::Method),
            ("tcp:", ControllerAddressError::Address),
            ("tcp:localhost", ControllerAddressError::Address),
            ("tcp:::1", ControllerAddressError::Address),
            ("tcp:[127.0.0.1]", ControllerAddressError::Address),
            ("tcp:[::1", ControllerAddressError::Address),
            ("tcp:127.0.0.1:0", ControllerAddressError::Port),
            ("tcp:127.0.0.1:65536", ControllerAddressError::Port),
            ("tcp:127.0.0.1:", ControllerAddressError::Port),
            ("tcp:[::1]x", ControllerAddressError::Port),
        ] {
            assert_eq!(text.parse::<ControllerAddress>(), Err(expected), "{text}");
        }
    }
}
