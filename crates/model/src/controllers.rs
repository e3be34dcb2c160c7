//! OpenFlow controllers of a switch.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{ChainName, NameError, PortName, ServiceName};
use crate::text::as_text;

/// The port of a controller that states none (IANA).
const DEFAULT_PORT: u16 = 6653;

/// Where a switch listens that states no address: only programs of the host itself reach it.
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Maximum number of controllers of a switch.
pub const MAX_CONTROLLERS: usize = 8;

/// How the connection between a switch and an OpenFlow controller comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControllerMethod {
    /// The switch connects to the controller: `tcp:`.
    #[default]
    Tcp,
    /// The same with TLS: `tls:`, or `ssl:`.
    Tls,
    /// Controllers connect to the switch: `ptcp:`.
    PassiveTcp,
    /// The same with TLS: `ptls:`, or `pssl:`.
    PassiveTls,
}

impl ControllerMethod {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "tcp" => Self::Tcp,
            "tls" | "ssl" => Self::Tls,
            "ptcp" => Self::PassiveTcp,
            "ptls" | "pssl" => Self::PassiveTls,
            _ => return None,
        })
    }

    /// What the addresses of the method begin with.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::PassiveTcp => "ptcp",
            Self::PassiveTls => "ptls",
        }
    }

    /// Whether TLS protects the connection.
    pub fn is_protected(self) -> bool {
        matches!(self, Self::Tls | Self::PassiveTls)
    }

    /// Whether controllers begin the connection.
    pub fn is_passive(self) -> bool {
        matches!(self, Self::PassiveTcp | Self::PassiveTls)
    }
}

/// The address of an OpenFlow controller, `tcp:ADDRESS:PORT` or `tls:ADDRESS:PORT`, or where a switch listens for
/// controllers, `ptcp:PORT:ADDRESS` or `ptls:PORT:ADDRESS`. The port may be omitted, and where the switch listens also the
/// address: it is that of the host itself. IPv6 addresses are in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerAddress {
    /// How the connection comes about.
    pub method: ControllerMethod,
    /// The address of the controller, or of the host where the switch listens.
    pub address: SocketAddr,
}

/// Why a text is not the address of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerAddressError {
    /// It does not begin with a method.
    Method,
    /// An IP address does not follow.
    Address,
    /// The port is not a number from 1 to 65535.
    Port,
}

impl fmt::Display for ControllerAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => {
                "the address of a controller is `tcp:ADDRESS:PORT` or `tls:ADDRESS:PORT`; to listen for controllers, it is \
                 `ptcp:PORT:ADDRESS` or `ptls:PORT:ADDRESS`"
            }
            Self::Address => {
                "an IP address is expected after `tcp:` or `tls:`, or after the port of `ptcp:` or `ptls:`; an IPv6 address \
                 is in brackets"
            }
            Self::Port => "the port of a controller is a number from 1 to 65535",
        })
    }
}

impl std::error::Error for ControllerAddressError {}

impl FromStr for ControllerAddress {
    type Err = ControllerAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = text.split_once(':').ok_or(ControllerAddressError::Method)?;
        let method = ControllerMethod::of_name(name).ok_or(ControllerAddressError::Method)?;
        let (address, port) = match (method.is_passive(), rest.strip_prefix('[')) {
            (true, _) => {
                let (port, address) = rest.split_once(':').unwrap_or((rest, ""));
                (if address.is_empty() { Ok(LOCAL) } else { read_address(address) }, port)
            }
            (false, Some(bracketed)) => {
                let end = bracketed.find(']').ok_or(ControllerAddressError::Address)?;
                // The bracket before and this one.
                let (address, port) = rest.split_at(end + 2);
                (read_address(address), after_colon(port)?)
            }
            (false, None) => {
                let (address, port) = rest.split_at(rest.find(':').unwrap_or(rest.len()));
                (read_address(address), after_colon(port)?)
            }
        };
        let address = address?;
        let port = match port {
            "" => Some(DEFAULT_PORT),
            digits => digits.parse().ok().filter(|port| *port != 0),
        };
        Ok(Self { method, address: SocketAddr::new(address, port.ok_or(ControllerAddressError::Port)?) })
    }
}

/// An IPv4 address, or an IPv6 address in brackets.
fn read_address(text: &str) -> Result<IpAddr, ControllerAddressError> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address: IpAddr = inner.unwrap_or(text).parse().map_err(|_| ControllerAddressError::Address)?;
    if address.is_ipv6() == inner.is_some() { Ok(address) } else { Err(ControllerAddressError::Address) }
}

