//! Chains of a switch that several threads run: translators, and functions in processes of their own.

use crate::{Switch, add_pipe, check_books, frame, receive, run, send, switch};
use boundary::{Answer, Slots};
use std::fs::File;
use std::os::unix::fs::FileExt;
use switch::driver::{FunctionEnds, FunctionPort, Pipe};
use switch::{
    ChainBooks, ChainPlan, ChainsPlan, Decision, DestinationPlan, Driver, Forward, ForwardingMode, FrameHead,
    FrameMark, InstancePlan, PortId, PortKey, PortSettings, RangePlan, Reason, ServicePlan, Shards, Steering,
    SteeringSettings, SwitchRunner, TranslationPlan,
};

const UPLINK: PortId = PortId(0);
const WAN: PortId = PortId(1);
const INNER: PortId = PortId(2);
const OUTER: PortId = PortId(3);
/// The ports of a function behind the translator.
const SECOND: [PortId; 2] = [PortId(4), PortId(5)];
const OUTSIDE: u32 = 0xcb00_7101;

/// Two shards of a switch that sends all packets through one translator, which may send to the chain of a second function.
fn translating() -> [Steering; 2] {
    [0, 1].map(|_| {
        let mut shard = Steering::new(SteeringSettings { chained_flows: 64, ..SteeringSettings::default() });
        let key = |port: PortId| PortKey(port.0 + 1);
        for port in [UPLINK, WAN, INNER, OUTER, SECOND[0], SECOND[1]] {
            assert!(shard.set_port_key(port, key(port)));
            shard.resume_port(port);
        }
        let range = RangePlan { address: OUTSIDE, first: 1000, last: 1999 };
        let service = |number, ports: [PortId; 2], range: Option<RangePlan>| ServicePlan {
            number,
            instances: vec![InstancePlan { slot: 0, ports: ports.map(key), is_draining: false, range }],
            destinations: vec![DestinationPlan::Chain(1)],
            translation: range.map(|_| TranslationPlan::default()),
        };
        let services = vec![service(0, [INNER, OUTER], Some(range)), service(1, SECOND, None)];
        let chain = ChainPlan {
            number: 0,
            services: vec![0],
            from: Some(key(UPLINK)),
            to: key(WAN),
            both_ways: true,
        };
        let other = ChainPlan { number: 1, services: vec![1], from: None, both_ways: false, ..chain.clone() };
        shard.set_chains(&ChainsPlan { services, chains: vec![chain, other] });
        shard
    })
}

fn udp([source, destination]: [(u32, u16); 2]) -> Vec<u8> {
    let mut frame = frame(0, false);
    frame[26..30].copy_from_slice(&source.0.to_be_bytes());
    frame[30..34].copy_from_slice(&destination.0.to_be_bytes());
    frame[34..36].copy_from_slice(&source.1.to_be_bytes());
    frame[36..38].copy_from_slice(&destination.1.to_be_bytes());
    frame
}

fn decide(shard: &mut Steering, frame: &[u8], from: PortId, mark: FrameMark) -> Decision {
    let mut decisions = [Decision::Drop];
    let head = FrameHead { head: frame, length: frame.len(), mark };
    shard.decide_heads(&[head], from, 5, &mut decisions);
    decisions[0]
}

/// The decision of the other shard about a frame of a translator, which this one got with a tag; `None` if this one keeps it.
fn pass(
    shards: &mut [Steering; 2],
    here: usize,
    frame: &[u8],
    from: PortId,
    mark: FrameMark,
) -> Option<Decision> {
    let head = FrameHead { head: frame, length: frame.len(), mark };
    let tag = shards[here].translated(&head, from, 5)?;
    shards[here].passed_translated(tag);
    Some(decide(&mut shards[1 - here], frame, from, FrameMark { tag, ..mark }))
}

fn at_function(decision: Decision) -> (PortId, FrameMark) {
    match decision {
        Decision::ToFunction(port, tag) => (port, FrameMark { tag, meta: 0 }),
        other => panic!("{other:?}"),
    }
}

