//! Packet sockets with rings in shared memory, on interfaces in the test's own network namespace (needs root).

#![allow(unsafe_code, reason = "system calls that no safe interface has")]

use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use switch::device::{PacketSocket, PacketSocketSettings, SendOutcome};
use switch::driver::{AfPacket, LinkState, Received, Sent, Tap};
use switch::{
    Batch, Driver, DriverError, ForwardingMode, LearningBridge, LearningSettings, PortSettings, REASONS,
    Shards, Spread, SwitchRunner,
};
use test_support::{Capability, require, skip};

/// How long a test waits for expected frames.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Moves this thread into a new network namespace with a veth pair, `left` and `right`. Returns false if the test is
/// skipped.
fn joined_interfaces() -> bool {
    if !require(Capability::Root) {
        return false;
    }
    // SAFETY: it changes this thread's namespaces only.
    let own = unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 };
    let made = own
        && ip("link add left type veth peer name right")
        && ip("link set left up")
        && ip("link set right up");
    if !made {
        skip(Capability::Root, "a network namespace with a veth pair can't be made");
    }
    made
}

/// Runs `ip` with these arguments. Returns whether it succeeded.
fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).output().is_ok_and(|output| output.status.success())
}

fn reader(snap: usize, memory: usize) -> PacketSocket {
    let settings =
        PacketSocketSettings { promiscuous: true, snap, receive: memory, ..PacketSocketSettings::default() };
    PacketSocket::open("right", settings).unwrap()
}

fn writer() -> PacketSocket {
    PacketSocket::open("left", PacketSocketSettings::default()).unwrap()
}

fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![number as u8; length];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Receives `count` frames of this test, each with the number of bytes that were truncated.
fn receive(reader: &mut PacketSocket, count: usize) -> Vec<(Vec<u8>, usize)> {
    let (start, mut came) = (Instant::now(), Vec::new());
    while came.len() < count && start.elapsed() < TIMEOUT {
        reader.receive(usize::MAX, |received| {
            let mut frame = vec![0; received.length()];
            assert!(received.copy_to(&mut frame));
            if frame[12..14] == [0x88, 0xb5] || frame[12..14] == [0x81, 0] {
                // Frames that the kernel sends on its own have another type.
                assert!(received.time.0 > 1_000_000_000 && received.packet_type == 3, "{received:?}");
                came.push((frame, received.cut));
            }
        });
    }
    came
}

/// Sends all frames, and waits for room. Returns the indices of the frames that were refused.
fn send(writer: &PacketSocket, frames: &[Vec<u8>]) -> Vec<usize> {
    let (mut at, mut refused) = (0, Vec::new());
    let start = Instant::now();
    while at < frames.len() {
        assert!(start.elapsed() < TIMEOUT, "no room");
        let SendOutcome { frames: sent, error } = writer.send(frames[at..].iter().map(Vec::as_slice));
        at += sent;
        if let Some(error) = error {
            assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE), "{error}");
            refused.push(at);
            at += 1;
        }
    }
    refused
}

#[test]
fn frames_of_all_lengths_cross_intact() {
    if !joined_interfaces() {
        return;
    }
    // One block: the ring wraps around repeatedly.
    let (mut reader, writer) = (reader(2048, 1), writer());
    for round in 0..40 {
        let frames: Vec<_> = (0..20).map(|n| frame(round * 20 + n, 60 + (n as usize * 163) % 1455)).collect();
        assert!(send(&writer, &frames).is_empty());
        let expected: Vec<_> = frames.into_iter().map(|frame| (frame, 0)).collect();
        assert_eq!(receive(&mut reader, 20), expected, "round {round}");
    }
    assert_eq!(reader.take_dropped(), 0);
    // No frame is left, except those that the kernel may send on its own at any time.
    let start = Instant::now();
    while reader.has_frame() {
        assert!(start.elapsed() < TIMEOUT, "the ring is never empty");
        reader.receive(usize::MAX, |received| {
            let mut frame = vec![0; received.length()];
            received.copy_to(&mut frame);
            assert_ne!(frame[12..14], [0x88, 0xb5]);
        });
    }
}

