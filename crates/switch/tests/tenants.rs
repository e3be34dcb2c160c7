//! Tenants behind one switch, each with addresses that are bound to its port.

use boundary::Slots;
use packet::MacAddr;
use sandbox::{EventFd, Host, Settings, Target};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::driver::{BoxPort, Pipe};
use switch::{
    Batch, Counters, Driver, LearningBridge, LearningSettings, PortId, PortSettings, Reason, SourceGuard,
    SwitchRunner,
};
use test_support::{Capability, require};

const TIMEOUT: Duration = Duration::from_secs(40);

/// A tenant's addresses.
#[derive(Clone, Copy)]
struct Tenant {
    mac: MacAddr,
    ip4: Ipv4Addr,
    ip6: Ipv6Addr,
}

const ANNA: Tenant = Tenant {
    mac: MacAddr([2, 0, 0, 0, 0, 1]),
    ip4: Ipv4Addr::new(192, 0, 2, 1),
    ip6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
};
const BORIS: Tenant = Tenant {
    mac: MacAddr([2, 0, 0, 0, 0, 2]),
    ip4: Ipv4Addr::new(192, 0, 2, 2),
    ip6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
};

impl Tenant {
    fn settings(self) -> PortSettings {
        let bound = [(IpAddr::from(self.ip4), 32), (IpAddr::from(self.ip6), 128)];
        let guard = Some(SourceGuard::new(Some(self.mac), bound));
        PortSettings { source: Some(self.mac), guard, ..PortSettings::default() }
    }

    /// A frame from this tenant's Ethernet address.
    fn frame(self, to: MacAddr, kind: u16, packet: &[u8]) -> Vec<u8> {
        [&to.0[..], &self.mac.0, &kind.to_be_bytes(), packet].concat()
    }
}

/// The packets of each protocol by which `who` says that it has the addresses `claimed`, padded to be longer than what the
/// switch copies of a frame in a box.
fn claims(who: Tenant, claimed: Tenant) -> [(&'static str, u16, Vec<u8>); 6] {
    let rest = [7; 60];
    let ip4 =
        [&[0x45, 0, 0, 80, 0, 0, 0, 0, 64, 17, 0, 0][..], &claimed.ip4.octets(), &[192, 0, 2, 9], &rest]
            .concat();
    let arp = |operation: u8, target: Ipv4Addr| {
        let head = [0, 1, 8, 0, 6, 4, 0, operation];
        [&head[..], &who.mac.0, &claimed.ip4.octets(), &[0; 6], &target.octets(), &rest].concat()
    };
    let ip6 = |next: u8, payload: &[u8]| {
        let head = [0x60, 0, 0, 0, 0, payload.len() as u8, next, 255];
        [&head[..], &claimed.ip6.octets(), &[0xff; 16], payload].concat()
    };
    let advertisement =
        [&[136, 0, 0, 0, 0x60, 0, 0, 0][..], &claimed.ip6.octets(), &[2, 1], &who.mac.0].concat();
    let solicitation = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &[0xff; 16], &[1, 1], &who.mac.0].concat();
    [
        ("IPv4", 0x0800, ip4),
        ("ARP reply", 0x0806, arp(2, Ipv4Addr::new(192, 0, 2, 9))),
        ("ARP announcement", 0x0806, arp(1, claimed.ip4)),
        ("IPv6", 0x86dd, ip6(17, &rest)),
        ("neighbour advertisement", 0x86dd, ip6(58, &advertisement)),
        ("neighbour solicitation", 0x86dd, ip6(58, &solicitation)),
    ]
}

fn batch(frames: &[Vec<u8>]) -> (Batch, Vec<u32>) {
    let mut batch = Batch::new(frames.len());
    assert!(frames.iter().all(|frame| batch.push(frame)));
    (batch, (0..frames.len() as u32).collect())
}

fn counters(received: &[Vec<u8>], sent: &[Vec<u8>], spoofed: u64) -> Counters {
    let bytes = |frames: &[Vec<u8>]| frames.iter().map(|frame| frame.len() as u64).sum();
    let mut counters = Counters {
        received_frames: received.len() as u64,
        received_bytes: bytes(received),
        sent_frames: sent.len() as u64,
        sent_bytes: bytes(sent),
        ..Counters::default()
    };
    counters.drop(Reason::SPOOFED, spoofed);
    counters
}

