//! Why an agent ends.

use protocol::launcher::FabricEndError;
use protocol::{ChannelError, HelloError};
use rustix::io::Errno;
use seccomp::FilterError;
use std::error::Error;
use std::fmt;

/// Why an agent ends.
#[derive(Debug)]
pub(crate) enum AgentError {
    /// It was not started by a launcher.
    Start(FabricEndError),
    /// A limit could not be set.
    Limit(Errno),
    /// The system call filter was refused.
    Filter(FilterError),
    /// The conversation with the fabric failed.
    Channel(ChannelError),
    /// The fabric speaks another version.
    Hello(HelloError),
    /// The fabric's message is no reply to the request.
    NotAReply,
    /// It cannot wait for its sockets.
    Wait(Errno),
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(_) => f.write_str("a launcher must start the agent"),
            Self::Limit(_) => f.write_str("can't limit the memory of the agent"),
            Self::Filter(_) => f.write_str("can't limit the system calls of the agent"),
            Self::Channel(_) => f.write_str("the conversation with the fabric failed"),
            Self::Hello(_) => f.write_str("the fabric can't work with this agent"),
            Self::NotAReply => f.write_str("the fabric's message is no reply to the request"),
            Self::Wait(_) => f.write_str("can't wait for controllers"),
        }
    }
}

impl Error for AgentError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Start(error) => Some(error),
            Self::Limit(error) | Self::Wait(error) => Some(error),
            Self::Filter(error) => Some(error),
            Self::Channel(error) => Some(error),
            Self::Hello(error) => Some(error),
            Self::NotAReply => None,
        }
    }
}