#[test]
fn vlan_tags_are_restored_and_long_frames_truncated() {
    if !joined_interfaces() {
        return;
    }
    let (mut reader, writer) = (reader(100, 1), writer());
    let mut tagged = frame(1, 60);
    tagged.splice(12..12, [0x81, 0, 0x60, 9]);
    let frames = [tagged.clone(), frame(2, 101), frame(3, 1000)];
    assert!(send(&writer, &frames).is_empty());
    let came = receive(&mut reader, 3);
    let cut = |frame: &Vec<u8>| frame[..100].to_vec();
    assert_eq!(came, [(tagged, 0), (cut(&frames[1]), 1), (cut(&frames[2]), 900)]);
}

#[test]
fn only_frames_too_long_for_the_interface_are_refused() {
    if !joined_interfaces() {
        return;
    }
    let (mut reader, writer) = (reader(2048, 1 << 20), writer());
    // The fourth would just fit if it had a tag.
    let frames: Vec<_> =
        [(0, 60), (1, 4000), (2, 61), (3, 1515), (4, 62)].map(|(n, length)| frame(n, length)).into();
    assert_eq!(send(&writer, &frames), [1, 3]);
    let expected: Vec<_> = [0, 2, 4].map(|n: usize| (frames[n].clone(), 0)).into();
    assert_eq!(receive(&mut reader, 3), expected);
}

/// The port drops them, and says which they were; those behind them are sent, single and joined ones.
#[test]
fn a_port_counts_frames_that_are_too_long_for_its_interface() {
    if !joined_interfaces() {
        return;
    }
    let (mut reader, mut port) = (reader(2048, 1 << 20), AfPacket::open("left").unwrap());
    // The first ones are not looked at for flows, and the others are.
    for lengths in [[60, 1515, 61, 62], [1514, 2048, 1515, 900]] {
        let frames: Vec<_> = (0..).zip(lengths).map(|(number, length)| frame(number, length)).collect();
        let mut batch = Batch::new(4);
        assert!(frames.iter().all(|frame| batch.push(frame)));
        let fit = |length: &usize| *length <= 1514;
        let sent = Sent {
            frames: lengths.iter().filter(|length| fit(length)).count() as u64,
            too_big: lengths.iter().filter(|length| !fit(length)).count() as u64,
            bytes: lengths.iter().filter(|length| fit(length)).sum::<usize>() as u64,
            ..Sent::default()
        };
        assert_eq!(port.send(&batch, &[0, 1, 2, 3]).unwrap(), sent);
        let skipped = (0..).zip(lengths).filter(|(_, length)| !fit(length)).map(|(number, _)| number);
        assert_eq!(port.skipped(), skipped.collect::<Vec<u32>>());
        let expected: Vec<_> =
            frames.into_iter().filter(|frame| fit(&frame.len())).map(|frame| (frame, 0)).collect();
        assert_eq!(receive(&mut reader, expected.len()), expected);
    }
    // While the interface is down, nothing is sent.
    assert!(ip("link set left down"));
    let mut batch = Batch::new(1);
    batch.push(&frame(9, 60));
    assert_eq!(port.send(&batch, &[0]).unwrap(), Sent { down: true, ..Sent::default() });
    assert_eq!(port.skipped(), [0]);
}

#[test]
fn frames_that_find_the_ring_full_are_counted() {
    if !joined_interfaces() {
        return;
    }
    let (mut reader, writer) = (reader(2048, 1), writer());
    let frames: Vec<_> = (0..500).map(|n| frame(n, 60)).collect();
    assert!(send(&writer, &frames).is_empty());
    let start = Instant::now();
    let mut lost = 0;
    let mut came = Vec::new();
    // The kernel's own frames may be among those lost.
    while came.len() + lost < 500 && start.elapsed() < TIMEOUT {
        lost += reader.take_dropped() as usize;
        reader.receive(usize::MAX, |received| {
            let mut frame = vec![0; received.length()];
            received.copy_to(&mut frame);
            came.push(frame);
        });
    }
    let ours: Vec<_> = came.into_iter().filter(|frame| frame[12..14] == [0x88, 0xb5]).collect();
    assert!(
        lost > 0 && !ours.is_empty() && ours[..] == frames[..ours.len()],
        "{lost} lost, {} came",
        ours.len()
    );
}

