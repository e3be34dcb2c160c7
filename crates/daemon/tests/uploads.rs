//! Files that are uploaded as they are, over the daemon's sockets.

mod support;

use api::client::Client;
use api::operation as op;
use api::{Check, CreateBox, ErrorCode, Install, Quota, RemoveQuery, Right, Severity, UploadedFile};
use daemon::NewUser;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Daemon, Folder, TIMEOUT, code, process, until, with_tcp};

/// Not a test: the daemon that the other tests start.
#[test]
fn run_as_daemon() {
    support::run_if_child();
}

/// A folder of a daemon whose boxes run configurations.
fn engine(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::write(folder.file("engine"), "").unwrap();
    folder
}

fn upload(client: &Client, name: &str, contents: &[u8]) -> Result<(), api::client::ClientError> {
    client.send(&op::UPLOAD, &[name], contents)
}

/// A box with a file that was uploaded.
fn with_upload(name: &str, upload: &str) -> CreateBox {
    let file = UploadedFile { name: "in.dump".into(), upload: upload.parse().unwrap() };
    CreateBox { uploads: vec![file], memory: api::Size(64 << 20), ..process(name, "Idle -> Discard;", &[]) }
}

fn files_of(client: &Client, name: &str) -> Vec<String> {
    client.ask(&op::SHOW_CONFIGURATION, &[name, "main"]).unwrap().files
}

/// The regular files without a name that a process has open, and their bytes.
fn unnamed_files(pid: u32) -> (usize, u64) {
    let folder = format!("/proc/{pid}/fd");
    let open: Vec<_> = std::fs::read_dir(folder).unwrap().filter_map(Result::ok).collect();
    let is_unnamed = |path: &Path| {
        let target = std::fs::read_link(path).unwrap_or_default();
        let target = target.to_string_lossy();
        target.ends_with("(deleted)") && target.starts_with(&*std::env::temp_dir().to_string_lossy())
    };
    let found = open.iter().filter(|entry| is_unnamed(&entry.path()));
    let sizes: Vec<u64> =
        found.filter_map(|entry| Some(std::fs::metadata(entry.path()).ok()?.len())).collect();
    (sizes.len(), sizes.iter().sum())
}

#[test]
fn an_upload_becomes_a_file_of_a_configuration() {
    let folder = engine("upload");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    // All bytes, also those that JSON would have to escape, and more than is written at once.
    let contents: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
    let before = unnamed_files(daemon.child.id());
    upload(&client, "a", &contents).unwrap();
    assert_eq!(unnamed_files(daemon.child.id()), (before.0 + 1, before.1 + contents.len() as u64));
    let named = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let beside: Vec<String> = std::fs::read_dir(&folder.0).unwrap().map(named).collect();
    assert!(!beside.iter().any(|name| name.contains("upload")), "{beside:?}");
    let check = |upload: &str| {
        let file = UploadedFile { name: "f".into(), upload: upload.parse().unwrap() };
        let (configuration, source) = ("Idle -> Discard;".into(), None);
        let check = Check { configuration, source, files: Vec::new(), uploads: vec![file], ports: None };
        client.send(&op::CHECK, &[], &check)
    };
    // A check uses it, and what is refused does not install it.
    let found = check("a").unwrap().diagnostics;
    assert!(found.iter().all(|diagnostic| diagnostic.severity != Severity::Error), "{found:?}");
    let refused = CreateBox { configuration: "Dance -> Discard;".into(), ..with_upload("fw", "a") };
    assert_eq!(code(client.send(&op::CREATE_BOX, &[], &refused)), ErrorCode::Refused);
    client.send(&op::CREATE_BOX, &[], &with_upload("fw", "a")).unwrap();
    assert_eq!(files_of(&client, "fw"), ["in.dump"]);
    // It is gone now.
    assert_eq!(unnamed_files(daemon.child.id()), before);
    assert_eq!(code(check("a")), ErrorCode::NotFound);
    assert_eq!(code(client.ask(&op::REMOVE_UPLOAD, &["a"])), ErrorCode::NotFound);
    upload(&client, "b", b"").unwrap();
    upload(&client, "b", b"second").unwrap();
    let uploads = vec![UploadedFile { name: "rules".into(), upload: "b".parse().unwrap() }];
    let install =
        Install { configuration: "Idle -> Discard;".into(), source: None, files: Vec::new(), uploads };
    client.send(&op::INSTALL, &["fw", "main"], &install).unwrap();
    // Earlier files stay.
    assert_eq!(files_of(&client, "fw"), ["rules", "in.dump"]);
    // A stack exports what was uploaded.
    upload(&client, "c", &contents).unwrap();
    let stack = api::Stack { boxes: vec![with_upload("edge", "c")], ..api::Stack::default() };
    client.send(&op::DIFF_STACK, &["s"], &stack).unwrap();
    client.call(&op::APPLY_STACK, &["s"], &api::ApplyQuery::default(), &stack).unwrap();
    let exported = client.ask(&op::EXPORT_STACK, &["s"]).unwrap();
    assert_eq!(exported.boxes[0].files[0].contents.0, contents);
    assert!(exported.boxes[0].uploads.is_empty());
    upload(&client, "d", b"unused").unwrap();
    client.ask(&op::REMOVE_UPLOAD, &["d"]).unwrap();
    assert_eq!(unnamed_files(daemon.child.id()), before);
}

