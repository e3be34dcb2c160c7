//! A daemon with a store, and the launcher and the fabric that it starts, as a user has them: nothing ends with the test's
//! pipe, and each process can be found and killed.

use super::TIMEOUT;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A folder with the socket and the store of a daemon.
pub(crate) struct Planes {
    pub(crate) folder: PathBuf,
    /// The program that runs.
    pub(crate) program: PathBuf,
}

impl Planes {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("clickbox-planes-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self { folder, program: env!("CARGO_BIN_EXE_clickbox").into() }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("a plain path").to_string()
    }

    /// Writes a file into the folder.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Starts a daemon with these options, and waits until it is ready.
    pub(crate) fn start_with(&self, options: &[&str]) -> Child {
        let mut child = Command::new(&self.program)
            .args(["daemon", "--json", "--socket", &self.path("socket")])
            .args(options)
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the daemon starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        assert!(line.contains("\"pid\""), "{line}");
        child
    }

    /// Starts a daemon with the folder's store.
    pub(crate) fn start(&self) -> Child {
        self.start_with(&["--store", &self.path("store")])
    }

    /// Runs a command; returns its exit code and output.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = Command::new(&self.program)
            .args(arguments)
            .env("CLICKBOX_SOCKET", self.path("socket"))
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
        let text = self.check(&[arguments, &["--json"]].concat(), 0, &[]);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error} in: {text}"))
    }

    /// The value of a handler, as a number.
    pub(crate) fn number(&self, handler: &str) -> u64 {
        self.check(&["read", handler], 0, &[]).trim().parse().expect("a number")
    }

    /// The launcher, if it runs.
    pub(crate) fn launcher(&self) -> Option<u32> {
        let folder = self.path("");
        processes().find(|process| {
            let arguments = file_of(*process, "cmdline");
            // The daemon's starter has the same arguments, and one more.
            let is_launcher = arguments.contains("\0launcher\0") && !arguments.contains("\0--on-request\0");
            is_launcher && arguments.contains(&folder)
        })
    }

    /// The fabric, if it runs: the process that listens for the next launcher. A launcher also has a spare, and one that was
    /// killed is no longer the fabric's parent.
    pub(crate) fn fabric(&self) -> Option<u32> {
        let folder = self.path("");
        let list = std::fs::read_to_string("/proc/thread-self/net/unix").expect("the sockets");
        let is_ours = |line: &&str| line.contains(&folder) && line.ends_with(".fabric-0");
        let inode = |line: &str| Some(format!("socket:[{}]", line.split_ascii_whitespace().nth(6)?));
        let sockets: Vec<PathBuf> =
            list.lines().filter(is_ours).filter_map(inode).map(PathBuf::from).collect();
        let has_one = |process: &u32| {
            let entries = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
            entries.flat_map(|entry| std::fs::read_link(entry.path())).any(|link| sockets.contains(&link))
        };
        processes().find(|process| file_of(*process, "cmdline").contains("\0fabric\0") && has_one(process))
    }

    /// The launcher's spare, if it runs: its other child that is a fabric.
    pub(crate) fn spare(&self) -> Option<u32> {
        let (launcher, fabric) = (self.launcher()?, self.fabric()?);
        children(launcher, "fabric").find(|process| *process != fabric)
    }

    /// The agent of the fabric, if it runs.
    pub(crate) fn agent(&self) -> Option<u32> {
        children(self.launcher()?, "agent").next()
    }
}

impl Drop for Planes {
    fn drop(&mut self) {
        // Whatever a failed test left.
        self.run(&["daemon", "stop", "--all", "--launcher", &self.path("store.launcher")]);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("processes");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The children of a process that are this command of the program.
fn children(parent: u32, command: &str) -> impl Iterator<Item = u32> {
    let (parent, command) = (format!("PPid:\t{parent}\n"), format!("\0{command}\0"));
    processes().filter(move |process| {
        file_of(*process, "status").contains(&parent) && file_of(*process, "cmdline").contains(&command)
    })
}

fn file_of(process: u32, name: &str) -> String {
    std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default()
}

/// Whether a process runs. One that waits to be reaped does not.
pub(crate) fn is_running(process: u32) -> bool {
    let status = file_of(process, "status");
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "{what} does not happen");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
