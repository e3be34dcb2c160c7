//! Ports for VXLAN and GENEVE tunnels, against the kernel's VXLAN device and against each other, in network namespaces that
//! the tests make (needs root).

#![allow(unsafe_code, reason = "system calls that no safe interface has")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use switch::driver::{
    AfPacket, Encapsulation, LinkState, OverlayEnds, OverlayError, OverlayPort, OverlaySettings,
    OverlayTunnel, Received, Refused, Tap,
};
use switch::{
    Batch, Counters, Driver, LearningBridge, LearningSettings, PortId, PortSettings, REASONS, Reason,
    SwitchRunner,
};
use test_support::{Capability, require, skip};

/// How long a test waits for what it expects.
const TIMEOUT: Duration = Duration::from_secs(40);
const VXLAN: Encapsulation = Encapsulation::Vxlan;
const GENEVE: Encapsulation = Encapsulation::Geneve;

/// A network namespace, which exists as long as this value.
struct Namespace(File);

impl Namespace {
    /// The namespace of this thread.
    fn current() -> Self {
        Self(File::open("/proc/thread-self/ns/net").unwrap())
    }

    /// A new one.
    fn new() -> Self {
        // SAFETY: it changes the new thread's namespaces only.
        let made = thread::spawn(|| (unsafe { libc::unshare(libc::CLONE_NEWNET) }, Self::current()));
        let (result, namespace) = made.join().unwrap();
        assert_eq!(result, 0);
        namespace.run(|| assert!(ip("link set lo up")));
        namespace
    }

    /// Does something in it.
    fn run<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let there = scope.spawn(|| {
                // SAFETY: it changes the new thread's namespaces only.
                assert_eq!(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
                act()
            });
            there.join().unwrap()
        })
    }
}

/// Runs a program with these arguments.
fn output(program: &str, words: &str) -> Output {
    Command::new(program).args(words.split(' ')).output().unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Runs `ip` with these arguments. Returns whether it succeeded.
fn ip(words: &str) -> bool {
    output("ip", words).status.success()
}

/// The number of this thread, by which `ip` finds its namespace.
fn thread_number() -> i64 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

/// Moves this thread into a namespace with the interface `near`, which is connected to `far` in another one. Both have an
/// address of each family. `None`: the test is skipped.
fn connected() -> Option<Namespace> {
    if !require(Capability::Root) {
        return None;
    }
    // SAFETY: it changes this thread's namespaces only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        skip(Capability::Root, "a network namespace can't be made");
        return None;
    }
    let far = Namespace::new();
    let number = thread_number();
    let made = far.run(|| {
        ip(&format!("link add far type veth peer name near netns {number}"))
            && ip("addr add 192.0.2.2/24 dev far")
            && ip("addr add 2001:db8::2/64 dev far nodad")
            && ip("link set far up")
    });
    if !made {
        skip(Capability::Root, "a veth pair can't be made");
        return None;
    }
    assert!(ip("link set lo up") && ip("addr add 192.0.2.1/24 dev near"));
    assert!(ip("addr add 2001:db8::1/64 dev near nodad") && ip("link set near up"));
    Some(far)
}

fn ends(local: &str, remote: &str) -> OverlayEnds {
    OverlayEnds { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
}

/// The two families: near and far.
const ADDRESSES: [[&str; 2]; 2] = [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]];

/// A tunnel of one end, with the default UDP port.
fn tunnel(encapsulation: Encapsulation, ends: OverlayEnds, vni: u32) -> OverlayTunnel {
    OverlayTunnel { encapsulation, ends, udp_port: encapsulation.default_port(), vni }
}

fn settings(tunnel: &OverlayTunnel, mtu: Option<u16>) -> OverlaySettings {
    let OverlayTunnel { encapsulation, udp_port, vni, .. } = *tunnel;
    OverlaySettings { encapsulation, udp_port, vni, mtu }
}

/// A port, and the socket that reserves its UDP port.
fn open(tunnel: &OverlayTunnel, mtu: Option<u16>) -> (OverlayPort, OwnedFd) {
    let reserved = OverlayTunnel::reserve_port(tunnel.ends.local, tunnel.udp_port).unwrap();
    let socket = tunnel.open_descriptor().unwrap();
    (OverlayPort::from_descriptor(socket, settings(tunnel, mtu)).unwrap(), reserved)
}

