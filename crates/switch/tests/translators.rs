//! Services that translate addresses: both directions of a flow meet the same instances, and no instance gets at the flows of
//! another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use switch::{
    ChainPlan, ChainsPlan, Decision, FlowEnd, FlowTuple, Forward, FrameHead, FrameMark, InstancePlan,
    InstanceStatus, MappingPlan, PortId, PortKey, RangePlan, Reason, RefusedTuples, ServicePlan, Steering,
    SteeringSettings, TranslationPlan,
};

const UPLINK: PortId = PortId(0);
const WAN: PortId = PortId(1);

const FIREWALL: u16 = 0;
const NAT: u16 = 1;
const IDS: u16 = 2;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;

/// The outside address.
const OUTSIDE: u32 = 0xcb00_7101;

/// The ports of an instance.
const SLICE: u16 = 4000;

/// Records of flows.
const RECORDS: usize = 1 << 18;

fn end(address: u32, port: u16) -> FlowEnd {
    FlowEnd { address, port }
}

fn client(number: u32) -> FlowEnd {
    end(0x0a00_0000 + number / 8, 1024 + (number % 8) as u16)
}

fn server(number: u32) -> FlowEnd {
    end(0x0808_0000 + number % 5, 53 + (number % 3) as u16)
}

/// The port of an instance: two for each, the inner one first.
fn port(service: u16, slot: u8, outer: bool) -> PortId {
    PortId(100 + service * 40 + u16::from(slot) * 2 + u16::from(outer))
}

fn key(port: PortId) -> PortKey {
    PortKey(port.0 + 1)
}

/// A packet as the functions here see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    protocol: u8,
    source: FlowEnd,
    destination: FlowEnd,
}

impl Packet {
    fn new(protocol: u8, source: FlowEnd, destination: FlowEnd) -> Self {
        Self { protocol, source, destination }
    }

    fn back(self) -> Self {
        Self { source: self.destination, destination: self.source, ..self }
    }

    /// Echo messages have one identifier in place of two ports.
    fn with_identifier(mut self, identifier: u16) -> Self {
        if self.protocol == ICMP {
            (self.source.port, self.destination.port) = (identifier, identifier);
        }
        self
    }

    fn ip(self) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, self.protocol, 0, 0];
        packet.extend(self.source.address.to_be_bytes());
        packet.extend(self.destination.address.to_be_bytes());
        match self.protocol {
            // An echo request, whose identifier is the port.
            ICMP => {
                packet.extend([8, 0, 0, 0]);
                packet.extend(self.source.port.to_be_bytes());
                packet.extend([0, 1]);
            }
            _ => {
                packet.extend(self.source.port.to_be_bytes());
                packet.extend(self.destination.port.to_be_bytes());
                packet.extend([0, 8, 0, 0]);
            }
        }
        packet
    }

    fn frame(self) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend(self.ip());
        frame.resize(60, 0);
        frame
    }

    /// An ICMP error of a router that quotes the packet.
    fn error(self, router: u32) -> Vec<u8> {
        let mut frame =
            vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 56, 0, 0, 0, 0, 64, ICMP, 0, 0];
        frame.extend(router.to_be_bytes());
        frame.extend(self.source.address.to_be_bytes());
        frame.extend([3, 1, 0, 0, 0, 0, 0, 0]);
        frame.extend(self.ip());
        frame
    }
}

/// What an instance of the translator knows.
#[derive(Clone, Debug)]
struct Nat {
    range: RangePlan,
    next: u16,
    out: HashMap<(u8, FlowEnd, FlowEnd), u16>,
    back: HashMap<(u8, u16, FlowEnd), FlowEnd>,
}

impl Nat {
    fn new(slot: u8) -> Self {
        let range = range(slot);
        Self { range, next: range.first, out: HashMap::new(), back: HashMap::new() }
    }

    fn translate(&mut self, packet: Packet, reverse: bool) -> Option<Packet> {
        let Packet { protocol, source, destination } = packet;
        if reverse {
            if protocol == TCP && destination == MAPPED_OUTSIDE {
                return Some(Packet { destination: MAPPED_INSIDE, ..packet });
            }
            let inside = *self.back.get(&(protocol, destination.port, remote(protocol, source)))?;
            return Some(Packet::new(protocol, source, inside).with_identifier(inside.port));
        }
        if protocol == TCP && source == MAPPED_INSIDE {
            return Some(Packet { source: MAPPED_OUTSIDE, ..packet });
        }
        let next = &mut self.next;
        let far = remote(protocol, destination);
        let port = *self.out.entry((protocol, source, far)).or_insert_with(|| {
            *next += 1;
            assert!((self.range.first..=self.range.last).contains(&(*next - 1)));
            *next - 1
        });
        self.back.insert((protocol, port, far), source);
        Some(Packet::new(protocol, end(self.range.address, port), destination).with_identifier(port))
    }
}

