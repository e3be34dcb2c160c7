//! Why a call failed.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::address::Address;
use crate::error::{ApiError, ErrorCode};

/// Why a call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens there.
    NoDaemon {
        /// Where.
        address: Address,
        /// What the system says.
        cause: io::Error,
    },
    /// The daemon refused.
    Api(ApiError),
    /// The file of certificates that are to be trusted can't be used.
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The connection broke, or TLS failed.
    Connection {
        /// Where.
        address: Address,
        /// What happened.
        cause: io::Error,
    },
    /// The reply is not what this operation returns: what listens there is not a daemon, or one of another version.
    Unexpected {
        /// Its status.
        status: u16,
        /// What is wrong with it.
        cause: io::Error,
    },
}

impl ClientError {
    /// The code, if it is the daemon that refused.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Api(error) => Some(error.code),
            _ => None,
        }
    }

    pub(crate) fn unexpected(
        status: u16,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unexpected { status, cause: io::Error::new(io::ErrorKind::InvalidData, cause) }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDaemon { address: address @ Address::Unix(_), cause } => match cause.kind() {
                io::ErrorKind::PermissionDenied => {
                    write!(f, "the daemon at {address} belongs to another user: ask as that user, or as root")
                }
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    let place = match Address::from_environment().as_ref() == Ok(address) {
                        true => String::new(),
                        false => format!(" --socket {address}"),
                    };
                    write!(f, "no daemon runs at {address}: start one with `clickbox daemon{place} &`")
                }
                _ => write!(f, "no daemon can be reached at {address}: {cause}"),
            },
            Self::NoDaemon { address, cause } => write!(f, "no daemon can be reached at {address}: {cause}"),
            Self::Api(error) => error.fmt(f),
            Self::Certificates { path, cause } => {
                write!(f, "the certificates in {} can't be used: {cause}", path.display())
            }
            Self::Connection { address: address @ Address::Tls { .. }, cause }
                if cause.kind() == io::ErrorKind::InvalidData =>
            {
                // A certificate that may sign others is believed for those, and not for itself.
                let hint = match format!("{cause:?}").contains("CaUsedAsEndEntity") {
                    true => {
                        "its certificate is one that signs others: make the daemon one that does not, as by \
                         `openssl req -x509 -addext basicConstraints=critical,CA:FALSE ...`"
                    }
                    false => "name its certificate with --certificates FILE",
                };
                write!(f, "{address} can't be trusted: {cause}; {hint}")
            }
            Self::Connection { address, cause } => write!(f, "the connection to {address} failed: {cause}"),
            Self::Unexpected { status, cause } => {
                write!(f, "the reply (status {status}) is not one of a daemon of this version: {cause}")
            }
        }
    }
}

impl std::error::Error for ClientError {}
