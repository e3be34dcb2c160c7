//! Boxes that share a packet pool, connected by pipes or a switch: a failure of one does not affect the others.

use boundary::limits::{BUFFER_SIZE, MAX_BUFFERS};
use boundary::{Answer, Descriptor, Slots};
use random::Random;
use sandbox::{Host, HostPort, PacketPool, PortSettings, Sandbox, Settings, SharedRegion, State, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::driver::{self, BoxPort, FunctionPort, Pipe};
use switch::{
    Batch, BoxLink, Capture, CaptureSink, CapturedDriver, Captures, ChainPlan, ChainsPlan, Counters,
    Delivery, Driver, Field, Flow, FlowOutput, HopCounters, InstancePlan, Link, Match, PortId, PortKey,
    Reason, ServicePlan, StaticTable, Steering, SteeringSettings, SwitchRunner,
};
use test_support::{Capability, require};

#[path = "support/even.rs"]
mod even;

use even::Even;

const TIMEOUT: Duration = Duration::from_secs(40);

type Port = BoxPort<Arc<SharedRegion>>;

/// A box with two ports in a shared pool, controlled by commands.
struct Maker<'a> {
    host: &'a Host,
    target: Target<'a>,
    pool: Arc<PacketPool>,
}

impl Maker<'_> {
    fn make(&self, command: &str) -> Sandbox {
        self.make_in(Some(self.pool.clone()), command)
    }

    fn make_in(&self, pool: Option<Arc<PacketPool>>, command: &str) -> Sandbox {
        let port = PortSettings { slots: Slots::new(64).unwrap(), mac: [0; 6], mtu: 1500 };
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
        let pool = PacketPool::new().unwrap();
        check(&Maker { host: &host, target: Target::Vm(&worker), pool });
    }
    let pool = PacketPool::new().unwrap();
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

/// A function in the pool of boxes: its descriptors, as its process has them.
struct Function {
    port: FunctionPort,
    memory: File,
    layout: boundary::PortLayout,
    /// The buffers that its rings started with.
    own: Vec<u32>,
    taken: u32,
    sent: u32,
}

impl Function {
    fn join(pool: &Arc<PacketPool>) -> Self {
        let mut own = Vec::new();
        let join = |count| {
            let share = pool.share(count).unwrap();
            own.clone_from(&share.own);
            Some(share)
        };
        let (mut ports, ends) = FunctionPort::create_in(1, Slots::new(64).unwrap(), join).unwrap();
        assert!(ends.memory.as_raw_fd() != pool.file().as_raw_fd() && ends.layout.size < 1 << 20);
        let (memory, layout) = (File::from(ends.memory), ends.layout.ports[0]);
        Self { port: ports.remove(0), memory, layout, own, taken: 0, sent: 0 }
    }

    fn word(&self, place: usize) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, place as u64).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn write(&self, bytes: &[u8], place: usize) {
        self.memory.write_all_at(bytes, place as u64).unwrap();
    }

    fn slot(ring: usize, position: u32) -> usize {
        ring + 256 + 8 * (position % 64) as usize
    }

    /// Takes all packets out of its ring, and sends them on with what `answer` says of the contents of each, which begin at an offset.
    fn answer(&mut self, pool: &File, offset: u64, answer: impl Fn(u32) -> Answer) {
        let head = self.word(self.layout.receive) as u32;
        while self.taken != head {
            let [from, into] =
                [Self::slot(self.layout.receive, self.taken), Self::slot(self.layout.transmit, self.sent)];
            let (packet, spare) = (Descriptor::from_bits(self.word(from)), self.word(into));
            let mut bytes = [0; 4];
            let start = u64::from(packet.buffer) * BUFFER_SIZE as u64 + u64::from(packet.offset);
            pool.read_exact_at(&mut bytes, start + offset).unwrap();
            let meta = answer(u32::from_be_bytes(bytes)).to_meta();
            self.write(&(spare & 0xf_ffff).to_le_bytes(), from);
            self.write(&Descriptor { meta, ..packet }.to_bits().to_le_bytes(), into);
            self.taken += 1;
            self.sent += 1;
        }
        self.write(&self.taken.to_le_bytes(), self.layout.receive + 64);
        self.write(&self.sent.to_le_bytes(), self.layout.transmit);
    }

    /// Takes up to `most` packets out of its ring and puts them into that to the switch, which sees them if `returns`. Returns their
    /// buffers.
    fn pass(&mut self, most: usize, returns: bool) -> Vec<u32> {
        let (head, mut buffers) = (self.word(self.layout.receive) as u32, Vec::new());
        while self.taken != head && buffers.len() < most {
            let [from, into] =
                [Self::slot(self.layout.receive, self.taken), Self::slot(self.layout.transmit, self.sent)];
            let (packet, spare) = (self.word(from), self.word(into));
            self.write(&(spare & 0xf_ffff).to_le_bytes(), from);
            self.write(&packet.to_le_bytes(), into);
            buffers.push((packet & 0xf_ffff) as u32);
            self.taken += 1;
            self.sent += 1;
        }
        self.write(&self.taken.to_le_bytes(), self.layout.receive + 64);
        if returns {
            self.write(&self.sent.to_le_bytes(), self.layout.transmit);
        }
        buffers
    }
}