#[test]
fn a_socket_works_again_when_its_interface_is_up() {
    if !joined_interfaces() {
        return;
    }
    let (mut reader, writer) = (reader(2048, 1), writer());
    assert!(send(&writer, &[frame(0, 60)]).is_empty());
    assert_eq!(receive(&mut reader, 1).len(), 1);
    assert!(ip("link set left down"));
    let SendOutcome { frames, error } = writer.send([&frame(1, 60)[..]]);
    assert_eq!((frames, error.and_then(|error| error.raw_os_error())), (0, Some(libc::ENETDOWN)));
    assert!(ip("link set right down"));
    let error = reader.take_error().and_then(|error| error.raw_os_error());
    assert_eq!((error, reader.take_error().is_some()), (Some(libc::ENETDOWN), false));
    assert!(ip("link set right up") && ip("link set left up"));
    // The kernel takes a moment to pass frames after an interface comes up; frames sent before are lost.
    let start = Instant::now();
    let mut came = 0;
    while came == 0 {
        assert!(start.elapsed() < TIMEOUT, "the interface does not go on");
        writer.send([&frame(2, 60)[..]]);
        reader.receive(usize::MAX, |_| came += 1);
    }
}

/// A new interface of the same name is a different one: the port must be reopened, and reports this from any call.
#[test]
fn a_port_is_down_when_its_interface_is_removed() {
    if !joined_interfaces() {
        return;
    }
    let mut batch = Batch::new(8);
    batch.push(&frame(0, 60));
    let mut ports: Vec<AfPacket> = (0..3).map(|_| AfPacket::open("left").unwrap()).collect();
    assert!(ip("link set left down") && ports[0].prepare_sleep().is_ok());
    assert!(ip("link set left up") && !reader(2048, 1).is_gone());
    assert!(ip("link del left") && ip("link add left type veth peer name right"));
    let code = |error: Option<DriverError>| match error {
        Some(DriverError::System(error)) => error.raw_os_error(),
        _ => None,
    };
    assert_eq!(code(ports[0].prepare_sleep().err()), Some(libc::ENODEV));
    assert_eq!(code(ports[1].send(&batch, &[0]).err()), Some(libc::ENODEV));
    assert!(ports[2].receive(&mut Batch::new(8)).is_ok());
    ports[2].take_missed();
    assert_eq!(code(ports[2].receive(&mut Batch::new(8)).err()), Some(libc::ENODEV));
}

/// Waits until a port has a state: the kernel notices a carrier a moment later.
fn becomes(port: &dyn Driver, expected: &LinkState) {
    let start = Instant::now();
    while port.link_state().as_ref() != Some(expected) {
        assert!(start.elapsed() < TIMEOUT, "{:?}, not {expected:?}", port.link_state());
        std::thread::yield_now();
    }
}