/// The other end of a flow: that of echo messages has no port of its own.
fn remote(protocol: u8, other: FlowEnd) -> FlowEnd {
    if protocol == ICMP { end(other.address, 0) } else { other }
}

const MAPPED_OUTSIDE: FlowEnd = FlowEnd { address: OUTSIDE, port: 80 };
const MAPPED_INSIDE: FlowEnd = FlowEnd { address: 0x0a00_ff01, port: 8080 };

fn range(slot: u8) -> RangePlan {
    let first = 10_000 + u16::from(slot) * SLICE;
    RangePlan { address: OUTSIDE, first, last: first + SLICE - 1 }
}

/// The way of a packet: the instances of the firewall, the translator and the intrusion detection, and what left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    slots: [u8; 3],
    left: Packet,
}

struct TestBed {
    steering: Steering,
    plan: ChainsPlan,
    /// The instances that translate, by service and slot.
    nats: BTreeMap<(u16, u8), Nat>,
    now: u64,
}

fn chain() -> ChainPlan {
    ChainPlan {
        number: 0,
        services: vec![FIREWALL, NAT, IDS],
        from: Some(key(UPLINK)),
        to: key(WAN),
        both_ways: true,
    }
}

impl TestBed {
    /// A firewall and an intrusion detection with three instances each, and a translator between them.
    fn new(translators: u8) -> Self {
        let settings =
            SteeringSettings { seed: [3, 4], chained_flows: RECORDS, ..SteeringSettings::default() };
        let mut bed = Self {
            steering: Steering::new(settings),
            plan: ChainsPlan { services: Vec::new(), chains: vec![chain()] },
            nats: BTreeMap::new(),
            now: 1_000_000_000,
        };
        for port in [UPLINK, WAN] {
            assert!(bed.steering.set_port_key(port, key(port)));
        }
        for (number, instances) in [(FIREWALL, 3), (NAT, translators), (IDS, 3)] {
            let mapping = MappingPlan { protocol: Some(TCP), outside: MAPPED_OUTSIDE, inside: MAPPED_INSIDE };
            bed.plan.services.push(ServicePlan {
                number,
                instances: Vec::new(),
                destinations: Vec::new(),
                translation: (number == NAT)
                    .then(|| TranslationPlan { mappings: vec![mapping], held: Vec::new() }),
            });
            (0..instances).for_each(|slot| bed.add_instance(number, slot));
        }
        bed.apply();
        bed
    }

    fn apply(&mut self) {
        self.steering.set_chains(&self.plan);
    }

    fn add_instance(&mut self, service: u16, slot: u8) {
        let ports = [false, true].map(|outer| port(service, slot, outer));
        for port in ports {
            assert!(self.steering.set_port_key(port, key(port)));
            self.steering.resume_port(port);
        }
        if service == NAT {
            self.nats.insert((service, slot), Nat::new(slot));
        }
        let range = (service == NAT).then(|| range(slot));
        let instance = InstancePlan { slot, ports: ports.map(key), is_draining: false, range };
        self.plan.services[usize::from(service)].instances.push(instance);
    }

    fn decide(&mut self, frame: &[u8], from: PortId, mark: FrameMark) -> Decision {
        let mut decisions = [Decision::Drop];
        let head = FrameHead { head: frame, length: frame.len(), mark };
        self.steering.decide_heads(&[head], from, self.now, &mut decisions);
        decisions[0]
    }

    /// Sends a packet through the chain.
    fn pass(&mut self, packet: Packet, reverse: bool) -> Result<Way, Decision> {
        let (mut packet, mut mark, mut slots) = (packet, FrameMark::default(), [u8::MAX; 3]);
        let mut from = if reverse { WAN } else { UPLINK };
        loop {
            match self.decide(&packet.frame(), from, mark) {
                Decision::ToFunction(to, tag) => {
                    let place = to.0 - 100;
                    let (service, slot) = (place / 40, (place % 40 / 2) as u8);
                    assert_eq!(place % 2 == 1, reverse, "{to:?}");
                    slots[usize::from(service)] = slot;
                    if let Some(nat) = self.nats.get_mut(&(service, slot)) {
                        packet = nat.translate(packet, reverse).ok_or(Decision::Lose(Reason::NO_MAPPING))?;
                    }
                    (from, mark) = (PortId(100 + (place ^ 1)), FrameMark { tag, meta: 0 });
                }
                Decision::To(to) => {
                    assert_eq!(to, if reverse { UPLINK } else { WAN });
                    return Ok(Way { slots, left: packet });
                }
                other => return Err(other),
            }
        }
    }