/// Moves what a port has to another one. The batch still refers to the packets.
fn pass_on(from: &mut dyn Driver, to: &mut dyn Driver) -> (Batch, u64) {
    let mut batch = Batch::new(64);
    from.receive_split(&mut batch).unwrap();
    let numbers: Vec<u32> = (0..batch.len() as u32).collect();
    let sent = to.send_split(&mut batch, &numbers).unwrap();
    from.release(&batch);
    (batch, sent.frames)
}

/// Packets of which only the head is read pass from a box through two functions to another box, and stay in their buffers.
#[test]
fn functions_in_a_pool_share_the_buffers_of_boxes() {
    in_each(|maker| {
        let (mut left, mut right) = (maker.make("forward"), maker.make("forward"));
        let (mut first, mut last) = (End::new(&mut left, 0), End::new(&mut right, 1));
        let (mut out, mut back) = (plug(&mut left, 1), plug(&mut right, 0));
        let mut functions = [Function::join(&maker.pool), Function::join(&maker.pool)];
        let (start, mut sent, mut got, mut moved) = (Instant::now(), 0, 0, 0);
        let mut seen = BTreeSet::new();
        let long = |number: usize| frame(100 + number % 1_000);
        while got < 2_000 {
            assert!(start.elapsed() < TIMEOUT, "{got}");
            if sent < 2_000.min(got + UNDER_WAY) && first.send(&long(sent)) {
                sent += 1;
            }
            let [one, other] = &mut functions;
            pass_on(&mut out, &mut one.port);
            let there = one.pass(usize::MAX, true);
            pass_on(&mut one.port, &mut other.port);
            let then = other.pass(usize::MAX, true);
            pass_on(&mut other.port, &mut back);
            // No packet was copied: each is in the buffer that it came in.
            assert_eq!(there, then);
            moved += then.len();
            seen.extend(there);
            while let Some(received) = last.receive() {
                assert_eq!(received, long(got));
                got += 1;
            }
        }
        assert_eq!(moved, 2_000);
        // The first function got the buffers of the box.
        assert!(seen.iter().any(|buffer| !functions.iter().any(|one| one.own.contains(buffer))));
    });
}

/// Functions in a pool end with packets in both rings, in hand and in a batch of the switch, and after they have written anything
/// into their slots. Their buffers return to the pool, each once, when the last of these is gone.
#[test]
fn buffers_of_functions_that_end_return_once() {
    in_each(|maker| {
        let mut left = maker.make("forward");
        let (mut first, mut out) = (End::new(&mut left, 0), plug(&mut left, 1));
        // A box has two ports with two rings of 64 slots.
        let free = MAX_BUFFERS as usize - 4 * 64;
        let mut random = Random::new(15);
        for round in 0..16 {
            let mut function = Function::join(&maker.pool);
            let other = Function::join(&maker.pool);
            let (start, mut sent, mut there) = (Instant::now(), 0, 0);
            while there < 40 {
                assert!(start.elapsed() < TIMEOUT, "{there}");
                if sent < 40 && first.send(&frame(1_000 + sent)) {
                    sent += 1;
                }
                there += pass_on(&mut out, &mut function.port).1;
            }
            assert_eq!((function.pass(10, true).len(), function.pass(10, false).len()), (10, 10));
            if round % 2 == 1 {
                let ring = [function.layout.receive, function.layout.transmit][random.next() as usize % 2];
                let words = (0..64).map(|_| random.next() & 0x1ff_ffff_ffff);
                (0..).zip(words).for_each(|(slot, word)| {
                    function.write(&word.to_le_bytes(), Function::slot(ring, slot));
                });
            }
            let mut to = other;
            let (batch, passed) = pass_on(&mut function.port, &mut to.port);
            let rings = function.port.rings().unwrap();
            assert!(passed <= 10 && (rings.put, rings.waiting_to_box) == (40, 20), "{rings:?}");
            assert_eq!((rings.taken, function.port.abandon()), (10, 20));
            drop((function, to));
            // The batch may still have bytes of the first function.
            assert!(maker.pool.share(free).is_err());
            drop(batch);
            assert!(maker.pool.share(free + 1).is_err());
            assert_eq!(maker.pool.share(free).unwrap().own.len(), free);
        }
    });
}