#[test]
fn a_port_tells_whether_its_interface_has_a_carrier() {
    if !joined_interfaces() {
        return;
    }
    let waiting = |why: &str| LinkState::Waiting(why.into());
    let port = AfPacket::open("left").unwrap();
    becomes(&port, &LinkState::Up);
    assert!(ip("link set right down"));
    becomes(&port, &waiting("left has no carrier: its cable or its other end is disconnected or down"));
    assert!(ip("link set right up"));
    becomes(&port, &LinkState::Up);
    assert!(ip("link set left down"));
    becomes(&port, &waiting("left is down: ip link set left up"));
    // An MTU that is raised after the port was made, and one that is too great from the start.
    assert!(ip("link set left up mtu 9000"));
    let why =
        "left has an MTU of 9000, and longer frames than 2048 bytes are dropped: ip link set left mtu 1500";
    becomes(&port, &LinkState::Limited(why.into()));
    assert_eq!(AfPacket::open("left").unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    assert!(ip("link del left"));
    assert!(matches!(port.link_state(), Some(LinkState::Gone(_))));

    let port = Tap::open("tap0").unwrap();
    becomes(&port, &LinkState::Up);
    assert!(ip("link set tap0 down"));
    becomes(&port, &waiting("tap0 is down: ip link set tap0 up"));
    assert!(ip("link set tap0 up mtu 2035"));
    becomes(&port, &LinkState::Up);
    assert_eq!(Tap::open("tap0").unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    assert!(ip("link del tap0"));
    assert!(matches!(port.link_state(), Some(LinkState::Gone(_))));
}

/// The kernel would take the frames, and drop them without a word.
#[test]
fn frames_for_an_interface_without_a_carrier_are_not_sent() {
    if !joined_interfaces() {
        return;
    }
    let mut batch = Batch::new(8);
    batch.push(&frame(0, 60));
    let (sent, down) =
        (Sent { frames: 1, bytes: 60, ..Sent::default() }, Sent { down: true, ..Sent::default() });
    let mut ports: Vec<AfPacket> = (0..2).map(|_| AfPacket::open("left").unwrap()).collect();
    becomes(&ports[0], &LinkState::Up);
    ports.iter_mut().for_each(|port| assert_eq!(port.send(&batch, &[0]).unwrap(), sent));
    assert!(ip("link set right down"));
    let why = "left has no carrier: its cable or its other end is disconnected or down";
    becomes(&ports[0], &LinkState::Waiting(why.into()));
    // A busy port notices it after some calls, one that sleeps between frames no later.
    for (port, sleeps) in ports.iter_mut().zip([false, true]) {
        let mut is_lost = || {
            assert!(!sleeps || port.prepare_sleep().is_ok());
            port.send(&batch, &[0]).unwrap().down
        };
        let until_lost = (0..100).take_while(|_| !is_lost()).count();
        assert!(until_lost == 16 || (sleeps && until_lost < 16), "{sleeps}: {until_lost}");
        assert_eq!(port.send(&batch, &[0]).unwrap(), down);
    }
    assert!(ip("link set right up"));
    becomes(&ports[0], &LinkState::Up);
    ports.iter_mut().for_each(|port| assert_eq!(port.send(&batch, &[0]).unwrap(), sent));
}

#[test]
fn a_missing_interface_is_an_error() {
    for device in ["none-such", "a/b", ""] {
        assert!(PacketSocket::open(device, PacketSocketSettings::default()).is_err(), "{device}");
    }
}

/// Receives UDP datagrams until `bytes` bytes of payload have arrived, verifies their checksums, and returns their
/// payloads.
fn receive_datagrams(port: &mut AfPacket, batch: &mut Batch, bytes: usize) -> Vec<Vec<u8>> {
    let (start, mut came, mut left) = (Instant::now(), Vec::new(), bytes);
    while left > 0 && start.elapsed() < TIMEOUT {
        batch.clear();
        assert_eq!(port.receive(batch).unwrap(), switch::driver::Received::default());
        for frame in batch.frames().filter(|frame| frame[12..14] == [8, 0] && frame[23] == 17) {
            let address =
                |at: usize| std::net::Ipv4Addr::new(frame[at], frame[at + 1], frame[at + 2], frame[at + 3]);
            let segment = &frame[34..];
            let sum = packet::checksum::Sum::ZERO.pseudo4(address(26), address(30), 17, segment.len() as u16);
            assert_eq!((sum.bytes(segment).finish(), packet::checksum::internet(&frame[14..34])), (0, 0));
            left = left.saturating_sub(segment.len() - 8);
            came.push(segment[8..].to_vec());
        }
    }
    came
}

#[test]
fn offloaded_checksums_and_segmentation_are_done() {
    if !joined_interfaces() {
        return;
    }
    assert!(ip("addr add 10.0.0.1/24 dev left"));
    assert!(ip("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev left"));
    let mut port = AfPacket::open("right").unwrap();
    let socket = std::net::UdpSocket::bind("10.0.0.1:0").unwrap();
    socket.connect("10.0.0.2:9").unwrap();
    // Checksums of a local sender's packets are left to the network card.
    let mut batch = Batch::new(64);
    for length in [1, 2, 18, 777, 1472] {
        let data: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
        assert_eq!(socket.send(&data).unwrap(), length);
        assert_eq!(receive_datagrams(&mut port, &mut batch, length), [data]);
    }
    // So is segmentation; a batch may have less room than a frame has packets.
    let size = 1000i32;
    // SAFETY: the kernel reads one integer.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const size).cast(), 4)
    };
    assert_eq!(set, 0);
    for room in [64, 7, 1] {
        let mut batch = Batch::new(room);
        let data: Vec<u8> = (0..50_123).map(|byte| (byte / 100) as u8).collect();
        assert_eq!(socket.send(&data).unwrap(), data.len());
        let expected: Vec<Vec<u8>> = data.chunks(1000).map(<[u8]>::to_vec).collect();
        assert_eq!(receive_datagrams(&mut port, &mut batch, data.len()), expected);
    }
}

/// Datagrams of a flow that leave together reach a socket of the kernel unchanged, and as one if the socket takes joined ones.
#[test]
fn datagrams_are_joined_for_the_kernel() {
    if !joined_interfaces() {
        return;
    }
    assert!(ip("link set left address 02:00:00:00:00:02") && ip("addr add 10.0.0.1/24 dev left"));
    assert!(ip("neigh add 10.0.0.2 lladdr 02:00:00:00:00:01 dev left"));
    let mut port = AfPacket::open("right").unwrap();
    let socket = std::net::UdpSocket::bind("10.0.0.1:9").unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let addresses = [2, 1].map(|last| std::net::Ipv4Addr::new(10, 0, 0, last));
    let datagram = |number: u16, length: usize| {
        let total = 28 + length as u16;
        let [[t0, t1], [n0, n1], [l0, l1]] = [total, number, total - 20].map(u16::to_be_bytes);
        let mut ip = [0x45, 0, t0, t1, n0, n1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
        let sum = packet::checksum::internet(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut udp = vec![0, 7, 0, 9, l0, l1, 0, 0];
        udp.resize(8 + length, number as u8);
        let pseudo = packet::checksum::Sum::ZERO.pseudo4(addresses[0], addresses[1], 17, total - 20);
        let sum = pseudo.bytes(&udp).finish();
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], &ip[..], &udp].concat()
    };
    let frames: Vec<Vec<u8>> =
        (0..20).map(|number| datagram(number, if number < 19 { 1000 } else { 77 })).collect();
    send_by(&mut port, &frames);
    let mut buffer = vec![0; 1 << 16];
    for frame in &frames {
        let length = socket.recv(&mut buffer).unwrap();
        assert!(buffer[..length] == frame[42..]);
    }
    let on = 1i32;
    // SAFETY: the kernel reads one integer.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, (&raw const on).cast(), 4)
    };
    assert_eq!(set, 0);
    send_by(&mut port, &frames);
    let whole: Vec<u8> = frames.iter().flat_map(|frame| frame[42..].to_vec()).collect();
    let mut came = Vec::new();
    let mut calls = 0;
    while came.len() < whole.len() {
        let length = socket.recv(&mut buffer).unwrap();
        came.extend_from_slice(&buffer[..length]);
        calls += 1;
    }
    assert!(came == whole);
    // Before Linux 6.2, the kernel refuses joined datagrams, and each came by itself.
    assert!(calls == 1 || (calls == frames.len() && !takes_datagrams()), "{calls}");
}