/// A switch between the host of this thread, by the interface `tap0` with these addresses, and a tunnel.
struct Near {
    runner: SwitchRunner<LearningBridge>,
    host: PortId,
    tunnel: PortId,
    _reserved: OwnedFd,
}

impl Near {
    fn new(tunnel: &OverlayTunnel, mtu: Option<u16>) -> Self {
        let (port, reserved) = open(tunnel, mtu);
        let tap = Tap::open("tap0").unwrap();
        // Frames that the kernel sends on its own would change counters.
        std::fs::write("/proc/sys/net/ipv6/conf/tap0/accept_dad", "0").unwrap();
        for address in ["10.9.0.1/24", "fd09::1/64"] {
            assert!(ip(&format!("addr add {address} dev tap0")));
        }
        assert!(ip("link set tap0 up"));
        let mut runner = SwitchRunner::new(LearningBridge::new(LearningSettings::default())).unwrap();
        let host = runner.add_port(Box::new(tap), PortSettings::default()).unwrap();
        let tunnel = runner.add_port(Box::new(port), PortSettings::default()).unwrap();
        Self { runner, host, tunnel, _reserved: reserved }
    }

    /// Moves frames, in a thread without privileges, while this thread does something.
    fn run_while<T>(&mut self, act: impl FnOnce() -> T) -> T {
        /// Ends the thread even if this one panics.
        struct Done<'d>(&'d AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                drop_capabilities();
                self.runner.run(Duration::from_millis(5), |_| is_done.load(Ordering::Relaxed));
            });
            let _done = Done(&is_done);
            act()
        })
    }

    fn counters(&mut self, port: PortId) -> Counters {
        self.runner.counters(port).unwrap()
    }

    /// Checks that no frame was dropped, except these of the tunnel, and that the books of both ports are balanced.
    fn check(&mut self, expected: &[(Reason, u64)]) {
        let [host, tunnel] = [self.host, self.tunnel].map(|port| {
            let (counters, books) = (self.counters(port), self.runner.port_books(port).unwrap());
            let lost: u64 = counters.drops.iter().sum();
            let passed = counters.received_frames + counters.sent_frames;
            assert_eq!(books.came + books.planned, passed + lost);
            assert_eq!((books.came, books.went), (books.came, counters.sent_frames));
            counters
        });
        let expected = REASONS
            .map(|reason| expected.iter().find(|(known, _)| *known == reason).map_or(0, |(_, count)| *count));
        assert_eq!((host.drops, tunnel.drops), ([0; REASONS.len()], expected));
        let lost: u64 = expected.iter().sum();
        let big = tunnel.dropped(Reason::TOO_BIG);
        assert_eq!(host.sent_frames, tunnel.received_frames);
        assert_eq!(host.received_frames, tunnel.sent_frames + big, "of {lost} drops");
    }
}

/// Makes the kernel's VXLAN device in the far namespace, with addresses in the tunnel.
fn kernel_device(far: &Namespace, local: &str, remote: &str) {
    far.run(|| {
        let device = format!("link add vx type vxlan id 42 local {local} remote {remote} dstport 4789");
        assert!(ip(&device) && ip("addr add 10.9.0.2/24 dev vx") && ip("addr add fd09::2/64 dev vx nodad"));
        assert!(ip("link set vx up"));
    });
}

/// Sends bytes from one namespace to the other through TCP, and checks what arrives.
fn transfer(from: &Namespace, to: &Namespace, address: &str, bytes: usize) {
    let byte = |at: usize| (at % 251) as u8;
    let listener = to.run(|| TcpListener::bind((address.parse::<IpAddr>().unwrap(), 0)).unwrap());
    let target = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            from.run(|| {
                let mut stream = TcpStream::connect_timeout(&target, TIMEOUT).unwrap();
                stream.set_write_timeout(Some(TIMEOUT)).unwrap();
                let data: Vec<u8> = (0..bytes).map(byte).collect();
                stream.write_all(&data).unwrap();
            });
        });
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut came = Vec::new();
        stream.read_to_end(&mut came).unwrap();
        assert_eq!(came.len(), bytes);
        assert!(came.iter().enumerate().all(|(at, came)| *came == byte(at)));
    });
}

