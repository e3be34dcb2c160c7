//! Boxes that share a packet pool, connected by pipes or a switch: a failure of one does not affect the others.

use boundary::Slots;
use boundary::limits::BUFFER_SIZE;
use sandbox::{
    Host, HostPort, PacketPool, PortSettings, Sandbox, SandboxKind, Settings, SharedRegion, State, Target,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::driver::BoxPort;
use switch::{BoxLink, Link, PortId, StaticTable, SwitchRunner};
use test_support::{Capability, require};

const TIMEOUT: Duration = Duration::from_secs(20);

type Port = BoxPort<Arc<SharedRegion>>;

/// A box with two ports in a shared pool, controlled by commands.
struct Maker<'a> {
    host: &'a Host,
    target: Target<'a>,
    pool: Arc<PacketPool>,
}

impl Maker<'_> {
    fn make(&self, command: &str) -> Sandbox {
        let port = PortSettings { slots: Slots::new(64).unwrap(), mac: [0; 6], mtu: 1500 };
        let pool = Some(self.pool.clone());
        let settings = Settings { ports: vec![port; 2], pool, ..Settings::new(1 << 20) };
        let mut sandbox = self.host.create(self.target, &settings).unwrap();
        sandbox.start().unwrap();
        // A box whose command never ends may not answer.
        let installed = sandbox.install(
            "",
            command,
            if command == "forward" { TIMEOUT } else { Duration::from_millis(200) },
        );
        assert!(command != "forward" || installed.is_ok(), "{installed:?}");
        sandbox
    }
}

fn in_each(check: impl Fn(&Maker)) {
    let host = Host::new(image::PROBE).unwrap();
    let worker = sandbox::Worker::start().unwrap();
    if require(Capability::Kvm) {
        let pool = PacketPool::new(SandboxKind::Vm).unwrap();
        check(&Maker { host: &host, target: Target::Vm(&worker), pool });
    }
    let pool = PacketPool::new(SandboxKind::Process).unwrap();
    check(&Maker { host: &host, target: Target::Process, pool });
}

fn plug(sandbox: &mut Sandbox, number: usize) -> Port {
    let doorbell = sandbox.doorbell();
    BoxPort::new(sandbox.take_port(number).unwrap(), move || doorbell.ring())
}

/// The host's end of a box's port, and what wakes the box.
struct End {
    port: HostPort,
    doorbell: sandbox::Doorbell,
}

impl End {
    fn new(sandbox: &mut Sandbox, number: usize) -> Self {
        Self { port: sandbox.take_port(number).unwrap(), doorbell: sandbox.doorbell() }
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let sent = self.port.room(1).unwrap() > 0 && self.port.send(frame).unwrap();
        self.port.publish();
        self.doorbell.ring();
        sent
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; BUFFER_SIZE];
        self.port.available(1).unwrap();
        let frame = self.port.receive(&mut buffer).unwrap().map(<[u8]>::to_vec);
        if self.port.release() {
            self.doorbell.ring();
        }
        frame
    }
}

/// A frame to the address of a station, and from one.
fn frame(number: usize) -> Vec<u8> {
    let bytes = (0..60 + number % 1400).map(|byte| (byte * 7 + number * 13) as u8);
    let mut frame: Vec<u8> = std::iter::once(2).chain(bytes).collect();
    frame[6] &= !1;
    frame
}

/// Maximum frames in flight: a switch drops frames that find no room.
const UNDER_WAY: usize = 32;

/// Sends frames at one end, and checks that they arrive at the other in order and unchanged.
fn carry(
    from: &mut End,
    link: &mut BoxLink<Arc<SharedRegion>, Arc<SharedRegion>>,
    to: &mut End,
    count: usize,
) {
    carry_by(from, || link.step(), to, count);
}

/// Like [`carry`], with `step` to move the frames.
fn carry_by(from: &mut End, mut step: impl FnMut() -> usize, to: &mut End, count: usize) {
    let (start, mut sent, mut got) = (Instant::now(), 0, 0);
    while got < count {
        assert!(start.elapsed() < TIMEOUT, "{got} of {count}");
        if sent < count.min(got + UNDER_WAY) && from.send(&frame(sent)) {
            sent += 1;
        }
        step();
        while let Some(received) = to.receive() {
            assert_eq!(received, frame(got));
            got += 1;
        }
    }
}

