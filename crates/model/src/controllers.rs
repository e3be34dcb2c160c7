//! OpenFlow controllers of a switch.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// The port of a controller that states none (IANA).
const DEFAULT_PORT: u16 = 6653;

/// Maximum number of controllers of a switch.
pub const MAX_CONTROLLERS: usize = 8;

/// The address of an OpenFlow controller: `tcp:ADDRESS` or `tcp:ADDRESS:PORT`, with IPv6 addresses in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerAddress(pub SocketAddr);

/// Why a text is not the address of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerAddressError {
    /// It is one of a kind that is not supported: connections with TLS.
    Tls,
    /// It is one of a kind that is not supported: connections that the controller begins.
    Passive,
    /// It does not begin with `tcp:`.
    Method,
    /// An IP address does not follow.
    Address,
    /// The port is not a number from 1 to 65535.
    Port,
}

impl fmt::Display for ControllerAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls => {
                "controllers over TLS are not supported yet: use `tcp:`, for example through a local tunnel"
            }
            Self::Passive => "a switch does not listen for controllers yet: use `tcp:`, to which it connects",
            Self::Method => "the address of a controller is `tcp:ADDRESS:PORT`",
            Self::Address => "an IP address is expected after `tcp:`, an IPv6 address in brackets",
            Self::Port => "the port of a controller is a number from 1 to 65535",
        })
    }
}

impl std::error::Error for ControllerAddressError {}

impl FromStr for ControllerAddress {
    type Err = ControllerAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = match text.split_once(':') {
            Some(("tcp", rest)) => rest,
            Some(("tls" | "ssl", _)) => return Err(ControllerAddressError::Tls),
            Some(("ptcp" | "pssl" | "ptls" | "listen", _)) => return Err(ControllerAddressError::Passive),
            _ => return Err(ControllerAddressError::Method),
        };
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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp:{}", self.0)
    }
}

as_text!(ControllerAddress, "ControllerAddress", "^tcp:.+$", "The address of an OpenFlow controller.");

/// What a switch does while no controller is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// Flows stay. Packets that match none are dropped.
    #[default]
    Secure,
    /// Flows stay. Packets that match none are forwarded by learned addresses.
    Standalone,
}

impl FailMode {
    /// Whether it is the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The role of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControllerRole {
    /// The same as of every other controller.
    Equal,
    /// It changes the switch, and no slave does.
    Master,
    /// It only reads.
    Slave,
}

/// The state of the connection to a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControllerStatus {
    /// Its address.
    pub address: ControllerAddress,
    /// Whether it is connected.
    pub connected: bool,
    /// Its role, while it is connected.
    #[serde(default)]
    pub role: Option<ControllerRole>,
    /// Seconds since the connection began or ended.
    pub since_seconds: u64,
    /// Why the last connection ended or failed.
    #[serde(default)]
    pub error: Option<String>,
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
            assert_eq!(text.parse().map(|address: ControllerAddress| address.to_string()), Ok(shown.into()));
        }
        for (text, expected) in [
            ("127.0.0.1", ControllerAddressError::Method),
            ("tls:127.0.0.1", ControllerAddressError::Tls),
            ("ssl:127.0.0.1:1", ControllerAddressError::Tls),
            ("ptcp:6653", ControllerAddressError::Passive),
            ("tcp:", ControllerAddressError::Address),
            ("tcp:localhost", ControllerAddressError::Address),
            ("tcp:[127.0.0.1]", ControllerAddressError::Address),
            ("tcp:::1", ControllerAddressError::Address),
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
