//! Support for the tests of boxes: a daemon of the test, and commands that talk to it.
#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod controller;
pub(crate) mod network;
pub(crate) mod planes;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; only a failure takes that long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A daemon, which ends with the test.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) folder: PathBuf,
    /// The line that it printed when it was ready.
    pub(crate) ready: serde_json::Value,
    /// Whether its fabric goes on without it.
    is_lasting: bool,
}

impl Daemon {
    /// Starts a daemon without a store.
    pub(crate) fn start(name: &str) -> Daemon {
        Daemon::start_with(name, &["--no-store"])
    }

    /// Starts a daemon with these options in a new folder.
    pub(crate) fn start_with(name: &str, options: &[&str]) -> Daemon {
        Daemon::start_by(name, &[], options)
    }

    /// Starts a daemon with these options through a program that executes it, given with its arguments.
    pub(crate) fn start_by(name: &str, program: &[&str], options: &[&str]) -> Daemon {
        let folder = std::env::temp_dir().join(format!("clickbox-daemon-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Daemon::spawn(folder, program, &[&["--until-input-ends"], options].concat())
    }

    /// Starts a daemon with these options in a folder that may exist. Its boxes go on without it.
    pub(crate) fn start_lasting(folder: PathBuf, options: &[&str]) -> Daemon {
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut daemon = Daemon::spawn(folder, &[], options);
        daemon.is_lasting = true;
        daemon
    }

    fn spawn(folder: PathBuf, program: &[&str], options: &[&str]) -> Daemon {
        let words = [program, &[env!("CARGO_BIN_EXE_clickbox"), "daemon", "--json"]].concat();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .args(options)
            .arg("--socket")
            .arg(folder.join("socket"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the daemon starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(ready["pid"], child.id());
        Daemon { child, folder, ready, is_lasting: false }
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// A memory figure of its process, such as `VmHWM:`, in kilobytes.
    pub(crate) fn kilobytes(&self, figure: &str) -> u64 {
        kilobytes(self.child.id().into(), figure)
    }

    /// Writes a file into the daemon's folder.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a plain path").to_string()
    }

    /// Runs a command; returns its exit code and output.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String) {
        self.run_with(arguments, &[])
    }

    /// Runs a command with these environment variables.
    pub(crate) fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
            .args(arguments)
            .env("CLICKBOX_SOCKET", self.socket())
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .expect("the program ends");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap_or(-1), text.into_owned())
    }

    /// Asserts the exit code, and that the output contains each text.
    pub(crate) fn check(&self, arguments: &[&str], code: i32, texts: &[&str]) -> String {
        let (found, text) = self.run(arguments);
        assert_eq!(found, code, "{arguments:?}: {text}");
        for expected in texts {
            assert!(text.contains(expected), "{arguments:?}: no {expected:?} in: {text}");
        }
        text
    }

    /// The output of a command with `--json`.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let arguments = [arguments, &["--json"]].concat();
        let text = self.check(&arguments, 0, &[]);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error} in: {text}"))
    }

    /// The metrics, as Prometheus gets them.
    pub(crate) fn metrics(&self) -> String {
        let mut stream = UnixStream::connect(self.socket()).expect("the daemon listens");
        let request = "GET /metrics HTTP/1.1\r\nHost: clickbox\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("the daemon reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    /// Repeats a command until its output contains a text.
    pub(crate) fn until(&self, arguments: &[&str], expected: &str) {
        let begin = Instant::now();
        loop {
            let (_, text) = self.run(arguments);
            if text.contains(expected) {
                return;
            }
            assert!(begin.elapsed() < TIMEOUT, "{arguments:?}: no {expected:?} in: {text}");
        }
    }
}

/// Captures frames at a port until there are as many. Returns when the capture has begun; the function that it returns waits for its
/// end, and returns the frames.
pub(crate) fn capture(socket: &Path, point: &str, count: usize) -> impl FnOnce() -> Vec<Vec<u8>> + use<> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["capture", point, "--count", &count.to_string()])
        .env("CLICKBOX_SOCKET", socket)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut messages = BufReader::new(program.stderr.take().expect("a pipe"));
    let mut line = String::new();
    messages.read_line(&mut line).expect("a line");
    assert!(line.contains(&format!("capturing at {point}")), "{line}");
    move || {
        let output = program.wait_with_output().expect("the program ends");
        let mut summary = String::new();
        messages.read_to_string(&mut summary).expect("text");
        assert!(output.status.success(), "{summary}");
        let (mut decoder, mut frames) = (capture::Decoder::new(), Vec::new());
        decoder.feed(&output.stdout);
        while let Some(record) = decoder.record().expect("a capture") {
            frames.push(record.bytes.to_vec());
        }
        assert_eq!(frames.len(), count);
        frames
    }
}

/// Waits until `done` returns true.
pub(crate) fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(40), "timed out while waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A memory figure of a process, in kilobytes.
pub(crate) fn kilobytes(process: u64, figure: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process");
    let line = text.lines().find_map(|line| line.strip_prefix(figure)).expect("the figure");
    line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().expect("a number")
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if self.is_lasting
            && let Some(process) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(process, Signal::TERM);
        }
        let status = self.child.wait().expect("the daemon ends");
        let _ = std::fs::remove_dir_all(&self.folder);
        // Only a test kills it.
        let is_killed = status.signal() == Some(9);
        assert!(status.success() || is_killed || std::thread::panicking(), "the daemon ended with {status}");
    }
}
