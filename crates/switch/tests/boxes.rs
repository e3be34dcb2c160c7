//! Boxes behind a switch, in each kind of sandbox.

use boundary::Slots;
use packet::MacAddr;
use packet::steering::{Destination, Steering};
use sandbox::{EventFd, Host, Sandbox, Settings, Target};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::driver::{BoxPort, Pipe, PortSlot};
use switch::{
    Batch, BoxLink, Driver, LearningBridge, LearningSettings, PortId, PortSettings, Reason, SwitchRunner,
};
use test_support::{Capability, require};

const TIMEOUT: Duration = Duration::from_secs(40);

type Bridge = SwitchRunner<LearningBridge>;

/// Runs `check` for each kind of sandbox, with a bridge and a function that creates boxes on it.
fn in_each(check: impl Fn(&mut Bridge, &dyn Fn(&str) -> Sandbox)) {
    let host = Host::new(image::PROBE).unwrap();
    let runner = sandbox::Worker::start().unwrap();
    let machines = require(Capability::Kvm).then_some(Target::Vm(&runner));
    for target in machines.into_iter().chain([Target::Process]) {
        let mut bridge = SwitchRunner::new(LearningBridge::new(LearningSettings::default())).unwrap();
        let wake_event = Arc::new(EventFd::from(bridge.wake_event().unwrap()));
        check(&mut bridge, &|command| {
            let port = sandbox::PortSettings { slots: Slots::new(128).unwrap(), mac: [0; 6], mtu: 1500 };
            let settings = Settings {
                ports: vec![port],
                wake_event: Some(wake_event.clone()),
                ..Settings::new(1 << 20)
            };
            let mut sandbox = host.create(target, &settings).unwrap();
            sandbox.start().unwrap();
            match command {
                "mirror" | "loop" | "drop" | "send 60" => sandbox.install("", command, TIMEOUT).unwrap(),
                // The other boxes may die before they answer.
                _ => drop(sandbox.install("", command, Duration::from_millis(300))),
            }
            sandbox
        });
    }
}

fn attach(bridge: &mut Bridge, sandbox: &mut Sandbox) -> PortId {
    let (port, doorbell) = (sandbox.take_port(0).unwrap(), sandbox.doorbell());
    let driver = BoxPort::new(port, move || doorbell.ring());
    bridge.add_port(Box::new(driver), PortSettings::default()).unwrap()
}

fn frame(destination: MacAddr, source: MacAddr, number: u16) -> Vec<u8> {
    [&destination.0[..], &source.0[..], &number.to_be_bytes()[..], &[0; 46]].concat()
}

const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// Sends frames through a pipe to a box that mirrors them, with the runner asleep in between, and receives all of them
/// again.
#[test]
fn a_mirroring_box_answers_through_the_bridge() {
    in_each(|bridge, make| {
        let mut mirror = make("mirror");
        let port = attach(bridge, &mut mirror);
        let (inside, mut outside) = Pipe::pair().unwrap();
        bridge.add_port(Box::new(inside), PortSettings::default()).unwrap();
        let mut batch = Batch::new(100);
        let (start, mut back) = (Instant::now(), Vec::new());
        for round in 0..10u16 {
            batch.clear();
            while batch.push(&frame(THEIRS, OURS, round * 100 + batch.len() as u16)) {}
            let numbers: Vec<u32> = (0..100).collect();
            assert_eq!(outside.send(&batch, &numbers).unwrap().frames, 100);
            while back.len() < usize::from(round + 1) * 100 {
                assert!(start.elapsed() < TIMEOUT, "{} came back", back.len());
                if bridge.step() == 0 {
                    // The wake event ends each sleep: one without it would take all the time that there is.
                    bridge.wait(TIMEOUT);
                }
                let mut came = Batch::new(256);
                outside.receive(&mut came).unwrap();
                back.extend(came.frames().map(<[u8]>::to_vec));
            }
        }
        let expected: Vec<_> = (0..1000).map(|number| frame(OURS, THEIRS, number)).collect();
        assert_eq!(back, expected);
        let counters = *bridge.switch().counters(port).unwrap();
        assert_eq!((counters.received_frames, counters.sent_frames), (1000, 1000));
    });
}

