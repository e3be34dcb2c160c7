//! Launchers and fabrics for tests.
//!
//! Both are this test program again: the test `helper_process` runs as a launcher or as a fabric if the environment
//! says so.

use launcher::{Settings, run};
use protocol::launcher::{
    Client, ConnectedFabric, FabricEnd, FabricEndError, Starter, SuccessorListener, ToFabric, become_fabric,
    serve_starts,
};
use protocol::{Channel, Received};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use rustix::process::{Pid, Signal, getpgrp, getpid, getsid, kill_process, setpriority_process};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The variables for the helper process.
const ROLE: &str = "LAUNCHER_TEST_ROLE";
const SOCKET: &str = "LAUNCHER_TEST_SOCKET";
const STAYS: &str = "LAUNCHER_TEST_STAYS";
const STUBBORN: &str = "LAUNCHER_TEST_STUBBORN";
const PROGRAM: &str = "LAUNCHER_TEST_PROGRAM";
const USER: &str = "LAUNCHER_TEST_USER";
const THREADS: &str = "LAUNCHER_TEST_THREADS";

/// The store of all tests but those about stores.
pub(crate) const STORE: [u8; 16] = *b"store of a test!";

/// How long a test waits for what must happen.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// How long a fabric of a test waits for another launcher.
const ADOPTION_TIMEOUT: Duration = Duration::from_secs(3);

/// How long launchers of tests stay idle.
const IDLE: Duration = Duration::from_millis(300);

