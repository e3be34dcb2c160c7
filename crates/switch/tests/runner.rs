//! A runner with real drivers: pipes, files, and kernel devices where available.

#![allow(unsafe_code, reason = "system calls that no safe interface has")]

use packet::MacAddr;
use std::io::{Cursor, Write};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use switch::driver::{AfPacket, Null, PcapPort, PcapReader, PcapWriter, Pipe, PortSlot, Tap};
use switch::driver::{Received, Sent};
use switch::{
    Batch, CapturedDriver, Captures, Counters, Driver, DriverError, LearningBridge, LearningSettings, PortId,
    PortSettings, Reason, StaticTable, SwitchRunner,
};
use test_support::{Capability, require, skip};

const TIMEOUT: Duration = Duration::from_secs(40);

fn frame(destination: u8, source: u8, number: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, destination]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, source]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..16].copy_from_slice(&number.to_be_bytes());
    frame
}

fn learning() -> SwitchRunner<LearningBridge> {
    SwitchRunner::new(LearningBridge::new(LearningSettings { seed: 7, ..LearningSettings::default() }))
        .unwrap()
}

/// Sends all frames through a driver's other end.
fn send_all(driver: &mut dyn Driver, frames: &[Vec<u8>]) {
    for chunk in frames.chunks(64) {
        let mut batch = Batch::new(64);
        assert!(chunk.iter().all(|frame| batch.push(frame)));
        let numbers: Vec<u32> = (0..chunk.len() as u32).collect();
        assert_eq!(driver.send(&batch, &numbers).unwrap().frames, chunk.len() as u64);
    }
}

fn receive_all(driver: &mut dyn Driver) -> Vec<Vec<u8>> {
    let mut batch = Batch::new(4096);
    driver.receive(&mut batch).unwrap();
    batch.frames().map(<[u8]>::to_vec).collect()
}

#[test]
fn a_bridge_of_pipes_learns_and_counts() {
    let mut runner = learning();
    let mut ends: Vec<Pipe> = (0..3)
        .map(|_| {
            let (inside, outside) = Pipe::pair().unwrap();
            runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
            outside
        })
        .collect();
    let ports: Vec<_> = runner.switch().ports().collect();
    send_all(&mut ends[0], &[frame(2, 1, 0)]);
    assert_eq!(runner.step(), 1);
    assert_eq!(receive_all(&mut ends[1]), receive_all(&mut ends[2]));
    send_all(&mut ends[1], &[frame(1, 2, 1)]);
    runner.step();
    let there: Vec<Vec<u8>> = (0..500).map(|number| frame(2, 1, number)).collect();
    send_all(&mut ends[0], &there);
    while runner.step() > 0 {}
    assert_eq!(receive_all(&mut ends[1]), there);
    assert_eq!(receive_all(&mut ends[0]), [frame(1, 2, 1)]);
    assert!(receive_all(&mut ends[2]).is_empty());
    let counters = *runner.switch().counters(ports[1]).unwrap();
    assert_eq!((counters.received_frames, counters.sent_frames, counters.sent_bytes), (1, 501, 501 * 60));
    assert!(runner.cost(ports[0]).unwrap().visits >= 3);
}

/// The counters of all ports: frames and bytes received and sent, then drops by reason.
fn counters(runner: &mut SwitchRunner<LearningBridge>) -> Vec<Counters> {
    let ports: Vec<_> = runner.switch().ports().collect();
    ports.into_iter().map(|port| runner.counters(port).unwrap()).collect()
}

/// What [`counters`] returns for a port that received and sent so many frames of 60 bytes.
fn expected(received: u64, sent: u64, drops: &[(Reason, u64)]) -> Counters {
    let mut counters = Counters {
        received_frames: received,
        received_bytes: received * 60,
        sent_frames: sent,
        sent_bytes: sent * 60,
        ..Counters::default()
    };
    for (reason, frames) in drops {
        counters.drop(*reason, *frames);
    }
    counters
}

