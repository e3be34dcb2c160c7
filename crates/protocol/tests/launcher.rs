//! A daemon's client of a launcher, against launchers that misbehave.

use model::PortDriver;
use protocol::launcher::{
    Client, Ending, FabricState, LauncherError, PortDevice, Refusal, Reply, Request, Shortfall, Starter,
    Step, ToFabric, TunnelDevice, VERSION, serve_starts, start,
};
use protocol::{Channel, ChannelError, Hello, HelloError};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, socket_with,
};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const STORE: [u8; 16] = [7; 16];
const TIMEOUT: Duration = Duration::from_secs(20);

/// A path for a socket that no other test uses.
fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Runs `launcher` with the first connection to `path`, and `client` beside it.
fn with_launcher<T>(
    path: &Path,
    launcher: impl FnOnce(Channel) + Send + 'static,
    client: impl FnOnce() -> T,
) -> T {
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .expect("a socket");
    bind(&listener, &SocketAddrUnix::new(path).expect("a short path")).expect("a free path");
    listen(&listener, 1).expect("a bound socket");
    let thread = thread::spawn(move || launcher(Channel::from(accept(&listener).expect("a client"))));
    let result = client();
    thread.join().expect("no panic");
    std::fs::remove_file(path).expect("the socket");
    result
}

/// A launcher that agrees to everything in the first message.
fn greet(channel: &Channel) {
    let hello = channel.receive::<Hello>(1_000).expect("a message").expect("a client").message;
    channel.send(&Ok::<_, Refusal>(hello), &[]).expect("a client");
}

/// The variable that makes this program a starter, of this program.
const PROGRAM: &str = "PROTOCOL_TEST_PROGRAM";

/// Not a test: the starter of [`a_missing_launcher_is_an_error`].
#[test]
fn starter_process() {
    if let Some(program) = std::env::var_os(PROGRAM) {
        let _ = serve_starts(|| Command::new(&program));
    }
}

#[test]
fn a_missing_launcher_is_an_error() {
    let path = path("missing");
    let error = Client::connect(&path, STORE, TIMEOUT).expect_err("nobody listens");
    assert!(matches!(&error, LauncherError::Connect(missing, _) if *missing == path), "{error:?}");
    let error = Client::connect(Path::new(&"a".repeat(200)), STORE, TIMEOUT).expect_err("too long");
    assert!(matches!(error, LauncherError::Connect(..)), "{error:?}");
    // A program that ends without listening, and none at all.
    let start_time = Instant::now();
    let starter = |program: &str| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "starter_process", "--nocapture"])
            .env(PROGRAM, program)
            .stdout(Stdio::null());
        Starter::spawn(command).expect("a starter")
    };
    let limit = Duration::from_secs(1);
    let error = start(&starter("true"), &path, STORE, limit).expect_err("nobody listens");
    assert!(matches!(error, LauncherError::Connect(..)), "{error:?}");
    let starter = starter("/none-such");
    for _ in 0..2 {
        let error = start(&starter, &path, STORE, TIMEOUT).expect_err("no program");
        assert!(matches!(error, LauncherError::Start(..)), "{error:?}");
    }
    let error = Starter::spawn(Command::new("/none-such")).expect_err("no program");
    assert!(matches!(error, LauncherError::Start(..)), "{error:?}");
    // A starter that has ended.
    let starter = Starter::spawn(Command::new("true")).expect("a program");
    let error = start(&starter, &path, STORE, TIMEOUT).expect_err("no starter");
    assert!(matches!(error, LauncherError::Channel(_)), "{error:?}");
    assert!(start_time.elapsed() < TIMEOUT);
}

#[test]
fn launchers_of_other_versions_and_stores_are_refused() {
    let path = path("versions");
    let connect = || Client::connect(&path, STORE, TIMEOUT).map(drop);
    let answer = |answer: Result<Hello, Refusal>| {
        move |channel: Channel| {
            let hello = channel.receive::<Hello>(1_000).expect("a message").expect("a client").message;
            assert_eq!(hello, Hello { version: VERSION, store: STORE });
            channel.send(&answer, &[]).expect("a client");
        }
    };
    let hello = |version| Hello { version, store: STORE };
    assert!(with_launcher(&path, answer(Ok(hello(VERSION + 1))), connect).is_ok());
    let error = with_launcher(&path, answer(Ok(hello(VERSION + 2))), connect).expect_err("too new");
    assert!(matches!(error, LauncherError::Hello(HelloError::Version { .. })), "{error:?}");
    let refusal = Refusal::Hello(HelloError::Store);
    let error = with_launcher(&path, answer(Err(refusal)), connect).expect_err("another store");
    assert!(matches!(error, LauncherError::Refused(found) if found == refusal), "{error:?}");
    assert!(error.to_string().contains("another store"), "{error}");
    let error = with_launcher(&path, drop, connect).expect_err("closed at once");
    assert!(matches!(error, LauncherError::Channel(ChannelError::Closed)), "{error:?}");
    let garbage = |channel: Channel| channel.send(&"garbage", &[]).expect("a client");
    let error = with_launcher(&path, garbage, connect).expect_err("garbage");
    assert!(matches!(error, LauncherError::Channel(ChannelError::Decode(_))), "{error:?}");
}