/// Whether the kernel takes joined datagrams: since Linux 6.2.
fn takes_datagrams() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 2)
}

/// A UDP datagram of a flow from `left` to `right`, or back.
fn datagram(flow: u16, back: bool) -> Vec<u8> {
    let mut frame = vec![0; 60];
    let (hosts, ports) = if back { ([2, 1], [9, flow]) } else { ([1, 2], [flow, 9]) };
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, hosts[0], 10, 0, 0, hosts[1]]);
    frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
    frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
    frame[38..40].copy_from_slice(&26u16.to_be_bytes());
    frame
}

/// Opens `right` with this number of sockets that share its frames.
fn group(count: usize) -> Vec<AfPacket> {
    let mut ports = sockets(count);
    // Without threads, the kernel divides by a hash of its own.
    assert!(ports.iter_mut().all(|port| port.prepare_sleep().is_ok()));
    ports
}

/// Opens `right` with sockets that are in no group yet.
fn sockets(count: usize) -> Vec<AfPacket> {
    let descriptors = (0..count).map(|_| AfPacket::open_descriptor("right").unwrap()).collect();
    AfPacket::from_descriptors(descriptors).unwrap()
}

/// Receives datagrams at all ports until there are `count`. Returns them by port.
fn receive_shares(ports: &mut [AfPacket], count: usize) -> Vec<Vec<Vec<u8>>> {
    let (start, mut shares) = (Instant::now(), vec![Vec::new(); ports.len()]);
    while shares.iter().map(Vec::len).sum::<usize>() < count {
        for (port, share) in ports.iter_mut().zip(&mut shares) {
            let mut batch = Batch::new(64);
            port.receive(&mut batch).unwrap();
            let ours = batch.frames().filter(|frame| frame[12..14] == [8, 0] && frame[23] == 17);
            share.extend(ours.map(<[u8]>::to_vec));
        }
        assert!(start.elapsed() < TIMEOUT, "{:?}", shares.iter().map(Vec::len).collect::<Vec<_>>());
    }
    shares
}

