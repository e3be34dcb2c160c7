//! Operational faults: a full disk, a socket opened by systemd, a script that creates boxes without end. Some tests
//! need root; they print a note and skip without it.

mod support;

use api::client::{Address, Client, ClientError, Credentials};
use api::{CreateBox, ErrorCode, RemoveQuery, Sandbox, operation};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use support::Daemon;
use test_support::{Capability, require};

const CONFIGURATION: &str = "i :: InfiniteSource(LIMIT 3) -> c :: Counter -> Discard;\n";

/// A small disk at /mnt, in a mount namespace that lives as long as this process.
struct Disk(Child);

impl Disk {
    /// Creates a disk of this size.
    fn new(size: &str) -> Disk {
        let script = format!("mount -t tmpfs -o size={size} none /mnt && echo there && exec cat");
        let mut child = Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        let disk = Disk(child);
        assert_eq!(line, "there\n");
        disk
    }

    /// A daemon with its store on the disk.
    fn daemon(&self, name: &str) -> Daemon {
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.0.id());
        Daemon::start_by(name, &["nsenter", &namespace], &["--store", "/mnt/store"])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// When the disk under the store is full, definitions that can't be stored are rejected with a message, and everything
/// else keeps running. Acknowledged definitions survive a restart, even if the daemon was killed while the disk was
/// full.
#[test]
fn a_full_disk_changes_nothing() {
    if !require(Capability::Root) {
        return;
    }
    let disk = Disk::new("3m");
    let daemon = disk.daemon("disk");
    let small = daemon.file("small.click", CONFIGURATION);
    daemon.check(&["create", "first", &small, "--sandbox", "process"], 0, &[]);
    daemon.until(&["read", "first/c.count"], "3");
    let large = daemon.file("large.click", &format!("{CONFIGURATION}// {}\n", "x".repeat(300_000)));
    let mut made = 0;
    let refusal = loop {
        let (code, text) = daemon.run(&["create", &format!("b{made}"), &large, "--sandbox", "process"]);
        if code != 0 {
            break text;
        }
        made += 1;
        assert!(made < 20, "the disk has no end");
    };
    assert!(made > 0 && refusal.contains("free some space"), "{made}: {refusal}");
    daemon.check(&["reload", "first", &large], 1, &["free some space"]);
    // Nothing is half created, and running boxes have kept their state.
    assert_eq!(daemon.json(&["ps"]).as_array().map(Vec::len), Some(made + 1));
    daemon.check(&["read", "first/c.count"], 0, &["3"]);
    daemon.check(&["show", &format!("b{made}")], 4, &[]);
    kill_process(Pid::from_child(&daemon.child), Signal::KILL).expect("a signal");
    drop(daemon);
    let daemon = disk.daemon("disk-again");
    let small = daemon.file("small.click", CONFIGURATION);
    let names = (0..made).map(|number| format!("b{number}\n")).collect::<String>() + "first\n";
    assert_eq!(daemon.check(&["ps", "--quiet"], 0, &[]), names);
    daemon.until(&["read", "first/c.count"], "3");
    daemon.check(&["show", &format!("b{}", made - 1), "--configuration"], 0, &[]);
    // Small changes and their events never use the store's log up.
    for _ in 0..40 {
        daemon.check(&["restart", "first"], 0, &[]);
    }
    // Once there is room again, everything works.
    daemon.check(&["rm", "--force", "b0"], 0, &[]);
    daemon.check(&["create", "last", &small, "--sandbox", "process"], 0, &[]);
    daemon.until(&["read", "last/c.count"], "3");
}

/// A daemon on a socket that another process has opened, like systemd.
fn activated(listener: &UnixListener, folder: &std::path::Path) -> Child {
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\" 3<&0 </dev/null";
    Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_clickbox"), "daemon"])
        .arg("--socket")
        .arg(folder.join("socket"))
        .arg("--store")
        .arg(folder.join("store"))
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener.try_clone().expect("a socket"))))
        .stderr(Stdio::null())
        .spawn()
        .expect("the daemon starts")
}

#[test]
fn a_daemon_serves_an_inherited_socket() {
    let folder = std::env::temp_dir().join(format!("clickbox-activated-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let listener = UnixListener::bind(folder.join("socket")).expect("a socket");
    let file = folder.join("a.click");
    std::fs::write(&file, CONFIGURATION).expect("a file");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
        command.args(arguments).env("CLICKBOX_SOCKET", folder.join("socket"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    };
    let end = |mut daemon: Child, signal| {
        kill_process(Pid::from_child(&daemon), signal).expect("a signal");
        assert!(daemon.wait().expect("the daemon ends").success());
    };
    // A client that connects before the daemon starts waits for its reply.
    let path = file.to_str().expect("a plain path");
    let early = command(&["create", "fw", path, "--sandbox", "process"]);
    let daemon = activated(&listener, &folder);
    let output = early.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    end(daemon, Signal::TERM);
    // The socket and the definitions remain.
    assert!(folder.join("socket").exists());
    let early = command(&["ps", "--quiet"]);
    let daemon = activated(&listener, &folder);
    let output = early.wait_with_output().expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fw\n");
    // Everything ends, not only the daemon.
    end(daemon, Signal::INT);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

/// Creates boxes without end: all requests are answered, the limit is reported, and nothing is left over.
/// `CLICKBOX_TEST_CREATES` is their number.
#[test]
fn creating_boxes_fails_at_the_limit() {
    let most = std::env::var("CLICKBOX_TEST_CREATES").map_or(150, |text| text.parse().expect("a number"));
    let daemon = Daemon::start("creates");
    let client = Client::new(Address::Unix(daemon.socket()), &Credentials::default());
    let client = client.expect("a client");
    let pid = daemon.child.id();
    let descriptors = || std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the daemon").count();
    let before = descriptors();
    let (mut made, mut refused, begin) = (Vec::new(), 0, Instant::now());
    for number in 0..most {
        let name: api::BoxName = format!("b{number}").parse().expect("a name");
        let request = CreateBox {
            sandbox: Sandbox::Process,
            start: number % 50 == 0,
            ..CreateBox::new(name, CONFIGURATION)
        };
        match client.send(&operation::CREATE_BOX, &[], &request) {
            Ok(detail) => made.push(detail.status.name),
            Err(ClientError::Api(error)) if error.code == ErrorCode::Limit => refused += 1,
            Err(error) => panic!("{number}: {error}"),
        }
    }
    let most_memory = daemon.kilobytes("VmHWM:");
    eprintln!(
        "{} made, {refused} refused, in {} s, with {most_memory} KB",
        made.len(),
        begin.elapsed().as_secs()
    );
    assert!(most_memory < 512 << 10, "{most_memory} KB");
    assert_eq!(made.len() + refused, most);
    assert!(refused == 0 || made.len() == 4096, "{} made", made.len());
    assert_eq!(client.ask(&operation::LIST_BOXES, &[]).expect("a list").len(), made.len());
    for name in &made {
        client.call(&operation::REMOVE_BOX, &[name.as_str()], &RemoveQuery::FORCE, &()).expect("it goes");
    }
    assert!(client.ask(&operation::LIST_BOXES, &[]).expect("a list").is_empty());
    assert!(descriptors() <= before + 2, "descriptors are left open: {before}, {}", descriptors());
}