    fn out(&mut self, packet: Packet) -> Way {
        self.pass(packet, false).unwrap_or_else(|other| panic!("{packet:?}: {other:?}"))
    }

    fn back(&mut self, packet: Packet) -> Way {
        self.pass(packet, true).unwrap_or_else(|other| panic!("{packet:?}: {other:?}"))
    }

    /// The tag of a packet that is at an instance of the translator, which it reaches as the first or the last hop.
    fn at_translator(&mut self, packet: Packet, reverse: bool) -> (u8, u64) {
        let (mut from, mut mark) = (if reverse { WAN } else { UPLINK }, FrameMark::default());
        loop {
            match self.decide(&packet.frame(), from, mark) {
                Decision::ToFunction(to, tag) if (to.0 - 100) / 40 == NAT => {
                    return (((to.0 - 100) % 40 / 2) as u8, tag);
                }
                Decision::ToFunction(to, tag) => {
                    (from, mark) = (PortId(100 + ((to.0 - 100) ^ 1)), FrameMark { tag, meta: 0 });
                }
                other => panic!("{packet:?}: {other:?}"),
            }
        }
    }

    fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1_000_000_000;
            self.steering.expire_flows(self.now, 0);
        }
    }

    fn instances(&self, service: u16) -> Vec<InstanceStatus> {
        self.steering.chains().instances(service)
    }

    fn flows(&self, service: u16) -> u64 {
        self.instances(service).iter().map(|instance| instance.flows).sum()
    }

    fn refused(&self) -> Vec<RefusedTuples> {
        self.instances(NAT).iter().map(|instance| instance.refused).collect()
    }

    /// Asserts what was learnt from, and refused to, each instance.
    fn assert_learnt(&self, learnt: &[usize], refused: &[RefusedTuples]) {
        let found: Vec<usize> = self.instances(NAT).iter().map(|instance| instance.learnt).collect();
        assert_eq!((found.as_slice(), self.refused().as_slice()), (learnt, refused));
    }
}

const NONE: RefusedTuples = RefusedTuples { out_of_range: 0, taken: 0, no_room: 0 };

/// UDP, TCP and echo messages of clients to servers.
fn packets(count: u32) -> impl Iterator<Item = Packet> {
    (0..count).map(|number| match number % 3 {
        0 => Packet::new(UDP, client(number), server(number)),
        1 => Packet::new(TCP, client(number), server(number)),
        _ => {
            let client = client(number);
            Packet::new(ICMP, client, end(server(number).address, client.port))
        }
    })
}

/// The reply to a packet that left.
fn reply(way: Way) -> Packet {
    way.left.back()
}

#[test]
fn replies_return_to_their_clients_by_the_same_instances() {
    let mut bed = TestBed::new(4);
    let mut used = BTreeSet::new();
    let sent: Vec<(Packet, Way)> = packets(6000).map(|packet| (packet, bed.out(packet))).collect();
    for (packet, way) in &sent {
        used.insert(way.slots);
        let back = bed.back(reply(*way));
        assert_eq!(back.slots, way.slots, "{packet:?}");
        assert_eq!(back.left.destination.address, packet.source.address);
        assert_eq!(back.left.destination, packet.source);
    }
    // The firewall and the translator choose by the same hash, the intrusion detection by that of the translated flow.
    assert_eq!(used.len(), 3 * 2 * 3);
    // Each flow counts once at each service.
    for service in [FIREWALL, NAT, IDS] {
        assert_eq!(bed.flows(service), 6000);
    }
    let learnt: Vec<usize> = bed.instances(NAT).iter().map(|instance| instance.learnt).collect();
    assert_eq!((learnt.iter().sum::<usize>(), bed.steering.chains().flows()), (6000, (12_000, 0)));
    assert!(learnt.iter().all(|count| (1350..1650).contains(count)), "{learnt:?}");
    bed.assert_learnt(&learnt, &[NONE; 4]);
    let counters = bed.steering.chains().counters(0).unwrap();
    for hop in counters.hops.iter().chain([&counters.left]) {
        assert_eq!(hop.map(|way| (way.packets, way.bytes, way.lost)), [(6000, 360_000, 0); 2]);
    }
    // Idle flows are forgotten, and nothing stays.
    bed.wait(250);
    assert_eq!(bed.steering.chains().flows(), (0, 0));
    for service in [FIREWALL, NAT, IDS] {
        assert_eq!(bed.flows(service), 0);
    }
    bed.assert_learnt(&[0; 4], &[NONE; 4]);
}

