//! A service of replicas is scaled out and in, again and again, under TCP connections between two networks of the test: no
//! connection breaks, each byte arrives, and no packet is lost. Needs root and `ip`; prints a note and skips without them.
//!
//! `CLICKBOX_TEST_SCALINGS` is the number of rounds, 20 by default. Each scales the service out, and in again.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::Daemon;
use support::network::Network;
use test_support::{Capability, require};

/// Connections that live as long as the test.
const CONNECTIONS: usize = 8;

/// Bytes that a client has under way. All clients together fill no ring.
const CHUNK: usize = 16 << 10;

const CLIENT_MAC: &str = "02:00:00:00:00:01";
const SERVER_MAC: &str = "02:00:00:00:00:02";
const INNER_MAC: &str = "02:01:00:00:00:01";
const OUTER_MAC: &str = "02:01:00:00:00:02";
const SERVER: &str = "198.51.100.2:7000";

/// How long a connection may stand still. TCP repeats what was lost, so that losses cost time.
const STALL_TIMEOUT: Duration = Duration::from_secs(20);

/// A NAT behind a filter that knows connections.
fn nat() -> String {
    format!(
        "define($TRANSLATE_ADDRESS 203.0.113.1, $TRANSLATE_PORTS 1024-65535);
        seen :: IPRewriter(keep 0 1, drop);
        nat :: IPRewriter(pattern $TRANSLATE_ADDRESS $TRANSLATE_PORTS - - 0 1, drop);
        FromDevice(0) -> Strip(14) -> CheckIPHeader -> seen;
        seen[0] -> nat;
        nat[0] -> EtherEncap(0x0800, {OUTER_MAC}, {SERVER_MAC}) -> ToDevice(1);
        FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]nat;
        nat[1] -> [1]seen;
        seen[1] -> EtherEncap(0x0800, {INNER_MAC}, {CLIENT_MAC}) -> ToDevice(0);\n"
    )
}

/// Clients and a server with a NAT of replicas between them.
struct TestNetwork {
    clients: Network,
    server: Network,
    daemon: Daemon,
}

impl TestNetwork {
    fn new(sandbox: &str) -> TestNetwork {
        let [clients, server, middle] = [(); 3].map(|()| Network::new());
        let ends = [
            (&clients, "10.0.0.2/24", CLIENT_MAC, "198.51.100.2", INNER_MAC),
            (&server, "198.51.100.2/24", SERVER_MAC, "203.0.113.1", OUTER_MAC),
        ];
        middle.set("ipv6/conf/default/disable_ipv6", "1");
        for (side, (network, address, mac, far, gateway)) in ends.into_iter().enumerate() {
            network.set("ipv6/conf/default/disable_ipv6", "1");
            let path = network.path();
            assert!(middle.ip(&[
                format!("link add port{side} type veth peer name eth0 address {mac} netns {path}"),
                format!("link set port{side} up"),
            ]));
            assert!(network.ip(&[
                "link set eth0 up".to_string(),
                format!("addr add {address} dev eth0"),
                format!("route add {far}/32 dev eth0"),
                format!("neigh add {far} lladdr {gateway} dev eth0"),
            ]));
        }
        let daemon = middle.inside(|| Daemon::start(&format!("scalings-{sandbox}")));
        daemon.check(&["switch", "create", "lan", "--mode", "steering"], 0, &[]);
        for side in ["port0", "port1"] {
            daemon.check(&["port", "add", "lan", side, "--driver", "af_packet", "--device", side], 0, &[]);
        }
        let path = daemon.file("nat.click", &nat());
        let create = [
            "service",
            "create",
            "nat",
            &path,
            "--sandbox",
            sandbox,
            "--faces",
            "in=0,out=1",
            "--translate",
            "203.0.113.1:1024-65535",
            "--slices",
            "4",
        ];
        daemon.check(&create, 0, &["nat has 1 instance"]);
        let chain = ["chain", "create", "web", "nat", "--from", "lan.port0", "--to", "port1", "--both-ways"];
        daemon.check(&chain, 0, &[]);
        TestNetwork { clients, server, daemon }
    }

    fn service(&self) -> serde_json::Value {
        self.daemon.json(&["service", "show", "nat"])
    }

    /// Waits until `done` says so of the instances.
    fn until(&self, what: &str, done: impl Fn(&[serde_json::Value]) -> bool) {
        let begin = Instant::now();
        loop {
            let service = self.service();
            if service["instances"].as_array().is_some_and(|instances| done(instances)) {
                return;
            }
            assert!(begin.elapsed() < STALL_TIMEOUT, "{what}: {service}\n{}", self.daemon.run(&["events"]).1);
        }
    }
}

/// Sends what comes back.
fn echo(mut stream: TcpStream) {
    let mut bytes = vec![0; CHUNK];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => stream.write_all(&bytes[..count]).expect("the server sends"),
            Err(error) => panic!("the server receives: {error}"),
        }
    }
}

