//! Boxes between two networks of the test, with every packet checked: each arrives once, in order and unchanged, while
//! other boxes are killed and corrupted. Needs root and `ip`; prints a note and skips without them.
//!
//! `CLICKBOX_TEST_BOXES` is the number of boxes, `CLICKBOX_TEST_ROUNDS` the number of packets per box and direction.

mod support;

use packet::checksum::{Sum, internet};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};
use support::network::Network;
use support::{Daemon, TIMEOUT, wait};
use switch::device::{PacketSocket, PacketSocketSettings, Segmenter};
use test_support::{Capability, require};

/// The destination port of all packets.
const PORT: u16 = 5000;
/// Maximum number of packets in flight per direction: fewer than any ring or socket can hold.
const WINDOW: u64 = 256;
/// Bytes of a packet before its filler: the box's number and the packet's number.
const HEADER: usize = 8;
/// Maximum number of packets in flight per direction to a box that may lose packets.
const BOX_WINDOW: u64 = 64;
/// How long senders wait for packets to such a box before they send it others.
const GIVEN_UP: Duration = Duration::from_millis(300);

/// A number from the environment, or the default.
fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}

/// The destination address of packets for a box on a side, 0 or 1.
fn address(side: usize, number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, side as u8 + 1, (number / 200) as u8, (number % 200) as u8 + 1)
}

/// The Ethernet address of a box on a side.
fn box_mac(side: usize, number: usize) -> String {
    format!("02:0{}:00:00:{:02x}:{:02x}", side + 1, number >> 8, number & 255)
}

/// The Ethernet address of the host on a side.
fn host_mac(side: usize) -> String {
    format!("02:00:00:00:00:0{}", side + 1)
}

/// A box's configuration: one of three kinds, all of which forward packets.
fn configuration(number: usize) -> String {
    let inner = match number % 3 {
        0 => "",
        1 => "Strip(14) -> CheckIPHeader -> IPFilter(allow udp dst port 5000, deny all) -> Unstrip(14) ->",
        _ => "Strip(14) -> CheckIPHeader -> DecIPTTL -> Unstrip(14) ->",
    };
    let way = |from: usize| {
        let to = 1 - from;
        let (source, destination) = (box_mac(to, number), host_mac(to));
        format!(
            "FromDevice({from}) -> {inner} EtherRewrite({source}, {destination}) -> Queue(1024) -> ToDevice({to});\n"
        )
    };
    way(0) + &way(1)
}

/// The payload of a packet: lengths from the minimum to the Ethernet maximum.
fn payload(number: usize, count: u32) -> Vec<u8> {
    let length = HEADER + (count as usize * 97 + number * 31) % (1472 - HEADER + 1);
    let mut bytes = vec![(count as usize + number) as u8; length];
    bytes[..4].copy_from_slice(&(number as u32).to_be_bytes());
    bytes[4..HEADER].copy_from_slice(&count.to_be_bytes());
    bytes
}

/// A random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// The two networks, the daemon and the boxes between them.
struct TestNetwork {
    sides: [Network; 2],
    daemon: Daemon,
}

