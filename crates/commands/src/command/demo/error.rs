//! The error of the demonstration.

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitStatus;

use api::NameError;

/// Why a demonstration with boxes failed.
#[derive(Debug)]
pub(crate) enum DemoError {
    /// The program of the daemon can't be started.
    Daemon(io::Error),
    /// The capture in the program can't be decompressed.
    Capture(io::Error),
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
    /// This process may not make network namespaces.
    NoPrivilege,
    /// A network namespace can't be made or entered.
    Namespace(io::Error),
    /// The program `ip` can't be started.
    NoIp(io::Error),
    /// `ip` refused its commands.
    Ip(ExitStatus),
    /// Checks of the demonstration with networks failed.
    ChecksFailed(usize),
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon(_) => f.write_str("the daemon can't be started"),
            Self::Capture(_) => f.write_str("the capture in this program can't be decompressed"),
            Self::NotReady => f.write_str("the daemon did not start"),
            Self::Name(error) => error.fmt(f),
            Self::NoPort { switch, port } => write!(f, "the port {port} of {switch} is gone"),
            Self::NoRestart => f.write_str("the killed box did not restart"),
            Self::NoPackets => f.write_str("packets stopped arriving"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::NoPrivilege => f.write_str(
                "the demonstration makes network namespaces, which only root may do; run it as root",
            ),
            Self::Namespace(_) => f.write_str("a network namespace can't be made"),
            Self::NoIp(_) => f.write_str("the program ip can't be started; install iproute2"),
            Self::Ip(status) => write!(f, "ip can't set up a network ({status})"),
            Self::ChecksFailed(1) => f.write_str("1 check failed"),
            Self::ChecksFailed(count) => write!(f, "{count} checks failed"),
        }
    }
}

impl Error for DemoError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Daemon(error) | Self::Capture(error) | Self::Namespace(error) | Self::NoIp(error) => {
                Some(error)
            }
            // The message is the cause's.
            Self::Name(error) => error.source(),
            Self::NotReady
            | Self::NoPort { .. }
            | Self::NoRestart
            | Self::NoPackets
            | Self::Interrupted
            | Self::NoPrivilege
            | Self::Ip(_)
            | Self::ChecksFailed(_) => None,
        }
    }
}