/// Pings from this thread's namespace. Returns what `ping` says.
fn ping(words: &str) -> (bool, String) {
    let output = output("ping", &format!("-n -w 5 {words}"));
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Gives up all capabilities of this thread.
fn drop_capabilities() {
    // Version 3 of the header, for this thread, and three empty sets in two halves.
    let (header, sets) = ([0x2008_0522u32, 0], [0u32; 6]);
    // SAFETY: the kernel reads both arrays.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
    assert_eq!(result, 0);
}

/// Over IPv4 and IPv6: pings of the longest packets, and TCP in both directions. The thread that moves frames has no
/// privileges.
#[test]
fn frames_cross_the_kernels_vxlan_device() {
    if !require(Capability::Ping) {
        return;
    }
    for [local, remote] in ADDRESSES {
        let Some(far) = connected() else { return };
        kernel_device(&far, remote, local);
        let near = Namespace::current();
        let mut switch = Near::new(&tunnel(VXLAN, ends(local, remote), 42), None);
        let most = if local.contains(':') { 1402 } else { 1422 };
        switch.run_while(|| {
            for words in [
                "-c 2 10.9.0.2".to_string(),
                format!("-c 2 -M do -s {most} 10.9.0.2"),
                "-c 2 -s 1000 fd09::2".to_string(),
            ] {
                let (is_good, text) = ping(&words);
                assert!(is_good, "{words}: {text}");
            }
            for (mine, other) in [("10.9.0.1", "10.9.0.2"), ("fd09::1", "fd09::2")] {
                transfer(&near, &far, other, 3_000_000);
                transfer(&far, &near, mine, 3_000_000);
            }
        });
        switch.check(&[]);
        // The kernel sends segments of up to 64 KB; here they were packets again.
        let tunnel = switch.counters(switch.tunnel);
        assert!(tunnel.received_frames > 6_000_000 / 1450 && tunnel.sent_frames > 1000);
    }
}

/// The far kernel passes on large packets before they are cut. The segments are as long as the receiver announced, although the
/// tunnel has room for longer ones.
#[test]
fn segments_are_as_long_as_their_receiver_announced() {
    for [local, remote] in ADDRESSES {
        let Some(far) = connected() else { return };
        kernel_device(&far, remote, local);
        let host = Namespace::new();
        let number = thread_number();
        host.run(|| {
            assert!(ip(&format!("link add host type veth peer name sw netns {number}")));
            assert!(ip("addr add 10.9.0.1/24 dev host") && ip("link set host mtu 1200 up"));
        });
        assert!(ip("link set sw mtu 1200 up"));
        let (port, _reserved) = open(&tunnel(VXLAN, ends(local, remote), 42), None);
        let mut runner = SwitchRunner::new(LearningBridge::new(LearningSettings::default())).unwrap();
        let sw = runner.add_port(Box::new(AfPacket::open("sw").unwrap()), PortSettings::default()).unwrap();
        let tunnel = runner.add_port(Box::new(port), PortSettings::default()).unwrap();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| runner.run(Duration::from_millis(5), |_| is_done.load(Ordering::Relaxed)));
            transfer(&far, &host, "10.9.0.1", 2_000_000);
            transfer(&host, &far, "10.9.0.2", 2_000_000);
            is_done.store(true, Ordering::Relaxed);
        });
        let [sw, tunnel] = [sw, tunnel].map(|port| runner.counters(port).unwrap());
        assert_eq!((sw.drops, tunnel.drops), ([0; REASONS.len()], [0; REASONS.len()]));
        assert!(tunnel.received_frames > 2_000_000 / 1160 && tunnel.received_bytes > 2_000_000);
    }
}

