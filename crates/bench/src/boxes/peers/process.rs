//! A process of a peer.

use crate::error::MeasureError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time for a process to start.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The time between two looks at a process.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A process, which is killed on drop.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    /// What it prints.
    log: PathBuf,
}

impl Process {
    /// Starts a program in a folder. What it prints goes into the file of this name.
    pub(super) fn start(
        name: &'static str,
        command: &mut Command,
        folder: &Path,
        log: &str,
    ) -> Result<Self, MeasureError> {
        let log = folder.join(log);
        let output = File::create(&log).map_err(MeasureError::Folder)?;
        let errors = output.try_clone().map_err(MeasureError::Folder)?;
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).current_dir(folder).spawn();
        let child = child.map_err(|error| MeasureError::Peer { name, error })?;
        Ok(Self { name, child, log })
    }

    /// Waits until `look` finds something. What it looks at is what the process has printed.
    pub(super) fn until<T>(
        &mut self,
        what: &'static str,
        time: Duration,
        look: impl Fn(&str) -> Option<T>,
    ) -> Result<T, MeasureError> {
        let begin = Instant::now();
        loop {
            let text = fs::read(&self.log).map_err(MeasureError::Folder)?;
            let text = String::from_utf8_lossy(&text);
            if let Some(found) = look(&text) {
                return Ok(found);
            }
            let status =
                self.child.try_wait().map_err(|error| MeasureError::Peer { name: self.name, error })?;
            if let Some(status) = status {
                return Err(ended(self.name, status, &text));
            }
            if begin.elapsed() > time {
                return Err(MeasureError::Late { what });
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Stops its threads, or continues them.
    pub(super) fn set_paused(&self, is_paused: bool) -> Result<(), MeasureError> {
        let signal = if is_paused { Signal::STOP } else { Signal::CONT };
        let sent = kill_process(Pid::from_child(&self.child), signal);
        sent.map_err(|error| MeasureError::Peer { name: self.name, error: error.into() })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The error of a program that has ended.
fn ended(name: &'static str, status: std::process::ExitStatus, text: &str) -> MeasureError {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    MeasureError::PeerEnded { name, status, last: last.trim().escape_debug().to_string() }
}

/// Runs a program to its end. Returns what it prints.
pub(super) fn output(name: &'static str, command: &mut Command) -> Result<String, MeasureError> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| MeasureError::Peer { name, error })?;
    if !output.status.success() {
        return Err(ended(name, output.status, &String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary_folder::TemporaryFolder;

    #[test]
    fn a_program_that_ends_is_reported() {
        let folder = TemporaryFolder::new().expect("a folder");
        let start =
            |command: &str| Process::start("peer", &mut Command::new(command), folder.path(), "0.log");
        let found = start("/bin/false").expect("a process").until("nothing", START_TIMEOUT, |_| None::<()>);
        assert!(matches!(found, Err(MeasureError::PeerEnded { name: "peer", .. })), "{found:?}");
        let missing = start("/nonexistent/peer");
        assert!(matches!(missing, Err(MeasureError::Peer { name: "peer", .. })), "{missing:?}");
        let failed = output("peer", Command::new("sh").args(["-c", "echo wrong >&2; exit 3"]));
        assert!(
            matches!(&failed, Err(MeasureError::PeerEnded { last, .. }) if last == "wrong"),
            "{failed:?}"
        );
        assert_eq!(output("peer", Command::new("echo").arg("right")).expect("it ends"), "right\n");
    }
}