impl TestNetwork {
    fn new(name: &str, boxes: usize) -> Option<TestNetwork> {
        if !require(Capability::Root) {
            return None;
        }
        let [left, right, middle] = [(); 3].map(|()| Network::new());
        let sides = [left, right];
        for (side, network) in sides.iter().enumerate() {
            let (here, far) = (host_mac(side), side + 1);
            let own = format!("10.{}.0.0/16", side + 1);
            let other = format!("10.{}.0.0/16", 2 - side);
            middle.set("ipv6/conf/default/disable_ipv6", "1");
            network.set("ipv6/conf/default/disable_ipv6", "1");
            assert!(middle.ip(&[
                format!(
                    "link add port{side} type veth peer name eth0 address {here} netns {}",
                    network.path()
                ),
                format!("link set port{side} up"),
            ]));
            let mut commands = vec![
                "link set eth0 up".to_string(),
                format!("addr add 10.{far}.255.1/32 dev eth0"),
                format!("route add local {own} dev lo"),
                format!("route add {other} dev eth0 src 10.{far}.255.1"),
                // Replies to the other side's own address go through the first box.
                format!("neigh add 10.{}.255.1 lladdr {} dev eth0", 2 - side, box_mac(side, 0)),
            ];
            commands.extend((0..boxes).map(|number| {
                let (address, mac) = (address(1 - side, number), box_mac(side, number));
                format!("neigh add {address} lladdr {mac} dev eth0")
            }));
            assert!(network.ip(&commands));
        }
        let daemon = middle.inside(|| Daemon::start(name));
        let mut stack = String::new();
        for side in 0..2 {
            let mac = host_mac(side);
            stack += &format!(
                "[switches.side{side}]\nmode = \"static\"\n\
                 ports.port{side} = {{ driver = \"af_packet\", addresses = [\"{mac}\"] }}\n"
            );
        }
        for number in 0..boxes {
            daemon.file(&format!("{number}.click"), &configuration(number));
            let attach = |side| format!("{{ attach = \"side{side}\", mac = \"{}\" }}", box_mac(side, number));
            let sandbox = if number % 2 == 0 { "process" } else { "auto" };
            stack += &format!(
                "[boxes.b{number}]\nconfiguration = \"{number}.click\"\nsandbox = \"{sandbox}\"\n\
                 restart = \"always\"\nattach = [{}, {}]\n",
                attach(0),
                attach(1)
            );
        }
        let stack = daemon.file("network.toml", &stack);
        daemon.check(&["up", &stack], 0, &[]);
        Some(TestNetwork { sides, daemon })
    }

    /// What the test has sent and received, and what the kernel has counted at both sides.
    fn books(&self, directions: &[Direction; 2]) -> String {
        let mut text = String::new();
        for (from, direction) in directions.iter().enumerate() {
            let all = |counts: &[AtomicU64]| {
                counts.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>()
            };
            let (sent, received) = (all(&direction.sent), all(&direction.received));
            text += &format!("from side {from}: sent {sent:?}, received {received:?}\n");
        }
        for (side, network) in self.sides.iter().enumerate() {
            let files = ["dev", "snmp", "udp"].map(|name| format!("/proc/thread-self/net/{name}"));
            let read = || files.map(|file| std::fs::read_to_string(file).unwrap_or_default()).concat();
            text += &format!("side {side}:\n{}", network.inside(read));
        }
        text
    }

    /// Waits until all boxes run.
    fn until_all_run(&self) {
        let runs = |entry: &Value| entry["state"] == "running";
        wait("all boxes run", || self.daemon.json(&["ps"]).as_array().expect("a list").iter().all(runs));
    }
}

/// The packets in one direction.
struct Direction {
    /// The numbers of packets sent and received, per box.
    sent: Vec<AtomicU64>,
    received: Vec<AtomicU64>,
    /// The total number of packets sent.
    all_sent: AtomicU64,
    /// Errors at the boxes that must work correctly.
    faults: Mutex<Vec<String>>,
}

/// Limits the packets in flight, so that no buffer before the boxes overflows however slow the machine is.
///
/// A packet to a box that loses none is in flight until it has arrived. Others may never arrive. They have passed all
/// buffers that the boxes share when packets that were sent after them have arrived, because these buffers keep the order.
struct Window<'a> {
    direction: &'a Direction,
    disturbances: &'a [Disturbance],
    /// The numbers of packets that were sent to each box at some time.
    mark: Vec<u64>,
    /// The numbers of packets that have passed the shared buffers, for boxes that may lose packets.
    passed: Vec<u64>,
    /// The numbers of packets of each box that are no longer expected, and since when no more were.
    given_up: Vec<(u64, Instant)>,
}

impl<'a> Window<'a> {
    fn new(direction: &'a Direction, disturbances: &'a [Disturbance]) -> Self {
        let zeros = vec![0; disturbances.len()];
        let given_up = vec![(0, Instant::now()); disturbances.len()];
        Self { direction, disturbances, mark: zeros.clone(), passed: zeros, given_up }
    }