/// What is longer than the MTU is answered, and the senders heed it; the maximum segment size follows the MTU.
#[test]
fn long_packets_are_answered() {
    if !require(Capability::Ping) {
        return;
    }
    for [local, remote] in ADDRESSES {
        let Some(far) = connected() else { return };
        kernel_device(&far, remote, local);
        let mut switch = Near::new(&tunnel(VXLAN, ends(local, remote), 42), Some(1300));
        let near = Namespace::current();
        switch.run_while(|| {
            near.run(|| {
                let (is_good, text) = ping("-c 1 -M do -s 1273 10.9.0.2");
                assert!(!is_good && text.contains("From 10.9.0.2") && text.contains("mtu = 1300"), "{text}");
                // The host has learned it.
                assert!(
                    String::from_utf8_lossy(&output("ip", "route get 10.9.0.2").stdout).contains("mtu 1300")
                );
                let (is_good, text) = ping("-c 1 -M do -s 1272 10.9.0.2");
                assert!(is_good, "{text}");
                let (is_good, text) = ping("-c 1 -M do -s 1253 fd09::2");
                assert!(!is_good && text.contains("From fd09::2") && text.contains("mtu=1300"), "{text}");
                let (is_good, text) = ping("-c 1 -M do -s 1252 fd09::2");
                assert!(is_good, "{text}");
            });
        });
        switch.check(&[(Reason::TOO_BIG, 2)]);
        // The sizes that both sides announce are lowered, so that nothing more is too big.
        let address = "10.9.0.2";
        let sizes = switch.run_while(|| {
            assert!(near.run(|| ip("route flush cache")));
            transfer(&near, &far, address, 1_000_000);
            let listener = far.run(|| TcpListener::bind((address.parse::<IpAddr>().unwrap(), 0)).unwrap());
            let client = near.run(|| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            let (server, _) = listener.accept().unwrap();
            [client, server].map(|stream| segment_size(&stream))
        });
        // The timestamps take twelve bytes of the 1,260.
        assert_eq!(sizes, [1248; 2]);
        switch.check(&[(Reason::TOO_BIG, 2)]);
    }
}

/// The size of segments that a connection sends.
fn segment_size(stream: &TcpStream) -> i32 {
    let (mut value, mut size) = (0i32, 4);
    // SAFETY: the kernel writes one integer.
    unsafe {
        let pointer = (&raw mut value).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, pointer, &mut size);
    }
    value
}

/// A router on the path has a smaller MTU than the interface.
#[test]
fn the_mtu_of_the_path_is_learned() {
    if !require(Capability::Ping) {
        return;
    }
    for (family, [route, local, remote]) in [
        (4, ["198.51.100.0/24", "192.0.2.1", "198.51.100.2"]),
        (6, ["2001:db8:1::/64", "2001:db8::1", "2001:db8:1::2"]),
    ] {
        let Some(router) = connected() else { return };
        let far = Namespace::new();
        let number = far.run(thread_number_that_stays());
        router.run(|| {
            assert!(ip("link add out type veth peer name in"));
            assert!(ip(&format!("link set in netns {}", number.0)));
            assert!(ip("link set out mtu 1400 up") && ip("addr add 198.51.100.1/24 dev out"));
            assert!(ip("addr add 2001:db8:1::1/64 dev out nodad"));
            for path in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                std::fs::write(format!("/proc/sys/net/{path}"), "1").unwrap();
            }
        });
        far.run(|| {
            assert!(ip("link set in mtu 1400 up") && ip("addr add 198.51.100.2/24 dev in"));
            assert!(ip("addr add 2001:db8:1::2/64 dev in nodad"));
            assert!(ip("route add default via 198.51.100.1") && ip("-6 route add default via 2001:db8:1::1"));
        });
        drop(number);
        let via = if family == 4 { "192.0.2.2" } else { "2001:db8::2" };
        assert!(ip(&format!("route add {route} via {via}")));
        kernel_device(&far, remote, local);
        let mut switch = Near::new(&tunnel(VXLAN, ends(local, remote), 42), None);
        let near = Namespace::current();
        let most = if family == 4 { 1350 } else { 1330 };
        switch.run_while(|| {
            near.run(|| {
                assert!(ping("-c 1 10.9.0.2").0);
                // The first long packet is lost at the router, which says how long packets may be.
                let start = Instant::now();
                loop {
                    let (_, text) = ping("-c 1 -W 1 -M do -s 1400 10.9.0.2");
                    let route = output("ip", "route get 10.9.0.2").stdout;
                    let route = String::from_utf8_lossy(&route);
                    if route.contains(&format!("mtu {most}")) {
                        break;
                    }
                    assert!(start.elapsed() < TIMEOUT && !route.contains("mtu"), "{route}: {text}");
                }
                let (is_good, text) = ping(&format!("-c 1 -M do -s {} 10.9.0.2", most - 28));
                assert!(is_good, "{text}");
            });
        });
        let tunnel = switch.counters(switch.tunnel);
        let lost: u64 = tunnel.drops.iter().sum();
        assert!(tunnel.dropped(Reason::TOO_BIG) == lost && lost > 0, "{tunnel:?}");
    }
}