#[test]
fn without_records_the_range_finds_the_instance() {
    let mut bed = TestBed::new(3);
    let sent: Vec<(Packet, Way)> = packets(1500).map(|packet| (packet, bed.out(packet))).collect();
    bed.wait(250);
    assert_eq!(bed.steering.chains().flows(), (0, 0));
    // Two more instances, which would get some of the flows if these were new.
    for slot in 3..5 {
        bed.add_instance(NAT, slot);
    }
    bed.apply();
    for (packet, way) in &sent {
        let back = bed.back(reply(*way));
        assert_eq!((back.slots, back.left.destination), (way.slots, packet.source));
    }
    // The flow of the client's side was learnt from the reply.
    let learnt: Vec<usize> = bed.instances(NAT).iter().map(|instance| instance.learnt).collect();
    assert_eq!((learnt.iter().sum::<usize>(), &learnt[3..]), (1500, &[0, 0][..]));
    for (packet, way) in &sent {
        assert_eq!(bed.out(*packet), *way);
    }
    for service in [FIREWALL, NAT, IDS] {
        assert_eq!(bed.flows(service), 1500);
    }
    bed.assert_learnt(&learnt, &[NONE; 5]);
}

#[test]
fn scaling_moves_no_translated_flow() {
    let mut bed = TestBed::new(2);
    let sent: Vec<(Packet, Way)> = packets(900).map(|packet| (packet, bed.out(packet))).collect();
    let check = |bed: &mut TestBed| {
        for (packet, way) in &sent {
            assert_eq!(bed.out(*packet), *way);
            let back = bed.back(reply(*way));
            assert_eq!((back.slots, back.left.destination), (way.slots, packet.source));
        }
    };
    for slot in 2..8 {
        bed.add_instance(NAT, slot);
        bed.apply();
        check(&mut bed);
    }
    // Drained, instances go on with their flows, and get no new ones.
    for instance in &mut bed.plan.services[usize::from(NAT)].instances[..2] {
        instance.is_draining = true;
    }
    bed.apply();
    check(&mut bed);
    for number in 10_000..10_300 {
        assert!(bed.out(Packet::new(UDP, client(number), server(number))).slots[1] >= 2);
    }
    // A chain that is changed keeps the flows.
    bed.plan.chains[0].services = vec![NAT, IDS];
    bed.apply();
    for (packet, way) in &sent {
        let out = bed.out(*packet);
        assert_eq!((out.slots[1..].to_vec(), out.left), (way.slots[1..].to_vec(), way.left));
        let back = bed.back(reply(*way));
        assert_eq!(
            (back.slots[1..].to_vec(), back.left.destination),
            (way.slots[1..].to_vec(), packet.source)
        );
    }
    assert_eq!(bed.refused(), [NONE; 8]);
}

#[test]
fn the_flows_of_an_instance_that_ended_are_not_given_to_others() {
    let mut bed = TestBed::new(2);
    let packet = packets(100).find(|packet| bed.out(*packet).slots[1] == 1).unwrap();
    let way = bed.out(packet);
    bed.steering.flush_port(port(NAT, 1, false));
    let lost = bed.steering.chains().counters(0).unwrap().hops[1][1].lost;
    assert_eq!(bed.pass(reply(way), true), Err(Decision::Lose(Reason::NO_INSTANCE)));
    assert_eq!(bed.steering.chains().counters(0).unwrap().hops[1][1].lost, lost + 1);
    // The client's next packet gets another translation.
    let other = bed.out(packet);
    assert_eq!((other.slots[1], bed.back(reply(other)).left.destination), (0, packet.source));
    // When it is back, new packets to its range go there.
    bed.steering.resume_port(port(NAT, 1, false));
    bed.nats.insert((NAT, 1), Nat::new(1));
    assert_eq!(bed.pass(reply(way), true), Err(Decision::Lose(Reason::NO_MAPPING)));
    assert_eq!(bed.refused(), [NONE; 2]);
}