    fn is_lossless(&self, number: usize) -> bool {
        self.disturbances[number] == Disturbance::Nothing
    }

    fn sent(&self, number: usize) -> u64 {
        self.direction.sent[number].load(Ordering::Relaxed)
    }

    fn received(&self, number: usize) -> u64 {
        self.direction.received[number].load(Ordering::Relaxed)
    }

    /// Whether a box gets another packet now.
    fn admits(&mut self, number: usize) -> bool {
        if self.is_lossless(number) {
            return true;
        }
        let missing = self.sent(number).saturating_sub(self.received(number));
        let (given_up, since) = &mut self.given_up[number];
        let is_full = missing.saturating_sub(*given_up) >= BOX_WINDOW;
        if !is_full {
            *since = Instant::now();
        } else if since.elapsed() > GIVEN_UP {
            (*given_up, *since) = (missing, Instant::now());
        }
        !is_full
    }

    /// The number of packets that may still be in the shared buffers.
    fn in_flight(&mut self) -> u64 {
        let boxes = 0..self.mark.len();
        if boxes.clone().all(|number| !self.is_lossless(number) || self.received(number) >= self.mark[number])
        {
            self.passed = std::mem::take(&mut self.mark);
            self.mark = boxes.clone().map(|number| self.sent(number)).collect();
        }
        let of = |number: usize| {
            let gone = if self.is_lossless(number) { self.received(number) } else { self.passed[number] };
            self.sent(number).saturating_sub(gone)
        };
        boxes.map(of).sum()
    }

