//! The daemon's end of the conversation with its helper.

use super::description::ProgramDescription;
use super::error::UpgradeError;
use super::messages::{HandoverMessage, MAX_MESSAGE, Part, Reply, Request};
use protocol::launcher::Starter;
use protocol::{Channel, ChannelError, Received};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// A process that starts the daemon's successor. It ends with this value.
#[derive(Debug)]
pub struct UpgradeHelper {
    channel: Mutex<Channel>,
    process: Mutex<Child>,
    /// The program of this daemon: the path under which it was started.
    program: PathBuf,
    /// The arguments of this daemon, with one that makes it take over.
    arguments: Vec<OsString>,
}

impl UpgradeHelper {
    /// Starts a helper with a command that calls [`serve_upgrades`](super::serve_upgrades). The successor is started
    /// with these arguments, and inherits what the command has: environment, folder, standard output and standard error.
    /// No thread is started: threads that run before [`confine`](crate::confine) would keep capabilities.
    pub fn spawn(mut command: Command, arguments: Vec<OsString>) -> io::Result<Self> {
        let (near, far) = Channel::pair()?;
        let program = PathBuf::from(command.get_program());
        let process = command.stdin(Stdio::from(OwnedFd::from(far))).spawn()?;
        Ok(Self { channel: Mutex::new(near), process: Mutex::new(process), program, arguments })
    }

    /// Has the process start launchers, too.
    pub fn starter(&self) -> io::Result<Starter> {
        let (starter, theirs) = Starter::elsewhere(self.program.clone())?;
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        channel.send(&Request::ServeStarts, &[theirs.as_fd()]).map_err(io::Error::other)?;
        Ok(starter)
    }

    /// The path under which this daemon's program was started.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Has a program describe itself.
    pub(crate) fn describe(&self, program: &Path) -> Result<ProgramDescription, UpgradeError> {
        match self.ask(&Request::Describe(program.into()), &[])? {
            Reply::Described(description) => Ok(description),
            Reply::Failed(failure) => Err(UpgradeError::Program(program.into(), failure)),
            Reply::Started { .. } => Err(UpgradeError::Helper(None)),
        }
    }

    /// Starts the successor and waits until it is ready. Returns its process ID.
    pub(crate) fn start(
        &self,
        program: &Path,
        parts: &[(Part, BorrowedFd<'_>)],
    ) -> Result<u32, UpgradeError> {
        let handover = HandoverMessage {
            parts: parts.iter().map(|(part, _)| *part).collect(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
        };
        let descriptors: Vec<BorrowedFd<'_>> = parts.iter().map(|(_, descriptor)| *descriptor).collect();
        let arguments = self.arguments.clone();
        match self.ask(&Request::Start { program: program.into(), arguments, handover }, &descriptors)? {
            Reply::Started { pid } => Ok(pid),
            Reply::Failed(failure) => Err(UpgradeError::Program(program.into(), failure)),
            Reply::Described(_) => Err(UpgradeError::Helper(None)),
        }
    }

    fn ask(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> Result<Reply, UpgradeError> {
        let gone = |error: Option<ChannelError>| {
            // One that has ended would stay a zombie.
            let _ = self.process.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
            UpgradeError::Helper(error)
        };
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        channel.send(request, descriptors).map_err(|error| gone(Some(error)))?;
        match channel.receive(MAX_MESSAGE).map_err(|error| gone(Some(error)))? {
            Some(Received { message, .. }) => Ok(message),
            None => Err(gone(None)),
        }
    }
}