fn send_by(port: &mut AfPacket, frames: &[Vec<u8>]) {
    let mut batch = Batch::new(frames.len());
    assert!(frames.iter().all(|frame| batch.push(frame)));
    let numbers: Vec<u32> = (0..frames.len() as u32).collect();
    assert_eq!(port.send(&batch, &numbers).unwrap().frames, frames.len() as u64);
}

#[test]
fn sockets_of_a_group_share_the_flows_of_an_interface() {
    if !joined_interfaces() {
        return;
    }
    let mut ports = group(3);
    assert!(ports.iter().all(|port| port.queues() == 1));
    let mut left = AfPacket::open("left").unwrap();
    let flows: Vec<_> = (1000..1300).map(|flow| datagram(flow, false)).collect();
    send_by(&mut left, &flows);
    let there = receive_shares(&mut ports, 300);
    assert!(
        there.iter().all(|share| share.len() > 50),
        "{:?}",
        there.iter().map(Vec::len).collect::<Vec<_>>()
    );
    // Each frame came once, and the other direction of a flow takes the same way.
    let back: Vec<_> = (1000..1300).map(|flow| datagram(flow, true)).collect();
    send_by(&mut left, &back);
    let back = receive_shares(&mut ports, 300);
    let flow = |frame: &Vec<u8>, at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let mut all = Vec::new();
    for (there, back) in there.iter().zip(&back) {
        let [there, back] = [(there, 34), (back, 36)].map(|(share, at)| {
            let mut flows: Vec<u16> = share.iter().map(|frame| flow(frame, at)).collect();
            flows.sort_unstable();
            flows
        });
        assert_eq!(there, back);
        all.extend(there);
    }
    all.sort_unstable();
    assert!(all.into_iter().eq(1000..1300));
    // Each socket sends. What a member or the host sends comes back to none of them.
    let mut host = AfPacket::open("right").unwrap();
    ports.iter_mut().for_each(|port| send_by(port, &flows[..50]));
    send_by(&mut host, &flows[..50]);
    assert_eq!(receive_shares(std::slice::from_mut(&mut left), 200)[0].len(), 200);
    send_by(&mut left, &flows[..1]);
    let shares = receive_shares(&mut ports, 1);
    assert_eq!(shares.concat(), flows[..1]);
    assert_eq!(ports.iter_mut().map(|port| port.take_missed()).sum::<u64>(), 0);
}

/// A driver that keeps a copy of what it receives.
struct Observed<D> {
    driver: D,
    thread: usize,
    seen: Sender<(usize, Vec<u8>)>,
}

impl<D: Driver> Driver for Observed<D> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let before = batch.len();
        let received = self.driver.receive(batch)?;
        for frame in batch.frames().skip(before) {
            self.seen.send((self.thread, frame.to_vec())).unwrap();
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.driver.send(batch, frames)
    }

    fn set_thread(&mut self, spread: Spread, thread: usize) {
        self.thread = thread;
        self.driver.set_thread(spread, thread);
    }
}

