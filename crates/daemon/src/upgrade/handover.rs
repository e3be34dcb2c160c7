//! The end of a handover at the daemon that takes over.

pub(crate) use super::messages::Part;
use super::messages::{HandoverMessage, MAX_MESSAGE, Ready};
use protocol::{Channel, ChannelError, Received};
use rustix::stdio::dup2_stdin;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// What this daemon takes over from another one.
#[derive(Debug)]
pub struct Handover {
    pub(crate) parts: Vec<(Part, OwnedFd)>,
    pub(crate) origin: Origin,
}

/// The daemon that is replaced, which waits until this one is ready.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) version: String,
    pub(crate) pid: u32,
    channel: Channel,
}

/// Why nothing can be taken over.
#[derive(Debug)]
pub enum HandoverError {
    /// The operating system reported an error.
    System(io::Error),
    /// Standard input is no channel to a daemon's helper, or its message is damaged.
    Channel(Option<ChannelError>),
}

impl Handover {
    /// Takes over what the daemon's helper sends on standard input, which is `/dev/null` from then on.
    pub fn receive() -> Result<Self, HandoverError> {
        let channel = Channel::from(io::stdin().as_fd().try_clone_to_owned().map_err(HandoverError::System)?);
        let null = File::open("/dev/null").map_err(HandoverError::System)?;
        dup2_stdin(null).map_err(|error| HandoverError::System(error.into()))?;
        let received = channel.receive::<HandoverMessage>(MAX_MESSAGE);
        let received = received.map_err(|error| HandoverError::Channel(Some(error)))?;
        let Some(Received { message, descriptors }) = received else {
            return Err(HandoverError::Channel(None));
        };
        let HandoverMessage { parts, version, pid } = message;
        let parts = parts.into_iter().zip(descriptors).collect();
        Ok(Self { parts, origin: Origin { version, pid, channel } })
    }
}

impl Origin {
    /// Tells the daemon before that it may end.
    pub(crate) fn tell_ready(&self) {
        // It may have been killed.
        let _ = self.channel.send(&Ready {}, &[]);
    }
}

impl fmt::Display for HandoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Channel(_) => f.write_str("there is no daemon to take over from"),
        }
    }
}

impl Error for HandoverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            Self::Channel(error) => error.as_ref().map(|error| error as _),
        }
    }
}