/// The number of a thread that lives until the value is dropped.
struct LivingThread(i64, Option<(std::sync::mpsc::Sender<()>, thread::JoinHandle<()>)>);

impl Drop for LivingThread {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.1.take() {
            drop(sender);
            thread.join().unwrap();
        }
    }
}

/// Starts a thread in the namespace of the caller.
fn thread_number_that_stays() -> impl FnOnce() -> LivingThread + Send {
    || {
        let (number, wait) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        let thread = thread::spawn(move || {
            number.0.send(thread_number()).unwrap();
            let _ = wait.1.recv();
        });
        LivingThread(number.1.recv().unwrap(), Some((wait.0, thread)))
    }
}

/// A frame with a number.
fn frame(number: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![number; length];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}

/// Sends frames through a port until all are accepted.
fn send(port: &mut OverlayPort, frames: &[Vec<u8>]) {
    let start = Instant::now();
    for part in frames.chunks(256) {
        let mut batch = Batch::new(256);
        part.iter().for_each(|frame| assert!(batch.push(frame)));
        let numbers: Vec<u32> = (0..part.len() as u32).collect();
        let mut done = 0;
        while done < numbers.len() {
            let sent = port.send(&batch, &numbers[done..]).unwrap();
            assert_eq!(sent.too_big, 0);
            done += sent.frames as usize;
            assert!(start.elapsed() < TIMEOUT, "no room");
        }
    }
}

/// Receives frames until `count` have come.
fn receive(port: &mut OverlayPort, count: usize) -> Vec<Vec<u8>> {
    let (start, mut came) = (Instant::now(), Vec::new());
    while came.len() < count && start.elapsed() < TIMEOUT {
        let mut batch = Batch::new(256);
        assert_eq!(port.receive(&mut batch).unwrap(), Received::default());
        came.extend(batch.frames().map(<[u8]>::to_vec));
    }
    came
}

/// Many tunnels have one UDP port, and each gets what is for it.
#[test]
fn tunnels_with_one_udp_port_are_separate() {
    for [local, remote] in ADDRESSES {
        let Some(far) = connected() else { return };
        for kind in [VXLAN, GENEVE] {
            let near_ends = ends(local, remote);
            let (here, there) = (near_ends, OverlayEnds { local: near_ends.remote, remote: near_ends.local });
            let reserve =
                |ends: OverlayEnds| OverlayTunnel::reserve_port(ends.local, kind.default_port()).unwrap();
            let port = |ends, vni| {
                let tunnel = tunnel(kind, ends, vni);
                let socket = tunnel.open_descriptor().unwrap();
                OverlayPort::from_descriptor(socket, settings(&tunnel, None)).unwrap()
            };
            let _reserved = (reserve(here), far.run(|| reserve(there)));
            // Neither program nor kernel can have the port, too.
            let error = OverlayTunnel::reserve_port(here.local, kind.default_port()).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
            let device = format!(
                "link add vx type {} id 7 remote {remote} dstport {}",
                name(kind),
                kind.default_port()
            );
            // Not every kernel has GENEVE.
            let is_made = ip(&device);
            assert!(is_made || kind == GENEVE, "{device}");
            assert!(!ip("link set vx up") && (!is_made || ip("link del vx")), "{device}");
            const NETWORKS: [u32; 4] = [0, 42, 43, 0xff_ffff];
            let mut near = NETWORKS.map(|vni| port(here, vni));
            let mut others = far.run(|| NETWORKS.map(|vni| port(there, vni)));
            for (number, from) in (0u8..).zip(&mut near) {
                let frames: Vec<_> = (0..200).map(|at| frame(number, 60 + at * 5)).collect();
                send(from, &frames);
                assert_eq!(receive(&mut others[usize::from(number)], frames.len()), frames);
            }
            for (number, from) in (0u8..).zip(&mut others) {
                send(from, &[frame(number, 1440)]);
            }
            for (number, to) in (0u8..).zip(&mut near) {
                assert_eq!(receive(to, 1), [frame(number, 1440)]);
            }
            // Nothing else has come, and nothing was lost.
            for port in near.iter_mut().chain(&mut others) {
                assert!(port.prepare_sleep().unwrap() && port.take_missed() == 0);
            }
        }
    }
}