#[test]
fn static_mappings_lead_to_one_instance() {
    let mut bed = TestBed::new(3);
    let inbound = |number: u32| Packet::new(TCP, end(0x0101_0101 + number, 5000), MAPPED_OUTSIDE);
    let check = |bed: &mut TestBed, slot: u8, numbers: std::ops::Range<u32>| {
        for number in numbers {
            let way = bed.back(inbound(number));
            assert_eq!((way.slots[1], way.left.destination), (slot, MAPPED_INSIDE));
            let out = bed.out(way.left.back());
            assert_eq!((out.slots, out.left), (way.slots, inbound(number).back()));
        }
    };
    check(&mut bed, 0, 0..200);
    // Also if it sends first, and if no record is left.
    bed.wait(250);
    let out = bed.out(Packet::new(TCP, MAPPED_INSIDE, inbound(7).source));
    assert_eq!((out.slots[1], out.left), (0, inbound(7).back()));
    assert_eq!(bed.flows(NAT), 1);
    // Another instance takes over, and living flows stay there.
    bed.steering.flush_port(port(NAT, 0, true));
    check(&mut bed, 1, 0..200);
    bed.steering.resume_port(port(NAT, 0, true));
    check(&mut bed, 1, 0..200);
    check(&mut bed, 0, 200..300);
    assert_eq!((bed.flows(NAT), bed.refused()), (300, vec![NONE; 3]));
    // The same port of another protocol is not mapped.
    let other = Packet { protocol: UDP, ..inbound(7) };
    assert_eq!(bed.pass(other, true), Err(Decision::Lose(Reason::NO_MAPPING)));
}

#[test]
fn errors_reach_the_instance_of_their_flow() {
    let mut bed = TestBed::new(4);
    for packet in packets(90) {
        let way = bed.out(packet);
        let mut mark = FrameMark::default();
        let mut from = WAN;
        for hop in [IDS, NAT] {
            let frame = way.left.error(0x0707_0707);
            let expected = port(hop, way.slots[usize::from(hop)], true);
            match bed.decide(&frame, from, mark) {
                Decision::ToFunction(to, tag) if to == expected => {
                    (from, mark) = (PortId(to.0 - 1), FrameMark { tag, meta: 0 });
                }
                other => panic!("{packet:?}: {other:?}, not {expected:?}"),
            }
        }
        // Translated back, it quotes what the client sent.
        let expected = port(FIREWALL, way.slots[0], true);
        match bed.decide(&packet.error(0x0707_0707), from, mark) {
            Decision::ToFunction(to, _) => assert_eq!(to, expected),
            other => panic!("{packet:?}: {other:?}"),
        }
    }
    assert_eq!(bed.refused(), [NONE; 4]);
}

#[test]
fn an_instance_translates_only_to_its_range() {
    let mut bed = TestBed::new(2);
    let packet = packets(100).find(|packet| bed.out(*packet).slots[1] == 0).unwrap();
    let learnt: Vec<usize> = bed.instances(NAT).iter().map(|instance| instance.learnt).collect();
    let (flows, mut refused) = (bed.steering.chains().flows(), 0);
    for source in [
        end(OUTSIDE, range(1).first),
        end(OUTSIDE, range(1).last),
        end(OUTSIDE, range(0).first - 1),
        end(OUTSIDE, range(1).last + 1),
        end(OUTSIDE + 1, range(0).first),
        client(77),
        MAPPED_INSIDE,
    ] {
        let (slot, tag) = bed.at_translator(packet, false);
        let forged = Packet { source, ..packet }.frame();
        let decision = bed.decide(&forged, port(NAT, slot, true), FrameMark { tag, meta: 0 });
        assert_eq!((slot, decision), (0, Decision::Lose(Reason::OUT_OF_RANGE)), "{source:?}");
        refused += 1;
        bed.assert_learnt(&learnt, &[RefusedTuples { out_of_range: refused, ..NONE }, NONE]);
    }
    // What it did not change passes.
    let (slot, tag) = bed.at_translator(packet, false);
    let decision = bed.decide(&packet.frame(), port(NAT, slot, true), FrameMark { tag, meta: 0 });
    assert!(matches!(decision, Decision::ToFunction(to, _) if (to.0 - 100) / 40 == IDS), "{decision:?}");
    // The outside of a static mapping belongs to the first instance.
    let other = packets(100).find(|packet| bed.out(*packet).slots[1] == 1).unwrap();
    let (slot, tag) = bed.at_translator(other, false);
    let forged = Packet { source: MAPPED_OUTSIDE, protocol: TCP, ..other }.frame();
    let decision = bed.decide(&forged, port(NAT, slot, true), FrameMark { tag, meta: 0 });
    assert_eq!((slot, decision), (1, Decision::Lose(Reason::OUT_OF_RANGE)));
    // Nor does it help to send packets without identity.
    for source in [end(OUTSIDE, range(0).first + 3000), MAPPED_OUTSIDE] {
        let forged = Packet::new(TCP, source, server(1)).frame();
        let decision = bed.decide(&forged, port(NAT, 1, true), FrameMark::default());
        assert_eq!(decision, Decision::Lose(Reason::OUT_OF_RANGE));
    }
    let refused =
        [RefusedTuples { out_of_range: refused, ..NONE }, RefusedTuples { out_of_range: 3, ..NONE }];
    bed.assert_learnt(&learnt, &refused);
    assert_eq!(bed.steering.chains().flows(), flows);
}