/// An address that was learned at a port is forgotten when the port goes down, so that its owner gets its frames back.
#[test]
fn stopping_a_thief_gives_learned_addresses_back() {
    let mut runner = learning();
    let mut ends: Vec<Pipe> = (0..3)
        .map(|_| {
            let (inside, outside) = Pipe::pair().unwrap();
            runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
            outside
        })
        .collect();
    let mut send = |runner: &mut SwitchRunner<LearningBridge>, from: usize, frame| {
        send_all(&mut ends[from], &[frame]);
        assert_eq!(runner.step(), 1);
        ends.iter_mut().map(|end| receive_all(end).len()).collect::<Vec<_>>()
    };
    // Port 0 has address 1, which is not bound to it; port 1 takes it.
    assert_eq!(send(&mut runner, 0, frame(2, 1, 0)), [0, 1, 1]);
    assert_eq!(send(&mut runner, 1, frame(9, 1, 1)), [1, 0, 1]);
    assert_eq!(send(&mut runner, 2, frame(1, 2, 2)), [0, 1, 0]);
    // The thief stops. The switch notices with the next frame for it.
    runner.set_driver(PortId(1), Box::new(PortSlot::<Vec<u64>>::default())).unwrap();
    assert_eq!(send(&mut runner, 2, frame(1, 2, 3)), [0, 0, 0]);
    assert!(runner.down(PortId(1)).is_some());
    assert_eq!(send(&mut runner, 2, frame(1, 2, 4)), [1, 0, 0]);
    assert_eq!(send(&mut runner, 0, frame(2, 1, 5)), [0, 0, 1]);
    assert_eq!(send(&mut runner, 2, frame(1, 2, 6)), [1, 0, 0]);
    assert_eq!(
        counters(&mut runner),
        [expected(2, 3, &[]), expected(1, 2, &[(Reason::DOWN, 2)]), expected(4, 3, &[])]
    );
}

/// Frames for a bound address are counted at its port while the port is down, and reach it when it is back.
#[test]
fn a_bound_address_waits_for_its_port() {
    let mut runner = learning();
    let slot = PortSlot::<Vec<u64>>::default();
    let owner = runner.add_port(Box::new(slot.clone()), PortSettings::default()).unwrap();
    runner.switch().forward_mut().bind(MacAddr([2, 0, 0, 0, 0, 1]), owner).unwrap();
    let mut ends: Vec<Pipe> = (0..2)
        .map(|_| {
            let (inside, outside) = Pipe::pair().unwrap();
            runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
            outside
        })
        .collect();
    // Port 2 sends to the owner while port 1 claims to be it.
    for round in 0..3 {
        send_all(&mut ends[0], &[frame(9, 1, round)]);
        send_all(&mut ends[1], &[frame(1, 2, round)]);
        assert_eq!(runner.step(), 2);
    }
    assert!(ends.iter_mut().all(|end| receive_all(end).is_empty()));
    let (back, mut outside) = Pipe::pair().unwrap();
    runner.set_driver(owner, Box::new(back)).unwrap();
    send_all(&mut ends[0], &[frame(9, 1, 4)]);
    send_all(&mut ends[1], &[frame(1, 2, 5)]);
    assert_eq!(runner.step(), 2);
    assert_eq!(receive_all(&mut outside), [frame(1, 2, 5)]);
    assert_eq!(
        counters(&mut runner),
        [expected(0, 1, &[(Reason::DOWN, 3)]), expected(4, 0, &[(Reason::SPOOFED, 4)]), expected(4, 0, &[])]
    );
}