#[test]
fn a_request_without_a_reply_ends_the_connection() {
    let path = path("silent");
    let silent = |channel: Channel| {
        greet(&channel);
        assert!(channel.receive::<Request>(1_000).expect("a message").is_some());
        assert!(channel.receive::<Request>(1_000).expect("no message").is_none(), "the client went on");
    };
    let error = with_launcher(&path, silent, || {
        let mut client = Client::connect(&path, STORE, Duration::from_millis(30)).expect("a launcher");
        let error = client.fabrics().expect_err("no reply");
        assert!(matches!(error, LauncherError::Channel(ChannelError::WouldBlock)), "{error:?}");
        client.fabrics().expect_err("the connection is closed")
    });
    assert!(matches!(error, LauncherError::Channel(ChannelError::Closed)), "{error:?}");
}

#[test]
fn replies_that_do_not_fit_their_request_are_errors() {
    let path = path("confused");
    let state = |number| FabricState { number, pid: 9, cgroups: vec!["/a".into()], shortfalls: vec![] };
    let cases = [
        (Reply::Done, 0),
        (Reply::Opened, 0),
        (Reply::Opened, 2),
        (Reply::Connected { fabric: state(4), is_new: true, before: Some(Ending::Signal(9)) }, 1),
        (Reply::Fabrics(vec![]), 1),
    ];
    for (reply, descriptors) in cases {
        let launcher = move |channel: Channel| {
            greet(&channel);
            channel.receive::<Request>(1_000).expect("a message").expect("a client");
            channel.send(&Ok::<_, Refusal>(reply), &vec![channel.as_fd(); descriptors]).expect("a client");
        };
        let error = with_launcher(&path, launcher, || {
            let mut client = Client::connect(&path, STORE, TIMEOUT).expect("a launcher");
            match descriptors {
                1 => client.connect_fabric(3).map(drop).expect_err("another fabric"),
                _ => client.open(PortDevice::Tap("tap0".into())).map(drop).expect_err("no device"),
            }
        });
        assert!(matches!(error, LauncherError::NotAReply), "{error:?}");
    }
}

#[test]
fn all_messages_arrive_as_they_were_sent() {
    let (one, other) = Channel::pair().expect("a pair");
    let tap = || PortDevice::Tap("tap0".into());
    let path = PathBuf::from("/a folder/ä.pcap");
    for request in [
        Request::Connect(u32::MAX),
        Request::Open(tap()),
        Request::Open(PortDevice::Replay(path.clone())),
        Request::Close(PortDevice::Recording(path)),
        Request::Fabrics,
        Request::Stop(0),
        Request::StopAll,
    ] {
        one.send(&request, &[]).expect("room");
        assert_eq!(other.receive::<Request>(1_000).expect("a message").expect("no end").message, request);
    }
    let shortfall = Shortfall { step: Step::OpenTap, errno: 16 };
    assert_eq!(shortfall.to_string(), "another program uses it");
    let connecting = |errno| Shortfall { step: Step::ConnectSocket, errno }.to_string();
    assert!(connecting(11).ends_with("its server does not accept the connection, or does not answer"));
    assert!(connecting(71).ends_with("its server speaks another protocol"));
    assert!(connecting(111).starts_with("can't connect to the socket: Connection refused"));
    let refusals = [
        Refusal::Hello(HelloError::Version { ours: 1, theirs: 9 }),
        Refusal::NoFabric(3),
        Refusal::Failed(shortfall),
    ];
    for refusal in refusals {
        one.send(&Err::<Reply, _>(refusal), &[]).expect("room");
        let received = other.receive::<Result<Reply, Refusal>>(1_000).expect("a message").expect("no end");
        assert_eq!(received.message, Err(refusal));
    }
    for message in [ToFabric::Identity(STORE), ToFabric::Daemon] {
        one.send(&message, &[]).expect("room");
        assert_eq!(other.receive::<ToFabric>(1_000).expect("a message").expect("no end").message, message);
    }
}

/// Ports for tunnels have addresses, which the encoding writes as text.
#[test]
fn tunnels_are_written_and_read_back() {
    let address = |text: &str| text.parse().expect("an address");
    let vni = 42.try_into().expect("a VNI");
    let (near, far) = (address("2001:db8::1"), address("2001:db8::2"));
    let drivers = [
        PortDriver::Vxlan {
            remote: address("192.0.2.2"),
            vni,
            local: None,
            udp_port: None,
            mtu: 1400.try_into().ok(),
        },
        PortDriver::Geneve { remote: far, vni, local: Some(near), udp_port: 7.try_into().ok(), mtu: None },
    ];
    for driver in drivers {
        let bytes = protocol::codec::encode_to(&driver, Vec::new()).expect("an encoding");
        assert_eq!(protocol::codec::decode::<PortDriver>(&bytes).expect("a driver").0, driver);
        let tunnel = driver.tunnel().expect("a tunnel");
        let (kind, local, remote) = (tunnel.kind, tunnel.local, tunnel.remote);
        let device = TunnelDevice { kind, local, remote, udp_port: tunnel.udp_port, vni: tunnel.vni.into() };
        let request = Request::Open(PortDevice::Tunnel(device));
        let bytes = protocol::codec::encode_to(&request, Vec::new()).expect("an encoding");
        assert_eq!(protocol::codec::decode::<Request>(&bytes).expect("a request").0, request);
    }
}