/// What a translator makes of a reply enters another chain in reverse, also in the other shard.
#[test]
fn translated_replies_enter_another_chain_in_reverse() {
    let mut shards = translating();
    let (client, server, outside) = ((0x0a00_0001, 7), (0x0808_0808, 53), (OUTSIDE, 1234));
    let (_, out) = at_function(decide(&mut shards[0], &udp([client, server]), UPLINK, FrameMark::default()));
    let into = |mark| FrameMark { meta: Answer::Chain(0).to_meta(), ..mark };
    let request = udp([outside, server]);
    let (to, mark) = at_function(pass(&mut shards, 0, &request, OUTER, into(out)).unwrap());
    assert_eq!(to, SECOND[0]);
    assert_eq!(decide(&mut shards[1], &request, SECOND[1], mark), Decision::To(WAN));
    let (_, back) = at_function(decide(&mut shards[1], &udp([server, outside]), WAN, FrameMark::default()));
    let reply = udp([server, client]);
    let (to, mark) = at_function(pass(&mut shards, 1, &reply, INNER, into(back)).unwrap());
    assert_eq!(to, SECOND[1]);
    assert_eq!(decide(&mut shards[0], &reply, SECOND[0], mark), Decision::To(UPLINK));
    let entered_and_left = [0, 1].map(|chain| {
        let books = shards.each_ref().map(|shard| shard.chains().books(chain).unwrap());
        (books.map(|books| books.entered), books.map(|books| books.left))
    });
    assert_eq!(entered_and_left, [([1, 1], [0, 0]), ([1, 1], [1, 1])]);
}

/// A translator gets a packet from one shard, and what it makes of it belongs to a flow of the other one. Each flow has one record, in
/// its own shard. What an instance may not send is refused, and all is counted once.
#[test]
fn translated_packets_go_on_in_the_shard_of_their_new_flow() {
    let mut shards = translating();
    let (client, server, outside) = ((0x0a00_0001, 7), (0x0808_0808, 53), (OUTSIDE, 1234));
    // Twice: with new records, and with those that are there.
    for _ in 0..2 {
        let sent = at_function(decide(&mut shards[0], &udp([client, server]), UPLINK, FrameMark::default()));
        assert_eq!(sent.0, INNER);
        let left = pass(&mut shards, 0, &udp([outside, server]), OUTER, sent.1);
        assert_eq!(left, Some(Decision::To(WAN)));
        let back = at_function(decide(&mut shards[1], &udp([server, outside]), WAN, FrameMark::default()));
        assert_eq!(back.0, OUTER);
        let left = pass(&mut shards, 1, &udp([server, client]), INNER, back.1);
        assert_eq!(left, Some(Decision::To(UPLINK)));
    }
    assert_eq!([0, 1].map(|shard: usize| shards[shard].chains().flows()), [(1, 0), (1, 0)]);
    // From outside of its range, from another source than the packet had, dropped, looked up, and unchanged.
    let request = udp([client, server]);
    let (_, out) = at_function(decide(&mut shards[0], &request, UPLINK, FrameMark::default()));
    let refused = Some(Decision::Lose(Reason::OUT_OF_RANGE));
    assert_eq!(pass(&mut shards, 0, &udp([(OUTSIDE, 3000), server]), OUTER, out), refused);
    let (_, back) = at_function(decide(&mut shards[1], &udp([server, outside]), WAN, FrameMark::default()));
    let forged = udp([(0x0909_0909, 53), client]);
    assert_eq!(pass(&mut shards, 1, &forged, INNER, back), None);
    assert_eq!(decide(&mut shards[1], &forged, INNER, back), Decision::Lose(Reason::OUT_OF_RANGE));
    let (_, out) = at_function(decide(&mut shards[0], &request, UPLINK, FrameMark::default()));
    let answer = |answer: Answer| FrameMark { meta: answer.to_meta(), ..out };
    let dropped = udp([outside, server]);
    assert_eq!(pass(&mut shards, 0, &dropped, OUTER, answer(Answer::Drop)), None);
    assert_eq!(
        decide(&mut shards[0], &dropped, OUTER, answer(Answer::Drop)),
        Decision::Lose(Reason::FUNCTION_DROP)
    );
    let (_, out) = at_function(decide(&mut shards[0], &request, UPLINK, FrameMark::default()));
    let look_up = FrameMark { meta: Answer::LookUp.to_meta(), ..out };
    assert_eq!(pass(&mut shards, 0, &dropped, OUTER, look_up), Some(Decision::To(WAN)));
    let (_, out) = at_function(decide(&mut shards[0], &request, UPLINK, FrameMark::default()));
    assert_eq!(pass(&mut shards, 0, &request, OUTER, out), None);
    let count = |shards: &[Steering; 2], shard: usize| {
        let instance = shards[shard].chains().instances(0)[0];
        (instance.flows, instance.packets, instance.learnt, instance.refused.out_of_range, instance.lost)
    };
    // Six requests of one flow, and three replies of the flow that is its outside; what is looked up enters the chain again.
    assert_eq!([count(&shards, 0), count(&shards, 1)], [(1, 6, 0, 0, 0), (0, 3, 1, 2, 0)]);
    let books = [0, 1].map(|shard: usize| shards[shard].chains().books(0).unwrap());
    assert_eq!(books.map(|books| (books.entered, books.returned, books.sent)), [(6, 5, 6), (4, 3, 3)]);
    assert_eq!(books.map(|books| (books.left, books.dropped, books.elsewhere)), [(2, 1, 0), (3, 0, 1)]);
}