#[test]
fn a_full_port_loses_only_its_own_frames() {
    let mut table = StaticTable::new();
    table.insert(MacAddr([2, 0, 0, 0, 0, 1]), switch::PortId(1)).unwrap();
    table.insert(MacAddr([2, 0, 0, 0, 0, 2]), switch::PortId(2)).unwrap();
    let mut runner = SwitchRunner::new(table).unwrap();
    let (source, mut outside) = Pipe::pair().unwrap();
    let (full, _kept) = Pipe::pair().unwrap();
    let ports = [
        runner.add_port(Box::new(source), PortSettings::default()).unwrap(),
        runner.add_port(Box::new(full), PortSettings::default()).unwrap(),
        runner.add_port(Box::new(Null), PortSettings::default()).unwrap(),
    ];
    for _ in 0..20 {
        send_all(
            &mut outside,
            &(0..400).map(|number| frame(1 + (number % 2) as u8, 9, number)).collect::<Vec<_>>(),
        );
        while runner.step() > 0 {}
    }
    let full = *runner.switch().counters(ports[1]).unwrap();
    assert_eq!((full.sent_frames, full.dropped(Reason::FULL)), (2048, 4000 - 2048));
    assert_eq!(runner.switch().counters(ports[2]).unwrap().sent_frames, 4000);
}

/// A file whose contents the test can read.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_replayed_capture_is_written_unchanged() {
    let frames: Vec<Vec<u8>> = (0..1_000).map(|number| frame(2, 1, number)).collect();
    let first = Shared::default();
    send_all(&mut PcapWriter::new(first.clone()).unwrap(), &frames);
    let input = first.0.lock().unwrap().clone();
    let mut runner = learning();
    let out = Shared::default();
    runner.add_port(Box::new(PcapReader::new(Cursor::new(input)).unwrap()), PortSettings::default()).unwrap();
    runner.add_port(Box::new(PcapWriter::new(out.clone()).unwrap()), PortSettings::default()).unwrap();
    while runner.step() > 0 {}
    let written = out.0.lock().unwrap().clone();
    assert_eq!(receive_all(&mut PcapReader::new(Cursor::new(written)).unwrap()), frames);
}

/// A runner sleeps until the next frame of a paced replay is due, and without end after the last one.
#[test]
fn a_runner_sleeps_until_a_paced_frame_is_due() {
    let path = std::env::temp_dir().join(format!("clickbox-paced-{}.pcap", std::process::id()));
    let frames: Vec<Vec<u8>> = (0..4).map(|number| frame(2, 1, number)).collect();
    send_all(&mut PcapPort::open(None, Some(&path), 1, None).unwrap(), &frames);
    let mut runner = learning();
    let paced = PcapPort::open(Some(&path), None, 1, Some(20)).unwrap();
    let port = runner
        .add_port(
            Box::new(CapturedDriver { driver: paced, captures: Captures::default() }),
            PortSettings::default(),
        )
        .unwrap();
    let start = Instant::now();
    let mut sleeps = 0;
    while runner.switch().counters(port).unwrap().received_frames < 4 {
        if runner.step() == 0 {
            runner.wait(TIMEOUT);
            sleeps += 1;
        }
        assert!(start.elapsed() < TIMEOUT);
    }
    assert!(start.elapsed() >= Duration::from_millis(200), "four frames at 20 per second");
    assert!(sleeps <= 4, "{sleeps} sleeps");
    let (start, end) = (Instant::now(), Duration::from_millis(30));
    runner.wait(end);
    assert!(start.elapsed() >= end, "no frame is due");
    std::fs::remove_file(&path).unwrap();
}

/// A runner that sleeps is woken by a pipe and by its wake event.
#[test]
fn a_sleeping_runner_wakes_up() {
    let mut runner = learning();
    let (inside, mut outside) = Pipe::pair().unwrap();
    let port = runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
    runner.add_port(Box::new(Null), PortSettings::default()).unwrap();
    let wake_event = runner.wake_event().unwrap();
    let thread = std::thread::spawn(move || {
        let start = Instant::now();
        let got = |runner: &mut SwitchRunner<LearningBridge>| {
            runner.switch().counters(port).unwrap().received_frames == 50
        };
        runner.run(TIMEOUT, |runner| got(runner) || start.elapsed() > TIMEOUT);
        assert!(got(&mut runner));
        let start = Instant::now();
        runner.wait(TIMEOUT);
        assert!(start.elapsed() < TIMEOUT, "the runner was not woken");
    });
    for number in 0..50 {
        send_all(&mut outside, &[frame(2, 1, number)]);
        std::thread::sleep(Duration::from_micros(u64::from(number) * 20));
    }
    std::thread::sleep(Duration::from_millis(5));
    let one = 1u64;
    // SAFETY: eight bytes are read from a live variable.
    unsafe { libc::write(std::os::fd::AsRawFd::as_raw_fd(&wake_event), (&raw const one).cast(), 8) };
    thread.join().unwrap();
}

