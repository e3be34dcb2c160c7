//! The daemon as a separate process, over its sockets.

use super::{Folder, TIMEOUT, settings, settings_of, until};
use api::ErrorCode;
use api::client::{Address, Client, ClientError, Credentials};
use daemon::{Listeners, Settings, Tcp};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The environment variable that makes this program run as a daemon.
const BE_A_DAEMON: &str = "CLICKBOX_TEST_DAEMON";

/// Runs the daemon, if [`Daemon::start`] has started this process. A test program with daemons has a test that calls it,
/// with the name `run_as_daemon`.
pub(crate) fn run_if_child() {
    let Some(folder) = std::env::var_os(BE_A_DAEMON).map(PathBuf::from) else { return };
    if let Ok(count) = std::fs::read_to_string(folder.join("few-descriptors")) {
        let count: u64 = count.parse().unwrap();
        // The process of a box gives itself a limit, which may not be above this one.
        let limit = rustix::process::Rlimit { current: Some(count), maximum: Some(count.max(300)) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    }
    // The probe's boxes take no files.
    let settings =
        if folder.join("engine").exists() { settings_of(image::CLICKBOX, "clickbox", 2) } else { settings() };
    let settings = Settings { store: Some(folder.join("store")), ..settings };
    let file = |name: &str| folder.join(name);
    let tcp = file("certificate").exists().then(|| Tcp {
        address: "127.0.0.1:0".parse().unwrap(),
        certificate: file("certificate"),
        key: file("key"),
        token: Some(file("token")),
        tokens: Some(file("tokens")).filter(|path| path.exists()),
    });
    let listeners = Listeners::open(&file("socket"), tcp.as_ref().map(|tcp| tcp.address), None);
    let run = |listeners| {
        daemon::run(&settings, listeners, tcp.as_ref(), |address| {
            let port = address.tcp.map_or(0, |address| address.port());
            std::fs::write(folder.join("ready.new"), port.to_string()).unwrap();
            std::fs::rename(folder.join("ready.new"), folder.join("ready")).unwrap();
        })
    };
    if let Err(error) = listeners.and_then(run) {
        eprintln!("{error}");
        std::process::exit(7);
    }
}

/// A daemon with its own folder.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
}

pub(crate) fn spawn(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "run_as_daemon", "--nocapture", "--test-threads=1"])
        .env(BE_A_DAEMON, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

impl Daemon {
    pub(crate) fn start(folder: &Path) -> Self {
        let ready = folder.join("ready");
        let _ = std::fs::remove_file(&ready);
        let mut child = spawn(folder);
        until("the daemon is ready", || {
            assert_eq!(child.try_wait().unwrap(), None, "the daemon ended");
            ready.exists()
        });
        let port = std::fs::read_to_string(&ready).unwrap().parse().unwrap();
        Self { child, folder: folder.to_path_buf(), port }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Address::Unix(self.folder.join("socket")), &Credentials::default()).unwrap()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// The daemon's response to raw bytes.
    pub(crate) fn answer(&self, request: &[u8]) -> String {
        self.exchange(request, false)
    }

    pub(crate) fn exchange(&self, request: &[u8], ends: bool) -> String {
        let mut stream = UnixStream::connect(self.folder.join("socket")).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        // It may close the connection before everything is sent.
        let _ = stream.write_all(request);
        if ends {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The code of the error that a call returned.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ErrorCode {
    match result.unwrap_err() {
        ClientError::Api(error) => error.code,
        error => panic!("{error}"),
    }
}

/// The token of administrators.
pub(crate) const TOKEN: &str = "a token of many bytes";

/// Writes a file that only this user can read.
pub(crate) fn secret(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A daemon that also serves TCP, and a function that makes clients with a token.
pub(crate) fn with_tcp(folder: &Folder) -> (Daemon, impl Fn(Option<&str>) -> Client) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    std::fs::write(folder.file("certificate"), made.cert.pem()).unwrap();
    secret(&folder.file("key"), &made.signing_key.serialize_pem());
    secret(&folder.file("token"), &format!("{TOKEN}\n"));
    let daemon = Daemon::start(&folder.0);
    let address: Address = format!("https://localhost:{}", daemon.port).parse().unwrap();
    let certificate = folder.file("certificate");
    let with = move |token: Option<&str>| {
        let credentials =
            Credentials { token: token.map(str::to_string), certificates: Some(certificate.clone()) };
        Client::new(address.clone(), &credentials).unwrap()
    };
    (daemon, with)
}