    /// Waits until another packet may be sent.
    fn wait(&mut self) {
        let begin = Instant::now();
        while self.in_flight() >= WINDOW {
            assert!(
                begin.elapsed() < TIMEOUT,
                "{} packets are in flight, and no more come",
                self.in_flight()
            );
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// What the test does to a box, and so what may happen to its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    /// Nothing: no packet is lost.
    Nothing,
    /// Packets may be lost.
    Loss,
    /// Anything may happen.
    Corruption,
}

impl Direction {
    fn new(boxes: usize) -> Direction {
        let zeros = || (0..boxes).map(|_| AtomicU64::new(0)).collect();
        Direction { sent: zeros(), received: zeros(), all_sent: AtomicU64::new(0), faults: Mutex::default() }
    }

    /// Sends one packet to each box in turn, until `done`, which is called after each round. A box that may lose packets gets
    /// none while too many of its packets are unanswered.
    fn send(&self, side: usize, disturbances: &[Disturbance], mut done: impl FnMut() -> bool) {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
        let mut window = Window::new(self, disturbances);
        while !done() {
            for number in 0..self.sent.len() {
                if !window.admits(number) {
                    continue;
                }
                window.wait();
                let count = self.sent[number].fetch_add(1, Ordering::Relaxed);
                self.all_sent.fetch_add(1, Ordering::Relaxed);
                let bytes = payload(number, count as u32);
                let to = (address(1 - side, number), PORT);
                assert_eq!(socket.send_to(&bytes, to).expect("a packet is sent"), bytes.len());
            }
        }
    }

    /// Checks received packets until `stop`.
    fn receive(&self, socket: &UdpSocket, side: usize, disturbances: &[Disturbance], stop: &AtomicBool) {
        // The expected number of each box's next packet.
        let mut next: Vec<u64> = self.received.iter().map(|_| 0).collect();
        let mut buffer = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            let length = match socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                Err(error) => panic!("{error}"),
            };
            let bytes = &buffer[..length];
            let field = |at: usize| {
                bytes.get(at..at + 4).and_then(<[u8]>::first_chunk).copied().map(u32::from_be_bytes)
            };
            let (Some(number), Some(count)) = (field(0), field(4)) else { continue };
            let number = number as usize;
            let (Some(next), Some(disturbance)) = (next.get_mut(number), disturbances.get(number)) else {
                continue;
            };
            let right = payload(number, count) == bytes;
            let in_order = if *disturbance == Disturbance::Nothing {
                u64::from(count) == *next
            } else {
                u64::from(count) >= *next
            };
            if *disturbance != Disturbance::Corruption && (!right || !in_order) {
                let mut faults = self.faults.lock().expect("the list");
                faults.push(format!(
                    "side {side}, box {number}: {count} received, {next} was next; unchanged: {right}"
                ));
            }
            *next = u64::from(count) + 1;
            self.received[number].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all packets of the boxes that lose none have arrived. If some are lost, the message says where.
    fn settle(&self, network: &TestNetwork, disturbances: &[Disturbance]) {
        let begin = Instant::now();
        let missing = || {
            let numbers =
                (0..disturbances.len()).filter(|number| disturbances[*number] == Disturbance::Nothing);
            let gap = |number: usize| {
                (
                    number,
                    self.sent[number].load(Ordering::Relaxed),
                    self.received[number].load(Ordering::Relaxed),
                )
            };
            numbers.map(gap).filter(|(_, sent, received)| sent != received).collect::<Vec<_>>()
        };
        while !missing().is_empty() {
            assert!(
                begin.elapsed() < TIMEOUT,
                "box, sent, received: {:?}; {}",
                missing(),
                network.daemon.json(&["account"])
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Sends in both directions while `act` runs, and for at least the given number of rounds. Then checks received packets
/// until `compare` finds no error, because packets that may be lost may also be late.
fn run(
    network: &TestNetwork,
    directions: &[Direction; 2],
    disturbances: &[Disturbance],
    rounds: usize,
    act: impl FnOnce(),
    compare: impl Fn() -> Result<(), String>,
) {
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    /// Sets a flag on drop, also after a panic.
    struct Sets<'a>(&'a AtomicBool);
    impl Drop for Sets<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let _stops = Sets(&stop);
        let senders: Vec<_> = directions
            .iter()
            .enumerate()
            .map(|(from, direction)| {
                let (stop, over) = (&stop, &over);
                let socket = network.sides[1 - from].inside(|| {
                    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).expect("a socket");
                    set_socket_recv_buffer_size_force(&socket, 8 << 20).expect("a large buffer");
                    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a limit");
                    socket
                });
                scope.spawn(move || direction.receive(&socket, 1 - from, disturbances, stop));
                scope.spawn(move || {
                    let mut left = rounds;
                    network.sides[from].inside(|| {
                        direction.send(from, disturbances, || {
                            left = left.saturating_sub(1);
                            left == 0 && over.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed)
                        });
                    });
                })
            })
            .collect();
        {
            let _over = Sets(&over);
            act();
        }
        for sender in senders {
            sender.join().unwrap_or_else(|panic| {
                eprintln!("{}", network.daemon.json(&["account"]));
                eprintln!("{}", network.books(directions));
                std::panic::resume_unwind(panic)
            });
        }
        directions.iter().for_each(|direction| direction.settle(network, disturbances));
        let begin = Instant::now();
        while let Err(wrong) = compare() {
            assert!(begin.elapsed() < TIMEOUT, "{wrong}");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    for direction in directions {
        let faults = direction.faults.lock().expect("the list");
        assert!(
            faults.is_empty(),
            "{} faults, the first: {:?}",
            faults.len(),
            &faults[..faults.len().min(5)]
        );
    }
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The drops counted at the destination port of a packet.
fn drops(port: &Value) -> u64 {
    ["full", "down"].iter().filter_map(|reason| port["drops"][reason].as_u64()).sum()
}

/// The number of reasons for which a port dropped packets.
fn kinds_of_drops(port: &Value) -> u64 {
    port["drops"].as_object().expect("reasons").len() as u64
}

/// `Ok` if a number is in a range, else a message with the expected range.
fn within(what: impl FnOnce() -> String, found: u64, right: RangeInclusive<u64>) -> Result<(), String> {
    if right.contains(&found) { Ok(()) } else { Err(format!("{found}, not {right:?}: {}", what())) }
}

/// Checks that every sent packet is in the counters of its box and its switches; returns the differences.
///
/// A frame that corruption gave a group address goes to every other port of its switch, so all boxes on a side, except
/// the corrupted ones, count the same number of stray frames.
fn compare_counters(
    network: &TestNetwork,
    directions: &[Direction; 2],
    disturbances: &[Disturbance],
) -> Result<(), String> {
    let shown: Vec<_> =
        (0..disturbances.len()).map(|number| network.daemon.json(&["show", &format!("b{number}")])).collect();
    let is_corrupted = |disturbance: &Disturbance| *disturbance == Disturbance::Corruption;
    let uncorrupted =
        disturbances.iter().position(|disturbance| !is_corrupted(disturbance)).expect("an uncorrupted box");
    for (side, direction) in directions.iter().enumerate() {
        let arrived = |number: usize| {
            let port = &shown[number]["ports"][side];
            count(&port["traffic"]["received_packets"]) + drops(port)
        };
        let sent = |number: usize| direction.sent[number].load(Ordering::Relaxed);
        let most = (0..disturbances.len())
            .filter(|number| is_corrupted(&disturbances[*number]))
            .map(|number| count(&shown[number]["ports"][side]["traffic"]["sent_packets"]))
            .sum();
        let strays = arrived(uncorrupted).saturating_sub(sent(uncorrupted));
        within(|| format!("strays at side {side}"), strays, 0..=most)?;
        for (number, disturbance) in disturbances.iter().enumerate() {
            let (near, far) = (&shown[number]["ports"][side], &shown[number]["ports"][1 - side]);
            let received = direction.received[number].load(Ordering::Relaxed);
            let all = sent(number) + strays;
            let least = if is_corrupted(disturbance) { sent(number) } else { all };
            within(|| format!("box {number} from side {side}: {near}"), arrived(number), least..=all)?;
            if !is_corrupted(disturbance) {
                let handed_on = count(&far["traffic"]["sent_packets"]);
                let most = received + strays;
                within(|| format!("box {number} from side {side}: {far}"), handed_on, received..=most)?;
            }
            if *disturbance == Disturbance::Nothing {
                within(|| format!("box {number} from side {side}"), received, sent(number)..=sent(number))?;
                within(|| format!("box {number} from side {side}: {near}"), kinds_of_drops(near), 0..=0)?;
            }
        }
        let switch = network.daemon.json(&["switch", "show", &format!("side{side}")]);
        let name = format!("port{side}");
        let ports = switch["port_list"].as_array().expect("a list");
        let port = ports.iter().find(|port| port["name"] == name.as_str()).expect("the port");
        let all = direction.all_sent.load(Ordering::Relaxed);
        within(|| format!("{port}"), count(&port["traffic"]["received_packets"]), all..=all)?;
        within(|| format!("{port}"), kinds_of_drops(port), 0..=0)?;
    }
    for (number, shown) in shown.iter().enumerate() {
        let [all, first, second] =
            [&shown["traffic"], &shown["ports"][0]["traffic"], &shown["ports"][1]["traffic"]]
                .map(|traffic| count(&traffic["received_packets"]));
        within(|| format!("box {number}: {shown}"), all, first + second..=first + second)?;
    }
    Ok(())
}

/// A TCP connection through the first box: the kernel sends GSO frames of many packets, which are segmented.
fn check_connection(network: &TestNetwork) {
    let listener = network.sides[1].inside(|| TcpListener::bind((address(1, 0), PORT)).expect("a socket"));
    let bytes: Vec<u8> = (0..8_000_000u32).map(|byte| (byte >> 8) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream =
                network.sides[0].inside(|| TcpStream::connect((address(1, 0), PORT)).expect("a connection"));
            stream.write_all(&bytes).expect("all is sent");
        });
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a limit");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("all comes");
        assert!(received == bytes, "{} of {} bytes received, or others", received.len(), bytes.len());
    });
}

#[test]
fn every_packet_between_two_networks_arrives_once_in_order_and_unchanged() {
    let boxes = number("CLICKBOX_TEST_BOXES", 8);
    let rounds = number("CLICKBOX_TEST_ROUNDS", 100);
    let Some(network) = TestNetwork::new("traffic", boxes) else { return };
    let directions = [Direction::new(boxes), Direction::new(boxes)];
    let disturbances = vec![Disturbance::Nothing; boxes];
    run(
        &network,
        &directions,
        &disturbances,
        rounds,
        || {},
        || compare_counters(&network, &directions, &disturbances),
    );
    check_connection(&network);
}

/// Writes random bytes to random addresses in all writable memory of a process.
fn corrupt(pid: u64, random: &mut Random) {
    // It may have ended from an earlier corruption.
    let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else { return };
    let Ok(memory) = std::fs::File::options().write(true).open(format!("/proc/{pid}/mem")) else { return };
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16));
        rest.starts_with("rw").then_some(start.ok()?..end.ok()?)
    };
    let ranges: Vec<_> = maps.lines().filter_map(range).collect();
    for _ in 0..2000 {
        let Some(range) = ranges.get(random.below(ranges.len().max(1))) else { return };
        let place = range.start + random.below((range.end - range.start) as usize) as u64 / 8 * 8;
        let _ = memory.write_at(&(random.below(1 << 30) as u64).to_le_bytes(), place);
    }
}