#[test]
fn an_instance_cannot_claim_a_flow_of_another() {
    let mut bed = TestBed::new(2);
    let sent: Vec<(Packet, Way)> = packets(60).map(|packet| (packet, bed.out(packet))).collect();
    let learnt: Vec<usize> = bed.instances(NAT).iter().map(|instance| instance.learnt).collect();
    let victim = sent.iter().find(|(packet, way)| packet.protocol == UDP && way.slots[1] == 0).unwrap();
    // A packet from the victim's server comes to the range of the other instance, which says that it is the victim's reply.
    let bait = Packet::new(UDP, victim.0.destination, end(OUTSIDE, range(1).first + 3000));
    let (slot, tag) = bed.at_translator(bait, true);
    let reply_to_victim = victim.0.back().frame();
    let decision = bed.decide(&reply_to_victim, port(NAT, slot, false), FrameMark { tag, meta: 0 });
    assert_eq!((slot, decision), (1, Decision::Lose(Reason::FLOW_TAKEN)));
    // The same without identity, in both directions.
    for (frame, outer) in [(victim.0.back().frame(), false), (victim.0.frame(), true)] {
        let decision = bed.decide(&frame, port(NAT, 1, outer), FrameMark::default());
        assert_eq!(decision, Decision::Lose(Reason::FLOW_TAKEN));
    }
    // A flow that nobody has: only if its server sent to the instance.
    let nobody = Packet::new(UDP, server(1), client(5000));
    let (slot, tag) = bed.at_translator(Packet { source: server(3), ..bait }, true);
    let decision = bed.decide(&nobody.frame(), port(NAT, slot, false), FrameMark { tag, meta: 0 });
    assert_eq!(decision, Decision::Lose(Reason::OUT_OF_RANGE));
    bed.assert_learnt(&learnt, &[NONE, RefusedTuples { out_of_range: 1, taken: 3, no_room: 0 }]);
    for (packet, way) in &sent {
        assert_eq!(bed.out(*packet), *way);
        let back = bed.back(reply(*way));
        assert_eq!((back.slots, back.left.destination), (way.slots, packet.source));
    }
}

#[test]
fn an_instance_learns_a_bounded_number_of_flows() {
    let mut bed = TestBed::new(2);
    let sent: Vec<(Packet, Way)> = packets(300).map(|packet| (packet, bed.out(packet))).collect();
    let before: Vec<usize> = bed.instances(NAT).iter().map(|instance| instance.learnt).collect();
    let packet = sent.iter().find(|(_, way)| way.slots[1] == 0).unwrap().0;
    let most = RECORDS / 8;
    // One packet after the other leaves as another flow of its range.
    let (mut passed, flood) = (0, 50_000);
    for number in 0..flood {
        let (slot, tag) = bed.at_translator(packet, false);
        let source = end(OUTSIDE, range(0).first + (number % 4000) as u16);
        let forged = Packet { source, destination: end(0x0909_0000 + number / 4000, 9), protocol: UDP };
        let decision = bed.decide(&forged.frame(), port(NAT, slot, true), FrameMark { tag, meta: 0 });
        passed += usize::from(matches!(decision, Decision::ToFunction(..)));
    }
    let learnt: Vec<usize> = bed.instances(NAT).iter().map(|instance| instance.learnt).collect();
    assert_eq!((passed, &learnt), (flood as usize, &vec![most, before[1]]));
    // What it did not learn, and what it learnt in place of flows of its own.
    let (flows, displaced) = bed.steering.chains().flows();
    let no_room = u64::from(flood) - (most - before[0]) as u64 - displaced;
    assert_eq!((flows, displaced < 100), (600 + most - before[0], true));
    bed.assert_learnt(&learnt, &[RefusedTuples { no_room, ..NONE }, NONE]);
    // Nothing is lost: without a record, the range decides, and the others as both directions hash.
    let other = Packet::new(UDP, client(4000), server(4000));
    let (slot, tag) = bed.at_translator(other, false);
    assert_eq!(slot, 0);
    let unlearnt = Packet::new(UDP, end(OUTSIDE, range(0).first + 3999), end(0x0a0a_0a0a, 9));
    let decision = bed.decide(&unlearnt.frame(), port(NAT, slot, true), FrameMark { tag, meta: 0 });
    let Decision::ToFunction(out, _) = decision else { panic!("{decision:?}") };
    let back = bed.decide(&unlearnt.back().frame(), WAN, FrameMark::default());
    let Decision::ToFunction(back, tag) = back else { panic!("{back:?}") };
    assert_eq!(out.0 + 1, back.0);
    let next = bed.decide(&unlearnt.back().frame(), PortId(back.0 - 1), FrameMark { tag, meta: 0 });
    assert!(matches!(next, Decision::ToFunction(to, _) if to == port(NAT, 0, true)), "{next:?}");
    // Without identity, it is not even sent on.
    let made = Packet { source: end(OUTSIDE, range(0).first + 3998), ..unlearnt }.frame();
    let decision = bed.decide(&made, port(NAT, 0, true), FrameMark::default());
    assert_eq!(decision, Decision::Lose(Reason::TOO_MANY_FLOWS));
    // The other instance is not affected.
    for (packet, way) in sent.iter().filter(|(_, way)| way.slots[1] == 1) {
        assert_eq!(bed.out(*packet), *way);
        let back = bed.back(reply(*way));
        assert_eq!((back.slots, back.left.destination), (way.slots, packet.source));
    }
}

