//! Full disks and exhausted descriptors: operations fail with a message that says what to do, nothing that was acknowledged is
//! lost, and everything works again when there is room.

mod support;

use api::client::{Client, ClientError};
use api::operation as op;
use api::{ApiError, BoxState, CreateBox, ErrorCode, Event, EventKind, EventQuery, Install, RemoveQuery};
use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Daemon, Folder, process, until};
use test_support::{Capability, require};

/// Not a test: the daemon that the other tests start.
#[test]
fn run_as_daemon() {
    support::run_if_child();
}

fn error<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ApiError {
    match result.unwrap_err() {
        ClientError::Api(error) => error,
        error => panic!("{error}"),
    }
}

fn events(client: &Client, kind: EventKind) -> Vec<Event> {
    let events = client.call(&op::EVENTS, &[], &EventQuery::default(), &()).unwrap();
    events.map(Result::unwrap).filter(|event| event.kind == kind).collect()
}

/// The processor time that a daemon has used.
fn processor_time(daemon: &Daemon) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    // User and system time, in hundredths of a second.
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// Connections without requests take all descriptors: new ones are still served, and the daemon doesn't spin.
#[test]
fn connections_that_take_all_descriptors_are_closed_for_others() {
    let folder = Folder::new("shortage-connections");
    std::fs::write(folder.file("few-descriptors"), "140").unwrap();
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    client.ask(&op::HOST, &[]).unwrap();
    let connect = || UnixStream::connect(folder.file("socket"));
    let mut silent: Vec<UnixStream> = (0..120).map(|_| connect().unwrap()).collect();
    // Half of them stay after a request.
    let mut used = Vec::new();
    for mut stream in silent.drain(..40) {
        let _ = stream.write_all(b"GET /v1/boxes HTTP/1.1\r\nHost: x\r\n\r\n");
        used.push(stream);
    }
    silent.extend((0..60).filter_map(|_| connect().ok()));
    until("it is reported", || !events(&daemon.client(), EventKind::DescriptorsExhausted).is_empty());
    let before = processor_time(&daemon);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        silent.extend((0..4).filter_map(|_| connect().ok()));
        let asked = Instant::now();
        client.ask(&op::LIST_BOXES, &[]).unwrap();
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        std::thread::sleep(Duration::from_millis(100));
    }
    let busy = processor_time(&daemon) - before;
    assert!(busy < Duration::from_millis(2000), "{busy:?} of processor time in three seconds");
    let reported = events(&client, EventKind::DescriptorsExhausted);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].message.contains("the limit is 140"), "{reported:?}");
    drop((silent, used));
    client.send(&op::CREATE_BOX, &[], &process("fw", "mirror", &["-"])).unwrap();
}

/// Uploads take descriptors: the one for which none is left is refused, and leaves nothing.
#[test]
fn uploads_that_take_all_descriptors_are_refused() {
    let folder = Folder::new("shortage-uploads");
    std::fs::write(folder.file("few-descriptors"), "140").unwrap();
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let upload = |name: &str| client.send(&op::UPLOAD, &[name], &b"contents"[..]);
    let mut made = Vec::new();
    let failure = loop {
        let name = format!("u{}", made.len());
        match upload(&name) {
            Ok(()) => made.push(name),
            Err(ClientError::Api(error)) => break error,
            // Not even the connection got one.
            Err(ClientError::Connection { .. } | ClientError::NoDaemon { .. }) => continue,
            Err(error) => panic!("{error}"),
        }
        assert!(made.len() < 140, "an upload takes no descriptor?");
    };
    assert_eq!(failure.code, ErrorCode::Limit, "{failure}");
    assert!(failure.message.contains("no free descriptor"), "{failure}");
    let failed = error(client.send(&op::CREATE_BOX, &[], &process("fw", "mirror", &["-"])));
    assert_eq!(failed.code, ErrorCode::Limit, "{failed}");
    for name in made.drain(..40) {
        client.ask(&op::REMOVE_UPLOAD, &[&name]).unwrap();
    }
    upload("again").unwrap();
    client.send(&op::CREATE_BOX, &[], &process("fw", "mirror", &["-"])).unwrap();
}

