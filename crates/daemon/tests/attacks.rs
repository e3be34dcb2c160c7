//! Hostile clients. Whatever they do, the daemon serves an authorised caller, its memory is bounded, and nothing of them is
//! left when they have gone.

mod support;

use api::client::Client;
use api::operation as op;
use api::{EventKind, EventQuery, RemoveQuery};
use random::Random;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{Daemon, Folder, TIMEOUT, TOKEN, until, with_tcp};

/// The longest time of an answer to an authorised caller, also on a loaded machine: one that waits for an attacker's time limit takes
/// longer.
const MAX_LATENCY: Duration = Duration::from_secs(15);

/// Maximum growth of the daemon's memory, in bytes, under an attack that sends little itself.
const MAX_GROWTH: u64 = 96 << 20;

/// Not a test: the daemon that the other tests start.
#[test]
fn run_as_daemon() {
    support::run_if_child();
}

/// A daemon under attack.
struct Attacked {
    daemon: Daemon,
    sockets: usize,
    memory: u64,
}

impl Attacked {
    fn new(daemon: Daemon, client: &Client) -> Self {
        // It has done everything once.
        client.ask(&op::HOST, &[]).unwrap();
        let mut attacked = Self { daemon, sockets: 0, memory: 0 };
        until("the connection is closed", || {
            let before = attacked.sockets;
            attacked.sockets = attacked.open_sockets();
            std::thread::sleep(Duration::from_millis(100));
            before == attacked.open_sockets()
        });
        attacked.memory = attacked.resident();
        attacked
    }

    fn open_sockets(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.daemon.child.id())).unwrap();
        let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    }

    /// The resident memory of the daemon.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.daemon.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
    }

    /// Asserts that a caller is served without delay, and that the memory has not grown by more than `growth`.
    fn serves(&self, client: &Client, growth: u64) {
        for _ in 0..10 {
            let begin = Instant::now();
            client.ask(&op::LIST_BOXES, &[]).unwrap();
            assert!(begin.elapsed() < MAX_LATENCY, "{:?}", begin.elapsed());
        }
        let grown = self.resident().saturating_sub(self.memory);
        assert!(grown <= growth, "the daemon has {} MB more", grown >> 20);
    }

    /// Asserts that no connection is left.
    fn is_free(&self) {
        until("all connections are closed", || {
            std::thread::sleep(Duration::from_millis(50));
            self.open_sockets() <= self.sockets
        });
    }
}

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Makes connections over TLS, without requests.
fn connector(folder: &Folder, port: u16) -> impl Fn() -> Tls + Clone + use<> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.file("certificate")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let settings = Arc::new(settings.with_root_certificates(roots).with_no_client_auth());
    move || {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut connection = ClientConnection::new(settings.clone(), name).unwrap();
        let mut stream = stream;
        while connection.is_handshaking() {
            // The daemon may close it for another one.
            if connection.complete_io(&mut stream).is_err() {
                break;
            }
        }
        StreamOwned::new(connection, stream)
    }
}