/// A command that runs this program as a helper.
fn helper(role: &str, wrapper: &[&str]) -> Command {
    let program = std::env::current_exe().expect("this program");
    let mut command = match wrapper {
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        [] => Command::new(program),
    };
    command.args(["support::helper_process", "--exact", "--nocapture"]).env(ROLE, role);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Not a test: the launchers and fabrics of the other tests.
#[test]
fn helper_process() {
    match std::env::var(ROLE).as_deref() {
        Ok("launcher") => {
            let variable = |name| std::env::var_os(name);
            let program = std::env::current_exe().expect("this program").into_os_string();
            // `env` changes the role, and then is the fabric.
            let role = format!("{ROLE}=fabric").into();
            let test = ["support::helper_process", "--exact", "--nocapture"].map(Into::into);
            let settings = Settings {
                arguments: [role, program].into_iter().chain(test).collect(),
                fabric_user: variable(USER).and_then(|user| user.to_str()?.parse().ok()),
                idle_timeout: IDLE,
                stays: variable(STAYS).is_some(),
                closes_input: true,
                switch_threads: variable(THREADS).and_then(|count| count.to_str()?.parse().ok()).unwrap_or(1),
                agent_arguments: ["sleep", "1000"].map(Into::into).into(),
                ..Settings::new(
                    variable(SOCKET).expect("a socket"),
                    variable(PROGRAM).unwrap_or_else(|| "env".into()),
                )
            };
            if let Err(error) = run(settings, &mut |event| eprintln!("launcher: {event}")) {
                eprintln!("launcher: {error:?}");
                std::process::exit(1);
            }
        }
        Ok("starter") => {
            let socket = PathBuf::from(std::env::var_os(SOCKET).expect("a socket"));
            serve_starts(|| command(&socket, &[])).expect("a channel");
        }
        Ok("fabric") => match become_fabric() {
            // It was started ahead, and its launcher has ended.
            Err(FabricEndError::Unused) => {}
            end => fabric(end.expect("a launcher that started this process")),
        },
        _ => {}
    }
}

/// Serves daemons until the launcher ends and no other one follows.
fn fabric(end: FabricEnd) {
    if std::env::var_os(STUBBORN).is_some() {
        let flag = Arc::<AtomicBool>::default();
        signal_hook::flag::register(signal_hook::consts::SIGTERM, flag).expect("a signal handler");
    }
    let facts = facts(&end);
    let mut successors = end.successors;
    let mut launcher = end.launcher;
    let launchers = Arc::new(AtomicU32::new(1));
    loop {
        while let Ok(Some(Received { message, descriptors })) = launcher.receive(1_000) {
            let facts = facts.clone();
            let [descriptor] = <[OwnedFd; 1]>::try_from(descriptors).expect("one descriptor");
            if let ToFabric::Successor = message {
                successors = Some(SuccessorListener::listen(descriptor).expect("a socket"));
            } else {
                thread::spawn(move || serve(&Channel::from(descriptor), &facts));
            }
        }
        // It was a spare that was not used.
        let Some(successors) = &successors else { return };
        let (before, now) = (launchers.load(Ordering::SeqCst), launchers.clone());
        thread::spawn(move || {
            thread::sleep(ADOPTION_TIMEOUT);
            if now.load(Ordering::SeqCst) == before {
                std::process::exit(0);
            }
        });
        launcher = successors.accept().expect("a launcher");
        launchers.fetch_add(1, Ordering::SeqCst);
    }
}

/// Answers a daemon: keeps the descriptors that it sends, and describes this process.
fn serve(daemon: &Channel, facts: &BTreeMap<String, String>) {
    static KEPT: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
    while let Ok(Some(mut received)) = daemon.receive::<String>(1_000) {
        KEPT.lock().expect("no panic").append(&mut received.descriptors);
        if received.message == "exit" {
            std::process::exit(7);
        }
        daemon.send(facts, &[]).expect("a daemon");
    }
}

/// What a fabric finds out about itself.
fn facts(end: &FabricEnd) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let status = fs::read_to_string("/proc/thread-self/status").expect("the status");
    for line in status.lines() {
        if let Some((name, value)) = line.split_once(':') {
            facts.insert(name.to_string(), value.trim().to_string());
        }
    }
    let mut note = |name: &str, value: &dyn std::fmt::Debug| facts.insert(name.into(), format!("{value:?}"));
    note("store", &end.store);
    note("has kvm", &end.kvm.is_some());
    note("leads its session", &(getsid(None).ok() == Some(getpid()) && getpgrp() == getpid()));
    note("files", &rustix::process::getrlimit(rustix::process::Resource::Nofile));
    note("may lower its niceness", &setpriority_process(None, -10).is_ok());
    note("oom score", &fs::read_to_string("/proc/self/oom_score_adj").map(|text| text.trim().to_string()));
    note("folder", &std::env::current_dir());
    note("cgroups", &fs::read_to_string("/proc/self/cgroup"));
    let descriptors = fs::read_dir("/proc/self/fd").expect("the descriptors").flatten();
    let mut links: Vec<_> = descriptors.flat_map(|entry| fs::read_link(entry.path())).collect();
    links.sort();
    note("descriptors", &links);
    // What a program that this process executes would have.
    let child = Command::new("cat").arg("/proc/self/status").output().map(|output| output.stdout);
    let child = child.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let namespaces = Command::new("unshare").args(["--user", "--map-root-user", "--net", "true"]).output();
    note("may make namespaces", &namespaces.is_ok_and(|output| output.status.success()));
    note("child", &child.lines().filter(|line| line.starts_with("Cap")).collect::<Vec<_>>());
    facts
}

