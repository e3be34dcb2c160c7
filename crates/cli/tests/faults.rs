//! What an operator meets with: a disk that is full, a socket that systemd holds, a script that makes boxes without end.
//! Parts of it need root, and say so where it is missing.

mod support;

use api::client::{Address, Client, ClientError, Credentials};
use api::{CreateBox, ErrorCode, Sandbox, operation};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use support::Daemon;

const CONFIGURATION: &str = "i :: InfiniteSource(LIMIT 3) -> c :: Counter -> Discard;\n";

/// The disk under the store is full: what can't be stored is refused with a sentence, and what runs goes on.
#[test]
fn a_full_disk_changes_nothing() {
    let probe = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: a file system of one's own needs root and `unshare`: a full disk is not tested");
        return;
    }
    // The mount is the daemon's own, and ends with it.
    let disk = "mount -t tmpfs -o size=3m none /mnt && exec \"$@\"";
    let daemon =
        Daemon::start_by("disk", &["unshare", "-m", "sh", "-c", disk, "sh"], &["--store", "/mnt/store"]);
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
    // Nothing is half made, and what ran has kept its state.
    assert_eq!(daemon.json(&["ps"]).as_array().map(Vec::len), Some(made + 1));
    daemon.check(&["read", "first/c.count"], 0, &["3"]);
    daemon.check(&["show", &format!("b{made}")], 4, &[]);
    // With room again everything works.
    daemon.check(&["rm", "b0"], 0, &[]);
    daemon.check(&["create", "last", &small, "--sandbox", "process"], 0, &[]);
    daemon.until(&["read", "last/c.count"], "3");
}

/// A daemon at a socket that somebody else has opened, as systemd does.
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
fn a_daemon_takes_the_socket_that_it_is_given() {
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
    let end = |mut daemon: Child| {
        kill_process(Pid::from_child(&daemon), Signal::TERM).expect("a signal");
        assert!(daemon.wait().expect("the daemon ends").success());
    };
    // Who calls before the daemon is there waits, and is answered.
    let path = file.to_str().expect("a plain path");
    let early = command(&["create", "fw", path, "--sandbox", "process"]);
    let daemon = activated(&listener, &folder);
    let output = early.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    end(daemon);
    // The socket stays, and so does what was defined.
    assert!(folder.join("socket").exists());
    let early = command(&["ps", "--quiet"]);
    let daemon = activated(&listener, &folder);
    let output = early.wait_with_output().expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fw\n");
    end(daemon);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

/// Creates without end: all are answered, the limit is told, and nothing is left over. `CLICKBOX_TEST_CREATES` is their
/// number.
#[test]
fn creates_in_a_row_end_at_the_limit() {
    let most = std::env::var("CLICKBOX_TEST_CREATES").map_or(150, |text| text.parse().expect("a number"));
    let daemon = Daemon::start("creates");
    let client = Client::new(Address::Unix(daemon.folder.join("socket")), &Credentials::default());
    let client = client.expect("a client");
    let pid = daemon.child.id();
    let descriptors = || std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the daemon").count();
    let before = descriptors();
    let (mut made, mut refused) = (Vec::new(), 0);
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
    eprintln!("{} made, {refused} refused", made.len());
    assert_eq!(made.len() + refused, most);
    assert!(refused == 0 || made.len() == 4096, "{} made", made.len());
    assert_eq!(client.ask(&operation::LIST_BOXES, &[]).expect("a list").len(), made.len());
    for name in &made {
        client.ask(&operation::REMOVE_BOX, &[name.as_str()]).expect("it goes");
    }
    assert!(client.ask(&operation::LIST_BOXES, &[]).expect("a list").is_empty());
    assert!(descriptors() <= before + 2, "descriptors are left open: {before}, {}", descriptors());
}