/// Two boxes connected without the switch: one sends until it gets the command to mirror, and no frame is lost.
#[test]
fn linked_boxes_exchange_frames() {
    in_each(|bridge, make| {
        let (mut sender, mut sink) = (make("send 60"), make("drop"));
        let port = |sandbox: &mut Sandbox| {
            let doorbell = sandbox.doorbell();
            BoxPort::new(sandbox.take_port(0).unwrap(), move || doorbell.ring())
        };
        let link = bridge.add_link(Box::new(BoxLink::new(port(&mut sender), port(&mut sink))));
        let start = Instant::now();
        while bridge.link(link).unwrap().counters()[1].sent_frames < 50_000 {
            assert!(start.elapsed() < TIMEOUT, "{:?}", bridge.link(link).unwrap().counters());
            if bridge.step() == 0 {
                bridge.wait(Duration::from_millis(500));
            }
        }
        sender.install("", "drop", TIMEOUT).unwrap();
        let stats = |sandbox: &mut Sandbox| {
            let reply = sandbox.call(&boundary::Request::Stats, TIMEOUT).unwrap();
            boundary::Stats::decode(&reply).unwrap().ports[0]
        };
        let (sent, mut taken) = (stats(&mut sender).sent_packets, 0);
        while bridge.link(link).unwrap().counters()[0].received_frames < sent {
            assert!(start.elapsed() < TIMEOUT, "{:?}", bridge.link(link).unwrap().counters());
            bridge.step();
        }
        let [left, right] = bridge.link(link).unwrap().counters();
        assert_eq!((left.received_frames, right.sent_frames), (sent, sent));
        while taken < sent {
            assert!(start.elapsed() < TIMEOUT, "{taken} of {sent}");
            taken = stats(&mut sink).received_packets;
        }
        assert_eq!(taken, sent);
        assert!(bridge.remove_link(link).is_some() && bridge.link(link).is_none());
    });
}

/// The first bytes of addresses that no port has taught.
const UNKNOWN: [u8; 4] = [2, 1, 0, 0];

fn unknown(number: u16) -> MacAddr {
    let ([a, b, c, d], [high, low]) = (UNKNOWN, number.to_be_bytes());
    MacAddr([a, b, c, d, high, low])
}

/// A box that stops consuming, one that scribbles over its memory and one that crashes: other boxes' frames pass.
#[test]
fn misbehaving_boxes_lose_only_their_own_frames() {
    in_each(|bridge, make| {
        let mut bad: Vec<Sandbox> = ["loop", "scribble 5", "fault null"].into_iter().map(make).collect();
        let bad_ports: Vec<PortId> = bad.iter_mut().map(|sandbox| attach(bridge, sandbox)).collect();
        let mut mirror = make("mirror");
        attach(bridge, &mut mirror);
        let (inside, mut outside) = Pipe::pair().unwrap();
        bridge.add_port(Box::new(inside), PortSettings::default()).unwrap();
        let (start, mut back) = (Instant::now(), 0);
        let mut batch = Batch::new(64);
        let mut sent = 0u16;
        while back < 2_000 {
            assert!(start.elapsed() < TIMEOUT, "{back} came back");
            batch.clear();
            // Every frame is flooded, because its destination is new.
            while sent < 2_000 && batch.push(&frame(unknown(sent), OURS, sent)) {
                sent += 1;
            }
            let numbers: Vec<u32> = (0..batch.len() as u32).collect();
            outside.send(&batch, &numbers).unwrap();
            let target = usize::from(sent);
            while back < target {
                assert!(start.elapsed() < TIMEOUT, "{back} came back of {target}");
                bridge.step();
                let mut came = Batch::new(256);
                outside.receive(&mut came).unwrap();
                back += came.frames().filter(|frame| frame[..6] == OURS.0 && frame[6..10] == UNKNOWN).count();
            }
        }
        let looping = bridge.switch().counters(bad_ports[0]).unwrap();
        // The ring is full and the rest is counted; the scribbling box may have sent something too.
        assert_eq!(looping.sent_frames, 128);
        assert!(looping.dropped(Reason::FULL) >= 2_000 - 128);
    });
}