/// Runs `ip` with these arguments. Returns whether it succeeded.
fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).output().is_ok_and(|output| output.status.success())
}

/// Moves this thread into its own network namespace. Returns false if the test is skipped.
fn own_network() -> bool {
    // SAFETY: it changes this thread's namespaces only.
    if !require(Capability::Root) || unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return false;
    }
    // IPv6 sends frames by itself when a device comes up. A kernel without IPv6 has no such file.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    true
}

/// Two switches of one thread sleep together, and wake for a frame at either and for the additional wake event.
#[test]
fn several_runners_sleep_in_one_wait() {
    let mut runners = [learning(), learning()];
    let mut ends: Vec<Pipe> = Vec::new();
    for runner in &mut runners {
        for _ in 0..2 {
            let (inside, outside) = Pipe::pair().unwrap();
            runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
            ends.push(outside);
        }
    }
    let (waker, wake_event) = std::os::unix::net::UnixStream::pair().unwrap();
    wake_event.set_nonblocking(true).unwrap();
    for (sender, receiver) in [(0, 1), (2, 3)] {
        assert_eq!(runners.iter_mut().map(SwitchRunner::step).sum::<usize>(), 0);
        std::thread::scope(|scope| {
            let resting = scope.spawn(|| {
                let start = Instant::now();
                while runners.iter_mut().map(SwitchRunner::step).sum::<usize>() == 0 {
                    switch::wait(&mut runners, Some(wake_event.as_fd()), TIMEOUT);
                }
                start.elapsed()
            });
            send_all(&mut ends[sender], &[frame(2, 1, 5)]);
            assert!(resting.join().unwrap() < TIMEOUT);
        });
        assert_eq!(receive_all(&mut ends[receiver]), [frame(2, 1, 5)]);
    }
    let start = Instant::now();
    (&waker).write_all(&[1; 8]).unwrap();
    switch::wait(&mut runners, Some(wake_event.as_fd()), TIMEOUT);
    assert!(start.elapsed() < TIMEOUT);
    // The wake event was read empty.
    switch::wait(&mut runners, Some(wake_event.as_fd()), Duration::from_millis(1));
}

/// A driver whose device was removed.
struct Gone;

impl Driver for Gone {
    fn receive(&mut self, _: &mut Batch) -> Result<Received, DriverError> {
        Ok(Received::default())
    }

    fn send(&mut self, _: &Batch, _: &[u32]) -> Result<Sent, DriverError> {
        Err(std::io::Error::from(std::io::ErrorKind::NotConnected).into())
    }
}

/// A port whose other end comes back keeps its number, its counters and its addresses.
#[test]
fn a_replaced_driver_keeps_its_port() {
    let mut runner = learning();
    let (inside, mut sender) = Pipe::pair().unwrap();
    runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
    let port = runner.add_port(Box::new(Gone), PortSettings::default()).unwrap();
    send_all(&mut sender, &[frame(2, 1, 0), frame(2, 1, 1)]);
    runner.step();
    assert!(runner.down(port).is_some());
    assert_eq!(runner.switch().counters(port).unwrap().dropped(Reason::DOWN), 2);
    let (inside, mut receiver) = Pipe::pair().unwrap();
    assert!(runner.set_driver(port, Box::new(inside)).is_some() && runner.down(port).is_none());
    send_all(&mut sender, &[frame(2, 1, 2)]);
    runner.step();
    assert_eq!(receive_all(&mut receiver), [frame(2, 1, 2)]);
    let counters = runner.switch().counters(port).unwrap();
    assert_eq!((counters.sent_frames, counters.dropped(Reason::DOWN)), (1, 2));
    assert!(runner.set_driver(switch::PortId(9), Box::new(Gone)).is_none());
}