#[test]
fn kills_and_corruption_do_not_affect_other_boxes() {
    let boxes = number("CLICKBOX_TEST_BOXES", 8);
    let Some(network) = TestNetwork::new("storms", boxes) else { return };
    let directions = [Direction::new(boxes), Direction::new(boxes)];
    // Of eight boxes, one process and one virtual machine are killed, and another process is corrupted.
    let disturbance = |number: usize| match number % 8 {
        0 | 1 => Disturbance::Loss,
        2 => Disturbance::Corruption,
        _ => Disturbance::Nothing,
    };
    let disturbances: Vec<Disturbance> = (0..boxes).map(disturbance).collect();
    let seed =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_nanos() as u64;
    eprintln!("the seed is {seed}");
    let mut random = Random(seed);
    let mut victims: Vec<usize> =
        (0..boxes).filter(|number| disturbances[*number] != Disturbance::Nothing).collect();
    let daemon = &network.daemon;
    let storm = || {
        for _ in 0..3 {
            for last in (1..victims.len()).rev() {
                victims.swap(last, random.below(last + 1));
            }
            for victim in &victims {
                let name = format!("b{victim}");
                if disturbances[*victim] == Disturbance::Corruption {
                    if let Some(pid) = daemon.json(&["show", &name])["pid"].as_u64() {
                        corrupt(pid, &mut random);
                    }
                } else {
                    // It may not have restarted since the last time.
                    let (code, text) = daemon.run(&["kill", &name]);
                    assert!(code == 0 || code == 6, "{text}");
                }
            }
            network.until_all_run();
        }
        // A corrupted box that keeps running is restarted too.
        for victim in victims.iter().filter(|victim| disturbances[**victim] == Disturbance::Corruption) {
            daemon.run(&["kill", &format!("b{victim}")]);
        }
        network.until_all_run();
    };
    run(&network, &directions, &disturbances, 1, storm, || {
        compare_counters(&network, &directions, &disturbances)
    });
    for victim in &victims {
        let shown = daemon.json(&["show", &format!("b{victim}")]);
        assert!(count(&shown["restarts"]) > 0, "box {victim} was not restarted");
    }
    // All boxes, including the former victims, work again.
    let (directions, disturbances) =
        ([Direction::new(boxes), Direction::new(boxes)], vec![Disturbance::Nothing; boxes]);
    run(&network, &directions, &disturbances, 20, || {}, || Ok(()));
}

