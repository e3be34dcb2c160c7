//! Starting a launcher where none listens.
//!
//! A daemon restricts its own system calls, and may then neither fork nor execute. So it starts a process before, the
//! starter, which keeps the daemon's privileges and does nothing but start launchers.

use super::client::{Client, LauncherError, set_limit};
use crate::channel::{Channel, ChannelError};
use crate::hello::StoreIdentity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two attempts to connect, where another daemon is starting the launcher.
const PAUSE: Duration = Duration::from_millis(2);

/// How long a starter waits for a launcher that neither listens nor ends.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables by which a service manager talks to the process that it started.
const SERVICE_VARIABLES: [&str; 5] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID"];

/// Maximum number of bytes of a request and of a reply.
const MAX_MESSAGE: usize = 64;

/// Asks a starter for a launcher.
#[derive(Debug, Serialize, Deserialize)]
struct StartLauncher;

/// The launcher listens or has ended, or cannot be started for a reason with this number.
type Started = Result<(), i32>;

/// A process that starts launchers for this one. It ends with this value.
#[derive(Debug)]
pub struct Starter {
    /// The program, for messages.
    program: PathBuf,
    channel: Mutex<Channel>,
}

impl Starter {
    /// Starts the process with a command that calls [`serve_starts`]. Its standard input is the channel to it.
    pub fn spawn(mut command: Command) -> Result<Self, LauncherError> {
        let program = PathBuf::from(command.get_program());
        let failed = |error| LauncherError::Start(program.clone(), error);
        let (channel, theirs) = Channel::pair().map_err(failed)?;
        command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn().map_err(failed)?;
        Ok(Self { program, channel: Mutex::new(channel) })
    }

    /// One in a process that has other duties, too: it serves the other end of the channel with [`serve_starts_at`].
    pub fn elsewhere(program: PathBuf) -> io::Result<(Self, OwnedFd)> {
        let (channel, theirs) = Channel::pair()?;
        Ok((Self { program, channel: Mutex::new(channel) }, theirs.into()))
    }

    /// Starts a launcher. It returns when the launcher listens, or has ended because it cannot.
    fn start(&self, timeout: Duration) -> Result<(), LauncherError> {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        set_limit(channel.as_fd(), timeout).map_err(|error| self.failed(error.into()))?;
        channel.send(&StartLauncher, &[]).map_err(LauncherError::Channel)?;
        match channel.receive::<Started>(MAX_MESSAGE).map_err(LauncherError::Channel)? {
            Some(received) => {
                received.message.map_err(|errno| self.failed(io::Error::from_raw_os_error(errno)))
            }
            None => Err(LauncherError::Channel(ChannelError::Closed)),
        }
    }

    fn failed(&self, error: io::Error) -> LauncherError {
        LauncherError::Start(self.program.clone(), error)
    }
}

/// Starts a launcher with `command` for each request that arrives on standard input, until that closes.
///
/// The command must run the launcher in a session of its own, so that Ctrl-C in a terminal does not reach it:
/// `clickbox launcher --detached --socket PATH`. Its standard input is a pipe, which the launcher closes when it listens.
pub fn serve_starts(command: impl FnMut() -> Command) -> Result<(), ChannelError> {
    serve_starts_at(&Channel::from(io::stdin().as_fd().try_clone_to_owned()?), command)
}

/// As [`serve_starts`], for the requests of a channel.
pub fn serve_starts_at(channel: &Channel, mut command: impl FnMut() -> Command) -> Result<(), ChannelError> {
    while channel.receive::<StartLauncher>(MAX_MESSAGE)?.is_some() {
        let started: Started =
            run(command()).map_err(|error| error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()));
        channel.send(&started, &[])?;
    }
    Ok(())
}

/// Runs a launcher. It returns when the launcher listens or has ended.
fn run(mut command: Command) -> io::Result<()> {
    // They are for the daemon only.
    for name in SERVICE_VARIABLES {
        command.env_remove(name);
    }
    let (ready, input) = io::pipe()?;
    let mut child = command.stdin(Stdio::from(input)).stdout(Stdio::null()).spawn()?;
    // The command holds the other end of the pipe.
    drop(command);
    // Without a thread that waits for it, the launcher would stay a zombie when it ends before this process.
    thread::spawn(move || child.wait());
    // The pipe ends when the launcher listens, and also when it fails; connecting tells which.
    poll(&mut [PollFd::new(&ready, PollFlags::IN)], Timespec::try_from(START_TIMEOUT).ok().as_ref())?;
    Ok(())
}

/// Connects to the launcher at `path`, and has one started if none listens.
pub fn start(
    starter: &Starter,
    path: &Path,
    store: StoreIdentity,
    timeout: Duration,
) -> Result<Client, LauncherError> {
    let deadline = Instant::now() + timeout;
    match Client::connect(path, store, timeout) {
        Err(error) if error.is_absent() => {}
        result => return result,
    }
    starter.start(timeout)?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match Client::connect(path, store, timeout) {
            // The launcher found another one that does not listen yet.
            Err(error) if error.is_absent() && !left.is_zero() => thread::sleep(PAUSE),
            result => return result,
        }
    }
}