/// A small file system in memory, until it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Folder, bytes: &str) -> Option<Self> {
        if !require(Capability::Root) {
            return None;
        }
        let size = format!("size={bytes}");
        let status =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder.0).status();
        if !status.is_ok_and(|status| status.success()) {
            test_support::skip(Capability::Root, "a file system can't be mounted");
            return None;
        }
        Some(Self(folder.0.clone()))
    }

    /// Takes all room.
    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).unwrap();
        let mut size = 1 << 20;
        while size > 0 {
            if file.write_all(&vec![0; size]).is_err() {
                size /= 2;
            }
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_named_and_loses_nothing() {
    let folder = Folder::new("shortage-disk");
    let Some(disk) = SmallDisk::mount(&folder, "16M") else { return };
    let mut daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    for number in 0..3 {
        client.send(&op::CREATE_BOX, &[], &process(&format!("box{number}"), "mirror", &["-"])).unwrap();
    }
    disk.fill();
    // What does not fit fails with the file system's name, and changes nothing.
    let mount = folder.0.to_str().unwrap();
    let large = format!("drop{}", " ".repeat(4 << 20));
    let install =
        Install { configuration: large.clone(), source: None, files: Vec::new(), uploads: Vec::new() };
    let named = |error: ApiError| {
        assert_eq!(error.code, ErrorCode::Store, "{error}");
        let what = format!("the file system at {mount}");
        assert!(error.message.contains(&what) && error.message.contains("free some space there"), "{error}");
    };
    named(error(client.send(&op::CREATE_BOX, &[], &process("large", &large, &["-"]))));
    named(error(client.send(&op::INSTALL, &["box0", "main"], &install)));
    named(error(client.send(&op::UPLOAD, &["u"], large.as_bytes())));
    let stack = api::Stack { boxes: vec![process("large", &large, &["-"])], ..api::Stack::default() };
    named(error(client.call(&op::APPLY_STACK, &["s"], &api::ApplyQuery::default(), &stack)));
    // Small changes may still fit, thanks to the reserve. What is acknowledged stays.
    let mut acknowledged = vec!["box0".to_string(), "box1".into(), "box2".into()];
    for number in 0..200 {
        let name = format!("small{number}");
        let request = CreateBox { start: false, ..process(&name, "drop", &[]) };
        match client.send(&op::CREATE_BOX, &[], &request) {
            Ok(_) => acknowledged.push(name),
            Err(ClientError::Api(error)) => {
                named(error);
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    client.call(&op::REMOVE_BOX, &["box2"], &RemoveQuery::FORCE, &()).unwrap();
    acknowledged.retain(|name| name != "box2");
    acknowledged.sort();
    let listed = |client: &Client| {
        let boxes = client.ask(&op::LIST_BOXES, &[]).unwrap().into_iter();
        boxes.map(|status| status.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&client), acknowledged);
    // The audit log says so once.
    let failed = events(&client, EventKind::AuditFailed);
    assert!(failed.len() <= 1, "{failed:?}");
    assert!(failed.iter().all(|event| event.message.contains(mount)), "{failed:?}");
    // A daemon that is killed with a full disk loses nothing.
    daemon.signal(rustix::process::Signal::KILL);
    daemon.child.wait().unwrap();
    disk.free();
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    assert_eq!(listed(&client), acknowledged);
    let status = client.ask(&op::SHOW_BOX, &["box0"]).unwrap().status;
    assert_eq!((status.state, status.configurations.len()), (BoxState::Running, 1));
    // There is room again.
    client.send(&op::UPLOAD, &["u"], large.as_bytes()).unwrap();
    client.send(&op::CREATE_BOX, &[], &process("again", "mirror", &["-"])).unwrap();
}