/// The status of the answer to a request, and the rest of what arrives. Empty if the connection is closed.
fn answer(stream: &mut (impl Read + Write), request: &[u8]) -> String {
    // It may be closed before everything is sent.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn unix(folder: &Folder) -> UnixStream {
    let stream = UnixStream::connect(folder.file("socket")).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// 512 clients finish the TLS handshake and have no token. Half of them say nothing, half a byte a second of a header.
#[test]
fn tls_clients_without_a_token_delay_no_other_caller() {
    let folder = Folder::new("attack-tls");
    let (daemon, with) = with_tcp(&folder);
    let connect = connector(&folder, daemon.port);
    let client = with(Some(TOKEN));
    let attacked = Attacked::new(daemon, &client);
    let (silent, mut slow): (Vec<Tls>, Vec<Tls>) = std::thread::scope(|scope| {
        let of_half = || (0..256).map(|_| connect()).collect();
        let silent = scope.spawn(of_half);
        (silent.join().unwrap(), scope.spawn(of_half).join().unwrap())
    });
    for byte in b"GET /v" {
        let begin = Instant::now();
        for stream in &mut slow {
            // Some are closed for newer ones.
            let _ = stream.write_all(&[*byte]);
        }
        attacked.serves(&client, MAX_GROWTH);
        std::thread::sleep(Duration::from_secs(1).saturating_sub(begin.elapsed()));
    }
    // As long as they are there, at most half of them are kept.
    assert!(attacked.open_sockets() < attacked.sockets + 300, "{}", attacked.open_sockets());
    // Those that are not closed by their clients end by themselves.
    drop(slow);
    attacked.is_free();
    drop(silent);
}

/// Headers and bodies that arrive a byte at a time end within their time limits, and delay no other caller.
#[test]
fn slow_headers_and_bodies_end_in_time() {
    const COUNT: usize = 64;
    let folder = Folder::new("attack-slow");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let attacked = Attacked::new(daemon, &client);
    let header = b"GET /v1/host HTTP/1.1\r\nHost: x\r\nX-Padding: ";
    let body = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
    let chunked = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let begin = Instant::now();
    let mut slow: Vec<(UnixStream, usize)> = Vec::new();
    for (kind, start) in [&header[..], &body[..], &chunked[..]].into_iter().enumerate() {
        for _ in 0..COUNT {
            let mut stream = unix(&folder);
            // The header arrives byte by byte, the others after their header.
            let sent = if kind == 0 { &start[..5] } else { start };
            stream.write_all(sent).unwrap();
            slow.push((stream, kind));
        }
    }
    let mut step = 5;
    while attacked.open_sockets() > attacked.sockets {
        for (stream, kind) in &mut slow {
            let byte = match kind {
                0 => &header[step.min(header.len() - 1)..][..1],
                1 => b" ",
                _ => b"1\r\n \r\n",
            };
            // It may be closed.
            let _ = stream.write_all(byte);
        }
        step += 1;
        attacked.serves(&client, MAX_GROWTH);
        if begin.elapsed() > Duration::from_secs(30) {
            let left = attacked.open_sockets().saturating_sub(attacked.sockets);
            // Those of the authorised caller may be among them.
            assert!(left < 2 * COUNT + 8, "{left} connections are left: headers have no limit");
        }
        assert!(begin.elapsed() < Duration::from_secs(90), "{} are left", attacked.open_sockets());
        std::thread::sleep(Duration::from_secs(1));
    }
    let mut texts =
        slow.into_iter().filter(|(_, kind)| *kind > 0).map(|(mut stream, _)| answer(&mut stream, b""));
    // The answer may be lost with bytes that were not read.
    assert!(texts.all(|text| text.is_empty() || text.starts_with("HTTP/1.1 504 ")));
}

/// Requests that are sent at once are answered in order. Clients that don't read their answers take bounded memory.
#[test]
fn pipelined_requests_and_deaf_clients_are_bounded() {
    const REQUEST: &[u8] = b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    let folder = Folder::new("attack-pipeline");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let attacked = Attacked::new(daemon, &client);
    let mut deaf: Vec<UnixStream> = (0..64).map(|_| unix(&folder)).collect();
    for stream in &mut deaf {
        stream.set_nonblocking(true).unwrap();
        // As much as the daemon takes.
        for _ in 0..1000 {
            if stream.write_all(REQUEST).is_err() {
                break;
            }
        }
    }
    attacked.serves(&client, MAX_GROWTH);
    let mut stream = unix(&folder);
    let mut read = stream.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        read.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).matches("HTTP/1.1 200 ").count()
    });
    const LAST: &[u8] = b"GET /v1/host HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let small = b"GET /v1/boxes HTTP/1.1\r\nHost: x\r\n\r\n".repeat(999);
    stream.write_all(&[&small, LAST].concat()).unwrap();
    assert_eq!(reader.join().unwrap(), 1000);
    attacked.serves(&client, MAX_GROWTH);
    drop(deaf);
    attacked.is_free();
    attacked.serves(&client, MAX_GROWTH);
}

