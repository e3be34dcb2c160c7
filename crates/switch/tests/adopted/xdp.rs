//! XDP sockets on veth pairs, opened by one process and used by another one.

use super::{TIMEOUT, drop_capabilities, ip, own_network};
use reason::Reason;
use std::fs;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use switch::driver::{
    AfPacket, AfXdp, LinkState, Pipe, Sent, XdpError, XdpInterface, XdpSource, pass_frames,
};
use switch::{Batch, Counters, Driver, PortSettings, StaticTable, SwitchRunner};
use test_support::{Capability, skip};

/// Frames in each direction for which a port has buffers.
const BUFFERS: usize = 2048;

/// Moves this thread into a new network namespace with the veth pair `left`, `right`, which is up and sends nothing on its own.
/// Returns false if the test is skipped.
fn own_pair(queues: u32) -> bool {
    if !own_network() {
        return false;
    }
    fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    let size = format!("numrxqueues {queues} numtxqueues {queues}");
    assert!(ip(&format!("link add left {size} type veth peer name right {size}")));
    assert!(ip("link set left up") && ip("link set right up"));
    true
}

/// Opens `left`, or says why the test is skipped: the kernel knows no XDP sockets.
fn open_left(queues: Option<u32>) -> Option<AfXdp> {
    let start = Instant::now();
    loop {
        match AfXdp::open("left", queues) {
            Ok(port) => return Some(port),
            // What was just closed is free soon: a program that another test starts has its descriptors for a moment.
            Err(XdpError::Socket(error) | XdpError::Program(error))
                if error.raw_os_error() == Some(libc::EBUSY) =>
            {
                assert!(start.elapsed() < TIMEOUT, "the device stays busy");
                std::thread::yield_now();
            }
            Err(XdpError::Socket(error)) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
                skip(Capability::Root, "the kernel has no XDP sockets");
                return None;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// A UDP datagram over IPv4 from this port. Its checksum is left out.
fn datagram(port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9, 0, 26, 0, 0]);
    frame.resize(60, 7);
    frame
}

fn datagrams(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| datagram(number as u16)).collect()
}

/// Sends frames, and returns how many the driver took.
fn send(driver: &mut dyn Driver, frames: &[Vec<u8>]) -> u64 {
    let mut batch = Batch::new(frames.len());
    assert!(frames.iter().all(|frame| batch.push(frame)));
    driver.send(&batch, &(0..frames.len() as u32).collect::<Vec<_>>()).unwrap().frames
}

/// Receives until there are `count` frames.
fn receive(driver: &mut dyn Driver, count: usize) -> Vec<Vec<u8>> {
    let (start, mut frames) = (Instant::now(), Vec::new());
    while frames.len() < count {
        let mut batch = Batch::new(256);
        let received = driver.receive(&mut batch).unwrap();
        assert_eq!((received.long, received.faulty, received.refused.total()), (0, 0, 0));
        frames.extend(batch.frames().map(<[u8]>::to_vec));
        assert!(start.elapsed() < TIMEOUT, "{} of {count} frames arrived", frames.len());
    }
    frames
}

/// Whether the driver's descriptor becomes readable within this time.
fn wakes(driver: &dyn Driver, timeout: Duration) -> bool {
    let descriptor = driver.descriptor().unwrap().as_raw_fd();
    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry.
    unsafe { libc::poll(&mut poll, 1, timeout.as_millis() as i32) > 0 }
}