/// The kernel gives each thread the frames of its flows, with one socket for each thread and with fewer, also after the
/// interface was down.
#[test]
fn frames_are_received_by_the_threads_of_their_flows() {
    if !joined_interfaces() {
        return;
    }
    // Without tags, with one that the kernel removes, and with two of which it leaves one.
    let tagged = |tags: usize, flow: u16, back: bool| {
        let mut frame = datagram(flow, back);
        (0..tags).for_each(|_| drop(frame.splice(12..12, [0x81, 0, 0, 5])));
        frame
    };
    for (threads, queues) in [(2, 2), (3, 3), (3, 2)] {
        let bridge = || ForwardingMode::Learning(LearningBridge::new(LearningSettings::default()));
        let mut switch = Shards::new(bridge(), (1..threads).map(|_| bridge()).collect(), 77).unwrap();
        let (seen, came) = channel();
        let observe =
            |driver| Box::new(Observed { driver, thread: 0, seen: seen.clone() }) as Box<dyn Driver>;
        let port = switch
            .add_port(sockets(queues).into_iter().map(observe).collect(), &PortSettings::default())
            .unwrap();
        let mut left = AfPacket::open("left").unwrap();
        for round in 0..2 {
            let flows: Vec<_> =
                (1000..1400).map(|flow| tagged(usize::from(flow % 3), flow, flow % 2 == 0)).collect();
            send_by(&mut left, &flows);
            let (start, mut counts) = (Instant::now(), vec![0; threads]);
            while counts.iter().sum::<usize>() < 400 {
                while switch.shards_mut().map(SwitchRunner::step).sum::<usize>() > 0 {}
                // The kernel's own frames come too.
                for (thread, frame) in came.try_iter().filter(|(_, frame)| flows.contains(frame)) {
                    let owner = switch.shard_of(&frame);
                    assert!(thread == owner || owner >= queues, "{thread} received a frame of {owner}");
                    counts[owner] += 1;
                }
                assert!(start.elapsed() < TIMEOUT, "{counts:?}");
            }
            assert!(counts.iter().all(|count| *count > 400 / threads / 2), "{counts:?}");
            if round == 0 {
                assert!(ip("link set right down") && ip("link set right up"));
                wait_for_frames(&mut left, &mut switch, &came);
            }
        }
        let counters = switch.counters(port).unwrap();
        assert!(
            counters.received_frames > 800
                && REASONS.iter().map(|reason| counters.dropped(*reason)).sum::<u64>()
                    == counters.received_frames
        );
    }
}

/// The kernel learns from what is sent by which queue each flow belongs to, and the other direction comes by the same.
#[test]
fn the_queues_of_a_tap_receive_the_flows_of_their_threads() {
    if !joined_interfaces() {
        return;
    }
    let first = match Tap::open_first_queue("tap0") {
        Ok(first) => first,
        Err(error) => return skip(Capability::Root, format!("TAP device: {error}")),
    };
    let queues = Tap::add_queues(first, "tap0", 3).unwrap();
    assert_eq!(queues.len(), 3);
    let bridge = || ForwardingMode::Learning(LearningBridge::new(LearningSettings::default()));
    let mut switch = Shards::new(bridge(), (1..3).map(|_| bridge()).collect(), 77).unwrap();
    let (seen, came) = channel();
    let taps = queues.into_iter().map(|queue| {
        let driver = Tap::from_descriptor(queue).unwrap();
        Box::new(Observed { driver, thread: 0, seen: seen.clone() }) as Box<dyn Driver>
    });
    switch.add_port(taps.collect(), &PortSettings::default()).unwrap();
    let others = sockets(3).into_iter().map(|socket| Box::new(socket) as Box<dyn Driver>);
    switch.add_port(others.collect(), &PortSettings::default()).unwrap();
    let mut host = AfPacket::open("tap0").unwrap();
    let mut left = AfPacket::open("left").unwrap();
    let there: Vec<_> = (1000..1300).map(|flow| datagram(flow, false)).collect();
    let back: Vec<_> = (1000..1300).map(|flow| datagram(flow, true)).collect();
    send_by(&mut left, &there);
    let start = Instant::now();
    let mut found = 0;
    while found < there.len() {
        while switch.shards_mut().map(SwitchRunner::step).sum::<usize>() > 0 {}
        let mut batch = Batch::new(64);
        host.receive(&mut batch).unwrap();
        found += batch.frames().filter(|frame| there.iter().any(|sent| sent == frame)).count();
        assert!(start.elapsed() < TIMEOUT, "{found}");
    }
    send_by(&mut host, &back);
    let mut counts = [0; 3];
    while counts.iter().sum::<usize>() < back.len() {
        while switch.shards_mut().map(SwitchRunner::step).sum::<usize>() > 0 {}
        for (thread, frame) in came.try_iter().filter(|(_, frame)| back.contains(frame)) {
            assert_eq!(switch.shard_of(&frame), thread);
            counts[thread] += 1;
        }
        assert!(start.elapsed() < TIMEOUT, "{counts:?}");
    }
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    // A device that has several queues can be opened with one, and one for a single queue has no second one.
    let single = Tap::open_descriptor("tap1").unwrap();
    assert_eq!(Tap::add_queues(single, "tap1", 2).unwrap().len(), 1);
    assert!(ip("tuntap add tap2 mode tap") && ip("tuntap add tap3 mode tap multi_queue"));
    let single = Tap::open_first_queue("tap2").unwrap();
    assert_eq!(Tap::add_queues(single, "tap2", 2).unwrap().len(), 1);
    assert_eq!(Tap::open("tap3").unwrap().queues(), 1);
}

