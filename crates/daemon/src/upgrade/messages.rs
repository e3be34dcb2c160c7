//! The messages between a daemon, its helper, and the daemon that takes over.

use super::description::ProgramDescription;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// Maximum bytes of a message: the arguments of a program.
pub(super) const MAX_MESSAGE: usize = 4 << 20;

/// What a daemon asks of its helper. The helper runs the same program, so these messages may change freely.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Start launchers for the requests that come from the descriptor. There is no reply.
    ServeStarts,
    /// Have this program describe itself.
    Describe(PathBuf),
    /// Start this program with these arguments. The descriptors are for the handover.
    Start { program: PathBuf, arguments: Vec<OsString>, handover: HandoverMessage },
}

/// What a helper answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Described(ProgramDescription),
    /// The new daemon is ready. The helper ends.
    Started {
        pid: u32,
    },
    Failed(HelperFailure),
}

/// Why a helper did not start a program, as the rest of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HelperFailure {
    /// It cannot be executed: the number of the system's error.
    Execute(i32),
    /// It did not describe itself.
    NoDescription,
    /// It ended before it was ready: its exit status, if no signal ended it.
    Ended(Option<i32>),
    /// It was not ready in time, and was killed.
    Timeout,
}

impl fmt::Display for HelperFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execute(errno) => {
                write!(f, "can't be executed: {}", std::io::Error::from_raw_os_error(*errno))
            }
            Self::NoDescription => f.write_str("is not a version of clickbox that can take over"),
            Self::Ended(Some(status)) => {
                write!(
                    f,
                    "ended with status {status} before it was ready; its message is in the daemon's log"
                )
            }
            Self::Ended(None) => f.write_str("was ended by a signal before it was ready"),
            Self::Timeout => f.write_str("was not ready in time"),
        }
    }
}

/// What a daemon hands to the one that takes over, in later versions too. The descriptors come in the order of the parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HandoverMessage {
    pub(super) parts: Vec<Part>,
    /// The version and the process ID of the daemon before.
    pub(super) version: String,
    pub(super) pid: u32,
}

/// A descriptor that is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// The listening Unix socket.
    Unix,
    /// The locked file beside it. Without one, another process made the socket and removes it.
    Lock,
    /// The listening TCP socket.
    Tcp,
    /// A part that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The new daemon is ready.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {}