/// Frames that are too long, by the tunnel's MTU or by what the kernel says when it gets them, are named, and those behind
/// them are sent: a capture shows what was sent.
#[test]
fn frames_that_are_too_long_are_skipped() {
    let [local, remote] = ADDRESSES[0];
    let Some(far) = connected() else { return };
    let (here, there) = (tunnel(VXLAN, ends(local, remote), 7), tunnel(VXLAN, ends(remote, local), 7));
    let (mut port, _reserved) = open(&here, None);
    let (mut other, _also_reserved) = far.run(|| open(&there, None));
    // The frame may be 1,464 bytes long: 1,450 and a header. From then on, an MTU of 1,350.
    for (change, lengths, skipped) in [
        ("link set near up", [60, 1465, 1464, 61], vec![1]),
        ("link set near mtu 1400", [62, 1464, 1365, 1364], vec![1, 2]),
    ] {
        assert!(ip(change));
        let frames: Vec<_> = (0..).zip(lengths).map(|(number, length)| frame(number, length)).collect();
        let mut batch = Batch::new(4);
        assert!(frames.iter().all(|frame| batch.push(frame)));
        let sent = port.send(&batch, &[0, 1, 2, 3]).unwrap();
        let expected: Vec<_> = (0..)
            .zip(frames)
            .filter(|(number, _)| !skipped.contains(number))
            .map(|(_, frame)| frame)
            .collect();
        let counts = (expected.len() as u64, skipped.len() as u64);
        assert_eq!((sent.frames, sent.too_big), counts, "{change}");
        assert_eq!(port.skipped(), skipped);
        assert_eq!(receive(&mut other, expected.len()), expected);
    }
    // While the path is gone, the port says so.
    assert_eq!(port.link_state(), Some(LinkState::Up));
    assert!(ip("link set near down"));
    let mut batch = Batch::new(1);
    assert!(batch.push(&frame(9, 60)) && port.send(&batch, &[0]).unwrap().down);
    let why = "192.0.2.2 can't be reached: Network is unreachable (os error 101)";
    assert_eq!(port.link_state(), Some(LinkState::Waiting(why.into())));
    assert!(ip("link set near up"));
    send(&mut port, &[frame(10, 60)]);
    assert_eq!(port.link_state(), Some(LinkState::Up));
}

fn name(kind: Encapsulation) -> &'static str {
    if kind == VXLAN { "vxlan" } else { "geneve" }
}