fn is_attached() -> bool {
    let output = std::process::Command::new("ip").args(["link", "show", "left"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().contains("xdp")
}

/// Whether no program is attached any more soon: one that another test starts has the descriptors for a moment.
fn gets_detached() -> bool {
    let start = Instant::now();
    while is_attached() {
        if start.elapsed() > TIMEOUT {
            return false;
        }
    }
    true
}

#[test]
fn an_xdp_port_needs_no_privileges() {
    if !own_pair(1) {
        return;
    }
    let Some(port) = open_left(None) else { return };
    drop(port);
    assert!(gets_detached());
    // The program is attached before the other process has anything.
    let start = Instant::now();
    let descriptors = loop {
        match AfXdp::open_descriptors("left", None, 1) {
            Ok(descriptors) => break descriptors,
            Err(error) => assert!(start.elapsed() < TIMEOUT, "{error:?}"),
        }
    };
    assert!(is_attached());
    let mut far = AfPacket::open("right").unwrap();
    let without_privileges = std::thread::spawn(move || {
        drop_capabilities();
        assert!(matches!(AfXdp::open("left", None), Err(XdpError::Device(_))));
        let mut port = AfXdp::from_descriptors(descriptors).unwrap();
        assert!(!port.is_zero_copy(), "veth copies");
        let (first, second) = (datagrams(3), datagrams(5));
        assert!(port.prepare_sleep().unwrap() && !wakes(&port, Duration::ZERO));
        assert_eq!(send(&mut far, &first), 3);
        assert!(wakes(&port, TIMEOUT) && port.is_ready() && !port.prepare_sleep().unwrap());
        assert_eq!(receive(&mut port, 3), first);
        assert!(!port.is_ready() && !wakes(&port, Duration::ZERO));
        assert_eq!(send(&mut port, &second), 5);
        assert_eq!(receive(&mut far, 5), second);
        assert_eq!((port.take_missed(), port.take_lost()), (0, 0));
    });
    without_privileges.join().unwrap();
    // All descriptors were closed.
    assert!(gets_detached());
}

#[test]
fn a_switch_counts_every_frame_of_an_xdp_port() {
    if !own_pair(1) {
        return;
    }
    let Some(port) = open_left(None) else { return };
    let mut far = AfPacket::open("right").unwrap();
    let mut table = StaticTable::new();
    let mut runner = {
        table.set_default(Some(switch::PortId(1)));
        SwitchRunner::new(table).unwrap()
    };
    let port = runner.add_port(Box::new(port), PortSettings::default()).unwrap();
    let (inside, mut outside) = Pipe::pair().unwrap();
    let other = runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
    let frames = datagrams(200);
    assert_eq!(send(&mut far, &frames), 200);
    let start = Instant::now();
    while runner.counters(port).unwrap().received_frames < 200 {
        runner.step();
        assert!(start.elapsed() < TIMEOUT);
    }
    assert_eq!(receive(&mut outside, 200), frames);
    let came = Counters { received_frames: 200, received_bytes: 12_000, ..Counters::default() };
    let went = Counters { sent_frames: 200, sent_bytes: 12_000, ..Counters::default() };
    assert_eq!((runner.counters(port).unwrap(), runner.counters(other).unwrap()), (came, went));

    // The other way, and then with the device down, and up again.
    runner.switch().forward_mut().set_default(Some(port));
    assert_eq!(send(&mut outside, &frames), 200);
    while runner.step() > 0 {}
    assert_eq!(receive(&mut far, 200), frames);
    assert!(ip("link set left down"));
    assert_eq!(send(&mut outside, &frames[..50]), 50);
    while runner.step() > 0 {}
    assert!(runner.down(port).is_none(), "the port waits for its device");
    assert!(ip("link set left up"));
    assert_eq!(send(&mut outside, &frames[50..60]), 10);
    while runner.step() > 0 {}
    assert_eq!(receive(&mut far, 10), frames[50..60], "what was lost is not sent later");
    let mut expected = Counters { sent_frames: 210, sent_bytes: 12_600, ..came };
    expected.drops[drop_index(Reason::DOWN)] = 50;
    assert_eq!(runner.counters(port).unwrap(), expected);

    // Without a carrier, the kernel would drop them without a word. The port looks for one after some calls.
    let becomes = |runner: &SwitchRunner<StaticTable>, is_up| {
        let start = Instant::now();
        while (runner.link_state(port) == Some(LinkState::Up)) != is_up {
            assert!(start.elapsed() < TIMEOUT, "the carrier is not noticed");
        }
    };
    becomes(&runner, true);
    // Until the port has seen the carrier itself, it takes a missing one for one that the kernel has not reported yet.
    assert_eq!(send(&mut outside, &frames[60..61]), 1);
    while runner.step() > 0 {}
    assert!(ip("link set right down"));
    becomes(&runner, false);
    for frame in &frames[60..100] {
        assert_eq!(send(&mut outside, std::slice::from_ref(frame)), 1);
        while runner.step() > 0 {}
    }
    let counters = runner.counters(port).unwrap();
    let down = counters.drops[drop_index(Reason::DOWN)];
    (expected.sent_frames, expected.sent_bytes) = (211 + 90 - down, 60 * (211 + 90 - down));
    expected.drops[drop_index(Reason::DOWN)] = down;
    assert_eq!(counters, expected);
    assert!((50 + 40 - 16..=50 + 40).contains(&down), "{down}");
    assert!(ip("link set right up"));
    becomes(&runner, true);
    let (before, start) = (expected.sent_frames, Instant::now());
    while runner.counters(port).unwrap().sent_frames == before {
        send(&mut outside, &frames[..1]);
        while runner.step() > 0 {}
        assert!(start.elapsed() < TIMEOUT, "the port does not send again");
    }

    // The device is removed: the port is down, and sleeping runners learn it.
    assert!(ip("link del left"));
    while runner.down(port).is_none() {
        runner.counters(port).unwrap();
        runner.step();
        assert!(start.elapsed() < TIMEOUT, "the removal is not noticed");
    }
    assert!(runner.down(port).unwrap().to_string().contains("No such device"));
    // No frame was lost by that.
    assert_eq!(runner.counters(port).unwrap().drops[drop_index(Reason::FAULTY)], 0);
}

fn drop_index(reason: Reason) -> usize {
    switch::REASONS.into_iter().position(|known| known == reason).unwrap()
}

#[test]
fn a_sleeper_notices_that_its_device_was_removed() {
    if !own_pair(1) {
        return;
    }
    let Some(mut port) = open_left(None) else { return };
    assert!(port.prepare_sleep().unwrap() && !wakes(&port, Duration::ZERO));
    assert!(ip("link del left"));
    assert!(wakes(&port, TIMEOUT));
    assert!(port.prepare_sleep().unwrap_err().to_string().contains("No such device"));
    assert!(port.receive(&mut Batch::new(1)).is_err());
}

/// It gets its frames in the other network namespace, and can be opened again when it comes back, although the port is there.
#[test]
fn a_device_that_moves_away_loses_the_program() {
    if !own_pair(1) {
        return;
    }
    let Some(mut port) = open_left(None) else { return };
    let mut other = std::process::Command::new("unshare").args(["--net", "sleep", "1000"]).spawn().unwrap();
    let network = format!("/proc/{}/ns/net", other.id());
    let own = fs::read_link("/proc/thread-self/ns/net").unwrap();
    let start = Instant::now();
    while fs::read_link(&network).is_ok_and(|found| found == own) {
        assert!(start.elapsed() < TIMEOUT, "there is no other namespace");
    }
    assert!(is_attached() && ip(&format!("link set left netns {}", other.id())));
    assert_eq!(port.take_missed(), 0);
    assert!(port.receive(&mut Batch::new(1)).unwrap_err().to_string().contains("No such device"));
    let there = |words: &str| {
        let mut command = std::process::Command::new("nsenter");
        command.arg(format!("--net={network}")).arg("ip").args(words.split(' '));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    // A program that another test starts has the descriptors for a moment.
    while there("link show left").contains("xdp") {
        assert!(start.elapsed() < TIMEOUT, "the program is still attached");
    }
    // SAFETY: the call has no preconditions.
    let thread = unsafe { libc::gettid() };
    assert!(there("link show left").contains("left"));
    there(&format!("link set left netns {thread}"));
    assert!(ip("link set left up"));
    let (mut again, mut far) = (open_left(None).unwrap(), AfPacket::open("right").unwrap());
    let frames = datagrams(3);
    assert_eq!(send(&mut far, &frames), 3);
    assert_eq!(receive(&mut again, 3), frames);
    assert!(port.receive(&mut Batch::new(1)).is_err());
    other.kill().unwrap();
    other.wait().unwrap();
}

/// The kernel would drop them without a word. An MTU that changes is noticed when counters are asked for.
#[test]
fn frames_that_are_too_long_for_the_device_are_counted() {
    if !own_pair(1) {
        return;
    }
    let Some(mut port) = open_left(None) else { return };
    let mut far = AfPacket::open("right").unwrap();
    for (mtu, lengths, fit) in
        [(1500, vec![60, 1515, 1514, 2048, 61], vec![0, 2, 4]), (1000, vec![1014, 1015, 62], vec![0, 2])]
    {
        assert!(ip(&format!("link set left mtu {mtu}")));
        assert_eq!((port.take_missed(), port.take_lost()), (0, 0));
        let frames: Vec<Vec<u8>> = (0..)
            .zip(&lengths)
            .map(|(number, length)| {
                let mut frame = datagram(number);
                frame.resize(*length, 7);
                frame
            })
            .collect();
        let mut batch = Batch::new(frames.len());
        assert!(frames.iter().all(|frame| batch.push(frame)));
        let expected: Vec<Vec<u8>> = fit.iter().map(|number: &usize| frames[*number].clone()).collect();
        let sent = Sent {
            frames: expected.len() as u64,
            too_big: (frames.len() - expected.len()) as u64,
            bytes: expected.iter().map(|frame| frame.len() as u64).sum(),
            ..Sent::default()
        };
        assert_eq!(port.send(&batch, &(0..frames.len() as u32).collect::<Vec<_>>()).unwrap(), sent);
        let skipped = (0..frames.len() as u32).filter(|number| !fit.contains(&(*number as usize)));
        assert_eq!(port.skipped(), skipped.collect::<Vec<_>>());
        assert_eq!(receive(&mut far, expected.len()), expected);
    }
    // Longer frames than buffers have room for never reach the port, which says so.
    assert!(ip("link set left mtu 1775"));
    let why =
        "left has an MTU of 1775, and longer frames than 1788 bytes are dropped: ip link set left mtu 1500";
    assert_eq!(port.link_state(), Some(LinkState::Limited(why.into())));
    assert!(ip("link set left mtu 1774"));
    assert_eq!(port.link_state(), Some(LinkState::Up));
    assert!(ip("link set left down"));
    assert_eq!(port.link_state(), Some(LinkState::Waiting("left is down: ip link set left up".into())));
}

#[test]
fn a_socket_that_sends_is_watched_only_during_sleep() {
    if !own_pair(1) {
        return;
    }
    let Some(mut port) = open_left(None) else { return };
    let mut far = AfPacket::open("right").unwrap();
    let frames = datagrams(64);
    let few = &frames[..4];
    for (count, is_watched) in [(4, true), (64, false), (4, true)] {
        assert_eq!(send(&mut port, &frames[..count]), count as u64);
        assert_eq!(receive(&mut far, count), frames[..count]);
        assert_eq!(send(&mut far, few), 4);
        let timeout = if is_watched { TIMEOUT } else { Duration::ZERO };
        assert_eq!(wakes(&port, timeout), is_watched, "{count}");
        let start = Instant::now();
        while port.prepare_sleep().unwrap() {
            assert!(start.elapsed() < TIMEOUT, "{count} frames do not arrive");
        }
        assert!(port.is_ready() && wakes(&port, TIMEOUT));
        assert_eq!(receive(&mut port, 4), few);
        assert!(port.prepare_sleep().unwrap() && !wakes(&port, Duration::ZERO));
        assert_eq!(send(&mut far, few), 4);
        assert!(wakes(&port, TIMEOUT));
        assert_eq!(receive(&mut port, 4), few);
    }
    drop(port);
    drop(open_left(None));

    // Without a switch, nothing says when sleep begins.
    let mut interface = XdpInterface::open("left").unwrap();
    interface.start_receiving().unwrap();
    assert_eq!(interface.send(frames.iter().map(Vec::as_slice)).frames, 64);
    assert_eq!(receive(&mut far, 64), frames);
    assert_eq!(send(&mut far, few), 4);
    let descriptor = interface.incoming_descriptor().unwrap();
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry.
    assert_eq!(unsafe { libc::poll(&mut poll, 1, TIMEOUT.as_millis() as i32) }, 1);
}

#[test]
fn the_kernel_makes_frames() {
    if !own_pair(1) {
        return;
    }
    let Some(mut port) = open_left(None) else { return };
    let frame = datagram(7);
    let source = XdpSource::new("right", &frame).unwrap();
    source.send(100).unwrap();
    assert_eq!(receive(&mut port, 100), vec![frame.clone(); 100]);
    assert_eq!((port.take_missed(), port.take_lost()), (0, 0));
    drop(port);
    assert!(gets_detached());

    // The host gets them if the device has a program.
    let mut host = AfPacket::open("left").unwrap();
    let _program = pass_frames("left").unwrap();
    source.send(100).unwrap();
    assert_eq!(receive(&mut host, 100), vec![frame; 100]);
    assert_eq!(host.take_missed(), 0);
    for nothing in ["none", "a\0b"] {
        assert!(matches!(XdpSource::new(nothing, &[0; 64]), Err(XdpError::Device(_))));
        assert!(matches!(pass_frames(nothing), Err(XdpError::Device(_))));
    }
}

#[test]
fn frames_without_room_are_counted() {
    if !own_pair(1) {
        return;
    }
    let Some(mut port) = open_left(None) else { return };
    let mut far = AfPacket::open("right").unwrap();
    let frames = datagrams(BUFFERS + 500);
    for chunk in frames.chunks(250) {
        assert_eq!(send(&mut far, chunk), chunk.len() as u64);
    }
    assert_eq!(receive(&mut port, BUFFERS), frames[..BUFFERS]);
    assert_eq!((port.take_missed(), port.take_missed(), port.take_lost()), (500, 0, 0));
    // The buffers are used again.
    assert_eq!(send(&mut far, &frames[..100]), 100);
    assert_eq!(receive(&mut port, 100), frames[..100]);
    // A port sends as many frames at once as it has buffers; then they are free again.
    for _ in 0..3 {
        assert_eq!(send(&mut port, &frames), BUFFERS as u64);
        let mut came = 0;
        let start = Instant::now();
        while came < BUFFERS {
            came += receive(&mut far, 1).len();
            came += far.take_missed() as usize;
            assert!(start.elapsed() < TIMEOUT);
        }
        assert!(!port.is_crowded());
    }
    assert_eq!((port.take_missed(), port.take_lost()), (0, 0));
}

#[test]
fn a_port_takes_all_queues_or_leaves_the_others_to_the_host() {
    if !own_pair(2) {
        return;
    }
    let Some(mut port) = open_left(None) else { return };
    let mut far = AfPacket::open("right").unwrap();
    let frames = datagrams(64);
    assert_eq!(send(&mut far, &frames), 64);
    let mut came = receive(&mut port, 64);
    came.sort();
    assert_eq!(came, frames);
    drop(port);
    let Some(mut port) = open_left(Some(1)) else { return };
    let mut host = AfPacket::open("left").unwrap();
    assert_eq!(send(&mut far, &frames), 64);
    let (start, mut both) = (Instant::now(), [0, 0]);
    while both[0] + both[1] < 64 {
        for (count, driver) in both.iter_mut().zip([&mut port as &mut dyn Driver, &mut host]) {
            let mut batch = Batch::new(64);
            driver.receive(&mut batch).unwrap();
            *count += batch.len();
        }
        assert!(start.elapsed() < TIMEOUT, "{both:?}");
    }
    assert!(both[0] > 0 && both[1] > 0, "{both:?}");
    drop(port);
    assert!(matches!(AfXdp::open("left", Some(3)), Err(XdpError::Queues(2))));
}

/// Opens all queues of `left` for this number of drivers, or says why the test is skipped.
fn open_for(drivers: usize) -> Option<Vec<AfXdp>> {
    // The queues may still be those of another test's sockets.
    drop(open_left(None)?);
    let start = Instant::now();
    loop {
        match AfXdp::open_descriptors("left", None, drivers) {
            Ok(descriptors) => return Some(AfXdp::divide_descriptors(descriptors, drivers).unwrap()),
            Err(XdpError::Socket(error) | XdpError::Program(error))
                if error.raw_os_error() == Some(libc::EBUSY) =>
            {
                assert!(start.elapsed() < TIMEOUT, "the device stays busy");
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn queues_are_divided_among_drivers() {
    if !own_pair(3) {
        return;
    }
    let Some(mut ports) = open_for(2) else { return };
    assert_eq!(ports.iter().map(|port| port.queues()).collect::<Vec<_>>(), [2, 1]);
    let mut far = AfPacket::open("right").unwrap();
    let frames = datagrams(300);
    assert_eq!(send(&mut far, &frames), 300);
    let (start, mut came) = (Instant::now(), [Vec::new(), Vec::new()]);
    while came.concat().len() < 300 {
        for (port, came) in ports.iter_mut().zip(&mut came) {
            let mut batch = Batch::new(64);
            port.receive(&mut batch).unwrap();
            came.extend(batch.frames().map(<[u8]>::to_vec));
        }
        assert!(start.elapsed() < TIMEOUT, "{:?}", came.map(|came| came.len()));
    }
    assert!(came.iter().all(|came| came.len() > 30), "{:?}", came.map(|came| came.len()));
    let mut came = came.concat();
    came.sort();
    assert_eq!(came, frames);
    // Each sends by itself, and has all of its buffers.
    for port in &mut ports {
        for _ in 0..3 {
            assert_eq!(send(port, &frames[..100]), 100);
            assert_eq!(receive(&mut far, 100), frames[..100]);
        }
        assert!(!port.is_crowded());
    }
    // One of them learns that the device was removed, and so do the others.
    assert!(ports.iter_mut().all(|port| port.prepare_sleep().unwrap()));
    assert!(ip("link del left"));
    assert!(wakes(&ports[0], TIMEOUT));
    for port in &mut ports {
        assert!(port.prepare_sleep().unwrap_err().to_string().contains("No such device"));
        assert!(port.is_ready() && port.receive(&mut Batch::new(1)).is_err());
    }

    // A driver needs a queue to send through.
    assert!(ip(
        "link add left numrxqueues 3 numtxqueues 1 type veth peer name right numrxqueues 3 numtxqueues 3"
    ));
    assert!(ip("link set left up") && ip("link set right up"));
    let Some(ports) = open_for(2) else { return };
    assert_eq!(ports.iter().map(|port| port.queues()).collect::<Vec<_>>(), [3]);
}

#[test]
fn devices_that_cannot_use_xdp_say_why() {
    if !own_pair(1) {
        return;
    }
    let Some(port) = open_left(None) else { return };
    let errno = |result: Result<AfXdp, XdpError>| match result {
        Err(XdpError::Program(error)) => error.raw_os_error(),
        other => panic!("{other:?}"),
    };
    assert_eq!(errno(AfXdp::open("left", None)), Some(libc::EBUSY));
    drop(port);
    assert!(ip("link add bridge type bridge"));
    assert_eq!(errno(AfXdp::open("bridge", None)), Some(libc::EOPNOTSUPP));
    assert!(matches!(AfXdp::open("lo", None), Err(XdpError::Mtu(65536))));
    assert!(matches!(AfXdp::open("none", None), Err(XdpError::Device(_))));
    assert!(matches!(AfXdp::from_descriptors(Vec::new()), Err(XdpError::Descriptors)));
    let packet = AfPacket::open_descriptor("left").unwrap();
    let others = std::array::from_fn::<_, 4, _>(|_| packet.try_clone().unwrap());
    assert!(matches!(AfXdp::from_descriptors(others.into()), Err(XdpError::Descriptors)));
}

/// The host leaves checksums to the device, which leaves them to its other end.
#[test]
fn checksums_that_the_host_left_out_are_filled_in() {
    if !own_pair(1) {
        return;
    }
    let Some(mut port) = open_left(None) else { return };
    assert!(ip("address add 10.0.0.1/24 dev right"));
    assert!(ip("neighbour add 10.0.0.2 dev right lladdr 02:00:00:00:00:02 nud permanent"));
    let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
    socket.send_to(b"some text", "10.0.0.2:9").unwrap();
    let frame = loop {
        let frame = receive(&mut port, 1).remove(0);
        if frame[12..14] == [8, 0] {
            break frame;
        }
    };
    let [from, to] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(std::net::Ipv4Addr::from);
    let pseudo = packet::checksum::Sum::ZERO.pseudo4(from, to, 17, 17);
    assert_eq!(&frame[42..51], b"some text");
    assert_eq!(pseudo.bytes(&frame[34..51]).finish(), 0);
}
