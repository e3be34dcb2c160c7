//! How a fabric ended.

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Why a fabric ends on its own. It is the last thing that it tells its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// A daemon ordered it.
    Ordered,
    /// It had neither boxes nor a daemon.
    Empty,
    /// It had neither a launcher nor a daemon.
    Abandoned,
    /// Its daemon has ended, which it does not outlive.
    WithDaemon,
    /// A reason that this version does not know.
    #[serde(other)]
    Unknown,
}

/// How a fabric ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// With this exit status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// On its own. An earlier launcher started it, so the exit status is not known.
    Reason(EndReason),
    /// It did not say why: it was killed, or it crashed. Its exit status is not known, or not yet.
    Silent,
}

impl Ending {
    /// Whether something is amiss.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::Status(0) | Self::Reason(_))
    }
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Status(status.code().unwrap_or_default()),
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ordered => "a daemon ended it",
            Self::Empty => "it had neither boxes nor a daemon",
            Self::Abandoned => "it had neither a launcher nor a daemon",
            Self::WithDaemon => "its daemon had ended",
            Self::Unknown => "for a reason that this version does not know",
        })
    }
}

/// The predicate of a sentence about the fabric.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "ended with status {status}"),
            Self::Signal(signal) if *signal == Signal::SYS.as_raw() => {
                f.write_str("was ended because it made a forbidden system call")
            }
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Reason(reason) => write!(f, "ended: {reason}"),
            Self::Silent => f.write_str("was killed or crashed"),
        }
    }
}
