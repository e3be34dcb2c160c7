//! The address of a daemon.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The environment variable with the daemon's address.
pub const SOCKET_VARIABLE: &str = "CLICKBOX_SOCKET";

/// The socket of the system's daemon.
const SYSTEM_SOCKET: &str = "/run/clickbox/clickbox.sock";

/// The address of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port, with TLS.
    Tls {
        /// `HOST` or `HOST:PORT`, as in a URL.
        authority: String,
    },
}

/// Text that is not a valid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressError;

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected the path of a socket or https://HOST:PORT")
    }
}

impl std::error::Error for AddressError {}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.strip_prefix("https://") {
            Some(authority) => {
                let authority = authority.strip_suffix('/').unwrap_or(authority);
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
                if authority.is_empty() || !authority.bytes().all(plain) {
                    return Err(AddressError);
                }
                Ok(Self::Tls { authority: authority.to_string() })
            }
            None => match text.strip_prefix("unix:").unwrap_or(text) {
                path if path.is_empty() || path.contains("://") => Err(AddressError),
                path => Ok(Self::Unix(path.into())),
            },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tls { authority } => write!(f, "https://{authority}"),
        }
    }
}

impl Address {
    /// The daemon's address: `$CLICKBOX_SOCKET`, else the first of the default [`sockets`] that exists, else the
    /// default socket of this user's daemon.
    ///
    /// # Errors
    ///
    /// The variable is set to an invalid address.
    pub fn from_environment() -> Result<Self, AddressError> {
        if let Some(text) = std::env::var_os(SOCKET_VARIABLE).filter(|text| !text.is_empty()) {
            return text.to_str().ok_or(AddressError)?.parse();
        }
        let usual = sockets();
        let there = usual.iter().find(|path| path.exists()).or(usual.first());
        Ok(Self::Unix(there.cloned().unwrap_or_else(|| SYSTEM_SOCKET.into())))
    }
}

/// The default sockets of daemons: in the user's runtime directory, if there is one, then the system's. A daemon uses
/// the first.
pub fn sockets() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let own = own.map(|folder| PathBuf::from(folder).join("clickbox.sock"));
    own.into_iter().chain([SYSTEM_SOCKET.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_paths_or_hosts() {
        assert_eq!("/run/x.sock".parse(), Ok(Address::Unix("/run/x.sock".into())));
        assert_eq!("unix:x.sock".parse(), Ok(Address::Unix("x.sock".into())));
        for text in ["https://box.example:7443", "https://[::1]:7443"] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()), Ok(text.to_string()));
        }
        for bad in ["", "unix:", "https://", "http://box.example", "https://a/b", "https://user@host"] {
            assert_eq!(bad.parse::<Address>(), Err(AddressError), "{bad}");
        }
    }
}