/// Each tenant reaches the other from its own addresses, and from no other one: not from the other's IP addresses, not from
/// its Ethernet address, and not after the other's port went down and up.
#[test]
fn a_tenant_cannot_take_the_addresses_of_another() {
    let mut runner = SwitchRunner::new(LearningBridge::new(LearningSettings::default())).unwrap();
    let mut pipes = [ANNA, BORIS].map(|tenant| {
        let (inside, outside) = Pipe::pair().unwrap();
        let port = runner.add_port(Box::new(inside), tenant.settings()).unwrap();
        runner.switch().forward_mut().bind(tenant.mac, port).unwrap();
        outside
    });
    let (anna, boris) = (PortId(0), PortId(1));
    let own: Vec<_> =
        claims(BORIS, BORIS).map(|(_, kind, packet)| BORIS.frame(ANNA.mac, kind, &packet)).into();
    let taken: Vec<_> =
        claims(BORIS, ANNA).map(|(_, kind, packet)| BORIS.frame(MacAddr::BROADCAST, kind, &packet)).into();
    let forged: Vec<_> =
        claims(ANNA, ANNA).map(|(_, kind, packet)| ANNA.frame(MacAddr::BROADCAST, kind, &packet)).into();
    let (mut sent, mut spoofed, mut arrived) = (Vec::new(), 0, Vec::new());
    for round in 0..2 {
        for (frames, passes) in [(&taken, false), (&own, true), (&forged, false), (&taken, false)] {
            let (frames_batch, numbers) = batch(frames);
            pipes[1].send(&frames_batch, &numbers).unwrap();
            while runner.step() > 0 {}
            let mut got = Batch::new(64);
            pipes[0].receive(&mut got).unwrap();
            let expected = if passes { frames.as_slice() } else { &[] };
            assert!(got.frames().eq(expected.iter().map(Vec::as_slice)), "round {round}");
            sent.extend_from_slice(frames);
            arrived.extend_from_slice(expected);
            spoofed += if passes { 0 } else { frames.len() as u64 };
        }
        // Her port goes down, and up again with another driver.
        let (inside, outside) = Pipe::pair().unwrap();
        runner.switch().flush_port(anna);
        runner.set_driver(anna, Box::new(inside)).unwrap();
        pipes[0] = outside;
    }
    assert_eq!(runner.counters(boris), Some(counters(&sent, &[], spoofed)));
    assert_eq!(runner.counters(anna), Some(counters(&[], &arrived, 0)));
    // What she sends reaches him.
    let (frames, numbers) =
        batch(&claims(ANNA, ANNA).map(|(_, kind, packet)| ANNA.frame(BORIS.mac, kind, &packet)));
    pipes[0].send(&frames, &numbers).unwrap();
    while runner.step() > 0 {}
    let mut got = Batch::new(64);
    pipes[1].receive(&mut got).unwrap();
    assert!(got.frames().eq(frames.frames()));
}

/// The frames of a box lie in its memory, and only their heads are copied: claims further behind are found too.
#[test]
fn a_box_cannot_take_the_addresses_of_another_tenant() {
    let host = Host::new(image::PROBE).unwrap();
    let worker = sandbox::Worker::start().unwrap();
    let machines = require(Capability::Kvm).then_some(Target::Vm(&worker));
    for target in machines.into_iter().chain([Target::Process]) {
        let mut runner = SwitchRunner::new(LearningBridge::new(LearningSettings::default())).unwrap();
        let port = sandbox::PortSettings { slots: Slots::new(128).unwrap(), mac: ANNA.mac.0, mtu: 1500 };
        let wake_event = Some(Arc::new(EventFd::from(runner.wake_event().unwrap())));
        let settings = Settings { ports: vec![port], wake_event, ..Settings::new(1 << 20) };
        let mut mirror = host.create(target, &settings).unwrap();
        mirror.start().unwrap();
        mirror.install("", "mirror", TIMEOUT).unwrap();
        let doorbell = mirror.doorbell();
        let driver = BoxPort::new(mirror.take_port(0).unwrap(), move || doorbell.ring());
        let boxed = runner.add_port(Box::new(driver), ANNA.settings()).unwrap();
        let (inside, mut outside) = Pipe::pair().unwrap();
        runner.add_port(Box::new(inside), PortSettings::default()).unwrap();
        // The box answers with the same packets, from its Ethernet address.
        let all = [claims(ANNA, BORIS), claims(ANNA, ANNA)].concat();
        let frames: Vec<_> =
            all.iter().map(|(_, kind, packet)| BORIS.frame(ANNA.mac, *kind, packet)).collect();
        let expected: Vec<_> =
            all[6..].iter().map(|(_, kind, packet)| ANNA.frame(BORIS.mac, *kind, packet)).collect();
        let (frames_batch, numbers) = batch(&frames);
        outside.send(&frames_batch, &numbers).unwrap();
        let (begin, mut got) = (Instant::now(), Batch::new(64));
        let done = |runner: &mut SwitchRunner<_>| {
            runner.counters(boxed).is_some_and(|counters| counters.received_frames == frames.len() as u64)
        };
        while !done(&mut runner) {
            assert!(begin.elapsed() < TIMEOUT);
            runner.step();
        }
        outside.receive(&mut got).unwrap();
        assert!(got.frames().eq(expected.iter().map(Vec::as_slice)), "{} frames", got.len());
        assert_eq!(runner.counters(boxed), Some(counters(&frames, &frames, 6)));
    }
}