/// Where the kernel has to split joined frames, it passes on those of this length in bytes, which can be two short segments.
const LARGEST_JOINED: usize = 2000;

/// Checks the checksums of a TCP frame as it came, before anything fills them in: they are correct, or the frame is marked, and its
/// checksum is the sum of the pseudo-header, as cards and receivers expect it. Returns the TCP segment.
fn check_raw(frame: &[u8], partial: Option<(usize, usize)>) -> &[u8] {
    let length = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let address = |at: usize| Ipv4Addr::new(frame[at], frame[at + 1], frame[at + 2], frame[at + 3]);
    let segment = &frame[34..length];
    let pseudo = Sum::ZERO.pseudo4(address(26), address(30), 6, segment.len() as u16);
    assert_eq!(internet(&frame[14..34]), 0, "{:?}", &frame[..54]);
    let (place, sum) = match partial {
        None => ((34, 16), pseudo.bytes(segment).finish()),
        Some(place) => (place, pseudo.fold() ^ u16::from_be_bytes([segment[16], segment[17]])),
    };
    assert_eq!((place, sum), ((34, 16), 0), "{:?}", &frame[..54]);
    segment
}

/// Reads the TCP frames that arrive at an interface, up to an amount of data for a port: checks that each has correct checksums and follows the
/// one before. Returns the bytes of their data, and how many joined frames were longer than [`LARGEST_JOINED`].
fn read_segments(device: &str, port: u16, data: usize, ready: &Barrier) -> (Vec<u8>, usize) {
    let settings = PacketSocketSettings { snap: 2048, receive: 1 << 23, gso: true, ..Default::default() };
    let mut socket = PacketSocket::open(device, settings).expect("a packet socket");
    ready.wait();
    let (mut segmenter, mut buffer) = (Segmenter::default(), [0; 2048]);
    let (mut came, mut joined, mut next) = (Vec::new(), 0, None);
    let mut raw = vec![0; 1 << 17];
    let begin = Instant::now();
    while came.len() < data {
        assert!(begin.elapsed() < TIMEOUT, "{} of {data} bytes came", came.len());
        let mut frames = Vec::new();
        socket.receive(64, |frame| {
            assert_eq!(frame.cut, 0);
            assert!(frame.copy_raw_to(&mut raw));
            if raw[12..14] == [8, 0] && raw[23] == 6 {
                check_raw(&raw[..frame.length()], frame.partial_checksum());
            }
            if frame.is_gso() {
                joined += usize::from(frame.length() > LARGEST_JOINED);
                assert!(segmenter.load(&frame, buffer.len()), "{} bytes", frame.length());
                while let Some(length) = segmenter.take(&mut buffer) {
                    frames.push(buffer[..length].to_vec());
                }
            } else {
                assert!(frame.copy_to(&mut buffer));
                frames.push(buffer[..frame.length()].to_vec());
            }
        });
        for frame in frames.iter().filter(|frame| frame[12..14] == [8, 0] && frame[23] == 6) {
            let segment = check_raw(frame, None);
            if segment[2..4] != port.to_be_bytes() {
                continue;
            }
            let number = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
            let data = &segment[usize::from(segment[12] >> 4) * 4..];
            // What overtakes other data leaves a gap. The sender may repeat the end when an answer takes long.
            let repeated = next.get_or_insert(number).wrapping_sub(number) as usize;
            if repeated == 0 {
                came.extend_from_slice(data);
                next = Some(number.wrapping_add(data.len() as u32));
                continue;
            }
            let start = came.len().checked_sub(repeated).expect("a frame is lost, or out of order");
            assert!(came[start..].starts_with(data), "{number} is repeated with other data");
        }
    }
    assert_eq!(socket.take_dropped(), 0);
    (came, joined)
}