/// A launcher in a process of its own. It is ended on drop.
pub(crate) struct TestLauncher {
    pub(crate) process: Child,
    pub(crate) folder: PathBuf,
    pub(crate) socket: PathBuf,
    variables: Vec<(&'static str, String)>,
    /// Until a test connects, or it would be idle until then.
    first_client: Mutex<Option<Client>>,
}

/// An empty folder that no other test uses.
pub(crate) fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("clickbox-launcher-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A socket without a listener. A process that another test starts may have a copy of a listening one for a moment after it
/// was closed.
pub(crate) fn bound(path: &Path) -> OwnedFd {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let socket = socket.expect("a socket");
    bind(&socket, &SocketAddrUnix::new(path).expect("a path")).expect("a new file");
    socket
}

/// A command that runs a launcher.
pub(crate) fn command(socket: &Path, wrapper: &[&str]) -> Command {
    let mut command = helper("launcher", wrapper);
    command.env(SOCKET, socket);
    command
}

fn spawn(socket: &Path, wrapper: &[&str], variables: &[(&'static str, String)]) -> Child {
    let mut command = command(socket, wrapper);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.spawn().expect("a launcher")
}

/// A process that starts launchers.
pub(crate) fn starter(socket: &Path) -> Starter {
    let mut command = helper("starter", &[]);
    command.env(SOCKET, socket);
    Starter::spawn(command).expect("a starter")
}

impl TestLauncher {
    /// A launcher that ends when it is idle.
    pub(crate) fn start() -> Self {
        Self::with(&[], &[])
    }

    /// A launcher that stays.
    pub(crate) fn start_to_stay() -> Self {
        Self::with(&[], &[(STAYS, "1")])
    }

    /// A launcher whose fabrics ignore SIGTERM.
    pub(crate) fn start_with_stubborn_fabrics() -> Self {
        Self::with(&[], &[(STUBBORN, "1")])
    }

    /// A launcher whose fabrics are another program.
    pub(crate) fn start_with_program(program: &str) -> Self {
        Self::with(&[], &[(PROGRAM, program)])
    }

    /// A launcher whose fabrics become another user.
    pub(crate) fn start_with_user(user: u32) -> Self {
        Self::with(&[], &[(USER, &user.to_string())])
    }

    /// A launcher in a network namespace of its own.
    pub(crate) fn start_in_own_network() -> Self {
        Self::with(&["unshare", "--net"], &[])
    }

    /// A launcher in a network namespace of its own, whose fabrics have this number of switch threads.
    pub(crate) fn start_with_threads(threads: &str) -> Self {
        Self::with(&["unshare", "--net"], &[(THREADS, threads)])
    }

    fn with(wrapper: &[&str], variables: &[(&'static str, &str)]) -> Self {
        let folder = folder();
        let socket = folder.join("launcher.sock");
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.to_string())).collect();
        let process = spawn(&socket, wrapper, &variables);
        let mut launcher = Self { process, folder, socket, variables, first_client: Mutex::default() };
        launcher.wait();
        launcher
    }

    fn wait(&mut self) {
        // The file exists a moment before the launcher listens.
        let mut client = None;
        wait_for(|| {
            client = Client::connect(&self.socket, STORE, TIMEOUT).ok();
            client.is_some() || self.has_ended().is_some()
        });
        self.first_client = Mutex::new(client);
    }

    /// Kills the launcher.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.process.wait().expect("a child");
    }

    /// Starts another launcher in the place of one that was killed.
    pub(crate) fn start_another(&mut self, wrapper: &[&str]) {
        self.process = spawn(&self.socket, wrapper, &self.variables);
        self.wait();
    }

    pub(crate) fn connect(&self) -> Client {
        let client = Client::connect(&self.socket, STORE, TIMEOUT).expect("a launcher");
        *self.first_client.lock().expect("no panic") = None;
        client
    }

    /// How it ended, if it has.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().expect("a child")
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.process.id(), signal);
    }

    /// Runs `ip` in the launcher's network namespace, and returns what it prints if it succeeds.
    pub(crate) fn ip(&self, words: &str) -> Option<String> {
        let target = format!("--target={}", self.process.id());
        let output =
            Command::new("nsenter").args([&target, "--net", "ip"]).args(words.split(' ')).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for TestLauncher {
    fn drop(&mut self) {
        if self.has_ended().is_none() {
            self.signal(Signal::TERM);
            let _ = self.process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process");
    let _ = kill_process(pid, signal);
}

/// Waits until something is so.
pub(crate) fn wait_for(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT, "it does not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process exists.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Sends a word and descriptors to a fabric, and returns what it knows of itself.
pub(crate) fn ask(fabric: &ConnectedFabric, descriptors: &[&OwnedFd]) -> BTreeMap<String, String> {
    let descriptors: Vec<_> = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect();
    fabric.channel.send(&"describe", &descriptors).expect("a fabric");
    fabric.channel.receive(100_000).expect("a message").expect("a fabric").message
}
