//! The three processes, and how they are killed.

use api::client::{Address, Client, Credentials};
use api::{StopQuery, operation};
use random::Random;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a daemon may take until it is ready, to answer a request, and to end.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between two looks at whether a process has ended.
const END_PAUSE: Duration = Duration::from_millis(5);

/// A kind of process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Daemon,
    Launcher,
    Fabric,
}

/// A daemon with its store, and the processes that it started.
#[derive(Debug)]
pub(crate) struct Processes {
    program: PathBuf,
    folder: PathBuf,
    /// Further options of the daemon.
    options: Vec<String>,
    daemon: Option<Child>,
    /// How long the last daemon took until it was ready.
    start_time: Duration,
}

impl Processes {
    pub(crate) fn new(program: &Path, folder: &Path) -> Self {
        Self {
            program: program.into(),
            folder: folder.into(),
            options: Vec::new(),
            daemon: None,
            start_time: Duration::ZERO,
        }
    }

    /// The same, with further options of the daemon.
    pub(crate) fn with_options(mut self, options: Vec<String>) -> Self {
        self.options = options;
        self
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Whether a daemon runs.
    pub(crate) fn has_daemon(&mut self) -> bool {
        self.daemon.as_mut().is_some_and(|daemon| matches!(daemon.try_wait(), Ok(None)))
    }

    /// The store of the daemon.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// Starts a daemon, and waits until it is ready.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        let begin = Instant::now();
        let output = self.spawn()?;
        // The daemon prints a line when it is ready, or none if it fails.
        let mut waiting = [PollFd::new(&output, PollFlags::IN)];
        let limit = Timespec::try_from(START_TIMEOUT).map_err(io::Error::other)?;
        if poll(&mut waiting, Some(&limit))? == 0 {
            let late = format!(
                "it was not ready after {START_TIMEOUT:?}; its last message: {}",
                self.last_message()
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, late));
        }
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        self.start_time = begin.elapsed();
        match line.is_empty() {
            true => Err(io::Error::other(self.last_message())),
            false => Ok(()),
        }
    }

    /// Starts a daemon, and kills it within the time that the last one took to start.
    pub(crate) fn start_and_kill(&mut self, random: &mut Random) -> io::Result<()> {
        let output = self.spawn()?;
        thread::sleep(self.start_time * random.below(100) / 100);
        let victims = self.find(Victim::Daemon);
        self.kill(Victim::Daemon, &victims);
        drop(output);
        Ok(())
    }

    /// Starts a daemon.
    fn spawn(&mut self) -> io::Result<ChildStdout> {
        let mut child = Command::new(&self.program)
            .args(["daemon", "--json", "--socket"])
            .arg(self.socket())
            .arg("--store")
            .arg(self.store())
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::options().create(true).append(true).open(self.folder.join("log"))?)
            .spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe);
        self.daemon = Some(child);
        Ok(output?)
    }

    /// The last line that the processes have printed.
    fn last_message(&self) -> String {
        let text = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        text.lines().last().unwrap_or("it ended without a message").to_string()
    }

    /// A client of the daemon.
    pub(crate) fn client(&self) -> Result<Client, api::client::ClientError> {
        Client::with_limit(Address::Unix(self.socket()), &Credentials::default(), Some(ANSWER_TIMEOUT))
    }

    /// The launcher, if one listens.
    fn launcher(&self) -> Option<Pid> {
        let path = self.folder.join("store.launcher");
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let socket = socket_with(kind.0, kind.1, kind.2, None).ok()?;
        connect(&socket, &SocketAddrUnix::new(path).ok()?).ok()?;
        Some(socket_peercred(&socket).ok()?.pid)
    }

    /// The fabrics: of the launcher, and of an earlier one that was killed. The latter still listen at their sockets.
    fn fabrics(&self) -> Vec<Pid> {
        let launcher = self.launcher();
        let sockets = self.fabric_sockets();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        let fabrics: Vec<Pid> = numbers.filter(|process| is_fabric(*process)).collect();
        // A fabric has helpers of the same name.
        let with_parents = fabrics.iter().map(|process| (*process, parent(*process)));
        let alone = with_parents.filter(|(_, parent)| parent.is_none_or(|parent| !fabrics.contains(&parent)));
        let ours = alone.filter(|(process, parent)| {
            (parent.is_some() && *parent == launcher)
                || descriptors(*process).any(|name| sockets.contains(&name))
        });
        ours.map(|(process, _)| process).collect()
    }

    /// The names, as in the list of a process's descriptors, of the sockets at which fabrics wait for the next launcher.
    fn fabric_sockets(&self) -> BTreeSet<String> {
        let start = self.folder.join("store.launcher.fabric-");
        let start = start.to_string_lossy();
        let list = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let lines = list.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        let ours = lines.filter_map(|fields| match fields[..] {
            [.., inode, path] if path.starts_with(&*start) => Some(format!("socket:[{inode}]")),
            _ => None,
        });
        ours.collect()
    }

    /// The processes of a kind.
    pub(crate) fn find(&self, victim: Victim) -> Vec<Pid> {
        match victim {
            Victim::Daemon => self.daemon.iter().map(Pid::from_child).collect(),
            Victim::Launcher => self.launcher().into_iter().collect(),
            Victim::Fabric => self.fabrics(),
        }
    }

    /// Kills processes. Returns how many there were.
    pub(crate) fn kill(&mut self, victim: Victim, processes: &[Pid]) -> u64 {
        let killed = processes.iter().filter(|process| kill_process(**process, Signal::KILL).is_ok()).count();
        if let Some(mut daemon) = self.daemon.take_if(|_| victim == Victim::Daemon) {
            let _ = daemon.wait();
        }
        killed as u64
    }
}

/// A file about a process.
fn about(process: Pid, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{name}", process.as_raw_nonzero()))
}

fn is_fabric(process: Pid) -> bool {
    let words = fs::read(about(process, "cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).nth(1) == Some(b"fabric")
}

fn parent(process: Pid) -> Option<Pid> {
    let status = fs::read_to_string(about(process, "status")).ok()?;
    let number = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    Pid::from_raw(number?)
}

/// What the descriptors of a process refer to.
fn descriptors(process: Pid) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(about(process, "fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
}

impl Drop for Processes {
    fn drop(&mut self) {
        let all = StopQuery { all: true };
        let stopped = self.client().and_then(|client| client.call(&operation::STOP_DAEMON, &[], &all, &()));
        if let Some(mut daemon) = self.daemon.take() {
            let begin = Instant::now();
            while stopped.is_ok() && begin.elapsed() < END_TIMEOUT && matches!(daemon.try_wait(), Ok(None)) {
                thread::sleep(END_PAUSE);
            }
            // It fails if the daemon has ended.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        // A launcher that is left ends its fabrics.
        if let Some(launcher) = self.launcher() {
            let _ = kill_process(launcher, Signal::TERM);
        }
    }
}
