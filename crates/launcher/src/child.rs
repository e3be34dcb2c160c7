//! The processes that a launcher starts.

use crate::privileges::number;
use protocol::launcher::{Shortfall, Step};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Variables of a service manager that concern the launcher alone.
const OWN_VARIABLES: &[&str] =
    &["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS"];

/// Starts a program whose standard input is one end of a channel. Returns it with its pidfd.
pub(crate) fn start(
    program: &Path,
    arguments: &[OsString],
    input: impl Into<OwnedFd>,
) -> io::Result<(Child, OwnedFd)> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::from(input.into())).current_dir("/");
    for variable in OWN_VARIABLES {
        command.env_remove(variable);
    }
    let mut process = command.spawn()?;
    // The number stays this process's until it is reaped.
    let pid = Pid::from_raw(process.id().cast_signed()).ok_or(Errno::SRCH);
    match pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        Ok(pidfd) => Ok((process, pidfd)),
        Err(error) => {
            end(&mut process);
            Err(error.into())
        }
    }
}

/// Kills a process, and waits until it has ended.
pub(crate) fn end(process: &mut Child) {
    // Each fails only if the process has ended.
    let _ = process.kill();
    let _ = process.wait();
}

/// A step that failed.
pub(crate) fn failed(step: Step, error: &io::Error) -> Shortfall {
    Shortfall { step, errno: number(error) }
}
