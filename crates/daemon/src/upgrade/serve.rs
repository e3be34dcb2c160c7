//! The helper's process.

use super::description::ProgramDescription;
use super::messages::{HandoverMessage, HelperFailure, MAX_MESSAGE, Ready, Reply, Request};
use protocol::{Channel, Received};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The arguments with which a program describes itself. They are the same in all versions.
const DESCRIBE: [&str; 2] = ["upgrade", "--describe"];

/// Maximum bytes of a description.
const MAX_DESCRIPTION: usize = 1 << 16;

/// How long a program may take to describe itself.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a new daemon may take until it is ready: a large store may have to be converted.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a new daemon that has given up may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Variables that belong to one process, and not to its successor.
const OWN_VARIABLES: [&str; 3] = ["LISTEN_FDS", "LISTEN_PID", "WATCHDOG_PID"];

/// Starts launchers for the requests of a channel.
pub type ServeStarts = Box<dyn Fn(&Channel) + Send + Sync>;

/// Serves a daemon, whose channel is standard input, until it ends or has a successor. If the daemon asks for it, `serve_starts`
/// runs in a thread, with a channel for the requests for launchers.
pub fn serve_upgrades(serve_starts: Option<ServeStarts>) -> io::Result<()> {
    let serve_starts = serve_starts.map(Arc::new);
    let daemon = Channel::from(io::stdin().as_fd().try_clone_to_owned()?);
    while let Ok(Some(Received { message, descriptors })) = daemon.receive::<Request>(MAX_MESSAGE) {
        let reply = match message {
            Request::ServeStarts => {
                if let (Some(serve), Some(descriptor)) =
                    (serve_starts.clone(), descriptors.into_iter().next())
                {
                    std::thread::spawn(move || serve(&Channel::from(descriptor)));
                }
                continue;
            }
            Request::Describe(program) => describe(&program).map(Reply::Described),
            Request::Start { program, arguments, handover } => {
                start(&program, &arguments, &handover, &descriptors).map(|pid| Reply::Started { pid })
            }
        };
        let reply = reply.unwrap_or_else(Reply::Failed);
        // A daemon that has ended needs no answer.
        let is_last = daemon.send(&reply, &[]).is_err() || matches!(reply, Reply::Started { .. });
        if is_last {
            return Ok(());
        }
    }
    Ok(())
}

fn execute(error: &io::Error) -> HelperFailure {
    HelperFailure::Execute(error.raw_os_error().unwrap_or_default())
}

/// Waits until something can be read or has closed. Returns false if that takes too long.
fn wait(descriptor: BorrowedFd<'_>, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).ok();
    poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], timeout.as_ref())
        .is_ok_and(|ready| ready > 0)
}

fn kill(mut child: Child) -> Option<i32> {
    let _ = child.kill();
    child.wait().ok().and_then(|status| status.code())
}

/// Waits for a process that is about to end, and returns its status.
fn end(mut child: Child) -> Option<i32> {
    let deadline = Instant::now() + END_TIMEOUT;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(END_TIMEOUT / 200),
            ended => return ended.ok().flatten().and_then(|status| status.code()),
        }
    }
    kill(child)
}

fn describe(program: &Path) -> Result<ProgramDescription, HelperFailure> {
    let mut command = Command::new(program);
    command.args(DESCRIBE).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| execute(&error))?;
    let deadline = Instant::now() + DESCRIBE_TIMEOUT;
    let (mut text, mut bytes) = (Vec::new(), [0; 4096]);
    if let Some(mut output) = child.stdout.take() {
        while text.len() < MAX_DESCRIPTION && wait(output.as_fd(), deadline) {
            match output.read(&mut bytes) {
                Ok(count) if count > 0 => text.extend(bytes.iter().take(count)),
                _ => break,
            }
        }
    }
    // It has closed its output, or says too much.
    kill(child);
    serde_json::from_slice(&text).map_err(|_| HelperFailure::NoDescription)
}

/// Starts a daemon, and waits until it is ready.
fn start(
    program: &Path,
    arguments: &[OsString],
    handover: &HandoverMessage,
    descriptors: &[OwnedFd],
) -> Result<u32, HelperFailure> {
    let (near, far) = Channel::pair().map_err(|error| execute(&error))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::from(OwnedFd::from(far)));
    for name in OWN_VARIABLES {
        command.env_remove(name);
    }
    let child = command.spawn().map_err(|error| execute(&error))?;
    // The command holds the other end of the channel.
    drop(command);
    let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    if near.send(handover, &descriptors).is_err() {
        // It has closed its end.
        return Err(HelperFailure::Ended(end(child)));
    }
    if !wait(near.as_fd(), Instant::now() + READY_TIMEOUT) {
        kill(child);
        return Err(HelperFailure::Timeout);
    }
    match near.receive::<Ready>(MAX_MESSAGE) {
        Ok(Some(_)) => Ok(child.id()),
        _ => Err(HelperFailure::Ended(end(child))),
    }
}
