//! The client against a test server: over a Unix socket, and over TCP with TLS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use api::client::{Address, Client, ClientError, Credentials};
use api::{CreateBox, ErrorCode, EventQuery, HandlerWrite, operation};

/// A folder of this test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads a request from a connection, sends the reply, and returns the request's head and body.
fn serve(connection: &mut (impl Read + Write), reply: &str) -> (String, String) {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).expect("a request"), 0, "{head}");
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("a body");
    let connection = reader.into_inner();
    connection.write_all(reply.as_bytes()).and_then(|()| connection.flush()).expect("a reply");
    (head, String::from_utf8(body).expect("text"))
}

/// A reply with a `Content-Length`.
fn reply(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

/// A client, and a server for one call of it.
fn unix(name: &str, reply: String) -> (Client, JoinHandle<(String, String)>, Folder) {
    let folder = Folder::new(name);
    let path = folder.0.join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = thread::spawn(move || serve(&mut listener.accept().expect("a connection").0, &reply));
    let client = Client::new(Address::Unix(path), &Credentials::default()).expect("a client");
    (client, server, folder)
}

#[test]
fn a_call_sends_a_request() {
    let text = r#"{"changes": [{"action": "create", "subject": "box/fw"}]}"#;
    let (client, server, _folder) = unix("call", reply(200, text));
    let changes = client.call(&operation::REMOVE_STACK, &["edge"], &api::RemoveQuery::default(), &());
    let changes = changes.expect("a reply");
    assert_eq!(changes.changes.len(), 1);
    let (head, body) = server.join().expect("a request");
    assert!(head.starts_with("DELETE /v1/stacks/edge HTTP/1.1\r\n") && body.is_empty(), "{head}{body}");
}

#[test]
fn a_body_is_json() {
    let (client, server, _folder) = unix("body", "HTTP/1.1 204 X\r\nConnection: close\r\n\r\n".into());
    let write = HandlerWrite { value: "10".into() };
    client.send(&operation::WRITE, &["fw", "in/c.reset"], &write).expect("a reply");
    let (head, body) = server.join().expect("a request");
    assert!(head.starts_with("PUT /v1/boxes/fw/handlers/in%2Fc.reset HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
    assert_eq!(body, r#"{"value":"10"}"#);
}

#[test]
fn an_operation_without_a_body_sends_none() {
    let (client, server, _folder) =
        unix("empty", reply(409, r#"{"error":{"code":"busy","message":"It runs."}}"#));
    let error = client.ask(&operation::START_BOX, &["fw"]).expect_err("an error");
    assert_eq!((error.code(), error.to_string()), (Some(ErrorCode::Busy), "It runs.".into()));
    let (head, body) = server.join().expect("a request");
    assert!(head.starts_with("POST /v1/boxes/fw/start HTTP/1.1\r\n") && body.is_empty(), "{head}{body}");
    assert!(head.to_ascii_lowercase().contains("content-length: 0\r\n"), "{head}");
}

#[test]
fn streamed_lines_are_read_as_they_arrive() {
    let line = |sequence: u64| {
        format!(
            "{{\"sequence\":{sequence},\"time\":\"2026-01-31T12:00:00.000Z\",\"kind\":\"box_created\",\
             \"subject\":\"box/fw\",\"message\":\"\"}}\n"
        )
    };
    let mut text = "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n".to_string();
    for part in [line(7), "\n".into(), line(8), "{\"nonsense\":1}\n".into(), line(9)] {
        // Splits each line into two chunks.
        let (first, second) = part.split_at(part.len() / 2);
        for half in [first, second].into_iter().filter(|half| !half.is_empty()) {
            text += &format!("{:x}\r\n{half}\r\n", half.len());
        }
    }
    text += "0\r\n\r\n";
    let (client, server, _folder) = unix("lines", text);
    let query = EventQuery { follow: true, since: Some(6) };
    let mut events = client.call(&operation::EVENTS, &[], &query, &()).expect("a stream");
    for sequence in [7, 8] {
        assert_eq!(events.next().expect("an event").expect("a good one").sequence, sequence);
    }
    assert!(matches!(events.next(), Some(Err(ClientError::Unexpected { .. }))), "nonsense is an error");
    assert!(events.next().is_none(), "and the end");
    let (head, _) = server.join().expect("a request");
    assert!(head.starts_with("GET /v1/events?follow=true&since=6 HTTP/1.1\r\n"), "{head}");
}

#[test]
fn a_peer_that_is_no_daemon_is_reported() {
    let folder = Folder::new("no-daemon");
    let client =
        Client::new(Address::Unix(folder.0.join("socket")), &Credentials::default()).expect("a client");
    let error = client.ask(&operation::LIST_BOXES, &[]).expect_err("there is no daemon");
    assert!(matches!(error, ClientError::NoDaemon { .. }), "{error:?}");
    assert!(error.to_string().starts_with("no daemon is running at /"), "{error}");
    for (name, text) in [
        ("teapot", reply(418, "I am a teapot")),
        ("page", reply(200, "<html>")),
        ("null", reply(200, "null")),
        ("cut", "HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\n[]".into()),
    ] {
        let (client, server, _folder) = unix(name, text);
        let error = client.ask(&operation::LIST_BOXES, &[]).expect_err(name);
        assert!(matches!(error, ClientError::Unexpected { .. }), "{name}: {error:?}");
        server.join().expect("a request");
    }
    let (client, server, _folder) = unix("garbage", "SSH-2.0-OpenSSH\r\n".into());
    let error = client.ask(&operation::LIST_BOXES, &[]).expect_err("garbage");
    assert!(matches!(error, ClientError::Connection { .. }), "{error:?}");
    server.join().expect("a request");
}

#[test]
fn tcp_calls_use_tls_and_a_token() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate");
    let other = rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("a configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = thread::spawn(move || {
        let mut seen = Vec::new();
        for _ in 0..2 {
            let mut socket = listener.accept().expect("a connection").0;
            let mut session = rustls::ServerConnection::new(config.clone()).expect("a session");
            if session.complete_io(&mut socket).is_ok() {
                seen.push(serve(&mut rustls::Stream::new(&mut session, &mut socket), &reply(200, "[]")).0);
            }
        }
        seen
    });
    let folder = Folder::new("tls");
    let address: Address = format!("https://localhost:{port}").parse().expect("an address");
    let client = |name: &str, pem: String| {
        let path = folder.0.join(name);
        std::fs::write(&path, pem).expect("a file");
        let credentials = Credentials { token: Some("secret".into()), certificates: Some(path) };
        Client::new(address.clone(), &credentials)
    };
    let boxes =
        client("own", own.cert.pem()).expect("a client").ask(&operation::LIST_BOXES, &[]).expect("a reply");
    assert!(boxes.is_empty());
    let error = client("other", other.cert.pem()).expect("a client").ask(&operation::LIST_BOXES, &[]);
    assert!(matches!(error, Err(ClientError::Connection { .. })), "{error:?}");
    assert!(matches!(client("none", String::new()), Err(ClientError::Certificates { .. })));
    let seen = server.join().expect("requests");
    let [head] = seen.as_slice() else { panic!("{seen:?}") };
    assert!(head.to_ascii_lowercase().contains("authorization: bearer secret"), "{head}");
}

#[test]
fn a_large_configuration_arrives_whole() {
    let (client, server, _folder) =
        unix("large", reply(413, r#"{"error":{"code":"too_large","message":"No."}}"#));
    let request = CreateBox::new("fw".parse().expect("a name"), "x".repeat(3 << 20));
    let error = client.send(&operation::CREATE_BOX, &[], &request).expect_err("an error");
    assert_eq!(error.code(), Some(ErrorCode::TooLarge));
    assert!(server.join().expect("a request").1.len() > 3 << 20);
}

#[test]
fn an_early_rejection_of_a_body_is_read() {
    let folder = Folder::new("early");
    let path = folder.0.join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = thread::spawn(move || {
        let mut connection = listener.accept().expect("a connection").0;
        connection.read_exact(&mut [0; 10]).expect("the begin of a request");
        let reply = reply(413, r#"{"error":{"code":"too_large","message":"No."}}"#);
        connection.write_all(reply.as_bytes()).expect("a reply");
    });
    let client = Client::new(Address::Unix(path), &Credentials::default()).expect("a client");
    let request = CreateBox::new("fw".parse().expect("a name"), "x".repeat(3 << 20));
    let error = client.send(&operation::CREATE_BOX, &[], &request).expect_err("an error");
    assert_eq!(error.code(), Some(ErrorCode::TooLarge), "{error:?}");
    server.join().expect("a request");
}

/// A connection that the daemon closes is replaced, and a client that keeps none makes one for each call.
#[test]
fn a_persistent_client_uses_an_open_connection_again() {
    for (is_persistent, calls) in [(true, [2, 1]), (false, [1, 1])] {
        let folder = Folder::new(if is_persistent { "persistent" } else { "single" });
        let path = folder.0.join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let (sender, closed) = std::sync::mpsc::channel();
        let server = thread::spawn(move || {
            for count in calls {
                let mut connection = listener.accept().expect("a connection").0;
                for _ in 0..count {
                    serve(&mut connection, "HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\n[]");
                }
                drop(connection);
                sender.send(()).expect("the test waits");
            }
        });
        let (address, credentials) = (Address::Unix(path), Credentials::default());
        let client = match is_persistent {
            true => Client::persistent(address, &credentials),
            false => Client::new(address, &credentials),
        };
        let client = client.expect("a client");
        for count in calls {
            for _ in 0..count {
                assert_eq!(client.ask(&operation::LIST_BOXES, &[]).expect("a reply").len(), 0);
            }
            closed.recv().expect("the connection is closed");
        }
        server.join().expect("requests");
    }
}

#[test]
fn a_call_without_an_answer_ends_after_its_limit() {
    let folder = Folder::new("limit");
    let path = folder.0.join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let limit = Some(std::time::Duration::from_millis(50));
    let client = Client::with_limit(Address::Unix(path), &Credentials::default(), limit).expect("a client");
    let failure = client.ask(&operation::LIST_BOXES, &[]);
    let is_late = |error: &ClientError| matches!(error, ClientError::Connection { cause, .. } if cause.kind() == std::io::ErrorKind::TimedOut);
    assert!(failure.as_ref().is_err_and(is_late), "{failure:?}");
    drop(listener);
}