#[test]
fn packets_without_identity_find_their_flow() {
    let mut bed = TestBed::new(3);
    // A function that copies packets loses their identity.
    for packet in packets(90) {
        let way = bed.out(packet);
        for (frame, from, next) in [
            (way.left.frame(), port(NAT, way.slots[1], true), port(IDS, way.slots[2], false)),
            (packet.back().frame(), port(NAT, way.slots[1], false), port(FIREWALL, way.slots[0], true)),
        ] {
            let decision = bed.decide(&frame, from, FrameMark::default());
            let Decision::ToFunction(to, _) = decision else { panic!("{packet:?}: {decision:?}") };
            // Echo messages have one direction here.
            assert!(to == next || packet.protocol == ICMP, "{packet:?}: {to:?}, not {next:?}");
        }
    }
    // A translator that always copies.
    let packet = Packet::new(UDP, client(9000), server(9000));
    let (slot, _) = bed.at_translator(packet, false);
    let translated = Packet { source: end(OUTSIDE, range(slot).first + 3000), ..packet };
    let decision = bed.decide(&translated.frame(), port(NAT, slot, true), FrameMark::default());
    assert!(matches!(decision, Decision::ToFunction(..)), "{decision:?}");
    // One that makes packets of its own, from an address of nobody, and others than IPv4.
    let own = Packet::new(UDP, end(0x0a0b_0c0d, 5), server(3)).frame();
    let mut arp = vec![0xff; 6];
    arp.extend([2, 0, 0, 0, 0, 9, 8, 6]);
    arp.resize(60, 0);
    for frame in [own, arp] {
        for slot in 0..3 {
            let decision = bed.decide(&frame, port(NAT, slot, true), FrameMark::default());
            let is_sent = matches!(decision, Decision::ToFunction(..));
            let is_taken = decision == Decision::Lose(Reason::FLOW_TAKEN);
            assert!(is_sent || is_taken, "{decision:?}");
        }
    }
    let refused: u64 = bed.refused().iter().map(|refused| refused.out_of_range + refused.no_room).sum();
    assert_eq!(refused, 0);
}

#[test]
fn two_translators_in_a_row_are_independent() {
    let mut bed = TestBed::new(3);
    // The intrusion detection becomes a translator to another address.
    let outer = &mut bed.plan.services[usize::from(IDS)];
    outer.translation = Some(TranslationPlan::default());
    for instance in &mut outer.instances {
        let range = RangePlan { address: OUTSIDE + 1, ..range(instance.slot) };
        instance.range = Some(range);
        bed.nats.insert((IDS, instance.slot), Nat { range, ..Nat::new(instance.slot) });
    }
    bed.apply();
    let sent: Vec<(Packet, Way)> = packets(900).map(|packet| (packet, bed.out(packet))).collect();
    let check = |bed: &mut TestBed| {
        for (packet, way) in &sent {
            assert_eq!(way.left.source.address, OUTSIDE + 1);
            let back = bed.back(reply(*way));
            assert_eq!((back.slots, back.left.destination), (way.slots, packet.source), "{packet:?}");
            assert_eq!(bed.out(*packet), *way);
        }
        // Each flow counts once at each service.
        assert_eq!([FIREWALL, NAT, IDS].map(|service| bed.flows(service)), [900; 3]);
    };
    check(&mut bed);
    bed.wait(250);
    check(&mut bed);
    assert_eq!(bed.refused(), [NONE; 3]);
    let refused = bed.instances(IDS).iter().map(|instance| instance.refused).collect::<Vec<_>>();
    assert_eq!(refused, [NONE; 3]);
}

