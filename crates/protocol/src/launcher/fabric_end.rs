//! A fabric's end of the conversation with its launcher.

use super::messages::{MAX_REQUEST, ToFabric};
use crate::StoreIdentity;
use crate::channel::{Channel, ChannelError};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, listen};
use rustix::process::{DumpableBehavior, Gid, Uid, set_dumpable_behavior, setsid};
use rustix::stdio::dup2_stdin;
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Launchers that wait to be accepted. Only one lives at a time; the others have ended.
const SUCCESSOR_BACKLOG: i32 = 16;

/// What a launcher gives to a fabric at its start.
#[derive(Debug)]
pub struct FabricEnd {
    /// The launcher's messages. It ends with the launcher.
    pub launcher: Channel,
    /// Where the next launcher connects, if this one has already let the fabric listen.
    pub successors: Option<SuccessorListener>,
    /// The store that the fabric serves.
    pub store: StoreIdentity,
    /// `/dev/kvm`, if the host has it and the launcher may open it.
    pub kvm: Option<OwnedFd>,
}

/// Where the launcher connects that follows one that was killed. The kernel tells it which process listens here.
#[derive(Debug)]
pub struct SuccessorListener(OwnedFd);

impl SuccessorListener {
    /// Listens at a bound socket.
    ///
    /// # Errors
    ///
    /// The descriptor is no bound socket.
    pub fn listen(socket: OwnedFd) -> io::Result<Self> {
        listen(&socket, SUCCESSOR_BACKLOG)?;
        Ok(Self(socket))
    }

    /// Waits for the next launcher.
    pub fn accept(&self) -> io::Result<Channel> {
        loop {
            match accept_with(&self.0, SocketFlags::CLOEXEC) {
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                result => return Ok(Channel::from(result?)),
            }
        }
    }
}

/// Why a process cannot become a fabric.
#[derive(Debug)]
pub enum FabricEndError {
    /// The operating system reported an error.
    System(io::Error),
    /// Standard input is no channel, or the launcher's message is damaged.
    Channel(ChannelError),
    /// The launcher did not say which store the fabric serves.
    NoIdentity,
    /// The launcher ended before it said anything: the fabric was not needed.
    Unused,
}

/// Makes this process a fabric, which its launcher started: receives what the launcher gives, leaves the terminal's
/// session, becomes another user if the launcher says so, and gives up all capabilities. Call it before any other thread
/// runs, because users and capabilities belong to threads.
///
/// The channel to the launcher arrives as standard input, which is `/dev/null` from then on: that needs no number of a
/// descriptor that both sides agree on, and no `unsafe` to take it over.
pub fn become_fabric() -> Result<FabricEnd, FabricEndError> {
    let launcher = Channel::from(io::stdin().as_fd().try_clone_to_owned()?);
    dup2_stdin(File::open("/dev/null")?)?;
    // It fails only in a process that leads a session or a process group already.
    let _ = setsid();
    set_no_new_privs(true)?;
    let mut successors = None;
    let mut is_used = false;
    let (store, kvm) = loop {
        let end = if is_used { FabricEndError::NoIdentity } else { FabricEndError::Unused };
        let received =
            launcher.receive::<ToFabric>(MAX_REQUEST).map_err(FabricEndError::Channel)?.ok_or(end)?;
        is_used = true;
        let descriptor = received.descriptors.into_iter().next();
        match (received.message, descriptor) {
            (ToFabric::User(user), _) => become_user(user)?,
            // The kernel notes the process and its user at this moment.
            (ToFabric::Successor, Some(socket)) => successors = Some(SuccessorListener::listen(socket)?),
            (ToFabric::Identity(store), kvm) => break (store, kvm),
            (ToFabric::Successor, None) | (ToFabric::Daemon | ToFabric::Agent, _) => {
                return Err(FabricEndError::NoIdentity);
            }
        }
    };
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(FabricEnd { launcher, successors, store, kvm })
}

/// Makes this process the agent of a fabric: takes over the channel to the fabric from standard input, leaves the terminal's
/// session, becomes another user if one is given, and gives up all capabilities. Call it before any other thread runs.
///
/// # Errors
///
/// See [`FabricEndError`].
pub fn become_agent(user: Option<u32>) -> Result<Channel, FabricEndError> {
    let fabric = Channel::from(io::stdin().as_fd().try_clone_to_owned()?);
    dup2_stdin(File::open("/dev/null")?)?;
    // It fails only in a process that leads a session or a process group already.
    let _ = setsid();
    set_no_new_privs(true)?;
    if let Some(user) = user {
        become_user(user)?;
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(fabric)
}

/// Becomes a user other than root, without groups.
fn become_user(user: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    // After a change of the user, the files of this process in /proc belong to root: it could not map its user into a
    // user namespace for its boxes.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(())
}

impl fmt::Display for FabricEndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Channel(_) => f.write_str("a launcher must start the fabric"),
            Self::Unused => f.write_str("the launcher ended before it used the fabric"),
            Self::NoIdentity => f.write_str("the launcher did not name the fabric's store"),
        }
    }
}

impl Error for FabricEndError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            Self::Channel(error) => Some(error),
            Self::NoIdentity | Self::Unused => None,
        }
    }
}

impl From<io::Error> for FabricEndError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustix::io::Errno> for FabricEndError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}
