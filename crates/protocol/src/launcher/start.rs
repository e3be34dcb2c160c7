//! Starting a launcher where none listens.

use super::client::{Client, LauncherError};
use crate::channel::ChannelError;
use crate::hello::StoreIdentity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two attempts to connect, where another daemon is starting the launcher.
const PAUSE: Duration = Duration::from_millis(2);

/// Connects to the launcher at `path`, and starts it with `command` if none listens.
///
/// The command must run the launcher for this path in a session of its own, so that Ctrl-C in a terminal does not
/// reach it: `clickbox launcher --detached --socket PATH`. Its standard output and standard error are the caller's. Its
/// standard input is a pipe, which the launcher closes when it listens.
pub fn start(
    mut command: Command,
    path: &Path,
    store: StoreIdentity,
    timeout: Duration,
) -> Result<Client, LauncherError> {
    let deadline = Instant::now() + timeout;
    match Client::connect(path, store, timeout) {
        Err(error) if is_absent(&error) => {}
        result => return result,
    }
    let failed = |error, command: &Command| LauncherError::Start(command.get_program().into(), error);
    let (ready, input) = io::pipe().map_err(|error| failed(error, &command))?;
    let mut child = command.stdin(Stdio::from(input)).spawn().map_err(|error| failed(error, &command))?;
    // The command holds the other end of the pipe.
    drop(command);
    // Without a thread that waits for it, the launcher would stay a zombie when it ends before this process.
    thread::spawn(move || child.wait());
    let mut ends = [PollFd::new(&ready, PollFlags::IN)];
    // The pipe ends when the launcher listens, and also when it fails; connecting tells which.
    let _ = poll(&mut ends, Timespec::try_from(timeout).ok().as_ref());
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match Client::connect(path, store, timeout) {
            // The launcher found another one that does not listen yet.
            Err(error) if is_absent(&error) && !left.is_zero() => thread::sleep(PAUSE),
            result => return result,
        }
    }
}

/// Whether nothing listens at the path, or what listened there was just about to end.
fn is_absent(error: &LauncherError) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    match error {
        LauncherError::Connect(_, error) => matches!(error.kind(), ConnectionRefused | NotFound),
        LauncherError::Channel(ChannelError::Closed) => true,
        _ => false,
    }
}
