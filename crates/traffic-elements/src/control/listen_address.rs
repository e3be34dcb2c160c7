//! The address at which an element accepts control connections.

use element::arguments::{FromArgument, Raw, TcpPort};
use element::prelude::*;
use element::{Environment, IoError, Listener, Message, SocketAddress};

/// Ports tried after the given one if it has a `+`.
const MAX_PORTS: u16 = 11;

/// An address to accept connections at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListenAddress {
    /// A TCP port, or with `next_free` the first free one after it.
    Tcp { port: u16, next_free: bool },
    /// A Unix socket.
    Unix(String),
    /// A connected descriptor inherited by the process.
    Inherited(i32),
}

impl ListenAddress {
    /// Parses the arguments of an element: the type, and the value after it or PORT, FILENAME, FD.
    pub(super) fn new(
        kind: &str,
        port: Option<Raw>,
        filename: Option<String>,
        descriptor: Option<Raw>,
        setup: &Setup,
    ) -> Result<ListenAddress, SetupError> {
        let missing = |keyword| SetupError { messages: vec![Message::Missing { keyword }] };
        match kind.to_ascii_uppercase().as_str() {
            "TCP" => {
                let text = element::text::unquote(&port.ok_or_else(|| missing("PORT"))?.0);
                let (number, next_free) =
                    text.strip_suffix('+').map_or((&*text, false), |number| (number, true));
                match TcpPort::from_argument(number, setup) {
                    Ok(TcpPort(port)) if !next_free || port > 0 => Ok(ListenAddress::Tcp { port, next_free }),
                    _ => Err(SetupError::new("PORT requires TCP port")),
                }
            }
            "UNIX" => {
                let name = filename.or_else(|| port.map(|text| element::text::unquote(&text.0)));
                let name = name.filter(|name| !name.is_empty()).ok_or_else(|| missing("FILENAME"))?;
                if name.len() > SocketAddress::MAX_PATH {
                    return Err(SetupError::new("filename too long"));
                }
                Ok(ListenAddress::Unix(name))
            }
            "SOCKET" => {
                let text = descriptor.or(port).ok_or_else(|| missing("FD"))?.0;
                let number = text.trim().parse::<u16>();
                let number = number.map_err(|_| SetupError::argument("FD", "parse error"))?;
                Ok(ListenAddress::Inherited(number.into()))
            }
            other => Err(SetupError::new(format_args!("unknown socket type ‘{other}’"))),
        }
    }

    /// Starts to listen; with `local`, only for connections from this host.
    pub(super) fn listen(
        &self,
        local: bool,
        environment: &dyn Environment,
    ) -> Result<Box<dyn Listener>, IoError> {
        let host = if local { "127.0.0.1" } else { "0.0.0.0" };
        match self {
            ListenAddress::Tcp { port, next_free } => {
                let last = if *next_free { port.saturating_add(MAX_PORTS) } else { *port };
                let mut result = environment.listen(&format!("tcp:{host}:{port}"));
                for port in *port..last {
                    if matches!(result, Ok(_) | Err(IoError::Unsupported(_))) {
                        break;
                    }
                    result = environment.listen(&format!("tcp:{host}:{}", port + 1));
                }
                result
            }
            ListenAddress::Unix(name) => environment.listen(&format!("unix:{name}")),
            ListenAddress::Inherited(_) => Err(IoError::Unsupported("waiting on a connection")),
        }
    }

    /// Whether an element that listens at `self` may take over from one configured with `old`.
    pub(super) fn can_take_over(&self, old: &ListenAddress) -> bool {
        match (self, old) {
            (ListenAddress::Tcp { next_free: true, .. }, ListenAddress::Tcp { .. }) => true,
            (ListenAddress::Tcp { port, .. }, ListenAddress::Tcp { port: other, .. }) => port == other,
            _ => self == old,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::test_environment::TestEnvironment;
    use core::fmt::Write;

    #[test]
    fn listen_addresses_are_parsed() {
        let names = element::Names::new();
        let setup = Setup::new("cs", (0, 0), &names, &TestEnvironment);
        let mut found = String::new();
        for (kind, text) in [
            ("tcp", "80"),
            ("TCP", "http"),
            ("tcp", "41930+"),
            ("tcp", "0+"),
            ("tcp", "99999"),
            ("unix", "/x/y"),
            ("socket", "3"),
            ("socket", "-3"),
            ("carrier", "pigeon"),
        ] {
            let address = ListenAddress::new(kind, Some(Raw(text.into())), None, None, &setup);
            match address {
                Ok(address) => writeln!(found, "{address:?}"),
                Err(error) => writeln!(found, "{error}"),
            }
            .expect("a string takes all");
        }
        let expected = "Tcp { port: 80, next_free: false }\nTcp { port: 80, next_free: false }\n\
            Tcp { port: 41930, next_free: true }\nPORT requires TCP port\nPORT requires TCP port\nUnix(\"/x/y\")\n\
            Inherited(3)\nFD: parse error\nunknown socket type ‘CARRIER’\n";
        assert_eq!(found, expected);
    }
}
