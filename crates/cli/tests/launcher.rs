//! `clickbox launcher`, as a service manager runs it.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for what must happen.
const TIMEOUT: Duration = Duration::from_secs(40);

fn launcher(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
    command.arg("launcher").args(arguments).env_remove("NOTIFY_SOCKET");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The line that a launcher prints when it is ready.
fn ready(launcher: &mut Child) -> Value {
    let mut line = String::new();
    BufReader::new(launcher.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    serde_json::from_str(&line).expect("JSON")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_launcher_reports_that_it_is_ready_and_ends_on_sigterm() {
    let folder = folder("launcher");
    let notify = folder.join("notify");
    let manager = UnixDatagram::bind(&notify).expect("a socket");
    manager.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    let path = folder.join("new folder/launcher.sock");
    let socket = path.to_str().expect("a plain path");
    let arguments = ["--socket", socket, "--stay", "--json"];
    let mut first = launcher(&arguments).env("NOTIFY_SOCKET", &notify).spawn().expect("a launcher");
    let line = ready(&mut first);
    assert_eq!(line["socket"], socket);
    assert_eq!(line["pid"], first.id());
    assert!(line["shortfalls"].is_array());
    let mut message = [0; 64];
    let length = manager.recv(&mut message).expect("a notification");
    assert_eq!(&message[..length], b"READY=1\n");

    let second = launcher(&["--socket", socket]).output().expect("a second launcher");
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains("another launcher serves the socket"), "{}", text(&second));
    let file = folder.join("file");
    std::fs::write(&file, "").expect("a file");
    let other = launcher(&["--socket", file.to_str().expect("a plain path")]).output().expect("a launcher");
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other).contains("no socket"), "{}", text(&other));

    let kill = Command::new("kill").arg(first.id().to_string()).status().expect("kill");
    assert!(kill.success() && first.wait().expect("an end").success());
    assert!(!path.exists());
    std::fs::remove_dir_all(&folder).expect("the folder");
}

/// The daemon that starts a launcher waits until this pipe closes.
#[test]
fn a_detached_launcher_closes_its_input_and_leaves_the_session() {
    let folder = folder("detached");
    let path = folder.join("launcher.sock");
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut child = launcher(&["--detached", "--socket", path.to_str().expect("a plain path")])
        .stdin(writer)
        .spawn()
        .expect("a launcher");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut bytes).expect("an open pipe");
    assert!(bytes.is_empty() && path.exists());
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("a process");
    // After the name: state, parent, process group, session.
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    assert_eq!(fields.get(3), Some(&child.id().to_string().as_str()));
    // Nobody connects, so it ends by itself, silently.
    let status = child.wait().expect("an end");
    assert!(status.success() && !path.exists());
    let output = child.wait_with_output().expect("an end");
    assert_eq!(text(&output), "");
    std::fs::remove_dir_all(&folder).expect("the folder");
}

/// A launcher, and with it all boxes, must not end when the terminal of whoever started it is gone.
#[test]
fn a_launcher_without_standard_error_goes_on() {
    let folder = folder("no-standard-error");
    let path = folder.join("launcher.sock");
    let mut child =
        launcher(&["--stay", "--socket", path.to_str().expect("a plain path")]).spawn().expect("a launcher");
    drop(child.stderr.take());
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < TIMEOUT, "the launcher does not listen");
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = Command::new("kill").arg(child.id().to_string()).status().expect("kill");
    let status = child.wait().expect("an end");
    assert!(kill.success() && status.success(), "{status}");
    std::fs::remove_dir_all(&folder).expect("the folder");
}