/// The tuples of the flows of an instance: those inside and those outside.
fn tuples(nat: &Nat) -> Vec<(u8, [FlowEnd; 2])> {
    let mut found = Vec::new();
    for ((protocol, source, far), port) in &nat.out {
        let far = if *protocol == ICMP { end(far.address, source.port) } else { *far };
        let outside = end(nat.range.address, *port);
        let outer_far = if *protocol == ICMP { end(far.address, *port) } else { far };
        found.extend([(*protocol, [*source, far]), (*protocol, [outside, outer_far])]);
    }
    found
}

/// Hands all flows of an instance and its range over to another one, with the steps of a fabric.
fn hand_over(bed: &mut TestBed, from: u8, to: u8, held: Vec<(u8, RangePlan)>, ranges: [bool; 2]) {
    let nat = bed.nats[&(NAT, from)].clone();
    let flows: Vec<FlowTuple> =
        tuples(&nat).into_iter().map(|(protocol, ends)| bed.steering.flow_tuple(protocol, ends)).collect();
    let chains = bed.steering.chains_mut();
    assert!(chains.freeze_flows(NAT, from, flows.iter().map(|flow| flow.hash).collect()));
    assert!(!chains.freeze_instance(NAT, from), "only one at a time");
    flows.iter().for_each(|flow| chains.reassign(NAT, flow, (from, to)));
    chains.thaw(false);
    assert!(chains.freeze_instance(NAT, from));
    assert!(!chains.reassign_rest((NAT, from), Some(to), 0..RECORDS));
    chains.thaw(false);
    let heir = bed.nats.get_mut(&(NAT, to)).expect("an instance");
    heir.out.extend(nat.out);
    heir.back.extend(nat.back);
    bed.nats.insert((NAT, from), Nat::new(from));
    for (slot, has_range) in (0..2).zip(ranges) {
        bed.plan.services[usize::from(NAT)].instances[slot].range = has_range.then(|| range(slot as u8));
        bed.plan.services[usize::from(NAT)].instances[slot].is_draining = !has_range;
    }
    bed.plan.services[usize::from(NAT)].translation.as_mut().expect("a translator").held = held;
    bed.apply();
    bed.steering.chains_mut().forget_moved(NAT);
}

/// Flows go on at the instance that took them over with their range, and back.
#[test]
fn flows_and_ranges_are_handed_over() {
    let mut bed = TestBed::new(2);
    let packets: Vec<Packet> = packets(600).filter(|packet| packet.source != MAPPED_INSIDE).collect();
    let before: Vec<Way> = packets.iter().map(|packet| bed.out(*packet)).collect();
    let counts = |bed: &TestBed| {
        bed.instances(NAT).iter().map(|found| (found.flows, found.learnt as u64)).collect::<Vec<_>>()
    };
    let [(one, _), (other, _)] = counts(&bed)[..] else { panic!("two instances") };
    assert_eq!(counts(&bed), [(one, one), (other, other)]);
    assert!(one > 100 && other > 100 && one + other == packets.len() as u64);
    let all = one + other;
    for round in 0..3 {
        hand_over(&mut bed, 1, 0, vec![(0, range(1))], [true, false]);
        assert_eq!(counts(&bed), [(all, all), (0, 0)], "round {round}");
        for (packet, before) in packets.iter().zip(&before) {
            let way = bed.out(*packet);
            assert_eq!((way.left, way.slots[1]), (before.left, 0));
            assert_eq!(
                (bed.back(way.left.back()).left, counts(&bed)),
                (packet.back(), vec![(all, all), (0, 0)])
            );
        }
        hand_over(&mut bed, 0, 1, vec![(1, range(0))], [false, true]);
        assert_eq!(counts(&bed), [(0, 0), (all, all)], "round {round}");
        for (packet, before) in packets.iter().zip(&before) {
            let way = bed.out(*packet);
            assert_eq!((way.left, way.slots[1]), (before.left, 1));
            assert_eq!(bed.back(way.left.back()).left, packet.back());
        }
        assert_eq!(counts(&bed), [(0, 0), (all, all)]);
    }
    assert_eq!(bed.refused(), [NONE; 2]);
    assert_eq!(bed.steering.chains().held(), 0);
}