/// 10,000 wrong tokens are throttled, counted, and reported by two events: the first of them, and how many followed.
#[test]
fn ten_thousand_wrong_tokens_are_counted() {
    const COUNT: usize = 10_000;
    let folder = Folder::new("attack-tokens");
    let (daemon, with) = with_tcp(&folder);
    let connect = connector(&folder, daemon.port);
    let client = with(Some(TOKEN));
    let attacked = Attacked::new(daemon, &client);
    let (begin, is_over) = (Instant::now(), AtomicBool::new(false));
    let minutes = || usize::try_from(begin.elapsed().as_secs()).unwrap() / 60 + 2;
    let counts: Vec<[usize; 2]> = std::thread::scope(|scope| {
        let attack = |number: usize| {
            let (connect, is_over) = (connect.clone(), &is_over);
            move || {
                let mut counts = [0; 2];
                for attempt in 0..COUNT / 4 {
                    let head = "GET /v1/host HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer";
                    let request = format!("{head} guess-{number}-{attempt}-0123456789abcdef\r\n\r\n");
                    let text = answer(&mut connect(), request.as_bytes());
                    counts[0] += usize::from(text.starts_with("HTTP/1.1 401 "));
                    counts[1] += usize::from(text.starts_with("HTTP/1.1 429 "));
                }
                is_over.store(true, Ordering::Relaxed);
                counts
            }
        };
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(attack(number))).collect();
        while !is_over.load(Ordering::Relaxed) {
            attacked.serves(&client, MAX_GROWTH);
            std::thread::sleep(Duration::from_millis(100));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let sum = |kind: usize| counts.iter().map(|counts| counts[kind]).sum::<usize>();
    // Each is refused; in each minute, ten get the other status.
    assert_eq!(sum(0) + sum(1), COUNT);
    assert!(sum(0) <= 10 * minutes(), "{} were not throttled", sum(0));
    let local = attacked.daemon.client();
    let messages = || {
        let events = local.call(&op::EVENTS, &[], &EventQuery::default(), &()).unwrap();
        let of_tokens = events.map(Result::unwrap).filter(|event| event.kind == EventKind::WrongTokens);
        of_tokens.map(|event| event.message).collect::<Vec<_>>()
    };
    let sent = Instant::now();
    let reported = || -> usize {
        let more =
            messages().into_iter().filter_map(|text| text.split_once(" more wrong")?.0.parse::<usize>().ok());
        more.sum()
    };
    // The first of each minute is a separate event.
    while reported() + 10 < sum(1) {
        assert!(sent.elapsed() < Duration::from_secs(80), "{:?}", messages());
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(messages().len() <= 2 * minutes(), "{:?}", messages());
    let metrics = local.ask(&op::METRICS, &[]).unwrap();
    let line = format!("clickbox_api_refused_requests_total{{reason=\"throttled\"}} {}\n", sum(1));
    assert!(metrics.contains(&line), "{line}{metrics}");
    attacked.is_free();
}

/// Bodies and headers without an end are refused at their limits.
#[test]
fn endless_bodies_and_headers_are_refused() {
    let folder = Folder::new("attack-endless");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let attacked = Attacked::new(daemon, &client);
    let endless = |start: &str, piece: &[u8]| {
        let mut stream = unix(&folder);
        stream.write_all(start.as_bytes()).unwrap();
        let mut sent = 0usize;
        // 2 GB are more than any limit.
        while sent < 2 << 30 && stream.write_all(piece).is_ok() {
            sent += piece.len();
        }
        (sent, answer(&mut stream, b""))
    };
    let chunk = [&b"100000\r\n"[..], &vec![b' '; 1 << 20], b"\r\n"].concat();
    std::thread::scope(|scope| {
        for (method, path) in
            [("POST", "check"), ("POST", "boxes"), ("PUT", "stacks/s"), ("PUT", "uploads/u")]
        {
            let (endless, chunk) = (&endless, &chunk);
            scope.spawn(move || {
                let start =
                    format!("{method} /v1/{path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
                let (sent, text) = endless(&start, chunk);
                assert!(sent < 200 << 20, "{path}: {sent} bytes");
                // The answer may be lost with the bytes that were not read.
                assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{path}: {text}");
            });
        }
    });
    let pieces = [&b"a: 1\r\n"[..], b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"];
    for piece in pieces {
        let (sent, text) = endless("GET /v1/host HTTP/1.1\r\nHost: x\r\n", &piece.repeat(100));
        assert!(sent < 8 << 20, "{sent} bytes");
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    let (sent, text) = endless("GET /", &b"a/".repeat(100));
    assert!(sent < 8 << 20 && (text.is_empty() || text.starts_with("HTTP/1.1 4")), "{sent}: {text}");
    attacked.is_free();
    // Memory that was freed may stay with the process.
    attacked.serves(&client, 512 << 20);
}

/// Methods, paths, queries, headers and bodies that are changed at random get errors, and never an internal one.
#[test]
fn random_requests_get_no_internal_error() {
    const COUNT: u32 = 3000;
    let folder = Folder::new("attack-random");
    let daemon = Daemon::start(&folder.0);
    let client = daemon.client();
    let create = || client.send(&op::CREATE_BOX, &[], &support::process("fw", "mirror", &["-"])).unwrap();
    let remove = |name: &str| client.call(&op::REMOVE_BOX, &[name], &RemoveQuery::FORCE, &()).unwrap();
    // The first box starts what others need too.
    create();
    remove("fw");
    let attacked = Attacked::new(daemon, &client);
    create();
    client.send(&op::CREATE_SWITCH, &[], &api::CreateSwitch::new(support::switch("lan"))).unwrap();
    let mut random = Random::new(20);
    let mut statuses = std::collections::BTreeMap::<String, u32>::new();
    for number in 0..COUNT {
        let request = random_request(&mut random);
        let mut stream = unix(&folder);
        // Streams may have no end.
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let _ = stream.write_all(&request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        let status = text.split(' ').nth(1).unwrap_or("none").to_string();
        let shown = String::from_utf8_lossy(&request).into_owned();
        assert!(!text.contains("\"internal\"") && status != "500", "request {number}: {shown}\n{text}");
        *statuses.entry(status).or_default() += 1;
        if number % 500 == 0 {
            attacked.serves(&client, MAX_GROWTH);
        }
    }
    // They reach operations, and are not all the same.
    assert!(statuses.len() >= 5 && statuses.contains_key("200"), "{statuses:?}");
    attacked.serves(&client, MAX_GROWTH);
    for stack in client.ask(&op::LIST_STACKS, &[]).unwrap() {
        client.call(&op::REMOVE_STACK, &[stack.name.as_str()], &RemoveQuery::FORCE, &()).unwrap();
    }
    client.ask(&op::LIST_BOXES, &[]).unwrap().iter().for_each(|status| remove(status.name.as_str()));
    attacked.is_free();
}

/// An operation of the API with parts of it changed, or nonsense.
fn random_request(random: &mut Random) -> Vec<u8> {
    const NAMES: &[&str] = &[
        "fw",
        "lan",
        "main",
        "0",
        "..",
        "%2e%2e",
        "%00",
        "%",
        "%zz",
        "",
        "a b",
        "\u{e9}",
        "-1",
        "99999999999999999999",
        "config",
        "02:00:00:00:00:01",
        "fw:0",
        "x%2Fy",
    ];
    const QUERIES: &[&str] = &[
        "",
        "?",
        "?follow=maybe",
        "?lines=-1",
        "?force=true",
        "?port=fw:0&count=0",
        "?port=%ff",
        "?since=1e9",
        "?&&&=",
        "?confirm_within=0",
        "?name=fw&elements=true",
    ];
    const BODIES: &[&str] = &[
        "",
        "{}",
        "[]",
        "null",
        "{\"name\":\"x\"}",
        "\u{0}",
        "{\"name\":\"../x\",\"configuration\":\"\"}",
        "{\"name\":\"y\",\"configuration\":\"drop\",\"ports\":[{\"attach\":\"pipe:a\"}],\"memory\":1}",
        "{\"configuration\":\"mirror\"}",
        "{\"value\":{\"base64\":\"!\"}}",
        "{\"name\":\"l2\",\"mode\":\"static\"}",
        "{\"boxes\":[{\"name\":\"z\",\"configuration\":\"dance\"}]}",
        "{\"a\":[[[[[[[[[[[[[[[[",
    ];
    fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
        from[random.below(from.len() as u32) as usize]
    }
    // Those that end the daemon or the fabric are no attack.
    let ends = |path: &str| path.contains("/daemon/") || path.contains("/fabric/");
    let entries: Vec<_> = op::TABLE.iter().filter(|entry| !ends(entry.path())).collect();
    let entry = entries[random.below(entries.len() as u32) as usize];
    let mut path = String::new();
    for (number, piece) in entry.path().split('{').enumerate() {
        if number > 0 {
            path += pick(random, NAMES);
        }
        path += piece.split_once('}').map_or(if number == 0 { piece } else { "" }, |(_, rest)| rest);
    }
    path += pick(random, QUERIES);
    let method = match random.below(8) {
        0 => {
            pick(random, &["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "FOO"])
        }
        _ => entry.method().name(),
    };
    let body = pick(random, BODIES);
    let length = match random.below(10) {
        0 => "Transfer-Encoding: chunked".to_string(),
        1 => format!("Content-Length: {}", random.below(1000)),
        2 => "Content-Length: x".to_string(),
        _ => format!("Content-Length: {}", body.len()),
    };
    let version = if random.below(20) == 0 { "HTTP/1.0" } else { "HTTP/1.1" };
    let text = format!("{method} {path} {version}\r\nHost: x\r\nConnection: close\r\n{length}\r\n\r\n{body}");
    let mut bytes = text.into_bytes();
    if random.below(4) == 0 {
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u32) as usize;
            match random.below(3) {
                0 => bytes[at] = random.below(256) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random.below(256) as u8),
            }
        }
    }
    bytes
}