/// A function in another process, with one port. It reads and writes the file of its region.
struct Function {
    ends: FunctionEnds,
    memory: File,
    /// Packets that it passed on.
    passed: u32,
}

impl Function {
    fn word(&self, place: usize) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, place as u64).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn write(&self, bytes: &[u8], place: usize) {
        self.memory.write_all_at(bytes, place as u64).unwrap();
    }

    /// Sends all packets back with this answer. Returns their number.
    fn pass(&mut self, answer: Answer) -> u32 {
        let port = self.ends.layout.ports[0];
        let (head, before) = (self.word(port.receive) as u32, self.passed);
        while self.passed != head {
            let slot = 256 + 8 * (self.passed % port.slots.count()) as usize;
            let (packet, spare) = (self.word(port.receive + slot), self.word(port.transmit + slot));
            self.write(&(spare & 0xf_ffff).to_le_bytes(), port.receive + slot);
            let sent = packet | u64::from(answer.to_meta()) << 49;
            self.write(&sent.to_le_bytes(), port.transmit + slot);
            self.passed += 1;
        }
        self.write(&head.to_le_bytes(), port.receive + 64);
        self.write(&head.to_le_bytes(), port.transmit);
        head - before
    }
}

/// A steering switch with two shards, an uplink, a second uplink and an exit, and two services of one function each. The chain of
/// the first uplink has both, that of the second one has the second service.
struct Chained {
    switch: Switch,
    ports: Vec<PortId>,
    pipes: Vec<Pipe>,
    functions: Vec<Function>,
}

impl Chained {
    fn new(slots: u32) -> Self {
        Self::with_destinations(slots, &[])
    }

    /// With what the first service may send to.
    fn with_destinations(slots: u32, destinations: &[DestinationPlan]) -> Self {
        let mode = || {
            let settings = SteeringSettings { chained_flows: 4096, ..SteeringSettings::default() };
            ForwardingMode::Steering(Box::new(Steering::new(settings)))
        };
        let mut switch = Shards::new(mode(), vec![mode()], 5).unwrap();
        let (mut ports, pipes): (Vec<_>, Vec<_>) = (0..3).map(|_| add_pipe(&mut switch)).unzip();
        let mut functions = Vec::new();
        let mut plan = ChainsPlan::default();
        let key = |port: PortId| PortKey(port.0 + 1);
        for number in 0..2 {
            let (mut made, ends) = FunctionPort::create(1, Slots::new(slots).unwrap()).unwrap();
            let memory = ends.memory.try_clone().unwrap().into();
            functions.push(Function { ends, memory, passed: 0 });
            let driver: Box<dyn Driver> = Box::new(made.remove(0));
            let port = switch.add_port(vec![driver], &PortSettings::default()).unwrap();
            ports.push(port);
            let instance = InstancePlan { slot: 0, ports: [key(port); 2], is_draining: false, range: None };
            plan.services.push(ServicePlan {
                number,
                instances: vec![instance],
                destinations: Vec::new(),
                translation: None,
            });
        }
        for (number, services) in [(0, vec![0, 1]), (1, vec![1])] {
            let from = Some(key(ports[usize::from(number)]));
            plan.chains.push(ChainPlan { number, services, from, to: key(ports[2]), both_ways: false });
        }
        let mut chained = Self { switch, ports, pipes, functions };
        for port in chained.ports.clone() {
            chained.steering().into_iter().for_each(|steering| {
                assert!(steering.set_port_key(port, key(port)));
                steering.resume_port(port);
            });
        }
        plan.services[0].destinations = destinations.to_vec();
        chained.steering().into_iter().for_each(|steering| steering.set_chains(&plan));
        chained
    }

