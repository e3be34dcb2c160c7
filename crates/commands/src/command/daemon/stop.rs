//! `clickbox daemon stop`: ends the daemon, and with `--all` everything.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use api::client::{Address, ClientError};
use api::{StopQuery, StopReply, operation};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;

use super::paths::{default_store, launcher_socket};
use crate::error::CommandError;
use crate::online::Connection;
use crate::output;

/// How long the command waits for a process that was told to end.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// End the daemon.
///
/// Boxes and traffic go on, and the next daemon with the same store adopts them. Boxes of a daemon without a store end
/// with it. With `--all`, everything ends: daemon, fabric, boxes, and the launcher, unless it runs with `--stay`. The
/// store is unchanged, so the next daemon starts all boxes again. The command returns when the daemon has ended, except
/// over TCP.
#[derive(Args)]
#[command(after_help = "Examples: clickbox daemon stop\n          clickbox daemon stop --all")]
pub(super) struct Arguments {
    /// Also end all boxes, the fabric and the launcher, even if no daemon runs.
    #[arg(long)]
    all: bool,
    /// Socket of the launcher to end if no daemon runs [default: as for `clickbox daemon`]
    #[arg(long, value_name = "PATH", requires = "all")]
    launcher: Option<PathBuf>,
    /// Print JSON: {"daemon", "launcher", "running", "ends_boxes", "ended"}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// What was ended.
#[derive(Serialize)]
struct Stopped {
    /// The process of the daemon; none if no daemon ran.
    daemon: Option<u32>,
    /// The process of the launcher, if no daemon ran.
    launcher: Option<u32>,
    /// The number of boxes that were to run; unknown if no daemon ran.
    running: Option<u32>,
    /// Whether the boxes end too.
    ends_boxes: bool,
    /// Whether the process is known to have ended.
    ended: bool,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let query = StopQuery { all: arguments.all };
    let stopped = match client.call(&operation::STOP_DAEMON, &[], &query, &()) {
        Ok(reply) => of_daemon(&reply, client.address()),
        Err(error) if arguments.all && is_absent(&error) => {
            match stop_launcher(arguments, client.address()) {
                Some(stopped) => stopped,
                None => return Err(error),
            }
        }
        Err(error) => return Err(error),
    };
    match arguments.json {
        true => output::json(&stopped),
        false => output::text(&sentence(&stopped)),
    }
    Ok(ExitCode::SUCCESS)
}

fn is_absent(error: &CommandError) -> bool {
    matches!(error, CommandError::Client(ClientError::NoDaemon { address: Address::Unix(_), .. }))
}

fn of_daemon(reply: &StopReply, address: &Address) -> Stopped {
    // The process of a remote daemon is not one of this host.
    let ended = matches!(address, Address::Unix(_)) && has_ended(reply.pid);
    let (running, ends_boxes) = (Some(reply.running), reply.ends_boxes);
    Stopped { daemon: Some(reply.pid), launcher: None, running, ends_boxes, ended }
}

/// Ends the launcher of a daemon that does not run. Returns none if no launcher listens.
fn stop_launcher(arguments: &Arguments, address: &Address) -> Option<Stopped> {
    let Address::Unix(socket) = address else { return None };
    let path = arguments.launcher.clone();
    let path = path.unwrap_or_else(|| launcher_socket(default_store(socket).as_deref().unwrap_or(socket)));
    let process = listening_process(&path).ok()?;
    let descriptor = pidfd_open(process, PidfdFlags::empty()).ok()?;
    pidfd_send_signal(&descriptor, Signal::TERM).ok()?;
    let ended = wait(&descriptor);
    let launcher = u32::try_from(process.as_raw_nonzero().get()).ok();
    Some(Stopped { daemon: None, launcher, running: None, ends_boxes: true, ended })
}

/// The process that listens on a launcher's socket.
fn listening_process(path: &Path) -> io::Result<Pid> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket_peercred(&socket)?.pid)
}

/// Waits until a process has ended. Returns false if it is not known to have.
fn has_ended(process: u32) -> bool {
    let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    match pidfd_open(process, PidfdFlags::empty()) {
        Ok(descriptor) => wait(&descriptor),
        Err(error) => error == rustix::io::Errno::SRCH,
    }
}

fn wait(process: &impl std::os::fd::AsFd) -> bool {
    let timeout = Timespec::try_from(END_TIMEOUT).ok();
    poll(&mut [PollFd::new(process, PollFlags::IN)], timeout.as_ref()).is_ok_and(|ready| ready == 1)
}

fn sentence(stopped: &Stopped) -> String {
    let (what, is_one) = match (stopped.daemon, stopped.ends_boxes) {
        (None, _) => ("no daemon was running; the launcher and all boxes", false),
        (Some(_), true) => ("the daemon and all boxes", false),
        (Some(_), false) => ("the daemon", true),
    };
    let verb = match (stopped.ended, is_one) {
        (true, true) => "has ended",
        (true, false) => "have ended",
        (false, true) => "is ending",
        (false, false) => "are ending",
    };
    let rest = match (stopped.ends_boxes, stopped.running) {
        (false, Some(1)) => "; 1 box goes on".into(),
        (false, Some(running)) if running > 1 => format!("; {running} boxes go on"),
        _ => String::new(),
    };
    format!("{what} {verb}{rest}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_what_ended_and_what_goes_on() {
        let stopped = |daemon, running, ends_boxes, ended| {
            sentence(&Stopped { daemon, launcher: None, running, ends_boxes, ended })
        };
        assert_eq!(stopped(Some(1), Some(0), false, true), "the daemon has ended\n");
        assert_eq!(stopped(Some(1), Some(1), false, true), "the daemon has ended; 1 box goes on\n");
        assert_eq!(stopped(Some(1), Some(2), false, false), "the daemon is ending; 2 boxes go on\n");
        assert_eq!(stopped(Some(1), Some(2), true, true), "the daemon and all boxes have ended\n");
        let nothing = "no daemon was running; the launcher and all boxes have ended\n";
        assert_eq!(stopped(None, None, true, true), nothing);
    }
}
