//! Runs a program with Click's command line and reads the time that its packets took.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Limit on a program's output in bytes. A few lines are expected.
const MAX_OUTPUT: u64 = 1 << 16;

/// Why a program could not be measured.
#[derive(Debug)]
pub enum RunError {
    /// It could not be started, or its output could not be read.
    Start(io::Error),
    /// It failed.
    Failed {
        /// Its exit status.
        status: ExitStatus,
        /// What it printed.
        output: String,
    },
    /// It exceeded this time limit and was killed.
    Timeout(Duration),
    /// It did not print its time.
    NoTime,
    /// It did not print the requested handler.
    NoHandler,
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start(_) => f.write_str("cannot be started"),
            Self::Failed { status, output } => {
                // The first lines name the error, the others its consequences.
                let text: Vec<&str> =
                    output.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
                match text.as_slice() {
                    [] => write!(f, "fails: {status}"),
                    text => write!(f, "fails: {}", text.join(" ")),
                }
            }
            Self::Timeout(limit) => write!(f, "takes longer than {} s", limit.as_secs()),
            Self::NoTime => f.write_str("does not print the time with -t"),
            Self::NoHandler => f.write_str("does not print the handler with -h"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start(error) => Some(error),
            _ => None,
        }
    }
}

/// The result of a program's run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    /// CPU time in seconds, user and system, after start-up.
    pub(crate) seconds: f64,
    /// The values of the requested handlers, in order.
    pub(crate) handlers: Vec<u64>,
}

/// A program with Click's command line.
#[derive(Clone, Debug)]
pub struct ClickProgram {
    path: PathBuf,
    /// Arguments before Click's own.
    prefix: Vec<&'static str>,
    /// Time limit of a run, so that a hanging program can't block the measurement.
    timeout: Duration,
}

impl ClickProgram {
    /// This program.
    ///
    /// # Errors
    ///
    /// The path of this program is not known.
    pub fn own(timeout: Duration) -> io::Result<Self> {
        Ok(Self::clickbox(&std::env::current_exe()?, timeout))
    }

    /// The `clickbox` program at this path.
    pub fn clickbox(path: &Path, timeout: Duration) -> Self {
        Self { path: path.to_path_buf(), prefix: vec!["click"], timeout }
    }

    /// Another program.
    pub fn other(path: &Path, timeout: Duration) -> Self {
        Self { path: path.to_path_buf(), prefix: Vec::new(), timeout }
    }

    /// Starts the program and ends it at once, so that a wrong path is found before anything is measured.
    ///
    /// # Errors
    ///
    /// The system cannot start the program.
    pub fn try_start(&self) -> io::Result<()> {
        let mut child = Command::new(&self.path)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // It may have ended by itself meanwhile.
        let _ = child.kill();
        child.wait().map(drop)
    }

    /// Runs a configuration to its end, then reads handlers.
    pub(crate) fn run(&self, file: &Path, handlers: &[&str]) -> Result<Run, RunError> {
        let handler_arguments = handlers.iter().flat_map(|handler| ["-h", handler]);
        let mut child = Command::new(&self.path)
            .args(&self.prefix)
            .arg("-t")
            .args(handler_arguments)
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(RunError::Start)?;
        let status = match wait_within(&mut child, self.timeout) {
            Ok(Some(status)) => status,
            unfinished => {
                // It may have exited in the meantime.
                let _ = child.kill();
                let _ = child.wait();
                return Err(unfinished.map_or_else(RunError::Start, |_| RunError::Timeout(self.timeout)));
            }
        };
        // A program prints a few lines. One that fills the pipe blocks and hits the time limit.
        let output = text(child.stdout.take())?;
        let messages = text(child.stderr.take())?;
        if !status.success() {
            let output = if messages.is_empty() { output } else { messages };
            return Err(RunError::Failed { status, output });
        }
        let seconds = output.lines().chain(messages.lines()).find_map(seconds).ok_or(RunError::NoTime)?;
        let values: Vec<u64> = output.lines().filter_map(|line| line.trim().parse().ok()).collect();
        if values.len() != handlers.len() {
            return Err(RunError::NoHandler);
        }
        Ok(Run { seconds, handlers: values })
    }
}

fn text(pipe: Option<impl Read>) -> Result<String, RunError> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(MAX_OUTPUT).read_to_end(&mut bytes).map_err(RunError::Start)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Waits until a child has exited, at most for `timeout`. `None`: it still runs.
fn wait_within(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let started = Instant::now();
    loop {
        let left = timeout.saturating_sub(started.elapsed());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            Ok(_) => return child.try_wait(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The seconds in a line of `-t` output: `USERu SYSTEMs WALL`.
fn seconds(line: &str) -> Option<f64> {
    let mut words = line.split_whitespace();
    let user: f64 = words.next()?.strip_suffix('u')?.parse().ok()?;
    let system: f64 = words.next()?.strip_suffix('s')?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        assert_eq!(seconds("0.310u 0.050s 0:00.95"), Some(0.36));
        assert_eq!(seconds("warning: 3"), None);
    }

    /// A shell script replaces the program.
    #[test]
    fn each_failure_has_its_own_error() {
        let folder = std::env::temp_dir().join(format!("clickbox-program-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let script = folder.join("script");
        let program = ClickProgram {
            path: "/bin/sh".into(),
            prefix: vec!["-c", ". \"$4\"", "sh"],
            timeout: Duration::from_millis(500),
        };
        let run = |text: &str| {
            std::fs::write(&script, text).expect("a script");
            program.run(&script, &["a.count"])
        };
        let good = run("echo 0.250u 0.250s 0:01.00; printf 'a.count:\\n42\\n'");
        assert!(matches!(good, Ok(Run { seconds: 0.5, ref handlers }) if *handlers == [42]), "{good:?}");
        assert!(matches!(run("echo 42"), Err(RunError::NoTime)));
        assert!(matches!(run("echo 0.1u 0.1s 0:01.00"), Err(RunError::NoHandler)));
        assert!(matches!(run("sleep 5"), Err(RunError::Timeout(_))));
        let failed = run("echo 'unknown element class' >&2; exit 1").map_err(|error| error.to_string());
        assert_eq!(failed, Err("fails: unknown element class".into()));
        let _ = std::fs::remove_dir_all(&folder);
    }
}