    fn steering(&mut self) -> Vec<&mut Steering> {
        let steering = |forward| match forward {
            &mut ForwardingMode::Steering(ref mut steering) => &mut **steering,
            other => panic!("{other:?}"),
        };
        self.switch.forwards().map(steering).collect()
    }

    fn send(&mut self, uplink: usize, flows: std::ops::Range<u16>) {
        send(&mut self.pipes[uplink], &flows.map(|flow| frame(flow, false)).collect::<Vec<_>>());
        run(&mut self.switch);
    }

    /// What all shards counted of a chain.
    fn books(&mut self, chain: u16) -> Vec<ChainBooks> {
        self.steering().iter().map(|steering| steering.chains().books(chain).unwrap()).collect()
    }

    /// What the instance of a service, and the place of that service in the last of its chains, lost in each shard.
    fn lost(&mut self, service: u16) -> Vec<[u64; 2]> {
        let of_shard = |steering: &mut Steering| {
            let instance = steering.chains().instances(service)[0].lost;
            let hops = steering.chains().counters(service).unwrap().hops;
            [instance, hops.last().unwrap().iter().map(|hop| hop.lost).sum()]
        };
        self.steering().into_iter().map(of_shard).collect()
    }
}

/// One shard has the rings of a function. Packets of the other one reach it and keep their identity.
#[test]
fn a_function_is_reached_from_all_threads() {
    let mut bed = Chained::new(512);
    let answers = [(Answer::Next, 300), (Answer::Service(0), 100), (Answer::Drop, 50)];
    let mut flow = 0;
    for (answer, count) in answers {
        bed.send(0, flow..flow + count);
        assert_eq!(bed.functions[0].pass(Answer::Next), u32::from(count));
        run(&mut bed.switch);
        assert_eq!(bed.functions[1].pass(answer), u32::from(count));
        run(&mut bed.switch);
        flow += count;
    }
    // The service may send to no other one: these packets go on in the chain.
    assert_eq!(receive(&mut bed.pipes[2]).len(), 400);
    let books = bed.books(0);
    for books in &books {
        assert!(books.entered > 100 && books.elsewhere == 0, "{books:?}");
        assert_eq!((books.sent, books.returned), (2 * books.entered, 2 * books.entered));
        assert_eq!(books.left + books.dropped, books.entered);
    }
    assert_eq!(books.iter().map(|books| books.dropped).sum::<u64>(), 50);
    let instances: Vec<_> = bed.steering().iter().map(|one| one.chains().instances(1)[0]).collect();
    assert_eq!(instances.iter().map(|one| one.overruled).sum::<u64>(), 100);
    assert!(instances.iter().all(|one| one.flows > 100 && one.is_up && one.lost == 0), "{instances:?}");
    // Each function has one shard, which receives all that it sends.
    let ports = bed.ports.clone();
    for port in &ports[3..] {
        assert_eq!(
            bed.switch.counters(*port).map(|all| (all.received_frames, all.sent_frames)),
            Some((450, 450))
        );
    }
    check_books(&mut bed.switch, &ports);
}

