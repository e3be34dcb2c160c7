//! Configurations with network peers: control and chatter connections, packets over sockets. All sockets are Unix
//! sockets in a folder of the test, or on the loopback interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for expected events.
const TIMEOUT: Duration = Duration::from_secs(40);

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a plain path").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running configuration, which ends with the test.
struct Running(Child);

impl Running {
    fn new(config: &str) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
        command.args(["click", "-R", "-e", config]).stdin(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("the program starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Repeats an attempt until it succeeds.
fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(start.elapsed() < TIMEOUT, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A connection to a Unix socket of the configuration.
fn connect(path: impl AsRef<Path>) -> BufReader<UnixStream> {
    let stream = eventually("a connection", || UnixStream::connect(&path).ok());
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    BufReader::new(stream)
}

fn line(connection: &mut impl BufRead) -> String {
    let mut line = String::new();
    connection.read_line(&mut line).expect("a line");
    line
}

/// Sends a command to a control connection; returns the lines and the data of the reply.
fn control(connection: &mut BufReader<UnixStream>, command: &str) -> String {
    connection.get_mut().write_all(command.as_bytes()).expect("a connection");
    let mut answer = String::new();
    loop {
        let line = line(connection);
        answer += &line;
        if line.as_bytes().get(3) != Some(&b'-') {
            break;
        }
    }
    if command.starts_with("READ") && answer.starts_with("200") {
        let count = line(connection).trim().strip_prefix("DATA ").and_then(|count| count.parse().ok());
        let mut data = vec![0; count.expect("a count")];
        connection.read_exact(&mut data).expect("data");
        answer += &String::from_utf8_lossy(&data);
    }
    answer
}

#[test]
fn a_proxy_restricts_handlers() {
    let folder = Folder::new("proxy");
    let path = folder.file("control");
    let _running = Running::new(&format!(
        "ControlSocket(unix, {path}, PROXY p); p :: HandlerProxy(c); c :: Counter; Idle -> c -> d :: Discard;"
    ));
    let mut connection = connect(&path);
    assert_eq!(line(&mut connection), "Click::ControlSocket/1.3\r\n");
    for (command, expected) in [
        ("READ c.count\r\n", "200 Read handler 'c.count' OK\r\n0"),
        ("WRITE c.reset\r\n", "200 Write handler 'c.reset' OK\r\n"),
        ("READ d.count\r\n", "511 No handler named 'd.count'\r\n"),
        ("READ c.nothing\r\n", "511 No handler named 'c.nothing'\r\n"),
        ("READ nothing.count\r\n", "510 No element named 'nothing'\r\n"),
        ("READ version\r\n", "511 No handler named 'version'\r\n"),
        ("WRITE stop\r\n", "511 No handler named 'stop'\r\n"),
        ("QUIT\r\n", "200 Goodbye!\r\n"),
    ] {
        assert_eq!(control(&mut connection, command), expected, "{command}");
    }
}

#[test]
fn chatter_connections_survive_a_swap() {
    let folder = Folder::new("chatter");
    let (path, orders) = (folder.file("chatter"), folder.file("control"));
    let config = |text: &str| {
        format!(
            "chatter :: ChatterSocket(UNIX, {path}, RETRIES 1, RETRY_WARNINGS false);
             control :: ControlSocket(UNIX, {orders}, RETRIES 1, RETRY_WARNINGS false);
             silent :: ChatterSocket(UNIX, {path}2, CHANNEL other, RETRIES 1, RETRY_WARNINGS false);
             InfiniteSource(x, LIMIT 1) -> Print({text}) -> Discard;"
        )
        .replace('\n', " ")
    };
    let _running = Running::new(&config("one"));
    let mut listeners = [connect(&path), connect(&path)];
    let mut silent = connect(folder.file("chatter2"));
    for listener in listeners.iter_mut().chain([&mut silent]) {
        assert_eq!(line(listener), "Click::ChatterSocket/1.0\r\n");
    }
    let mut orders = connect(&orders);
    line(&mut orders);
    // A configuration prints its packet when it starts, perhaps before a listener is connected.
    let mut heard = |listeners: &mut [BufReader<UnixStream>], text: &str| {
        assert!(control(&mut orders, &format!("WRITE hotconfig {}\r\n", config(text))).starts_with("200"));
        for listener in listeners {
            assert_eq!(line(listener), format!("{text}:    1 | 78\n"));
        }
    };
    heard(&mut listeners, "two");
    let [first, second] = listeners;
    drop(first);
    heard(&mut [second], "three");
}

#[test]
fn a_control_connection_replaces_a_long_configuration_in_steps() {
    let folder = Folder::new("long");
    let path = folder.file("control");
    let config = |last: &str| {
        let rule = |number: u32| format!("deny src 10.0.{}.{}, ", number / 200, number % 200);
        let rules = (0..1_000).map(rule).collect::<String>() + last;
        format!(
            "control :: ControlSocket(UNIX, {path}, RETRIES 1, RETRY_WARNINGS false); \
             InfiniteSource(LENGTH 50) -> UDPIPEncap(10.1.2.3, 1234, 10.9.9.9, 53) -> f :: IPFilter({rules}) \
             -> c :: Counter -> Discard;"
        )
    };
    let _running = Running::new(&config("allow all"));
    let mut connection = connect(&path);
    line(&mut connection);
    let written = |connection: &mut BufReader<UnixStream>, config: &str| {
        let answer = control(connection, &format!("WRITEDATA hotconfig {}\r\n{config}", config.len()));
        let read = control(connection, "READ config\r\n");
        (answer, read.split_once("\r\n").map(|(_, config)| config.to_string()))
    };
    let (wrong, new) = (config("allow nonsense"), config("deny all"));
    let (answer, running) = written(&mut connection, &wrong);
    assert!(answer.starts_with("520-Write handler 'hotconfig' error:\r\n"), "{answer}");
    assert!(answer.contains("pattern 1000: empty term near 'nonsense'"), "{answer}");
    assert_eq!(running, Some(config("allow all")));
    // The new configuration has the connection, and serves its later commands.
    let (answer, running) = written(&mut connection, &new);
    assert_eq!((&*answer, running), ("200 Write handler 'hotconfig' OK\r\n", Some(new)));
    let mut read = |path: &str| control(&mut connection, &format!("READ {path}\r\n"));
    let passed = read("c.count");
    assert!(passed.starts_with("200") && !passed.ends_with("\n0"), "{passed}");
    eventually("a denied packet", || read("f.losses").contains("denied ").then_some(()));
    assert_eq!(read("c.count"), passed);
}

/// A free port of the loopback interface.
fn free_port(tcp: bool) -> u16 {
    let local = match tcp {
        true => std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()),
        false => UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()),
    };
    local.expect("a free port").port()
}

/// Sends a datagram until it is echoed.
fn echoed(socket: &UdpSocket, port: u16, text: &[u8]) -> bool {
    let mut buffer = [0; 64];
    eventually("an echo", || {
        socket.send_to(text, ("127.0.0.1", port)).expect("a datagram");
        let length = socket.recv(&mut buffer).ok()?;
        Some(&buffer[..length] == text)
    })
}

fn udp(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a time limit");
    socket
}

#[test]
fn a_datagram_server_answers_only_allowed_senders() {
    let port = free_port(false);
    let _running = Running::new(&format!(
        "t :: RadixIPLookup(127.0.0.1 0, 127.0.0.0/8 0); Idle -> t -> Discard;
         all :: StaticIPLookup(0.0.0.0/0 0); Idle -> all -> Discard; one :: LinearIPLookup(127.0.0.1 0); Idle -> one -> Discard;
         s :: Socket(UDP, 127.0.0.1, {port}, ALLOW one, DENY all, SNDBUF 65536, RCVBUF 65536) -> s"
    ));
    let (allowed, denied) = (udp("127.0.0.1:0"), udp("127.0.0.2:0"));
    assert!(echoed(&allowed, port, b"hello"));
    denied.send_to(b"me too", ("127.0.0.1", port)).expect("a datagram");
    // Earlier datagrams are processed before later ones.
    assert!(echoed(&allowed, port, b"again"));
    assert!(denied.recv(&mut [0; 64]).is_err());
}

#[test]
fn an_unconnected_client_sends_to_the_destination_annotation() {
    let first = udp("127.0.0.3:0");
    let port = first.local_addr().expect("an address").port();
    let second = udp(&format!("127.0.0.4:{port}"));
    let own = free_port(false);
    let _running = Running::new(&format!(
        "s :: TimedSource(0.01, x) -> r :: RoundRobinSwitch;
         out :: Socket(UDP, 0.0.0.0, {port}, 127.0.0.1, {own});
         r[0] -> SetIPAddress(127.0.0.3) -> out; r[1] -> SetIPAddress(127.0.0.4) -> out"
    ));
    for receiver in [first, second] {
        receiver.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
        let (length, from) = receiver.recv_from(&mut [0; 64]).expect("a datagram");
        assert_eq!((length, from.to_string()), (1, format!("127.0.0.1:{own}")));
    }
}

#[test]
fn unix_datagrams_are_answered() {
    let folder = Folder::new("datagrams");
    let (path, own) = (folder.file("server"), folder.file("client"));
    let running = Running::new(&format!("s :: Socket(UNIX_DGRAM, {path}) -> s"));
    let client = UnixDatagram::bind(&own).expect("a socket");
    client.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    eventually("a server", || client.send_to(b"hello", &path).ok());
    let mut buffer = [0; 64];
    let length = client.recv(&mut buffer).expect("an answer");
    assert_eq!(&buffer[..length], b"hello");
    drop(running);
    // A client with its own socket name.
    let server = UnixDatagram::bind(folder.file("other")).expect("a socket");
    server.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    let _running = Running::new(&format!(
        "InfiniteSource(x, LIMIT 1) -> Socket(UNIX_DGRAM, {}, {})",
        folder.file("other"),
        folder.file("named")
    ));
    let (_, from) = server.recv_from(&mut buffer).expect("a datagram");
    assert_eq!(from.as_pathname().and_then(Path::to_str), Some(folder.file("named").as_str()));
}

#[test]
fn connections_are_accepted_by_source_address() {
    let port = free_port(true);
    let folder = Folder::new("connections");
    let path = folder.file("log");
    let _server = Running::new(&format!(
        "t :: DirectIPLookup(127.0.0.2 0); Idle -> t -> Discard; ChatterSocket(UNIX, {path}, GREETING false);
         Socket(TCP, 127.0.0.1, {port}, DENY t, NODELAY false, VERBOSE true) -> Print -> Discard"
    ));
    let mut log = connect(&path);
    let client = |address: &str| {
        let config = format!("TimedSource(0.01, x) -> Socket(TCP, 127.0.0.1, {port}, {address}, 0)");
        Running::new(&config)
    };
    let _denied = client("127.0.0.2");
    let first = line(&mut log);
    assert!(first.contains(":: Socket: denied connection") && first.contains(" from 127.0.0.2:"), "{first}");
    let _admitted = client("127.0.0.3");
    let second = line(&mut log);
    assert!(
        second.contains(":: Socket: opened connection") && second.contains(" from 127.0.0.3:"),
        "{second}"
    );
    // A stream has no packet boundaries: two packets may arrive as one.
    let received = line(&mut log);
    assert!(received.contains(" | 78"), "{received}");
    // A stream over a Unix socket whose client also has a name.
    let listener = UnixListener::bind(folder.file("server")).expect("a socket");
    let _client = Running::new(&format!(
        "InfiniteSource(x, LIMIT 1) -> Socket(UNIX, {}, {})",
        folder.file("server"),
        folder.file("named")
    ));
    let (mut stream, from) = listener.accept().expect("a connection");
    stream.read_exact(&mut [0; 1]).expect("a byte");
    assert_eq!(from.as_pathname().and_then(Path::to_str), Some(folder.file("named").as_str()));
}

#[test]
fn multicast_reaches_the_other_members() {
    let port = 20_000 + std::process::id() % 20_000;
    let config = format!(
        "elementclass Member {{ input -> McastSocket(233.252.0.1, {port}, 127.0.0.1) -> output }}
         RatedSource(DATA hello, RATE 100) -> Queue -> Member -> own :: Counter -> Discard;
         Idle -> Member -> got :: Counter(COUNT_CALL 3 stop) -> c :: Classifier(0/68656c6c6f, -) -> Discard;
         c[1] -> wrong :: Counter -> Discard;
         DriverManager(wait 20s, stop);"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
    command.args(["click", "-e", &config, "-h", "own.count", "-h", "wrong.count", "-h", "got.count"]);
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    let problem = String::from_utf8_lossy(&output.stderr);
    if problem.contains("IP_ADD_MEMBERSHIP") || problem.contains("IP_MULTICAST_IF") {
        eprintln!(
            "NOT TESTED: multicast sockets, since this system has no multicast on its loopback interface"
        );
        return;
    }
    let found = String::from_utf8_lossy(&output.stdout);
    assert_eq!(found, "own.count:\n0\n\nwrong.count:\n0\n\ngot.count:\n3\n\n", "{problem}");
}