/// Source ports differ by flow, packets must not be fragmented and have the congestion marks of what they carry.
#[test]
fn outer_headers_follow_the_inner_ones() {
    let Some(far) = connected() else { return };
    for [local, remote] in ADDRESSES {
        let (mut port, _reserved) = open(&tunnel(VXLAN, ends(local, remote), 42), None);
        let mut wire = far.run(|| AfPacket::open("far").unwrap());
        let packet = |flow: u8, mark: u8| {
            let mut frame = vec![2; 12];
            frame.extend([8, 0, 0x45, mark, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            frame.extend([0, flow, 0, 9, 0, 8, 0, 0]);
            frame.extend([0; 18]);
            frame
        };
        let frames: Vec<_> = (0..64).map(|at| packet(at / 2, at % 4)).collect();
        let (start, mut came) = (Instant::now(), Vec::new());
        // The neighbour is found first.
        send(&mut port, &frames);
        while came.len() < frames.len() && start.elapsed() < TIMEOUT {
            let mut batch = Batch::new(256);
            wire.receive(&mut batch).unwrap();
            came.extend(
                batch
                    .frames()
                    .filter(|frame| frame.ends_with(&[0; 18]) && frame.len() > 100)
                    .map(<[u8]>::to_vec),
            );
        }
        assert_eq!(came.len(), frames.len());
        let mut ports = Vec::new();
        for (came, sent) in came.iter().zip(&frames) {
            let (udp, mark) = if local.contains(':') {
                assert_eq!((came[14] >> 4, came[20], came[21]), (6, 17, 64));
                (54, came[15] >> 4 & 3)
            } else {
                // "Do not fragment", no fragment, TTL 64.
                assert_eq!((came[14], &came[20..22], came[22]), (0x45, &[0x40, 0][..], 64));
                (34, came[15])
            };
            assert_eq!(mark, sent[15]);
            assert_eq!(&came[udp + 2..udp + 4], 4789u16.to_be_bytes());
            let is_checked = came[udp + 6..udp + 8] != [0, 0];
            assert_eq!(is_checked, local.contains(':'));
            assert_eq!(&came[udp + 16..], sent);
            ports.push(u16::from_be_bytes([came[udp], came[udp + 1]]));
        }
        assert!(ports.iter().all(|port| *port >= 49_152));
        assert!(ports.chunks(2).all(|pair| pair[0] == pair[1]), "one port for one flow");
        ports.sort_unstable();
        ports.dedup();
        assert!(ports.len() > 28, "{ports:?}");
    }
}

/// A remote end that sends what it should not: each packet is counted under its reason.
#[test]
fn hostile_packets_are_counted_by_reason() {
    for [local, remote] in ADDRESSES {
        let Some(far) = connected() else { return };
        let mut switch = Near::new(&tunnel(GENEVE, ends(local, remote), 42), None);
        // Another tunnel to the same host.
        let other = tunnel(GENEVE, ends(local, remote), 41);
        let mut other =
            OverlayPort::from_descriptor(other.open_descriptor().unwrap(), settings(&other, None)).unwrap();
        let socket = far.run(|| UdpSocket::bind((remote.parse::<IpAddr>().unwrap(), 0)).unwrap());
        let send = |header: &[u8], frame: &[u8]| {
            socket.send_to(&[header, frame].concat(), (local.parse::<IpAddr>().unwrap(), 6081)).unwrap();
        };
        let (good, inner) = ([0, 0, 0x65, 0x58, 0, 0, 42, 0], frame(1, 60));
        let cases: &[(&[u8], &[u8], u64)] = &[
            (&good, &inner, 3),
            // For the other tunnel: the filter lets none of these through.
            (&[0, 0, 0x65, 0x58, 0, 0, 41, 0], &inner, 5),
            // Too short for a VNI, so for any of the tunnels: each counts them.
            (&good[..7], &[], 2),
            (&[], &[], 8),
            // Version 1, another protocol, options that are not there, a frame that is too short.
            (&[0x40, 0, 0x65, 0x58, 0, 0, 42, 0], &inner, 1),
            (&[0, 0, 8, 0, 0, 0, 42, 0], &inner, 2),
            (&[0x3f, 0, 0x65, 0x58, 0, 0, 42, 0], &inner, 3),
            (&good, &inner[..13], 4),
            (&[0, 0x40, 0x65, 0x58, 0, 0, 42, 0], &inner, 6),
            (&[0, 0x80, 0x65, 0x58, 0, 0, 42, 0], &inner, 7),
            // A large packet, in fragments.
            (&good, &[1; 2049], 2),
        ];
        for (header, frame, count) in cases {
            (0..*count).for_each(|_| send(header, frame));
        }
        // From another address, to the right port.
        far.run(|| {
            assert!(ip("addr add 192.0.2.3/24 dev far") && ip("addr add 2001:db8::3/64 dev far nodad"));
            let other = if remote.contains(':') { "2001:db8::3" } else { "192.0.2.3" };
            let other = UdpSocket::bind((other.parse::<IpAddr>().unwrap(), 0)).unwrap();
            other.send_to(&[&good[..], &inner].concat(), (local.parse::<IpAddr>().unwrap(), 6081)).unwrap();
        });
        let expected = [
            (Reason::TOO_LONG, 2),
            (Reason::BAD_TUNNEL_HEADER, 2 + 8 + 1 + 2 + 3 + 4),
            (Reason::CRITICAL_OPTION, 6),
            (Reason::TUNNEL_CONTROL, 7),
        ];
        let (tunnel, start) = (switch.tunnel, Instant::now());
        let all: u64 = expected.iter().map(|(_, count)| count).sum();
        switch.runner.run(Duration::from_millis(5), |runner| {
            let counters = runner.counters(tunnel).unwrap();
            let came = counters.received_frames + counters.drops.iter().sum::<u64>();
            came >= all + 3 || start.elapsed() > TIMEOUT
        });
        assert_eq!(switch.counters(tunnel).received_frames, 3);
        switch.check(&expected);
        let (mut batch, mut refused) = (Batch::new(256), Refused::default());
        (0..2 + 8).for_each(|_| refused.count(Reason::BAD_TUNNEL_HEADER));
        let expected = Received { refused, ..Received::default() };
        assert_eq!((other.receive(&mut batch).unwrap(), batch.len()), (expected, 5));
        assert!(other.prepare_sleep().unwrap() && other.take_missed() == 0);
    }
}

/// Descriptors of other kinds and MTUs that the path has no room for are refused.
#[test]
fn unsuitable_sockets_and_mtus_are_refused() {
    let tunnel = tunnel(VXLAN, ends("192.0.2.1", "192.0.2.2"), 42);
    let null = OwnedFd::from(File::open("/dev/null").unwrap());
    let udp = OwnedFd::from(UdpSocket::bind(("127.0.0.1", 0)).unwrap());
    for descriptor in [null, udp] {
        let result = OverlayPort::from_descriptor(descriptor, settings(&tunnel, None));
        assert!(matches!(result, Err(OverlayError::OtherDescriptor)));
    }
    let Some(_far) = connected() else { return };
    let open = |mtu| OverlayPort::from_descriptor(tunnel.open_descriptor().unwrap(), settings(&tunnel, mtu));
    assert_eq!(open(None).unwrap().mtu(), 1450);
    assert_eq!(open(Some(1450)).unwrap().mtu(), 1450);
    let error = open(Some(1451)).unwrap_err();
    assert!(matches!(error, OverlayError::Mtu { wanted: 1451, most: 1450, .. }), "{error}");
    assert_eq!(OverlayTunnel::local_address("192.0.2.2".parse().unwrap()).unwrap().to_string(), "192.0.2.1");
    let other = OverlayTunnel { ends: ends("192.0.2.1", "2001:db8::2"), ..tunnel };
    assert_eq!(other.open_descriptor().unwrap_err().raw_os_error(), Some(libc::EAFNOSUPPORT));
    // An address of no interface, and a network without a route.
    let other = OverlayTunnel { ends: ends("192.0.2.9", "192.0.2.2"), ..tunnel };
    assert_eq!(other.open_descriptor().unwrap_err().raw_os_error(), Some(libc::EADDRNOTAVAIL));
    assert_eq!(
        OverlayTunnel::local_address("203.0.113.1".parse().unwrap()).unwrap_err().raw_os_error(),
        Some(libc::ENETUNREACH)
    );
    // A path that is down accepts nothing, until it is up again.
    let (mut port, mut batch) = (open(None).unwrap(), Batch::new(1));
    batch.push(&frame(1, 60));
    assert!(ip("link set near down"));
    let sent = port.send(&batch, &[0]).unwrap();
    assert!(sent.down && sent.frames == 0, "{sent:?}");
    assert!(ip("link set near up"));
    let start = Instant::now();
    while port.send(&batch, &[0]).unwrap().frames == 0 {
        assert!(start.elapsed() < TIMEOUT, "it stays down");
    }
}