/// A function gives flows another chain. Each shard knows it for its own flows.
#[test]
fn flows_take_another_chain_in_all_threads() {
    let mut bed = Chained::with_destinations(512, &[DestinationPlan::Chain(1)]);
    for (round, at_first) in [(Answer::FlowChain(0), 300), (Answer::Drop, 0)] {
        bed.send(0, 0..300);
        assert_eq!(bed.functions[0].pass(round), at_first);
        run(&mut bed.switch);
        assert_eq!(bed.functions[1].pass(Answer::Next), 300);
        run(&mut bed.switch);
        assert_eq!(receive(&mut bed.pipes[2]).len(), 300);
    }
    for (first, second) in bed.books(0).into_iter().zip(bed.books(1)) {
        let flows = first.returned;
        assert!(flows > 100, "{first:?}");
        let (entered, sent, elsewhere) = (2 * flows, flows, 2 * flows);
        let expected = ChainBooks { entered, returned: flows, sent, elsewhere, ..ChainBooks::default() };
        assert_eq!(first, expected);
        let (sent, left) = (entered, entered);
        assert_eq!(second, ChainBooks { entered, returned: entered, sent, left, ..ChainBooks::default() });
    }
    let ports = bed.ports.clone();
    check_books(&mut bed.switch, &ports);
}

/// What a function has no room for counts in its chain, whichever shard its flow belongs to; and all shards know that there is little
/// room, until there is more.
#[test]
fn a_function_without_room_is_known_to_all_threads() {
    let mut bed = Chained::new(64);
    bed.send(1, 0..600);
    let full = bed.switch.counters(bed.ports[4]).unwrap().dropped(Reason::FULL);
    assert_eq!(full, 600 - 64);
    let lost = bed.lost(1);
    assert!(lost.iter().all(|[instance, hop]| instance == hop && *hop > 150), "{lost:?}");
    assert_eq!(lost.iter().map(|[instance, _]| instance).sum::<u64>(), full);
    // Packets that would come to it later are lost where they enter the chain.
    bed.send(0, 0..400);
    let congested: Vec<u64> = bed.books(0).iter().map(|books| books.congested).collect();
    assert!(congested.iter().all(|count| *count > 100), "{congested:?}");
    assert_eq!((congested.iter().sum::<u64>(), bed.functions[0].pass(Answer::Next)), (400, 0));
    assert_eq!(bed.functions[1].pass(Answer::Next), 64);
    run(&mut bed.switch);
    bed.send(0, 0..20);
    assert_eq!((bed.functions[0].pass(Answer::Next), receive(&mut bed.pipes[2]).len()), (20, 64));
    // It vanishes with what is in its ring, and another one comes.
    run(&mut bed.switch);
    let (mut made, ends) = FunctionPort::create(1, Slots::new(64).unwrap()).unwrap();
    let port = bed.ports[4];
    bed.switch.settle();
    bed.switch.set_drivers(port, vec![Box::new(made.remove(0))]);
    let memory = ends.memory.try_clone().unwrap().into();
    bed.functions[1] = Function { ends, memory, passed: 0 };
    let down = bed.switch.counters(port).unwrap().dropped(Reason::DOWN);
    bed.send(1, 0..40);
    assert_eq!(bed.functions[1].pass(Answer::Next), 40);
    run(&mut bed.switch);
    assert_eq!((receive(&mut bed.pipes[2]).len(), down), (40, 20));
    let ports = bed.ports.clone();
    check_books(&mut bed.switch, &ports);
}

/// The ports of a function have one doorbell, so one shard drives them.
#[test]
fn ports_beside_each_other_belong_to_one_thread() {
    let mut switch = switch(3);
    let mut owned = Vec::new();
    for _ in 0..6 {
        let mut add = |beside: Option<PortId>| {
            let (inside, outside) = Pipe::pair().unwrap();
            let port = switch.add_port_beside(vec![Box::new(inside)], &PortSettings::default(), beside);
            (port.unwrap(), outside)
        };
        let (first, mut ours) = add(None);
        let (second, mut theirs) = add(Some(first));
        send(&mut ours, &[frame(1, false)]);
        send(&mut theirs, &[frame(1, false)]);
        // Each shard takes from its own ports.
        let moved: Vec<usize> = switch.shards_mut().map(SwitchRunner::step).collect();
        let owner = moved.iter().position(|moved| *moved >= 2).unwrap();
        owned.push(owner);
        run(&mut switch);
        check_books(&mut switch, &[first, second]);
    }
    owned.sort_unstable();
    assert_eq!(owned, [0, 0, 1, 1, 2, 2]);
}