/// Sends bytes and checks that they come back, until it is told to stop. Returns their number.
fn converse(number: usize, chunks: u64, stop: &AtomicBool, progress: &AtomicU64) -> u64 {
    let mut stream =
        TcpStream::connect(SERVER).unwrap_or_else(|error| panic!("connection {number}: {error}"));
    stream.set_read_timeout(Some(STALL_TIMEOUT)).expect("a timeout");
    stream.set_nodelay(true).expect("an option");
    let mut bytes = vec![0; CHUNK];
    let mut back = vec![0; CHUNK];
    let mut total = 0;
    for chunk in 0..chunks {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        for (at, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&((number as u64) << 48 | chunk << 16 | at as u64).to_be_bytes());
        }
        stream
            .write_all(&bytes)
            .unwrap_or_else(|error| panic!("connection {number}, chunk {chunk}: {error}"));
        stream
            .read_exact(&mut back)
            .unwrap_or_else(|error| panic!("connection {number}, chunk {chunk}: {error}"));
        assert!(bytes == back, "connection {number}, chunk {chunk}: other bytes come back");
        total += CHUNK as u64;
        progress.fetch_add(1, Ordering::Relaxed);
    }
    stream.shutdown(Shutdown::Write).expect("the connection ends");
    let left = stream.read_to_end(&mut back);
    assert_eq!(left.unwrap_or_else(|error| panic!("connection {number}: {error}")), 0);
    total
}

/// What the kernel of a network counted about TCP: connections that were reset, and segments that were sent again.
fn tcp_counters(network: &Network) -> [u64; 2] {
    let text = network.inside(|| std::fs::read_to_string("/proc/thread-self/net/snmp")).expect("counters");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("Tcp:"))
        .map(|line| line.split_ascii_whitespace().collect())
        .collect();
    ["EstabResets", "RetransSegs"].map(|name| {
        let at = lines[0].iter().position(|found| *found == name).expect("a counter");
        lines[1][at].parse().expect("a number")
    })
}

#[test]
fn connections_survive_scalings() {
    if require(Capability::Root) {
        check_scalings("process");
    }
}

#[test]
fn connections_survive_scalings_of_virtual_machines() {
    if require(Capability::Root) && require(Capability::Kvm) {
        check_scalings("vm");
    }
}

fn check_scalings(sandbox: &str) {
    let rounds: u64 =
        std::env::var("CLICKBOX_TEST_SCALINGS").map_or(20, |text| text.parse().expect("a number"));
    let network = TestNetwork::new(sandbox);
    let (stop, progress, short) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let listener = network.server.inside(|| TcpListener::bind(SERVER)).expect("a listener");
    listener.set_nonblocking(true).expect("an option");
    let ended = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        stream.set_nonblocking(false).expect("an option");
                        scope.spawn(|| echo(stream));
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Err(error) => panic!("the server accepts: {error}"),
                }
            }
        });
        let clients = &network.clients;
        let (stop, progress, short) = (&stop, &progress, &short);
        let long: Vec<_> = (0..CONNECTIONS)
            .map(|number| scope.spawn(move || clients.inside(|| converse(number, u64::MAX, stop, progress))))
            .collect();
        // Short connections, one after the other.
        let other = scope.spawn(move || {
            clients.inside(|| {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    converse(1000 + number, 2, &AtomicBool::new(false), progress);
                    short.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        let scaled =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scale(&network, rounds, progress)));
        stop.store(true, Ordering::Relaxed);
        let sums: Vec<_> = long.into_iter().map(|thread| thread.join()).collect();
        let other = other.join();
        ended.store(true, Ordering::Relaxed);
        if let Err(panic) = scaled {
            std::panic::resume_unwind(panic);
        }
        let sums: Vec<u64> = sums.into_iter().map(|sum| sum.expect("no connection breaks")).collect();
        other.expect("no connection breaks");
        assert!(sums.iter().all(|sum| *sum > 0), "{sums:?}");
    });
    let time = begin.elapsed();
    let [resets, again] = [&network.clients, &network.server]
        .map(tcp_counters)
        .iter()
        .fold([0; 2], |[one, other], [resets, again]| [one + resets, other + again]);
    println!(
        "{rounds} rounds out and in within {:.1} s: {} chunks of {CHUNK} bytes over {CONNECTIONS} connections and {} short \
         ones, {resets} reset, {again} segments sent again",
        time.as_secs_f64(),
        progress.load(Ordering::Relaxed),
        short.load(Ordering::Relaxed),
    );
    assert_eq!(resets, 0);
    check_books(&network);
}

/// Scales the service out and in.
fn scale(network: &TestNetwork, rounds: u64, progress: &AtomicU64) {
    for round in 0..rounds {
        let most = (2 + round % 3).to_string();
        network.daemon.check(&["service", "scale", "nat", &most], 0, &[]);
        let before = progress.load(Ordering::Relaxed);
        network.until("connections go on", |_| progress.load(Ordering::Relaxed) > before);
        network.daemon.check(&["service", "scale", "nat", "1"], 0, &[]);
        if round % 4 > 0 {
            // Every fourth time, it is scaled out again at once.
            network.until("instances go", |instances| instances.len() == 1);
        }
        // Flows move in both directions between the rounds: nothing may stand still.
        let before = progress.load(Ordering::Relaxed);
        network.until("connections go on", |_| progress.load(Ordering::Relaxed) > before);
    }
}

/// No packet was lost, and none is unaccounted for.
fn check_books(network: &TestNetwork) {
    network.until("instances go", |instances| instances.len() == 1);
    let shown = network.daemon.json(&["switch", "show", "lan"]);
    for port in shown["port_list"].as_array().expect("ports") {
        let drops = port["drops"].as_object().expect("counters");
        let lost: Vec<_> = drops.iter().filter(|(_, count)| count.as_u64() != Some(0)).collect();
        assert!(lost.is_empty(), "{lost:?} in {port}\n{}", network.daemon.run(&["events"]).1);
    }
    let account = network.daemon.json(&["account"]);
    for row in account["places"].as_array().expect("places") {
        assert_eq!(row["difference"], 0, "{row}");
    }
}