#[test]
fn a_pipe_recovers_when_an_end_is_replaced() {
    in_each(|maker| {
        let (mut left, mut right) = (maker.make("forward"), maker.make("forward"));
        let mut link = BoxLink::new(plug(&mut left, 1), plug(&mut right, 0));
        let (mut first, mut last) = (End::new(&mut left, 0), End::new(&mut right, 1));
        carry(&mut first, &mut link, &mut last, 1_000);
        for round in 0..4 {
            // When an end is killed, frames are in flight in its rings and in those of the other end.
            for number in 0..40 {
                first.send(&frame(number));
            }
            link.step();
            let (kept_left, kept_right) = link.into_ports();
            if round % 2 == 0 {
                right.kill();
                drop((kept_right, last));
                right = maker.make("forward");
                link = BoxLink::new(kept_left, plug(&mut right, 0));
                last = End::new(&mut right, 1);
            } else {
                left.kill();
                drop((kept_left, first));
                left = maker.make("forward");
                link = BoxLink::new(plug(&mut left, 1), kept_right);
                first = End::new(&mut left, 0);
            }
            // The remaining frames arrive first; after that the pipe works as before.
            let start = Instant::now();
            while !(first.send(b"the end of what was before")) {
                assert!(start.elapsed() < TIMEOUT);
                link.step();
                last.receive();
            }
            while last.receive().as_deref() != Some(b"the end of what was before") {
                assert!(start.elapsed() < TIMEOUT, "{round}: {link:?}");
                link.step();
            }
            carry(&mut first, &mut link, &mut last, 1_000);
            assert_eq!(link.counters()[0].drops.iter().sum::<u64>(), 0);
        }
    });
}

/// A box that writes anywhere in the pool may corrupt frames of its neighbours in that pool. The host survives, the
/// neighbour answers, and after the box is replaced the pipe works again.
#[test]
fn a_box_that_scribbles_over_the_pool_is_replaced() {
    in_each(|maker| {
        let mut left = maker.make("forward");
        let mut first = End::new(&mut left, 0);
        let mut kept = plug(&mut left, 1);
        for seed in 1..4 {
            let mut right = maker.make(&format!("scribble {seed}"));
            let mut link = BoxLink::new(kept, plug(&mut right, 0));
            for number in 0..2_000 {
                first.send(&frame(number));
                link.step();
                if number % 64 == 0 {
                    std::thread::yield_now();
                }
            }
            (kept, _) = link.into_ports();
            right.kill();
            assert_eq!(left.state(), State::Running);
        }
        let mut right = maker.make("forward");
        let mut link = BoxLink::new(kept, plug(&mut right, 0));
        let mut last = End::new(&mut right, 1);
        let start = Instant::now();
        // Frames left in the rings.
        while link.step() > 0 || last.receive().is_some() || !first.send(b"from here on") {
            assert!(start.elapsed() < TIMEOUT);
        }
        while last.receive().as_deref() != Some(b"from here on") {
            assert!(start.elapsed() < TIMEOUT, "{link:?}");
            link.step();
        }
        carry(&mut first, &mut link, &mut last, 500);
    });
}

/// A frame to one box moves with its buffer, a frame to several is copied for each. All boxes receive what was sent,
/// and no buffer is lost.
#[test]
fn a_switch_passes_buffers_within_a_pool() {
    in_each(|maker| {
        let mut boxes = [maker.make("forward"), maker.make("forward"), maker.make("forward")];
        let mut table = StaticTable::new();
        table.set_default(Some(PortId(1)));
        let mut switch = SwitchRunner::new(table).unwrap();
        for (index, sandbox) in boxes.iter_mut().enumerate() {
            let port = plug(sandbox, usize::from(index == 0));
            switch.add_port(Box::new(port), switch::PortSettings::default()).unwrap();
        }
        let [first, second, third] = &mut boxes;
        let (mut first, mut second, mut third) =
            (End::new(first, 0), End::new(second, 1), End::new(third, 1));
        for round in 0..5 {
            carry_by(&mut first, || switch.step(), &mut second, 1_000);
            let all = [vec![0xff; 6], frame(1_000 + round)].concat();
            assert!(first.send(&all));
            let start = Instant::now();
            for end in [&mut second, &mut third] {
                let mut got = None;
                while got.is_none() {
                    assert!(start.elapsed() < TIMEOUT);
                    switch.step();
                    got = end.receive();
                }
                assert_eq!(got.as_ref(), Some(&all));
            }
        }
        assert!(third.receive().is_none());
    });
}
