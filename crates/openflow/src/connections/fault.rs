//! Why connections to controllers end or fail.

use std::fmt;
use std::io;

/// Why a connection to a controller ended or failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConnectionFault {
    /// The system reported an error with this number.
    System(i32),
    /// It did not come about in time.
    Timeout,
    /// The controller closed it.
    Closed,
    /// The controller speaks another protocol or version, is silent, or violates the protocol.
    Session,
    /// The agent has too many sessions.
    TooMany,
    /// The switch has no certificates for TLS.
    NoCertificate,
    /// TLS failed: for example, the controller's certificate is of another authority.
    Tls(rustls::Error),
}

impl fmt::Display for ConnectionFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(number) => io::Error::from_raw_os_error(*number).fmt(formatter),
            Self::Timeout => formatter.write_str("the controller does not answer"),
            Self::Closed => formatter.write_str("the controller closed the connection"),
            Self::Session => formatter
                .write_str("the controller does not speak OpenFlow 1.3 or 1.0, or did not respond in time"),
            Self::TooMany => formatter.write_str("there are too many sessions"),
            Self::NoCertificate => formatter.write_str(
                "there is no certificate for TLS: the launcher runs without the option --controller-certificate",
            ),
            Self::Tls(error) => write!(formatter, "TLS failed: {error}"),
        }
    }
}

impl std::error::Error for ConnectionFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message.
            Self::Tls(error) => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for ConnectionFault {
    fn from(error: io::Error) -> Self {
        if let Some(number) = error.raw_os_error() {
            return Self::System(number);
        }
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        inner.map_or(Self::Closed, |error| Self::Tls(error.clone()))
    }
}