/// A box in an endless loop takes no frames; one that mirrors them does. The time is that of the caller.
#[test]
fn a_box_that_stands_still_is_found() {
    in_each(|bridge, create| {
        let (mut looping, mut mirror) = (create("loop"), create("mirror"));
        let ports = [attach(bridge, &mut looping), attach(bridge, &mut mirror)];
        let (inside, mut outside) = Pipe::pair().unwrap();
        bridge.add_port(Box::new(inside), PortSettings::default()).unwrap();
        let limit = Duration::from_millis(200);
        ports.iter().for_each(|port| bridge.set_dead_after(*port, Some(limit)));
        let look = |bridge: &mut Bridge, now: Duration| {
            let mut due = None;
            let found = bridge.look_for_silence(now.as_nanos() as u64, &mut due);
            (found, due.map(Duration::from_nanos))
        };
        assert_eq!(look(bridge, TIMEOUT), (Vec::new(), None));
        let mut batch = Batch::new(8);
        (0..5).for_each(|number| assert!(batch.push(&frame(OURS, THEIRS, number))));
        assert_eq!(outside.send(&batch, &[0, 1, 2, 3, 4]).unwrap().frames, 5);
        assert_eq!(bridge.step(), 5);
        let part = limit / 4;
        assert_eq!(look(bridge, TIMEOUT).1, Some(TIMEOUT + part));
        // The mirror returns them to the pipe.
        let (begin, mut returned) = (Instant::now(), Batch::new(16));
        while returned.len() < 5 {
            bridge.step();
            outside.receive(&mut returned).unwrap();
            assert!(begin.elapsed() < TIMEOUT);
        }
        for parts in 1..4 {
            let next = TIMEOUT + (parts + 1) * part;
            assert_eq!(look(bridge, TIMEOUT + parts * part), (Vec::new(), Some(next)));
        }
        let just_before = TIMEOUT + limit - Duration::from_nanos(1);
        assert_eq!(look(bridge, just_before), (Vec::new(), Some(TIMEOUT + limit)));
        assert_eq!(look(bridge, TIMEOUT + limit), (vec![(ports[0], 5)], None));
        assert_eq!(look(bridge, TIMEOUT + 2 * limit), (Vec::new(), None));
        // With another time it has that from now on.
        bridge.set_dead_after(ports[0], Some(2 * limit));
        assert_eq!(look(bridge, 2 * TIMEOUT), (Vec::new(), Some(2 * TIMEOUT + limit / 2)));
        bridge.set_dead_after(ports[0], None);
        assert_eq!(look(bridge, 3 * TIMEOUT), (Vec::new(), None));
    });
}

/// A frame from one IPv4 address to another.
fn ip_frame(client: u16) -> Vec<u8> {
    let [high, low] = client.to_be_bytes();
    let ip = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, high, low, 192, 0, 2, 1];
    [&THEIRS.0[..], &OURS.0[..], &[8, 0][..], &ip[..], &[0; 26]].concat()
}

/// The ports of two cores are one port. One core takes no frames: those for the other core pass, and what has no room is not
/// counted as sent.
#[test]
fn a_full_core_loses_only_its_own_frames() {
    in_each(|_, make| {
        let mut cores = [make("drop"), make("loop")];
        let port = |sandbox: &mut Sandbox| {
            let doorbell = sandbox.doorbell();
            BoxPort::new(sandbox.take_port(0).unwrap(), move || doorbell.ring())
        };
        let mut slot = PortSlot::default();
        assert!(slot.set(cores.iter_mut().map(port).collect()).is_empty());
        let steering = Steering::new(2);
        let (start, mut to_full, mut sent) = (Instant::now(), 0, 0);
        for round in 0..6u16 {
            let mut batch = Batch::new(64);
            (0..64).for_each(|number| assert!(batch.push(&ip_frame(round * 64 + number))));
            let full = batch.frames().filter(|frame| steering.of_frame(frame) == Destination::Shard(1));
            to_full += full.count() as u64;
            let of_round = slot.send(&batch, &(0..64).collect::<Vec<u32>>()).unwrap();
            assert_eq!(of_round.bytes, of_round.frames * 60);
            sent += of_round.frames;
            // The other core takes all of its frames.
            while slot.rings().unwrap().waiting_to_box > to_full.min(128) {
                assert!(start.elapsed() < TIMEOUT, "{:?}", slot.rings());
                std::thread::yield_now();
            }
        }
        let all = 6 * 64;
        assert!(to_full > 140 && to_full < 250, "{to_full}");
        assert_eq!(sent, all - to_full + 128);
        assert!(slot.is_crowded() && !slot.accepts_split());
        // An answer of ARP is for both, and only one has room.
        let mut batch = Batch::new(1);
        let arp = [&[0xff; 6][..], &OURS.0[..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2][..], &[0; 38]].concat();
        assert_eq!(steering.of_frame(&arp), Destination::All);
        batch.push(&arp);
        assert_eq!(slot.send(&batch, &[0]).unwrap().frames, 0);
        assert_eq!(slot.rings().unwrap().put, sent + 1);
        // Both can be taken out.
        assert_eq!(slot.set(Vec::new()).len(), 2);
        assert!(slot.rings().is_none() && slot.send(&batch, &[0]).is_err());
    });
}