#[test]
fn the_size_of_an_upload_is_checked_before_it_is_read() {
    let folder = engine("upload-size");
    let daemon = Daemon::start(&folder.0);
    let before = unnamed_files(daemon.child.id());
    // Nothing of these bodies is sent, and none is asked for.
    for (headers, status) in [
        ("Content-Length: 67043329", "413"),
        ("Content-Length: 1099511627776\r\nExpect: 100-continue", "413"),
        ("Content-Length: 18446744073709551615", "4"),
        ("Content-Length: 99999999999999999999999", "400"),
        ("Content-Length: -1", "400"),
        ("Content-Length: 5\r\nContent-Length: 6", "400"),
        ("Transfer-Encoding: chunked", "400"),
    ] {
        let answer = daemon.answer(
            format!("PUT /v1/uploads/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n\r\n")
                .as_bytes(),
        );
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers}: {answer}");
    }
    // The client does not send what is refused.
    let large = vec![0; api::File::MAX_BYTES + 1];
    assert_eq!(code(upload(&daemon.client(), "a", &large)), ErrorCode::TooLarge);
    for name in ["..%2Fx", "..", "%2Fetc%2Fpasswd", "a%00b", ".hidden", "A", "a%20b", &"x".repeat(100)] {
        let answer = daemon.answer(
            format!("PUT /v1/uploads/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")
                .as_bytes(),
        );
        assert!(answer.starts_with("HTTP/1.1 400 "), "{name}: {answer}");
    }
    // The files of one request have a limit together, however often an upload is used.
    let client = daemon.client();
    upload(&client, "large", &large[1..]).unwrap();
    let file = |number: usize| UploadedFile { name: format!("f{number}"), upload: "large".parse().unwrap() };
    let many = CreateBox { uploads: (0..5).map(file).collect(), ..process("fw", "Idle -> Discard;", &[]) };
    assert_eq!(code(client.send(&op::CREATE_BOX, &[], &many)), ErrorCode::TooLarge);
    client.ask(&op::REMOVE_UPLOAD, &["large"]).unwrap();
    assert_eq!(unnamed_files(daemon.child.id()), before);
}