/// Large segments enter by a packet socket and leave by a tap device, and the other way round, through two switches and a box.
/// Towards the packet socket's network, the kernel splits what was joined.
#[test]
fn large_segments_arrive_in_order_with_correct_checksums() {
    const DATA: usize = 1 << 20;
    if !require(Capability::Root) {
        return;
    }
    let [left, right, middle] = [(); 3].map(|()| Network::new());
    for network in [&left, &right, &middle] {
        network.set("ipv6/conf/default/disable_ipv6", "1");
    }
    assert!(middle.ip(&[
        format!("link add port0 type veth peer name eth0 address {} netns {}", host_mac(0), left.path()),
        format!("link set port0 gso_max_size {LARGEST_JOINED} up"),
    ]));
    let daemon = middle.inside(|| Daemon::start("segments"));
    let ends = ["af_packet\", device = \"port0", "tap\", device = \"tap1"];
    let mut stack = String::new();
    for (side, end) in ends.iter().enumerate() {
        let mac = host_mac(side);
        stack += &format!(
            "[switches.side{side}]\nmode = \"static\"\n\
             ports.end = {{ driver = \"{end}\", addresses = [\"{mac}\"] }}\n"
        );
    }
    daemon.file("b.click", &configuration(1).replace("allow udp dst port 5000", "allow tcp"));
    let attach = |side| format!("{{ attach = \"side{side}\", mac = \"{}\" }}", box_mac(side, 1));
    stack += &format!("[boxes.b]\nconfiguration = \"b.click\"\nattach = [{}, {}]\n", attach(0), attach(1));
    let stack = daemon.file("network.toml", &stack);
    daemon.check(&["up", &stack], 0, &[]);
    assert!(middle.ip(&[format!("link set tap1 address {} netns {}", host_mac(1), right.path())]));
    assert!(right.ip(&["link set tap1 name eth0"]));
    for (side, network) in [&left, &right].into_iter().enumerate() {
        let (here, far) = (side + 1, 2 - side);
        assert!(network.ip(&[
            "link set eth0 up".to_string(),
            format!("addr add 10.{here}.255.1/32 dev eth0"),
            format!("route add 10.{far}.255.1 dev eth0 src 10.{here}.255.1"),
            format!("neigh add 10.{far}.255.1 lladdr {} dev eth0", box_mac(side, 1)),
        ]));
    }

    let data: Vec<u8> = (0..DATA).map(|byte| (byte / 777) as u8).collect();
    let listener = right.inside(|| TcpListener::bind(("10.2.255.1", PORT)).expect("a listener"));
    let near = left.inside(|| TcpStream::connect(("10.2.255.1", PORT)).expect("a connection"));
    let far = listener.accept().expect("a connection").0;
    // Less than a ring holds is on the way, however long a box waits for a processor.
    for end in [&near, &far] {
        set_socket_recv_buffer_size(end, 1 << 16).expect("a small buffer");
    }
    let back = near.local_addr().expect("an address").port();
    // Nothing is on the way when the readers begin.
    let ready = Barrier::new(3);
    let (came, joined) = std::thread::scope(|scope| {
        let ready = &ready;
        let readers = [(&right, PORT), (&left, back)].map(|(network, port)| {
            scope.spawn(move || network.inside(|| read_segments("eth0", port, DATA, ready)))
        });
        ready.wait();
        for (mut from, mut to) in [(&near, &far), (&far, &near)] {
            let data = &data;
            scope.spawn(move || from.write_all(data).expect("all is sent"));
            let mut bytes = vec![0; DATA];
            to.read_exact(&mut bytes).expect("all arrives");
            assert!(bytes == *data);
        }
        let [there, here] = readers.map(|reader| reader.join().expect("a reader"));
        ([there.0, here.0], [there.1, here.1])
    });
    assert!(came.iter().all(|bytes| *bytes == data));
    // What a switch joined leaves as it is by the tap, and was split behind the other port.
    assert!(joined[0] > 0 && joined[1] == 0, "{joined:?}");

    for side in ["side0", "side1"] {
        let mut shown = Value::Null;
        let sum = |shown: &Value, name: &str| -> u64 {
            let ports = shown["port_list"].as_array().expect("ports").iter();
            ports.filter_map(|port| port["traffic"][name].as_u64()).sum()
        };
        // The last answers may still be on their way.
        wait("all that came is sent", || {
            shown = daemon.json(&["switch", "show", side]);
            ["packets", "bytes"]
                .iter()
                .all(|what| sum(&shown, &format!("received_{what}")) == sum(&shown, &format!("sent_{what}")))
        });
        let ports = shown["port_list"].as_array().expect("ports");
        let least = 2 * (DATA / 1448) as u64;
        assert!(sum(&shown, "received_packets") > least, "frames are counted: {shown}");
        assert!(ports.iter().all(|port| port["drops"] == serde_json::json!({})), "{shown}");
    }
    let account = daemon.json(&["account"]);
    for row in account["places"].as_array().expect("places") {
        assert_eq!(row["difference"], 0, "{row}");
    }
}
