//! The daemon as a separate process, over its sockets.

mod support;

use api::client::{Client, ClientError};
use api::operation as op;
use api::{
    AuditEntry, AuditQuery, BoxState, CaptureQuery, CreateBox, ErrorCode, ErrorReason, Event, EventKind,
    EventQuery, LogQuery, PortRequest, Quota, RemoveQuery, Right,
};
use daemon::NewUser;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use support::{Daemon, Folder, TIMEOUT, TOKEN, code, process, spawn, until, with_tcp};

/// The longest time of an answer beside clients that say nothing: one that waits for their time limits, of 20 s and more, takes longer.
const MAX_LATENCY: Duration = Duration::from_secs(15);

/// Not a test: the daemon that the other tests start.
#[test]
fn run_as_daemon() {
    support::run_if_child();
}

/// The API has no name for a box in a thread of the daemon.
#[test]
fn thread_boxes_are_refused() {
    let folder = Folder::new("thread");
    let daemon = Daemon::start(&folder.0);
    for sandbox in ["none", "thread", "None"] {
        let body = format!(r#"{{"name":"fw","sandbox":"{sandbox}","configuration":"drop"}}"#);
        let head = "POST /v1/boxes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let answer = daemon.answer(request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains(sandbox), "{answer}");
    }
    let client = daemon.client();
    assert!(client.ask(&op::LIST_BOXES, &[]).unwrap().is_empty());
}

#[test]
fn a_client_creates_and_uses_a_box_over_the_socket() {
    let folder = Folder::new("server");
    let mut daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let mode = std::fs::metadata(folder.file("socket")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let detail = client.send(&op::CREATE_BOX, &[], &process("fw", "mirror", &["-"])).unwrap();
    assert_eq!(detail.status.state, BoxState::Running);
    let write = api::HandlerWrite { value: "a/b\n\u{1b}".into() };
    client.send(&op::WRITE, &["fw", "value"], &write).unwrap();
    assert_eq!(client.ask(&op::READ, &["fw", "value"]).unwrap().value, write.value);
    assert_eq!(code(client.ask(&op::READ, &["fw", "none"])), ErrorCode::Refused);
    assert_eq!(code(client.ask(&op::SHOW_BOX, &["none"])), ErrorCode::NotFound);
    assert_eq!(code(client.send(&op::CREATE_BOX, &[], &process("fw", "drop", &[]))), ErrorCode::Exists);
    let refused = client.send(&op::CREATE_BOX, &[], &process("bad", "dance", &[]));
    let Err(ClientError::Api(error)) = refused else { panic!("{refused:?}") };
    assert_eq!((error.code, error.details.len()), (ErrorCode::Refused, 1));
    let host = client.ask(&op::HOST, &[]).unwrap();
    assert_eq!((host.counts.boxes, host.image.as_str()), (1, "probe"));
    assert_eq!(client.ask(&op::LIST_BOXES, &[]).unwrap().len(), 1);
    // A second daemon on the same socket exits with a message.
    let second = spawn(&folder.0).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another daemon serves"), "{said}");
    assert_eq!(second.status.code(), Some(7));
    let metrics = daemon.answer(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(
        metrics.contains("clickbox_box_state{box=\"fw\",owner=\"default\",state=\"running\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("clickbox_capture_lost_packets_total 0"), "{metrics}");
    client.call(&op::REMOVE_BOX, &["fw"], &RemoveQuery::FORCE, &()).unwrap();
    // It shuts down gracefully when asked to, even while a client follows events.
    let query = EventQuery { follow: true, since: None };
    let listening = client.call(&op::EVENTS, &[], &query, &()).unwrap();
    daemon.signal(rustix::process::Signal::TERM);
    let start = Instant::now();
    assert!(daemon.child.wait().unwrap().success());
    assert!(start.elapsed() < TIMEOUT);
    drop(listening);
    assert!(!folder.file("socket").exists());
}

#[test]
fn logs_events_and_captures_are_followed() {
    let folder = Folder::new("follow");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let events = client.call(&op::EVENTS, &[], &EventQuery { follow: true, since: None }, &()).unwrap();
    client.send(&op::CREATE_BOX, &[], &process("fw", "mirror", &["-"])).unwrap();
    let events: Vec<Event> = events.take(2).map(Result::unwrap).collect();
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::BoxStarted, EventKind::BoxCreated]);
    assert_eq!(events[0].subject, "box/fw");
    let query = LogQuery { follow: true, lines: None };
    let mut lines = client.call(&op::LOGS, &["fw"], &query, &()).unwrap().map(|line| line.unwrap().text);
    assert!(lines.any(|line| line == "runs `mirror`"));
    client.send(&op::CREATE_BOX, &[], &process("source", "send 60", &["pipe:a"])).unwrap();
    client.send(&op::CREATE_BOX, &[], &process("sink", "drop", &["pipe:a"])).unwrap();
    let query = CaptureQuery { port: "sink:0".parse().unwrap(), snap: None, count: Some(10) };
    let mut bytes = Vec::new();
    client.call(&op::CAPTURE, &[], &query, &()).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 24 + 10 * (16 + 60));
}

#[test]
fn malformed_requests_get_errors() {
    let folder = Folder::new("nonsense");
    let daemon = Daemon::start(&folder.0);
    let request = |method: &str, path: &str, body: &str| {
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        daemon.answer(text.as_bytes())
    };
    for (method, path, body, status, code) in [
        ("POST", "/v1/boxes", "{", "400", "invalid"),
        ("POST", "/v1/boxes", "[]", "400", "invalid"),
        ("POST", "/v1/boxes", "{\"name\":\"../x\",\"configuration\":\"\"}", "400", "invalid"),
        ("POST", "/v1/boxes", "{\"name\":\"x\",\"configuration\":\"drop\",\"more\":1}", "400", "invalid"),
        ("POST", "/v1/boxes", "{\"name\":\"x\",\"configuration\":\"drop\",\"ring\":3}", "400", "invalid"),
        ("GET", "/v1/boxes/..%2F..%2Fetc", "", "400", "invalid"),
        ("GET", "/v1/boxes/x/handlers/%00", "", "400", "invalid"),
        ("GET", "/v1/boxes/x/logs?lines=many", "", "400", "invalid"),
        ("GET", "/v1/events?since=-1", "", "400", "invalid"),
        ("GET", "/v1/capture?port=nowhere", "", "400", "invalid"),
        ("GET", "/v1/none", "", "404", "not_found"),
        ("PATCH", "/v1/boxes", "", "405", "invalid"),
        ("PUT", "/v1/switches/lan/addresses/zz", "{}", "400", "invalid"),
    ] {
        let answer = request(method, path, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{method} {path}: {answer}");
        assert!(!answer.contains("eserialize") && !answer.contains("struct "), "{method} {path}: {answer}");
    }
    let wrong = request("DELETE", "/v1/boxes", "");
    assert!(wrong.starts_with("HTTP/1.1 405") && wrong.contains("\r\nallow: GET,HEAD,POST\r\n"), "{wrong}");
    assert!(
        wrong.contains("/v1/boxes has no operation DELETE: the header Allow lists its methods"),
        "{wrong}"
    );
    let query = request("GET", "/v1/boxes/x/logs?lines=many", "");
    assert!(query.contains("the query can't be read: lines: expected a whole number"), "{query}");
    let driver = request("POST", "/v1/switches/lan/ports", r#"{"name": "a", "driver": "null"}"#);
    assert!(driver.contains("expected an object such as"), "{driver}");
    for bytes in [&b"\0\0\0\0"[..], b"GET", b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n"] {
        daemon.exchange(bytes, true);
    }
    // Longer than any request may be: refused before the body is sent.
    let large = daemon.answer(b"POST /v1/boxes HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n");
    assert!(large.starts_with("HTTP/1.1 413"), "{large}");
    let client = daemon.client();
    let configuration = "x".repeat(100 << 20);
    let result = client.send(&op::CREATE_BOX, &[], &process("large", &configuration, &[]));
    assert_eq!(code(result), ErrorCode::TooLarge);
    assert!(client.ask(&op::LIST_BOXES, &[]).unwrap().is_empty());
}

/// When the daemon is killed, its boxes end too; the next daemon restores them.
#[test]
fn a_killed_daemon_leaves_no_process_and_loses_no_definition() {
    let folder = Folder::new("killed");
    let mut daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let mut pids = Vec::new();
    for number in 0..5 {
        let request = process(&format!("box{number}"), "mirror", &["-"]);
        let detail = client.send(&op::CREATE_BOX, &[], &request).unwrap();
        pids.push(detail.status.pid.unwrap());
    }
    let since = client.call(&op::EVENTS, &[], &EventQuery::default(), &()).unwrap();
    let last = since.map(|event| event.unwrap().sequence).last().unwrap();
    daemon.signal(rustix::process::Signal::KILL);
    daemon.child.wait().unwrap();
    until("the boxes end", || {
        let runs = |pid: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !status.is_empty() && !status.contains(") Z")
        };
        !pids.iter().any(runs)
    });
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let boxes = client.ask(&op::LIST_BOXES, &[]).unwrap();
    assert_eq!(boxes.len(), 5);
    assert!(boxes.iter().all(|status| status.state == BoxState::Running), "{boxes:?}");
    let events = client.call(&op::EVENTS, &[], &EventQuery::default(), &()).unwrap();
    let events: Vec<Event> = events.map(|event| event.unwrap()).collect();
    assert!(events.windows(2).all(|pair| pair[0].sequence < pair[1].sequence), "{events:?}");
    let starts = events.iter().filter(|event| event.kind == EventKind::DaemonStarted);
    let starts: Vec<u64> = starts.map(|event| event.sequence).collect();
    assert!(starts.len() == 2 && starts[0] <= last && starts[1] > last, "{starts:?}, {last}");
}

/// After a clean end, a copy of the store's one file holds every definition.
#[test]
fn a_daemon_that_ends_leaves_its_store_in_one_file() {
    let (first, second) = (Folder::new("whole"), Folder::new("whole-copy"));
    let mut daemon = Daemon::start(&first.0);
    for number in 0..5 {
        let request = process(&format!("box{number}"), "mirror", &["-"]);
        daemon.client().send(&op::CREATE_BOX, &[], &request).unwrap();
    }
    daemon.signal(rustix::process::Signal::TERM);
    assert!(daemon.child.wait().unwrap().success());
    std::fs::copy(first.file("store"), second.file("store")).unwrap();
    let copy = Daemon::start(&second.0);
    let boxes = copy.client().ask(&op::LIST_BOXES, &[]).unwrap();
    assert_eq!(boxes.len(), 5);
    assert!(boxes.iter().all(|status| status.state == BoxState::Running), "{boxes:?}");
}

/// When descriptors run out, operations fail with a message, and work again when some are free.
#[test]
fn operations_fail_only_while_descriptors_are_short() {
    let folder = Folder::new("descriptors");
    std::fs::write(folder.file("few-descriptors"), "300").unwrap();
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let mut made = Vec::new();
    let failure = loop {
        let name = format!("box{}", made.len());
        match client.send(&op::CREATE_BOX, &[], &process(&name, "mirror", &["-"])) {
            Ok(_) => made.push(name),
            Err(ClientError::Api(error)) => break error,
            Err(error) => panic!("{error}"),
        }
        assert!(made.len() < 300, "a box takes no descriptors?");
    };
    assert!(made.len() > 10, "only {}: {failure}", made.len());
    assert_eq!(failure.code, ErrorCode::Limit, "{failure}");
    eprintln!("after {} boxes: {failure}", made.len());
    assert_eq!(client.ask(&op::LIST_BOXES, &[]).unwrap().len(), made.len());
    for name in made.drain(..made.len() / 2) {
        client.call(&op::REMOVE_BOX, &[&name], &RemoveQuery::FORCE, &()).unwrap();
    }
    client.send(&op::CREATE_BOX, &[], &process("again", "mirror", &["-"])).unwrap();
}

#[test]
fn wrong_tokens_are_told_apart_throttled_and_counted() {
    let folder = Folder::new("wrong-tokens");
    let (daemon, with) = with_tcp(&folder);
    let refused = |token| match with(token).ask(&op::HOST, &[]).unwrap_err() {
        ClientError::Api(error) => (error.code, error.reason),
        error => panic!("{error}"),
    };
    for _ in 0..12 {
        assert_eq!(refused(None), (ErrorCode::Forbidden, Some(ErrorReason::NoToken)));
    }
    for _ in 0..10 {
        let wrong = refused(Some("another token entirely"));
        assert_eq!(wrong, (ErrorCode::Forbidden, Some(ErrorReason::WrongToken)));
    }
    for _ in 0..3 {
        let throttled = refused(Some("another token entirely"));
        assert_eq!(throttled, (ErrorCode::Limit, Some(ErrorReason::WrongToken)));
    }
    // Another client behind the same address is not shut out.
    assert_eq!(with(Some(TOKEN)).ask(&op::HOST, &[]).unwrap().image, "probe");
    let events = daemon.client().call(&op::EVENTS, &[], &EventQuery::default(), &()).unwrap();
    let kinds: Vec<_> = events.map(|event| event.unwrap().kind).collect();
    assert_eq!(kinds.iter().filter(|&&kind| kind == EventKind::WrongTokens).count(), 1, "{kinds:?}");
    let metrics = daemon.answer(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (reason, count) in [("no_token", 12), ("wrong_token", 10), ("throttled", 3)] {
        let line = format!("clickbox_api_refused_requests_total{{reason=\"{reason}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}

/// Users over TCP: rights, changes of the file while the daemon runs, and what follows a stream.
#[test]
fn users_have_the_rights_of_their_tokens() {
    let folder = Folder::new("users");
    let file = folder.file("tokens");
    let user = |name: &str, rights: &[Right]| NewUser {
        name: name.parse().unwrap(),
        owner: name.parse().unwrap(),
        rights: rights.iter().copied().collect(),
        quota: Quota { boxes: Some(1), ..Quota::default() },
    };
    let alice = daemon::add_user(&file, &user("alice", &Right::OF_TOKENS)).unwrap();
    let bob = daemon::add_user(&file, &user("bob", &[Right::Read])).unwrap();
    let (daemon, with) = with_tcp(&folder);
    let (alice, bob) = (with(Some(&alice)), with(Some(&bob)));
    let create = |client: &Client, name: &str| {
        client
            .send(&op::CREATE_BOX, &[], &process(name, "mirror", &[]))
            .map(|made| made.status.owner.to_string())
    };
    assert_eq!(create(&alice, "hers").unwrap(), "alice");
    assert_eq!(code(create(&alice, "more")), ErrorCode::Limit);
    assert_eq!(code(create(&bob, "his")), ErrorCode::Denied);
    assert_eq!(bob.ask(&op::LIST_BOXES, &[]).unwrap().len(), 0);
    assert_eq!(code(bob.ask(&op::SHOW_BOX, &["hers"])), ErrorCode::NotFound);
    assert_eq!(code(alice.ask(&op::CHECK_STORE, &[])), ErrorCode::Denied);
    assert_eq!(with(Some(TOKEN)).ask(&op::LIST_BOXES, &[]).unwrap().len(), 1);
    // A follower gets the events of its own objects only.
    let mut events = alice.call(&op::EVENTS, &[], &EventQuery { follow: true, since: Some(0) }, &()).unwrap();
    create(&daemon.client(), "plain").unwrap();
    alice.ask(&op::STOP_BOX, &["hers"]).unwrap();
    let mut seen: Vec<Event> = Vec::new();
    while !seen.iter().any(|event| event.kind == EventKind::BoxStopped) {
        seen.push(events.next().unwrap().unwrap());
    }
    assert!(seen.iter().all(|event| event.subject == "box/hers"), "{seen:?}");
    // A new user, and one whose entry is removed.
    let carol = daemon::add_user(&file, &user("carol", &[Right::Read])).unwrap();
    let carol = with(Some(&carol));
    until("the new token is known", || {
        std::thread::sleep(Duration::from_millis(200));
        carol.ask(&op::HOST, &[]).is_ok()
    });
    let text = std::fs::read_to_string(&file).unwrap();
    let start = text.find("[users.bob]").unwrap();
    let end = text.find("[users.carol]").unwrap();
    std::fs::write(&file, [&text[..start], &text[end..]].concat()).unwrap();
    until("the token is refused", || bob.ask(&op::HOST, &[]).is_err());
    let Err(ClientError::Api(error)) = bob.ask(&op::HOST, &[]) else { panic!("the token is known") };
    assert_eq!(error.reason, Some(ErrorReason::WrongToken));
    // Who changed what is in the file beside the store, and in its reader's order.
    let entries = daemon.client().call(&op::AUDIT, &[], &AuditQuery::default(), &()).unwrap();
    let entries: Vec<AuditEntry> = entries.map(|entry| entry.unwrap()).collect();
    let of = |user: &str| {
        let theirs = entries.iter().filter(|entry| entry.user == user);
        theirs
            .map(|entry| format!("{} {} {}", entry.operation, entry.object, entry.result))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("bob"), ["create_box  denied"]);
    let made = [
        "create_box box/hers done",
        "create_box box/more limit",
        "check_store  denied",
        "stop_box box/hers done",
    ];
    assert_eq!(of("alice"), made);
    assert!(entries.iter().any(|entry| entry.user == "administrator" && entry.peer.starts_with("uid ")));
    assert!(entries.iter().any(|entry| entry.user == "alice" && entry.peer == "127.0.0.1"));
    let file = folder.file("store.audit");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), entries.len());
    assert_eq!(code(alice.call(&op::AUDIT, &[], &AuditQuery::default(), &()).map(drop)), ErrorCode::Denied);
    let file = folder.file("tokens");
    // A file that others can read is not used.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let kinds = || {
        let events = daemon.client().call(&op::EVENTS, &[], &EventQuery::default(), &()).unwrap();
        let messages =
            events.map(|event| event.unwrap()).filter(|event| event.kind == EventKind::TokensChanged);
        messages.map(|event| event.message).collect::<Vec<_>>()
    };
    until("the change is reported", || kinds().iter().any(|message| message.contains("chmod 600")));
    assert!(alice.ask(&op::HOST, &[]).is_ok());
}

#[test]
fn tcp_requires_tls_and_the_token() {
    let folder = Folder::new("tls");
    let (daemon, with) = with_tcp(&folder);
    assert_eq!(with(Some(TOKEN)).ask(&op::HOST, &[]).unwrap().image, "probe");
    for wrong in [None, Some("another token entirely"), Some("")] {
        assert_eq!(code(with(wrong).ask(&op::HOST, &[])), ErrorCode::Forbidden);
    }
    // Any number of TCP clients that do not log in cannot lock out users of the Unix socket.
    let silent: Vec<std::net::TcpStream> =
        (0..600).map(|_| std::net::TcpStream::connect(("127.0.0.1", daemon.port)).unwrap()).collect();
    let start = Instant::now();
    assert_eq!(daemon.client().ask(&op::HOST, &[]).unwrap().image, "probe");
    // Nor can they lock out TCP clients that have the token.
    assert_eq!(with(Some(TOKEN)).ask(&op::HOST, &[]).unwrap().image, "probe");
    assert!(start.elapsed() < MAX_LATENCY, "{:?}", start.elapsed());
    drop(silent);
    // Without TLS there is no response.
    let mut plain = std::net::TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
    plain.set_read_timeout(Some(TIMEOUT)).unwrap();
    plain.write_all(b"GET /v1/host HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
}

/// Many silent clients do not lock out others for long.
#[test]
fn silent_clients_do_not_lock_out_others() {
    let folder = Folder::new("silent");
    let daemon = Daemon::start(&folder.0);
    let silent: Vec<UnixStream> =
        (0..600).map(|_| UnixStream::connect(folder.file("socket")).unwrap()).collect();
    let start = Instant::now();
    daemon.client().ask(&op::HOST, &[]).unwrap();
    assert!(start.elapsed() < MAX_LATENCY, "{:?}", start.elapsed());
    drop(silent);
    let port = PortRequest::default();
    let detail = CreateBox { ports: vec![port], ..process("fw", "drop", &[]) };
    daemon.client().send(&op::CREATE_BOX, &[], &detail).unwrap();
}

/// Clients that announce a large body and send one byte of it do not delay bodies of other clients.
#[test]
fn announced_bodies_do_not_delay_others() {
    let folder = Folder::new("announced");
    let daemon = Daemon::start(&folder.0);
    let mut announced = Vec::new();
    for _ in 0..4 {
        let mut stream = UnixStream::connect(folder.file("socket")).unwrap();
        stream.write_all(b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n{").unwrap();
        announced.push(stream);
    }
    // Their headers have been read before this request is.
    daemon.client().ask(&op::HOST, &[]).unwrap();
    let start = Instant::now();
    let head =
        "POST /v1/check HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = daemon.answer(format!("{head}1\r\n[\r\n0\r\n\r\n").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(start.elapsed() < MAX_LATENCY, "{:?}", start.elapsed());
}