/// Begins an upload and sends a part of it.
fn begin(folder: &Folder, name: &str, length: usize, part: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(folder.file("socket")).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!("PUT /v1/uploads/{name} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), part].concat()).unwrap();
    stream
}

#[test]
fn uploads_that_are_broken_off_leave_nothing() {
    let folder = engine("upload-broken");
    let mut daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let before = unnamed_files(daemon.child.id());
    let begun = begin(&folder, "a", 1000, b"part");
    until("it arrives", || unnamed_files(daemon.child.id()).0 > before.0);
    // It does not exist yet, and no other upload can take the name.
    assert_eq!(code(client.send(&op::CREATE_BOX, &[], &with_upload("fw", "a"))), ErrorCode::NotFound);
    assert_eq!(code(upload(&client, "a", b"other")), ErrorCode::Busy);
    assert_eq!(code(client.ask(&op::REMOVE_UPLOAD, &["a"])), ErrorCode::Busy);
    // Another one arrives at the same time.
    upload(&client, "b", b"whole").unwrap();
    drop(begun);
    until("it is removed", || unnamed_files(daemon.child.id()).0 == before.0 + 1);
    // Its name is free a little later.
    until("another one takes its name", || match upload(&client, "a", b"again") {
        Err(failure) => {
            assert_eq!(code::<()>(Err(failure)), ErrorCode::Busy);
            false
        }
        Ok(()) => true,
    });
    client.send(&op::CREATE_BOX, &[], &with_upload("fw", "a")).unwrap();
    client.send(&op::CREATE_BOX, &[], &with_upload("nat", "b")).unwrap();
    // A daemon that is killed in the middle leaves no file, and its successor knows no upload.
    let _begun = begin(&folder, "c", 1000, b"part");
    upload(&client, "d", b"unused").unwrap();
    until("both are there", || unnamed_files(daemon.child.id()).0 == before.0 + 2);
    let names = || {
        let entries = std::fs::read_dir(&folder.0).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let there = names();
    daemon.signal(rustix::process::Signal::KILL);
    daemon.child.wait().unwrap();
    assert_eq!(names(), there);
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    assert_eq!(code(client.ask(&op::REMOVE_UPLOAD, &["d"])), ErrorCode::NotFound);
    assert_eq!(files_of(&client, "fw"), ["in.dump"]);
    assert_eq!(unnamed_files(daemon.child.id()), before);
}

/// A client that sends nothing more is cut off, and others are served meanwhile.
#[test]
fn a_silent_upload_ends_in_time() {
    let folder = engine("upload-silent");
    let daemon = Daemon::start(&folder.0);
    let before = unnamed_files(daemon.child.id());
    let start = Instant::now();
    let mut silent: Vec<UnixStream> =
        (0..32).map(|number| begin(&folder, &format!("s{number}"), 1 << 20, b"x")).collect();
    until("all arrive", || unnamed_files(daemon.child.id()).0 == before.0 + silent.len());
    let client = daemon.client();
    for round in 0..20 {
        let began = Instant::now();
        upload(&client, "quick", &[round; 100_000]).unwrap();
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    for stream in &mut silent {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 504 ") && answer.contains("too slow"), "{answer}");
    }
    // Before the time for a whole request is over.
    assert!(start.elapsed() < Duration::from_secs(55), "{:?}", start.elapsed());
    client.ask(&op::REMOVE_UPLOAD, &["quick"]).unwrap();
    assert_eq!(unnamed_files(daemon.child.id()), before);
}

#[test]
fn uploads_belong_to_owners_and_count_against_their_quotas() {
    let folder = engine("upload-owners");
    let file = folder.file("tokens");
    let user = |name: &str, owner: &str, rights: &[Right]| NewUser {
        name: name.parse().unwrap(),
        owner: owner.parse().unwrap(),
        rights: rights.iter().copied().collect(),
        quota: Quota { uploads: Some(api::Size(1 << 20)), ..Quota::default() },
    };
    let token = |user: NewUser| daemon::add_user(&file, &user).unwrap();
    let alice = token(user("alice", "alice", &Right::OF_TOKENS));
    let anna = token(user("anna", "alice", &Right::OF_TOKENS));
    let bob = token(user("bob", "bob", &Right::OF_TOKENS));
    let reader = token(user("reader", "alice", &[Right::Read, Right::Operate]));
    let (daemon, with) = with_tcp(&folder);
    let [alice, anna, bob, reader] = [alice, anna, bob, reader].map(|token| with(Some(&token)));
    assert_eq!(code(upload(&reader, "a", b"x")), ErrorCode::Denied);
    upload(&alice, "a", &vec![1; 700_000]).unwrap();
    // The quota is the owner's, and is checked before the body is read.
    assert_eq!(code(upload(&anna, "b", &vec![1; 400_000])), ErrorCode::Limit);
    upload(&anna, "a", &vec![2; 1 << 20]).unwrap();
    upload(&bob, "a", &vec![3; 1 << 20]).unwrap();
    // What others uploaded is not there, also not for administrators.
    let administrator = daemon.client();
    assert_eq!(code(administrator.send(&op::CREATE_BOX, &[], &with_upload("fw", "a"))), ErrorCode::NotFound);
    bob.ask(&op::REMOVE_UPLOAD, &["a"]).unwrap();
    assert_eq!(code(bob.send(&op::CREATE_BOX, &[], &with_upload("fw", "a"))), ErrorCode::NotFound);
    let wanted = CreateBox { ports: Vec::new(), ..with_upload("hers", "a") };
    alice.send(&op::CREATE_BOX, &[], &wanted).unwrap();
    upload(&alice, "b", &vec![1; 1 << 20]).unwrap();
    assert_eq!(code(anna.send(&op::CREATE_BOX, &[], &with_upload("more", "a"))), ErrorCode::NotFound);
    alice.call(&op::REMOVE_BOX, &["hers"], &RemoveQuery::FORCE, &()).unwrap();
    // Two at once do not exceed it together.
    alice.ask(&op::REMOVE_UPLOAD, &["b"]).unwrap();
    let made: usize = std::thread::scope(|scope| {
        let begin = |name: &'static str, client| {
            scope.spawn(move || usize::from(upload(client, name, &vec![1; 600_000]).is_ok()))
        };
        let begun = [begin("c", &alice), begin("d", &anna)];
        begun.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(made, 1);
}