/// Sends until frames pass again: the kernel takes a moment after an interface comes up.
fn wait_for_frames(
    left: &mut AfPacket,
    switch: &mut Shards<ForwardingMode>,
    came: &Receiver<(usize, Vec<u8>)>,
) {
    let (start, probe) = (Instant::now(), frame(1, 64));
    while !came.try_iter().any(|(_, frame)| frame == probe) {
        let mut batch = Batch::new(1);
        batch.push(&probe);
        left.send(&batch, &[0]).unwrap();
        switch.shards_mut().for_each(|shard| {
            shard.step();
        });
        assert!(start.elapsed() < TIMEOUT, "the interface does not go on");
    }
}

/// The interface goes down and comes up, and is removed.
#[test]
fn a_group_follows_its_interface() {
    if !joined_interfaces() {
        return;
    }
    assert!(ip("link set right down"));
    let mut ports = group(2);
    assert!(ports.iter_mut().all(|port| port.prepare_sleep().is_ok()));
    let mut left = AfPacket::open("left").unwrap();
    let flows: Vec<_> = (1000..1200).map(|flow| datagram(flow, false)).collect();
    for _ in 0..2 {
        assert!(ip("link set right up"));
        // The kernel takes a moment to pass frames after an interface comes up.
        let start = Instant::now();
        let mut came = 0;
        while came == 0 {
            let mut batch = Batch::new(1);
            batch.push(&flows[0]);
            left.send(&batch, &[0]).unwrap();
            for port in &mut ports {
                // Before Linux 6.13, the sockets join their group only now.
                assert!(port.prepare_sleep().is_ok());
                let mut batch = Batch::new(64);
                port.receive(&mut batch).unwrap();
                came += batch.len();
            }
            assert!(start.elapsed() < TIMEOUT, "the interface does not go on");
        }
        // Frames of the loop above may still be on their way.
        send_by(&mut left, &flows[1..]);
        let expected: std::collections::BTreeSet<_> = flows[1..].iter().cloned().collect();
        let (start, mut found) = (Instant::now(), [Vec::new(), Vec::new()]);
        while found.concat().len() < 199 {
            for (port, found) in ports.iter_mut().zip(&mut found) {
                let mut batch = Batch::new(64);
                port.receive(&mut batch).unwrap();
                found.extend(batch.frames().map(<[u8]>::to_vec).filter(|frame| expected.contains(frame)));
            }
            assert!(start.elapsed() < TIMEOUT, "{:?}", found.map(|share| share.len()));
        }
        assert!(found.iter().all(|share| share.len() > 40));
        assert_eq!(found.concat().into_iter().collect::<std::collections::BTreeSet<_>>(), expected);
        assert!(ip("link set right down"));
    }
    assert!(ip("link del left"));
    let code = |error: DriverError| match error {
        DriverError::System(error) => error.raw_os_error(),
        _ => None,
    };
    for port in &mut ports {
        port.take_missed();
        assert_eq!(code(port.receive(&mut Batch::new(8)).unwrap_err()), Some(libc::ENODEV));
    }
}
