//! Packets that Linux joins, in a plain process: it receives them as they are on a wire. Needs root, and else prints a note and skips.

#[path = "support/network.rs"]
mod network;

use network::Network;
use packet::checksum::{self, Sum};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use switch::device::{PacketSocket, PacketSocketSettings};
use test_support::{Capability, require};

/// How long a test waits.
const TIMEOUT: Duration = Duration::from_secs(40);
/// Bytes that are sent in each direction.
const DATA: usize = 1 << 21;
const PORT: u16 = 5000;
/// The longest frame: an MTU of 1,500, and an Ethernet header.
const LONGEST: usize = 1514;

/// Two networks, `eth0` in each, and `port0` and `port1` at the other ends of their cables.
struct Cables {
    sides: [Network; 2],
    middle: Network,
}

impl Cables {
    fn new() -> Cables {
        let cables = Cables { sides: [(); 2].map(|()| Network::new()), middle: Network::new() };
        for network in [&cables.middle, &cables.sides[0], &cables.sides[1]] {
            network.set("ipv6/conf/default/disable_ipv6", "1");
        }
        for (number, side) in cables.sides.iter().enumerate() {
            assert!(cables.middle.ip(&[
                format!("link add port{number} type veth peer name eth0 netns {}", side.path()),
                format!("link set port{number} up"),
            ]));
            assert!(
                side.ip(&[format!("addr add 10.0.0.{}/24 dev eth0", number + 1), "link set eth0 up".into()])
            );
        }
        cables
    }
}

/// A plain process at the far ends of the cables, which ends with this value at the latest.
struct Process {
    child: Child,
    /// Its control socket.
    socket: PathBuf,
}

