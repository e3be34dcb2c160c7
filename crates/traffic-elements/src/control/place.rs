//! The address at which an element accepts control connections.

use element::arguments::{FromArgument, Raw, TcpPort};
use element::prelude::*;
use element::{Environment, IoError, Listener, Message, SocketAddress};

/// Ports tried after the given one if it has a `+`.
const MAX_PORTS: u16 = 11;

/// An address to accept connections at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A TCP port, or with `more` the first free one after it.
    Tcp { port: u16, more: bool },
    /// A Unix socket.
    Unix(String),
    /// A connected descriptor inherited by the process.
    Inherited(i32),
}

impl Place {
    /// Parses the arguments of an element: the type, and the value after it or PORT, FILENAME, FD.
    pub(super) fn new(
        kind: &str,
        port: Option<Raw>,
        filename: Option<String>,
        descriptor: Option<Raw>,
        setup: &Setup,
    ) -> Result<Place, SetupError> {
        let missing = |keyword| SetupError { messages: vec![Message::Missing { keyword }] };
        match kind.to_ascii_uppercase().as_str() {
            "TCP" => {
                let text = element::text::unquote(&port.ok_or_else(|| missing("PORT"))?.0);
                let (number, more) = text.strip_suffix('+').map_or((&*text, false), |number| (number, true));
                match TcpPort::from_argument(number, setup) {
                    Ok(TcpPort(port)) if !more || port > 0 => Ok(Place::Tcp { port, more }),
                    _ => Err(SetupError::new("PORT requires TCP port")),
                }
            }
            "UNIX" => {
                let name = filename.or_else(|| port.map(|text| element::text::unquote(&text.0)));
                let name = name.filter(|name| !name.is_empty()).ok_or_else(|| missing("FILENAME"))?;
                if name.len() > SocketAddress::LONGEST_PATH {
                    return Err(SetupError::new("filename too long"));
                }
                Ok(Place::Unix(name))
            }
            "SOCKET" => {
                let text = descriptor.or(port).ok_or_else(|| missing("FD"))?.0;
                let number = text.trim().parse::<u16>();
                let number = number.map_err(|_| SetupError::argument("FD", "parse error"))?;
                Ok(Place::Inherited(number.into()))
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
            Place::Tcp { port, more } => {
                let last = if *more { port.saturating_add(MAX_PORTS) } else { *port };
                let mut result = environment.listen(&format!("tcp:{host}:{port}"));
                for port in *port..last {
                    if matches!(result, Ok(_) | Err(IoError::Unsupported(_))) {
                        break;
                    }
                    result = environment.listen(&format!("tcp:{host}:{}", port + 1));
                }
                result
            }
            Place::Unix(name) => environment.listen(&format!("unix:{name}")),
            Place::Inherited(_) => Err(IoError::Unsupported("waiting on a connection")),
        }
    }

    /// Whether an element that listens at `self` may take over from one configured with `old`.
    pub(super) fn succeeds(&self, old: &Place) -> bool {
        match (self, old) {
            (Place::Tcp { more: true, .. }, Place::Tcp { .. }) => true,
            (Place::Tcp { port, .. }, Place::Tcp { port: other, .. }) => port == other,
            _ => self == old,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::nowhere::Nowhere;
    use core::fmt::Write;

    #[test]
    fn places() {
        let names = element::Names::new();
        let setup = Setup::new("cs", (0, 0), &names, &Nowhere);
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
            let place = Place::new(kind, Some(Raw(text.into())), None, None, &setup);
            match place {
                Ok(place) => writeln!(found, "{place:?}"),
                Err(error) => writeln!(found, "{error}"),
            }
            .expect("a string takes all");
        }
        let expected = "Tcp { port: 80, more: false }\nTcp { port: 80, more: false }\n\
            Tcp { port: 41930, more: true }\nPORT requires TCP port\nPORT requires TCP port\nUnix(\"/x/y\")\n\
            Inherited(3)\nFD: parse error\nunknown socket type ‘CARRIER’\n";
        assert_eq!(found, expected);
    }
}
