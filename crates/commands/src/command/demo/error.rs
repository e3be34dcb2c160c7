//! The error of the demonstration.

use std::error::Error;
use std::fmt;
use std::io;

use api::NameError;

/// Why the demonstration with boxes failed.
#[derive(Debug)]
pub(crate) enum DemoError {
    /// The program of the daemon can't be started.
    Daemon(io::Error),
    /// The daemon ended before it was ready.
    NotReady,
    /// A name is invalid.
    Name(NameError),
    /// A port of a switch no longer exists.
    NoPort {
        /// The switch.
        switch: String,
        /// The port.
        port: String,
    },
    /// The killed box did not run again in time.
    NoRestart,
    /// No packets arrived for too long.
    NoPackets,
    /// Ctrl-C was pressed.
    Interrupted,
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon(_) => f.write_str("the daemon can't be started"),
            Self::NotReady => f.write_str("the daemon did not start"),
            Self::Name(error) => error.fmt(f),
            Self::NoPort { switch, port } => write!(f, "the port {port} of {switch} is gone"),
            Self::NoRestart => f.write_str("the killed box did not restart"),
            Self::NoPackets => f.write_str("packets stopped arriving"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl Error for DemoError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Daemon(error) => Some(error),
            // The message is the cause's.
            Self::Name(error) => error.source(),
            Self::NotReady | Self::NoPort { .. } | Self::NoRestart | Self::NoPackets | Self::Interrupted => {
                None
            }
        }
    }
}