impl Process {
    fn start(cables: &Cables, name: &str, configuration: &str, handlers: &[&str]) -> Process {
        let socket = path(name);
        let configuration = format!("ControlSocket(unix, {}); {configuration}", socket.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
        command.args(["run", "--quiet", "--expression", &configuration]);
        handlers.iter().for_each(|handler| _ = command.args(["--handler", handler]));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = cables.middle.inside(|| command.spawn().expect("the program starts"));
        let process = Process { child, socket };
        let begin = Instant::now();
        while !process.socket.exists() {
            assert!(begin.elapsed() < TIMEOUT, "no socket");
            std::thread::sleep(Duration::from_millis(5));
        }
        process
    }

    /// Ends it. Returns the values of its handlers, and its messages.
    fn stop(self) -> (String, String) {
        let mut control = UnixStream::connect(&self.socket).expect("a connection");
        control.write_all(b"WRITE stop\r\n").expect("a command");
        self.results()
    }

    /// Waits for its end.
    fn results(mut self) -> (String, String) {
        let mut text = [String::new(), String::new()];
        let [values, messages] = &mut text;
        self.child.stdout.take().expect("a pipe").read_to_string(values).expect("text");
        self.child.stderr.take().expect("a pipe").read_to_string(messages).expect("text");
        let [values, messages] = text;
        (values, messages)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended if the test passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// A plain process that forwards frames between the ports.
struct Forwarder(Process);

impl Forwarder {
    /// `arguments`: more arguments of both devices. `element`: what the packets pass.
    fn start(cables: &Cables, name: &str, arguments: &str, element: &str) -> Forwarder {
        let configuration = format!(
            "from0 :: FromDevice(port0, PROMISC true{arguments}) -> {element} -> q0 :: Queue(5000)
                 -> to1 :: ToDevice(port1{arguments});
             from1 :: FromDevice(port1, PROMISC true{arguments}) -> {element} -> q1 :: Queue(5000)
                 -> to0 :: ToDevice(port0{arguments})"
        );
        let handlers = ["account", "from0.kernel_drops", "from1.kernel_drops", "to0.losses", "to1.losses"];
        Forwarder(Process::start(cables, name, &configuration, &handlers))
    }

    /// Ends the process, which must have received at least `least` packets and lost none.
    fn end(self, least: usize) {
        let (values, messages) = self.0.stop();
        let (account, rest) = values.split_once("from0").expect("an account");
        let number = |name: &str| -> usize {
            let found = account.split_whitespace().skip_while(|word| *word != name).nth(1);
            found.map_or(0, |number| number.parse().unwrap_or_else(|_| panic!("{account}")))
        };
        // The last packets of a connection may still wait in a queue.
        let delivered = number("delivered");
        assert!(delivered > least && delivered + number("waiting") == number("received"), "{account}");
        assert_eq!(rest, ".kernel_drops = 0\nfrom1.kernel_drops = 0\nto0.losses = \nto1.losses = \n");
        // A kernel without XDP sockets has packet sockets.
        let is_other = |line: &&str| !line.contains("the driver is af_packet instead of af_xdp");
        assert_eq!(messages.lines().find(is_other), None, "{messages}");
    }
}

/// Checks the lengths and checksums of a frame, also in a VXLAN tunnel. Returns the bytes of TCP data in it.
fn check_frame(frame: &[u8]) -> usize {
    if frame[12..14] != [8, 0] {
        return 0;
    }
    let ip = &frame[14..];
    let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let (header, segment) = ip[..length].split_at(usize::from(ip[0] & 15) * 4);
    assert_eq!(checksum::internet(header), 0, "{header:x?}");
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let pseudo = Sum::ZERO.pseudo4(address(12), address(16), ip[9], segment.len() as u16);
    let has_checksum = ip[9] == 6 || segment[6..8] != [0, 0];
    assert!(!has_checksum || pseudo.bytes(segment).finish() == 0, "{header:x?} {:x?}", &segment[..8]);
    match ip[9] {
        6 => segment.len() - usize::from(segment[12] >> 4) * 4,
        17 if segment[2..4] == 4789u16.to_be_bytes() => check_frame(&segment[16..]),
        _ => 0,
    }
}

/// Reads the frames that arrive at `eth0` until `done`, and checks each. Returns the bytes of TCP data in them.
fn watch(network: &Network, ready: &AtomicBool, done: &AtomicBool) -> usize {
    network.inside(|| {
        let settings = PacketSocketSettings { snap: 4000, receive: 1 << 24, ..Default::default() };
        let mut socket = PacketSocket::open("eth0", settings).expect("a packet socket");
        ready.store(true, Ordering::Release);
        let (mut data, mut buffer) = (0, [0; 4000]);
        while !done.load(Ordering::Acquire) || socket.has_frame() {
            let taken = socket.receive(64, |frame| {
                assert!(frame.cut == 0 && frame.length() <= LONGEST && !frame.is_gso(), "{frame:?}");
                assert_eq!(frame.partial_checksum(), None);
                assert!(frame.copy_to(&mut buffer));
                data += check_frame(&buffer[..frame.length()]);
            });
            if taken == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(socket.take_dropped(), 0);
        data
    })
}

/// Sends data both ways at once between addresses of the two networks, and checks the frames that arrive.
fn exchange(cables: &Cables, network: &str) {
    let bytes: Vec<u8> = (0..DATA).map(|byte| (byte / 777) as u8).collect();
    let [near, far] = &cables.sides;
    let listener = far.inside(|| TcpListener::bind((format!("{network}.2"), PORT)).expect("a listener"));
    let near = near.inside(|| TcpStream::connect((format!("{network}.2"), PORT)).expect("a connection"));
    let far = listener.accept().expect("a connection").0;
    let (ready, done) = ([const { AtomicBool::new(false) }; 2], AtomicBool::new(false));
    let came = std::thread::scope(|scope| {
        let (ready, done, bytes) = (&ready, &done, &bytes);
        let watchers: Vec<_> =
            (0..2).map(|side| scope.spawn(move || watch(&cables.sides[side], &ready[side], done))).collect();
        while !ready.iter().all(|ready| ready.load(Ordering::Acquire)) {
            std::thread::yield_now();
        }
        let transfers: Vec<_> = [(&near, &far), (&far, &near)]
            .into_iter()
            .map(|(mut from, mut to)| {
                to.set_read_timeout(Some(TIMEOUT)).expect("a limit");
                scope.spawn(move || from.write_all(bytes).expect("all is sent"));
                scope.spawn(move || {
                    let mut got = vec![0; DATA];
                    to.read_exact(&mut got).expect("all arrives");
                    assert!(got == *bytes);
                })
            })
            .collect();
        let results: Vec<_> = transfers.into_iter().map(|transfer| transfer.join()).collect();
        done.store(true, Ordering::Release);
        assert!(results.iter().all(Result::is_ok));
        watchers.into_iter().map(|watcher| watcher.join().expect("a watcher")).collect::<Vec<_>>()
    });
    // Segments may be sent again.
    assert!(came.iter().all(|data| *data >= DATA), "{came:?}");
}

/// Packets that come in a tunnel too; and in a router that processes packets one by one, so that most of those in a joined packet wait.
#[test]
fn a_plain_process_forwards_what_linux_joined() {
    if !require(Capability::Root) {
        return;
    }
    let cables = Cables::new();
    for (number, side) in cables.sides.iter().enumerate() {
        let (here, far) = (number + 1, 2 - number);
        assert!(side.ip(&[
            format!(
                "link add vx type vxlan id 7 local 10.0.0.{here} remote 10.0.0.{far} dstport 4789 udpcsum"
            ),
            format!("addr add 10.0.1.{here}/24 dev vx"),
            "link set vx mtu 1450 up".into(),
        ]));
    }
    let forwarder = Forwarder::start(&cables, "joined", "", "Null");
    exchange(&cables, "10.0.0");
    exchange(&cables, "10.0.1");
    // Each joined packet counts as those in it.
    forwarder.end(4 * DATA / 1448);
    let forwarder = Forwarder::start(&cables, "single", "", "Print(ACTIVE false)");
    exchange(&cables, "10.0.0");
    forwarder.end(2 * DATA / 1448);
    let forwarder = Forwarder::start(&cables, "xdp", ", METHOD XDP", "Null");
    exchange(&cables, "10.0.0");
    exchange(&cables, "10.0.1");
    forwarder.end(4 * DATA / 1448);
}

/// A path for a socket or a file of a test.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id()))
}

/// Gives the kernel packets that are to be cut into ten segments of 100 bytes, by a tap device, in as many tunnels (IP in IP) as its
/// arguments say.
const SENDER: &str = r#"
import fcntl, os, struct, sys
def header(protocol, length):
    h = struct.pack(">BBHHHBBH8B", 0x45, 0, 20 + length, 1, 0, 64, protocol, 0, 10, 0, 0, 1, 10, 0, 0, 2)
    total = sum(struct.unpack(">10H", h))
    total = (total & 0xffff) + (total >> 16)
    return h[:10] + struct.pack(">H", 0xffff - total) + h[12:]
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454ca, struct.pack("16sH", b"tap0", 0x5002))
for tunnels in map(int, sys.argv[1:]):
    packet = struct.pack(">HHIIBBHHH", 7, 5000, 1, 1, 0x50, 0x10, 100, 0, 0) + bytes(1000)
    for protocol in [6] + [4] * tunnels:
        packet = header(protocol, len(packet)) + packet
    start = 34 + 20 * tunnels
    os.write(tap, struct.pack("=BBHHHH", 1, 1, start + 20, 100, start, 16) + bytes(12) + b"\x08\x00" + packet)
"#;

/// A packet in more tunnels than are looked into can't be cut, and is counted. SNAPLEN cuts each of the others.
#[test]
fn each_part_of_a_joined_packet_is_counted() {
    if !require(Capability::Root) || !require(Capability::Python) {
        return;
    }
    let cables = Cables::new();
    assert!(cables.middle.ip(&["tuntap add tap0 mode tap", "link set tap0 up"]));
    let configuration = "from :: FromDevice(tap0, PROMISC true, SNAPLEN 70) -> k :: Classifier(12/0800, -);
        k[0] -> c :: Counter -> long :: CheckLength(70, EXTRA_LENGTH true); k[1] -> Discard;
        long[0] -> Discard; long[1] -> longer :: Counter -> Discard";
    let handlers = ["c.count", "c.byte_count", "longer.count", "from.losses", "from.kernel_drops"];
    let process = Process::start(&cables, "parts", configuration, &handlers);
    let mut sender = Command::new("python3");
    sender.args(["-c", SENDER, "0", "2", "3"]);
    assert!(cables.middle.inside(|| sender.status().expect("python").success()));
    let (values, messages) = process.stop();
    let expected = "c.byte_count = 1400\nc.count = 20\nfrom.kernel_drops = 0\nfrom.losses = too_long 1\nlonger.count = 20\n";
    assert_eq!((values.as_str(), messages.as_str()), (expected, ""));
}

/// The checksum that the sender left to a card is that of the whole packet, also if SNAPLEN keeps a part of it.
#[test]
fn a_packet_that_is_cut_to_snaplen_has_its_checksum() {
    if !require(Capability::Root) {
        return;
    }
    let cables = Cables::new();
    assert!(cables.sides[0].ip(&["neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth0"]));
    let file = path("snaplen.pcap");
    let configuration = format!(
        "FromDevice(port0, PROMISC true, SNAPLEN 60) -> k :: Classifier(12/0800, -) -> t :: Tee;
         t[0] -> c :: Counter(COUNT_CALL 1 stop) -> Discard; t[1] -> ToDump({}); k[1] -> Discard",
        file.display()
    );
    let process = Process::start(&cables, "snaplen", &configuration, &["c.byte_count"]);
    cables.sides[0].inside(|| {
        let sender = UdpSocket::bind("10.0.0.1:7").expect("a socket");
        sender.send_to(&[5; 1000], "10.0.0.2:9").expect("a datagram");
    });
    let (values, messages) = process.results();
    assert_eq!((values.as_str(), messages.as_str()), ("c.byte_count = 60\n", ""));
    let bytes = std::fs::read(&file).expect("a capture");
    std::fs::remove_file(&file).expect("removed");
    // The header of the file, and that of the record: time, bytes in the file, bytes of the packet.
    let (lengths, packet) = (&bytes[24 + 8..24 + 16], &bytes[24 + 16..]);
    assert_eq!((lengths, packet.len()), (&[60u32.to_ne_bytes(), 1042u32.to_ne_bytes()].concat()[..], 60));
    let mut segment = packet[34..42].to_vec();
    segment.resize(1008, 5);
    let pseudo = Sum::ZERO.pseudo4([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, 1008);
    assert_eq!(pseudo.bytes(&segment).finish(), 0);
}