/// A port after a colon; empty if nothing follows.
fn after_colon(text: &str) -> Result<&str, ControllerAddressError> {
    match text.strip_prefix(':') {
        Some("") => Err(ControllerAddressError::Port),
        Some(port) => Ok(port),
        None if text.is_empty() => Ok(""),
        None => Err(ControllerAddressError::Port),
    }
}

impl fmt::Display for ControllerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, address) = (self.method.name(), self.address);
        match (self.method.is_passive(), address.ip()) {
            (false, _) => write!(f, "{name}:{address}"),
            (true, IpAddr::V4(ip)) => write!(f, "{name}:{}:{ip}", address.port()),
            (true, IpAddr::V6(ip)) => write!(f, "{name}:{}:[{ip}]", address.port()),
        }
    }
}

as_text!(
    ControllerAddress,
    "ControllerAddress",
    "^(tcp|tls|ssl|ptcp|ptls|pssl):",
    "The address of an OpenFlow controller, or where a switch listens for controllers."
);

/// What controllers of a steering switch see as a port. Its text is the name that they see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpenFlowPort {
    /// A port of the switch.
    Port(PortName),
    /// The instances of a service: `service:NAME`.
    Service(ServiceName),
    /// A chain: `chain:NAME`.
    Chain(ChainName),
}

impl FromStr for OpenFlowPort {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.split_once(':') {
            Some(("service", name)) => name.parse().map(Self::Service),
            Some(("chain", name)) => name.parse().map(Self::Chain),
            _ => text.parse().map(Self::Port),
        }
    }
}

impl fmt::Display for OpenFlowPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(name) => name.fmt(f),
            Self::Service(name) => write!(f, "service:{name}"),
            Self::Chain(name) => write!(f, "chain:{name}"),
        }
    }
}

as_text!(
    OpenFlowPort,
    "OpenFlowPort",
    "^((service|chain):)?[a-z0-9][a-z0-9._-]{0,62}$",
    "What OpenFlow controllers see as a port: the name of a port, `service:NAME` or `chain:NAME`."
);

/// The number of what controllers see as a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenFlowNumber {
    /// What it is.
    pub port: OpenFlowPort,
    /// The number, by which the entries of controllers name it.
    pub number: u32,
}

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
    fn ports_are_named_as_controllers_see_them() {
        let service: OpenFlowPort = "service:ids".parse().expect("a service");
        assert_eq!(service, OpenFlowPort::Service("ids".parse().expect("a name")));
        for text in ["tap0", "service:ids", "chain:web"] {
            assert_eq!(text.parse().map(|port: OpenFlowPort| port.to_string()), Ok(text.to_string()));
        }
        for text in ["", "port:tap0", "service:", "chain:a:b"] {
            assert!(text.parse::<OpenFlowPort>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown) in [
            ("tcp:127.0.0.1", "tcp:127.0.0.1:6653"),
            ("tcp:127.0.0.1:6633", "tcp:127.0.0.1:6633"),
            ("tcp:[::1]:1", "tcp:[::1]:1"),
            ("tcp:[::1]", "tcp:[::1]:6653"),
            ("tls:192.0.2.1", "tls:192.0.2.1:6653"),
            ("ssl:[::1]:1", "tls:[::1]:1"),
            ("ptcp:", "ptcp:6653:127.0.0.1"),
            ("ptcp:6634", "ptcp:6634:127.0.0.1"),
            ("ptcp:6634:0.0.0.0", "ptcp:6634:0.0.0.0"),
            ("ptcp::192.0.2.1", "ptcp:6653:192.0.2.1"),
            ("pssl:6653:[::]", "ptls:6653:[::]"),
            ("ptls:1", "ptls:1:127.0.0.1"),
        ] {
            assert_eq!(text.parse().map(|address: ControllerAddress| address.to_string()), Ok(shown.into()));
        }
        for (text, expected) in [
            ("127.0.0.1", ControllerAddressError::Method),
            ("udp:127.0.0.1", ControllerAddressError::Method),
            ("ptcp", ControllerAddressError::Method),
            ("ptcp:0", ControllerAddressError::Port),
            ("ptcp:127.0.0.1", ControllerAddressError::Port),
            ("ptcp:6653:localhost", ControllerAddressError::Address),
            ("ptls:6653:::1", ControllerAddressError::Address),
            ("tls:", ControllerAddressError::Address),
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