/// Takes all that a port captures.
struct Everything(Arc<std::sync::Mutex<u64>>);

impl CaptureSink for Everything {
    fn deliver(&mut self, _: Vec<u8>, packets: u64) -> Delivery {
        *self.0.lock().unwrap() += packets;
        Delivery::Taken
    }

    fn is_closed(&self) -> bool {
        false
    }
}

/// Three functions of a chain, of which the last one has memory of its own. Frames between the others stay where they are. All
/// leave the chain in order and unchanged, in both directions, also while they are captured behind the first function.
#[test]
fn functions_pass_frames_on_unread() {
    const COUNT: usize = 500;
    in_each(|maker| {
        let mut boxes = [maker.make("forward"), maker.make("forward"), maker.make_in(None, "forward")];
        let settings = SteeringSettings { chained_flows: 4096, ..SteeringSettings::default() };
        let mut switch = SwitchRunner::new(Steering::new(settings)).unwrap();
        let key = |port: PortId| PortKey(port.0 + 1);
        let mut plan = ChainsPlan::default();
        let mut ends = Vec::new();
        for number in 0..2 {
            let (near, far) = Pipe::pair().unwrap();
            let port = switch.add_port(Box::new(near), switch::PortSettings::default()).unwrap();
            assert!(port == PortId(number) && switch.switch().forward_mut().set_port_key(port, key(port)));
            ends.push(far);
        }
        let captures = Captures::default();
        for (number, sandbox) in (0..).zip(&mut boxes) {
            let mut drivers = [plug(sandbox, 0), plug(sandbox, 1)];
            Port::note_tags(&mut drivers);
            let ports = drivers.map(|driver| {
                let captures = if number == 0 { captures.clone() } else { Captures::default() };
                let driver = Box::new(CapturedDriver { driver, captures });
                let port = switch.add_port(driver, switch::PortSettings::default()).unwrap();
                assert!(switch.switch().forward_mut().set_port_key(port, key(port)));
                switch.switch().resume_port(port);
                key(port)
            });
            let instances = vec![InstancePlan { slot: 0, ports, is_draining: false, range: None }];
            plan.services.push(ServicePlan {
                number,
                instances,
                destinations: Vec::new(),
                translation: None,
            });
        }
        plan.chains = vec![ChainPlan {
            number: 0,
            services: vec![0, 1, 2],
            from: Some(PortKey(1)),
            to: PortKey(2),
            both_ways: true,
        }];
        switch.switch().forward_mut().set_chains(&plan);
        let captured = Arc::default();
        let [left, right] = ends.try_into().unwrap();
        let (mut left, mut right): (Pipe, Pipe) = (left, right);
        let mut bytes = 0;
        // Of the port to the second function, and of the port in the other direction.
        let direct =
            |switch: &SwitchRunner<Steering>| [3, 4].map(|port| switch.cost(PortId(port)).unwrap().direct);
        let mut before = [0; 2];
        for round in 0..2 {
            if round == 1 {
                before = direct(&switch);
                captures.add(Capture::new(Box::new(Everything(Arc::clone(&captured))), None, u64::MAX));
            }
            for is_forward in [true, false] {
                let (from, to) = if is_forward { (&mut left, &mut right) } else { (&mut right, &mut left) };
                let (start, mut sent, mut got) = (Instant::now(), 0, 0);
                while got < COUNT {
                    assert!(start.elapsed() < TIMEOUT, "{got} of {COUNT}");
                    let mut batch = Batch::new(64);
                    while sent < COUNT.min(got + UNDER_WAY) && batch.push(&frame(sent)) {
                        sent += 1;
                    }
                    let numbers: Vec<u32> = (0..batch.len() as u32).collect();
                    assert_eq!(from.send(&batch, &numbers).unwrap().frames, numbers.len() as u64);
                    switch.step();
                    let mut arrived = Batch::new(64);
                    to.receive(&mut arrived).unwrap();
                    for there in arrived.frames() {
                        assert_eq!(there, frame(got));
                        bytes += there.len() as u64;
                        got += 1;
                    }
                }
            }
        }
        // Nothing goes straight that is captured.
        assert!(before.iter().all(|packets| (1..=COUNT as u64).contains(packets)), "{before:?}");
        assert_eq!(direct(&switch), before);
        let steering = switch.switch().forward_mut();
        let counters = steering.chains().counters(0).unwrap();
        let all = HopCounters { packets: 2 * COUNT as u64, bytes: bytes / 2, lost: 0 };
        assert_eq!((counters.hops, counters.left), (vec![[all; 2]; 3], [all; 2]));
        // Only what entered the chain was looked up.
        let cache = steering.cache_counters();
        assert_eq!(cache.hits + cache.misses, 4 * COUNT as u64);
        // Captured at both ports of the first function, when it got a frame and when it sent it.
        assert_eq!(*captured.lock().unwrap(), 4 * COUNT as u64);
    });
}

