//! The error of a call.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::address::Address;
use crate::{ApiError, ErrorCode};

/// Why a call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The daemon can't be reached.
    NoDaemon {
        /// Its address.
        address: Address,
        /// The error of the system.
        cause: io::Error,
    },
    /// The daemon returned an error.
    Api(ApiError),
    /// The file of trusted certificates can't be used.
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why it can't be used.
        cause: io::Error,
    },
    /// The connection broke, or TLS failed.
    Connection {
        /// Its address.
        address: Address,
        /// What happened.
        cause: io::Error,
    },
    /// The reply is not one of this operation: the peer is no daemon, or one of another version.
    Unexpected {
        /// Its status.
        status: u16,
        /// How the reply differs.
        cause: io::Error,
    },
}

impl ClientError {
    /// The code, if the daemon returned one.
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
            Self::NoDaemon { address: address @ Address::Unix(_), cause }
                if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                write!(f, "no daemon is running at {address}")
            }
            Self::NoDaemon { address, .. } => write!(f, "the daemon at {address} can't be reached"),
            Self::Api(error) => error.fmt(f),
            Self::Certificates { path, .. } => {
                write!(f, "the certificates in {} can't be used", path.display())
            }
            Self::Connection { address, .. } => write!(f, "the connection to {address} failed"),
            Self::Unexpected { status, .. } => {
                write!(f, "the reply (status {status}) does not fit this version of the API")
            }
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The message already contains the cause.
            Self::NoDaemon { address: Address::Unix(_), cause }
                if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                None
            }
            Self::NoDaemon { cause, .. }
            | Self::Certificates { cause, .. }
            | Self::Connection { cause, .. }
            | Self::Unexpected { cause, .. } => Some(cause),
            Self::Api(_) => None,
        }
    }
}