/// Sends frames on one side of a runner and returns those that arrive at the other, until all have arrived or `time` is
/// up. Ignores the kernel's own frames.
fn cross(
    runner: &mut SwitchRunner<LearningBridge>,
    (from, to): (&mut AfPacket, &mut AfPacket),
    frames: &[Vec<u8>],
    time: Duration,
) -> Vec<Vec<u8>> {
    send_all(from, frames);
    let (start, mut came) = (Instant::now(), Vec::new());
    while came.len() < frames.len() && start.elapsed() < time {
        runner.step();
        let ours = |frame: &Vec<u8>| frame[12..14] == [0x88, 0xb5] || frame[12..14] == [0x81, 0];
        came.extend(receive_all(to).into_iter().filter(ours));
    }
    came
}

/// A TAP device at one end of the switch, and a packet socket at the kernel's end of it.
#[test]
fn frames_cross_devices_of_the_kernel() {
    if !own_network() {
        return;
    }
    let (tap, veth) = match (Tap::open("tap0"), ip("link add left type veth peer name right")) {
        (Ok(tap), true) => (tap, true),
        (tap, veth) => {
            skip(Capability::Root, format!("TAP device: {:?}, veth pair: {veth}", tap.err()));
            return;
        }
    };
    assert!(veth && ip("link set tap0 up") && ip("link set left up") && ip("link set right up"));
    let mut kernel_side = AfPacket::open("tap0").unwrap();
    let mut far = AfPacket::open("right").unwrap();
    let mut runner = learning();
    let tap = runner.add_port(Box::new(tap), PortSettings::default()).unwrap();
    runner.add_port(Box::new(AfPacket::open("left").unwrap()), PortSettings::default()).unwrap();

    // The kernel takes a moment to pass frames after a device is set up; frames before that are lost.
    let start = Instant::now();
    let soon = Duration::from_millis(50);
    while cross(&mut runner, (&mut kernel_side, &mut far), &[frame(2, 1, 999)], soon).is_empty() {
        assert!(start.elapsed() < TIMEOUT, "the devices don't come up");
    }
    while !receive_all(&mut far).is_empty() || runner.step() > 0 {}

    let mut frames: Vec<Vec<u8>> = (0..40).map(|number| frame(2, 1, number)).collect();
    // The last frame has a VLAN tag, which the kernel removes and the driver inserts again.
    let mut tagged = frame(2, 1, 40);
    tagged.splice(12..12, [0x81, 0, 0x20, 7]);
    frames.push(tagged);
    assert_eq!(cross(&mut runner, (&mut kernel_side, &mut far), &frames, TIMEOUT), frames);
    let back: Vec<Vec<u8>> = (0..40).map(|number| frame(1, 2, number)).collect();
    assert_eq!(cross(&mut runner, (&mut far, &mut kernel_side), &back, TIMEOUT), back);

    // Frames for a device that is down are not counted as `full`.
    assert!(ip("link set tap0 down"));
    let (start, before) = (Instant::now(), *runner.switch().counters(tap).unwrap());
    send_all(&mut far, &back);
    while runner.switch().counters(tap).unwrap().dropped(Reason::DOWN) < 40 && start.elapsed() < TIMEOUT {
        runner.step();
    }
    let after = runner.switch().counters(tap).unwrap();
    assert_eq!(
        (after.dropped(Reason::DOWN), after.dropped(Reason::FULL)),
        (40, before.dropped(Reason::FULL))
    );
    assert!(runner.down(tap).is_none(), "the port waits for its device");
}

#[test]
fn missing_devices_are_errors() {
    assert!(AfPacket::open("none-such").is_err() && AfPacket::open("a/b").is_err());
    assert!(Tap::open("").is_err());
}