/// What a chain of functions did with some frames.
#[derive(Debug, PartialEq)]
struct Outcome {
    hops: Vec<[HopCounters; 2]>,
    left: [HopCounters; 2],
    ports: Vec<Counters>,
    /// The numbers of the frames that left, of each flow in order.
    arrived: BTreeMap<u32, Vec<u32>>,
}

/// Sends frames of several flows through a chain of three services, of which the second one has two instances. Its functions answer
/// as the number of a frame says: in some runs of frames all go on, in others some don't. Returns what became of them, and the number
/// of packets that went straight from one function to the next.
fn through_a_chain(seed: u64, is_captured: bool) -> (Outcome, u64) {
    const COUNT: u32 = 4_000;
    let pool = PacketPool::new().unwrap();
    let settings = SteeringSettings { chained_flows: 4096, ..SteeringSettings::default() };
    let mut switch = SwitchRunner::new(Steering::new(settings)).unwrap();
    let captures = Captures::default();
    if is_captured {
        captures.add(Capture::new(Box::new(Everything(Arc::default())), None, u64::MAX));
    }
    let mut add = |driver: Box<dyn Driver>| {
        let port = switch.add_port(driver, switch::PortSettings::default()).unwrap();
        assert!(switch.switch().forward_mut().set_port_key(port, PortKey(port.0 + 1)));
        switch.switch().resume_port(port);
        PortKey(port.0 + 1)
    };
    let (near, mut left) = Pipe::pair().unwrap();
    let (far, mut right) = Pipe::pair().unwrap();
    let (from, to) = (add(Box::new(near)), add(Box::new(far)));
    let mut functions: Vec<Function> = (0..4).map(|_| Function::join(&pool)).collect();
    let mut instance = |function: usize, slot| {
        let driver = CapturedDriver { driver: functions[function].port.clone(), captures: captures.clone() };
        InstancePlan { slot, ports: [add(Box::new(driver)); 2], is_draining: false, range: None }
    };
    let services = [vec![instance(0, 0)], vec![instance(1, 0), instance(2, 1)], vec![instance(3, 0)]];
    let service =
        |(number, instances)| ServicePlan { number, instances, destinations: Vec::new(), translation: None };
    let chain = ChainPlan { number: 0, services: vec![0, 1, 2], from: Some(from), to, both_ways: false };
    let plan = ChainsPlan { services: (0..).zip(services).map(service).collect(), chains: vec![chain] };
    switch.switch().forward_mut().set_chains(&plan);
    // The same for both: a flow is as long as a run of frames.
    let drawn = move |number: u32| Random::new(seed ^ u64::from(number)).next();
    let answer = move |number: u32| match (drawn(number / 64) % 3, drawn(number) % 16) {
        (0, 0) => Answer::Drop,
        (0, 1) => Answer::LookUp,
        (0, 2) => Answer::Service(9),
        _ => Answer::Next,
    };
    let flow = |number: u32| drawn(number / 16) as u32 % 50;
    let mut frame = [0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..34].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 9, 9, 9]);
    let (mut sent, mut arrived, mut idle) = (0, BTreeMap::<u32, Vec<u32>>::new(), 0);
    let pool = File::from(pool.file().try_clone().unwrap());
    while idle < 8 {
        let mut batch = Batch::new(UNDER_WAY);
        while sent < COUNT && batch.room() > 0 {
            frame[34..38].copy_from_slice(&(flow(sent) << 16 | 53).to_be_bytes());
            frame[42..46].copy_from_slice(&sent.to_be_bytes());
            batch.push(&frame);
            sent += 1;
        }
        let numbers: Vec<u32> = (0..batch.len() as u32).collect();
        assert_eq!(left.send(&batch, &numbers).unwrap().frames, numbers.len() as u64);
        // All that is under way goes one hop further.
        let moved = switch.step();
        functions.iter_mut().for_each(|function| function.answer(&pool, 42, answer));
        let mut there = Batch::new(256);
        right.receive(&mut there).unwrap();
        for frame in there.frames() {
            let number = u32::from_be_bytes(frame[42..46].try_into().unwrap());
            arrived.entry(flow(number)).or_default().push(number);
        }
        idle = if moved + numbers.len() + there.len() == 0 { idle + 1 } else { 0 };
    }
    let ports: Vec<PortId> = switch.switch().ports().collect();
    let direct = ports.iter().map(|port| switch.cost(*port).unwrap().direct).sum();
    let ports = ports.iter().map(|port| switch.counters(*port).unwrap()).collect();
    let counters = switch.switch().forward_mut().chains().counters(0).unwrap();
    (Outcome { hops: counters.hops, left: counters.left, ports, arrived }, direct)
}

/// Packets that go straight from one function to the next meet the same fate, and are counted in the same way, as those that are
/// received and sent.
#[test]
fn packets_that_go_straight_are_counted_like_others() {
    for seed in 1..=4 {
        let ((straight, direct), (received, none)) =
            (through_a_chain(seed, false), through_a_chain(seed, true));
        assert_eq!(straight, received);
        assert!(straight.arrived.values().all(|numbers| numbers.is_sorted()));
        assert!(direct > 500 && none == 0, "{direct}, {none}");
        let all: u64 = straight.ports.iter().map(|port| port.drops.iter().sum::<u64>()).sum();
        let dropped = Reason::FUNCTION_DROP;
        assert_eq!(all, straight.ports.iter().map(|port| port.dropped(dropped)).sum::<u64>());
        assert!(all > 50 && straight.left[0].packets + all == 4_000, "{all}");
    }
}

/// What a port did not send is lost in its own chain, also before frames that it sent, and also while it is captured.
#[test]
fn frames_that_a_port_skipped_are_lost_in_their_chains() {
    for is_captured in [false, true] {
        let settings = SteeringSettings { chained_flows: 64, ..SteeringSettings::default() };
        let mut switch = SwitchRunner::new(Steering::new(settings)).unwrap();
        let mut add = |driver: Box<dyn Driver>| {
            let port = switch.add_port(driver, switch::PortSettings::default()).unwrap();
            assert!(switch.switch().forward_mut().set_port_key(port, PortKey(port.0 + 1)));
            switch.switch().resume_port(port);
            PortKey(port.0 + 1)
        };
        let (captures, captured) = (Captures::default(), Arc::default());
        if is_captured {
            captures.add(Capture::new(Box::new(Everything(Arc::clone(&captured))), None, u64::MAX));
        }
        let (near, mut left) = Pipe::pair().unwrap();
        let (from, to) = (add(Box::new(near)), add(Box::new(Pipe::pair().unwrap().0)));
        let port = add(Box::new(CapturedDriver { driver: Even::default(), captures }));
        let instance = InstancePlan { slot: 0, ports: [port; 2], is_draining: false, range: None };
        let service =
            ServicePlan { number: 0, instances: vec![instance], destinations: Vec::new(), translation: None };
        let chain = |number, from| ChainPlan { number, services: vec![0], from, to, both_ways: false };
        let steering = switch.switch().forward_mut();
        steering.set_chains(&ChainsPlan {
            services: vec![service],
            chains: vec![chain(0, Some(from)), chain(1, None)],
        });
        // The frames from address 1 take the second chain.
        let flow = Flow {
            id: 1,
            matches: vec![Match::any().with(Field::EthSrc, 1).unwrap()],
            from: None,
            priority: 5,
            output: FlowOutput::Chain(1),
            idle_timeout: None,
            hard_timeout: None,
        };
        steering.add_flow(flow, 0).unwrap();
        let mut batch = Batch::new(8);
        for length in [61, 60, 61, 60, 60] {
            let mut frame = vec![0; length];
            frame[11] = (length % 2) as u8;
            assert!(batch.push(&frame));
        }
        assert_eq!(left.send(&batch, &[0, 1, 2, 3, 4]).unwrap().frames, 5);
        assert_eq!(switch.step(), 5);
        let chains = switch.switch().forward_mut().chains();
        let hops = [0, 1].map(|chain| chains.counters(chain).unwrap().hops[0][0]);
        let expected = [(3, 180, 1), (2, 122, 2)];
        assert_eq!(hops, expected.map(|(packets, bytes, lost)| HopCounters { packets, bytes, lost }));
        assert_eq!(chains.instances(0)[0].lost, 3);
        let port = PortId(port.0 - 1);
        let counters = switch.counters(port).unwrap();
        assert_eq!((counters.sent_frames, counters.sent_bytes, counters.dropped(Reason::FULL)), (2, 120, 3));
        assert_eq!(*captured.lock().unwrap(), if is_captured { 2 } else { 0 });
    }
}
