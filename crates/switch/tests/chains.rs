//! Chains of services: where packets go, whatever functions answer and whichever instances come and go.

#[path = "chains/counters.rs"]
mod counters;
#[path = "chains/leaving.rs"]
mod leaving;

use boundary::Answer;
use flow_table::{Change, Command, Field, Instructions, Output};
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use switch::{
    ChainBooks, ChainPlan, ChainsPlan, Decision, DestinationPlan, Flow, FlowOutput, Forward, FrameHead,
    FrameMark, HopCounters, InstancePlan, Match, OverruledAnswers, PortId, PortKey, Reason, ServicePlan,
    Steering, SteeringSettings, SteeringShards, UnreadFrame,
};

#[path = "chains/together.rs"]
mod together;

const UPLINK: PortId = PortId(0);
const WAN: PortId = PortId(1);
const MIRROR: PortId = PortId(2);

/// The port of an instance: two for each, the inner one first.
fn port(service: u16, slot: u8, outer: bool) -> PortId {
    PortId(100 + service * 20 + u16::from(slot) * 2 + u16::from(outer))
}

fn key(port: PortId) -> PortKey {
    PortKey(port.0 + 1)
}

/// A UDP frame of a flow, in one of its directions.
fn frame(flow: u16, back: bool) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    let ([a, b], [c, d]) = (flow.to_be_bytes(), 53u16.to_be_bytes());
    let inside = ([10, 0, 0, 1], [a, b]);
    let outside = ([10, 9, 9, 9], [c, d]);
    let (source, destination) = if back { (outside, inside) } else { (inside, outside) };
    frame[26..30].copy_from_slice(&source.0);
    frame[30..34].copy_from_slice(&destination.0);
    frame[34..36].copy_from_slice(&source.1);
    frame[36..38].copy_from_slice(&destination.1);
    frame
}

struct TestBed {
    steering: Steering,
    plan: ChainsPlan,
    now: u64,
}

impl TestBed {
    /// A switch with the ports of `services`, each with its number of instances, all connected.
    fn new(services: &[u8], chains: Vec<ChainPlan>) -> Self {
        Self::with_room(4096, services, chains)
    }

    /// As above, with room for the records of so many flows.
    fn with_room(flows: usize, services: &[u8], chains: Vec<ChainPlan>) -> Self {
        let settings = SteeringSettings { seed: [3, 4], chained_flows: flows, ..SteeringSettings::default() };
        let mut bed =
            Self { steering: Steering::new(settings), plan: ChainsPlan::default(), now: 1_000_000_000 };
        for port in [UPLINK, WAN, MIRROR] {
            assert!(bed.steering.set_port_key(port, key(port)));
        }
        for (number, instances) in (0..).zip(services) {
            bed.plan.services.push(ServicePlan {
                number,
                instances: Vec::new(),
                destinations: Vec::new(),
                translation: None,
            });
            (0..*instances).for_each(|slot| bed.add_instance(number, slot));
        }
        bed.plan.chains = chains;
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
        let instance = InstancePlan { slot, ports: ports.map(key), is_draining: false, range: None };
        self.plan.services[usize::from(service)].instances.push(instance);
    }

    /// What the switch decides on a frame from a port, with what its function said about it.
    fn decide(&mut self, frame: &[u8], from: PortId, mark: FrameMark) -> Decision {
        let mut decisions = [Decision::Drop];
        let head = FrameHead { head: frame, length: frame.len(), mark };
        self.steering.decide_heads(&[head], from, self.now, &mut decisions);
        decisions[0]
    }

    /// The ports that a frame passes, if all functions send it on at the other side; the last one is where it leaves.
    fn path(&mut self, flow: u16, back: bool) -> Vec<PortId> {
        let frame = frame(flow, back);
        let (mut from, mut mark, mut path) =
            (if back { WAN } else { UPLINK }, FrameMark::default(), Vec::new());
        loop {
            match self.decide(&frame, from, mark) {
                Decision::ToFunction(to, tag) => {
                    path.push(to);
                    // The other port of the instance.
                    from = PortId(100 + ((to.0 - 100) ^ 1));
                    mark = FrameMark { tag, meta: 0 };
                }
                Decision::To(to) => {
                    path.push(to);
                    return path;
                }
                other => panic!("{other:?} after {path:?}"),
            }
            assert!(path.len() < 40);
        }
    }

    /// The ports that a frame passes, and what becomes of it. A function sends it on at its other side, with the answer that there is
    /// for its service.
    fn walk(&mut self, flow: u16, back: bool, answers: &[(u16, Answer)]) -> (Vec<PortId>, Decision) {
        let frame = frame(flow, back);
        let mut path = Vec::new();
        let mut decision = self.decide(&frame, if back { WAN } else { UPLINK }, FrameMark::default());
        while let Decision::ToFunction(to, tag) = decision {
            path.push(to);
            assert!(path.len() < 100, "{path:?}");
            let service = (to.0 - 100) / 20;
            let answer =
                answers.iter().find(|(of, _)| *of == service).map_or(Answer::Next, |(_, answer)| *answer);
            let mark = FrameMark { tag, meta: answer.to_meta() };
            decision = self.decide(&frame, PortId(100 + ((to.0 - 100) ^ 1)), mark);
        }
        (path, decision)
    }

    fn books(&self, chain: u16) -> ChainBooks {
        self.steering.chains().books(chain).unwrap()
    }
}

/// Three services: two in a chain of both directions, and one in a chain that only functions send packets to. The first service may
/// send to a port and to that chain, and the third one to the first chain.
fn diverting() -> TestBed {
    let other = ChainPlan { number: 1, from: None, both_ways: false, ..chain(&[2]) };
    let mut bed = TestBed::new(&[1, 1, 1], vec![chain(&[0, 1]), other]);
    bed.plan.services[0].destinations = vec![DestinationPlan::Port(key(MIRROR)), DestinationPlan::Chain(1)];
    bed.plan.services[2].destinations = vec![DestinationPlan::Chain(0)];
    bed.apply();
    bed
}

/// At the end of each test, each packet that entered a chain or came back to it became something.
impl Drop for TestBed {
    fn drop(&mut self) {
        let chains = self.steering.chains();
        for books in (0..3).filter_map(|chain| chains.books(chain)).filter(|_| !std::thread::panicking()) {
            let ChainBooks {
                entered,
                returned,
                sent,
                full,
                left,
                elsewhere,
                no_instance,
                congested,
                dropped,
                waiting,
                overflowed,
            } = books;
            let became = sent + left + elsewhere + no_instance + congested + dropped + waiting + overflowed;
            assert_eq!(entered + returned, became, "{books:?}");
            assert!(full <= sent, "{books:?}");
        }
    }
}

fn chain(services: &[u16]) -> ChainPlan {
    ChainPlan {
        number: 0,
        services: services.to_vec(),
        from: Some(key(UPLINK)),
        to: key(WAN),
        both_ways: true,
    }
}

/// A flow of all packets from a port.
fn flow(id: u64, from: Option<PortKey>, output: FlowOutput) -> Flow {
    let matches = vec![Match::any()];
    Flow { id, matches, from, priority: 5, output, idle_timeout: None, hard_timeout: None }
}

fn mark(decision: Decision, answer: Answer) -> (PortId, FrameMark) {
    match decision {
        Decision::ToFunction(to, tag) => (to, FrameMark { tag, meta: answer.to_meta() }),
        other => panic!("{other:?}"),
    }
}

/// The instance that each of the flows passes at the only hop.
fn instances(bed: &mut TestBed, flows: u16) -> Vec<PortId> {
    (0..flows).map(|flow| bed.path(flow, false)[0]).collect()
}

#[test]
fn packets_pass_a_chain_in_both_directions() {
    let mut bed = TestBed::new(&[1, 1], vec![chain(&[0, 1])]);
    assert_eq!(bed.path(7, false), [port(0, 0, false), port(1, 0, false), WAN]);
    assert_eq!(bed.path(7, true), [port(1, 0, true), port(0, 0, true), UPLINK]);
    let counters = bed.steering.chains().counters(0).unwrap();
    let one = HopCounters { packets: 1, bytes: 60, lost: 0 };
    assert_eq!((counters.hops, counters.left), (vec![[one; 2]; 2], [one; 2]));
    let books = ChainBooks { entered: 2, returned: 4, sent: 4, left: 2, ..ChainBooks::default() };
    assert_eq!(bed.steering.chains().books(0), Some(books));
    // A firewall that answers on the side on which the packet came.
    let (to, marked) = mark(bed.decide(&frame(7, false), UPLINK, FrameMark::default()), Answer::Next);
    assert_eq!(bed.decide(&frame(7, true), to, marked), Decision::To(UPLINK));
}

#[test]
fn a_flow_sends_packets_into_a_chain() {
    let mut bed = TestBed::new(&[1], vec![ChainPlan { from: None, both_ways: false, ..chain(&[0]) }]);
    let none = FrameMark::default();
    assert_eq!(bed.decide(&frame(7, false), UPLINK, none), Decision::FlowMiss);
    bed.steering.add_flow(flow(1, Some(key(UPLINK)), FlowOutput::Chain(0)), bed.now).unwrap();
    assert_eq!(bed.path(7, false), [port(0, 0, false), WAN]);
    assert_eq!(bed.decide(&frame(7, true), WAN, none), Decision::FlowMiss);
}

#[test]
fn answers_are_carried_out_as_far_as_a_service_may() {
    let mut bed = TestBed::new(&[1, 1, 1], vec![chain(&[0, 1])]);
    bed.plan.services[0].destinations = vec![DestinationPlan::Service(2), DestinationPlan::Port(key(MIRROR))];
    bed.apply();
    let frame = frame(9, false);
    let mut answer = |answer| {
        let (to, marked) = mark(bed.decide(&frame, UPLINK, FrameMark::default()), answer);
        bed.decide(&frame, PortId(to.0 + 1), marked)
    };
    let target = |decision| match decision {
        Decision::ToFunction(to, _) => to,
        other => panic!("{other:?}"),
    };
    assert_eq!(target(answer(Answer::Service(0))), port(2, 0, false));
    assert_eq!(answer(Answer::Port(1)), Decision::To(MIRROR));
    assert_eq!(answer(Answer::Drop), Decision::Lose(Reason::FUNCTION_DROP));
    // A destination of the other kind, one that does not exist, and no right at all: the packet goes on.
    for overruled in [Answer::Port(0), Answer::Service(1), Answer::Service(9)] {
        assert_eq!(target(answer(overruled)), port(1, 0, false));
    }
    // Nothing concerns it, so that it goes on from the only place of the service.
    assert_eq!(target(answer(Answer::LookUp)), port(1, 0, false));
    assert_eq!(bed.steering.chains().instances(0)[0].overruled, 3);
    assert_eq!(bed.steering.chains().overruled(0), OverruledAnswers { known: vec![1, 1], others: 1 });
    let books =
        ChainBooks { entered: 8, returned: 7, sent: 11, elsewhere: 3, dropped: 1, ..ChainBooks::default() };
    assert_eq!(bed.steering.chains().books(0), Some(books));
    // A packet that was diverted goes on by the flows, of which there are none.
    let (to, marked) = mark(bed.decide(&frame, UPLINK, FrameMark::default()), Answer::Service(0));
    let (to, marked) = mark(bed.decide(&frame, PortId(to.0 + 1), marked), Answer::Next);
    assert_eq!(bed.decide(&frame, PortId(to.0 + 1), marked), Decision::FlowMiss);
}

#[test]
fn diverted_packets_keep_the_direction_of_the_face_or_else_of_their_chain() {
    for faces in [1, 2] {
        let mut bed = TestBed::new(&[1, 1], vec![chain(&[0])]);
        bed.plan.services[0].destinations = vec![DestinationPlan::Service(1)];
        let ports = &mut bed.plan.services[0].instances[0].ports;
        ports[1] = ports[faces - 1];
        bed.apply();
        for (reverse, from) in [(false, UPLINK), (true, WAN)] {
            let frame = frame(9, reverse);
            let (_, marked) = mark(bed.decide(&frame, from, FrameMark::default()), Answer::Service(0));
            let sent = bed.decide(&frame, port(0, 0, !reverse && faces == 2), marked);
            assert_eq!(mark(sent, Answer::Next).0, port(1, 0, reverse), "{faces} {reverse}");
        }
        assert_eq!(bed.steering.chains().instances(1)[0].flows, 1, "both directions are one flow");
    }
}

#[test]
fn an_instance_cannot_use_the_identity_of_another() {
    let mut bed =
        TestBed::new(&[1, 1], vec![chain(&[0, 1]), ChainPlan { number: 1, from: None, ..chain(&[1, 0]) }]);
    let frame = frame(9, false);
    let (_, stolen) = mark(bed.decide(&frame, UPLINK, FrameMark::default()), Answer::Next);
    // Service 1 has no single place, so a packet without identity matches no flow.
    assert_eq!(bed.decide(&frame, port(1, 0, true), stolen), Decision::FlowMiss);
    for tag in [0, 1, u64::MAX, 1 << 63, stolen.tag ^ 1, stolen.tag ^ 1 << 40, stolen.tag ^ 1 << 50] {
        let decision = bed.decide(&frame, port(0, 0, true), FrameMark { tag, meta: 0 });
        assert_eq!(decision, Decision::FlowMiss, "{tag:x}");
    }
}

#[test]
fn both_directions_of_a_flow_reach_the_same_instance() {
    let mut bed = TestBed::new(&[4, 3], vec![chain(&[0, 1])]);
    let mut used = BTreeSet::new();
    for flow in 0..200 {
        let (there, back) = (bed.path(flow, false), bed.path(flow, true));
        assert_eq!([there[0].0 + 1, there[1].0 + 1], [back[1].0, back[0].0], "{flow}");
        used.extend([there[0], there[1]]);
    }
    assert_eq!(used.len(), 7);
    let flows: u64 = bed.steering.chains().instances(0).iter().map(|instance| instance.flows).sum();
    assert_eq!((flows, bed.steering.chains().flows()), (200, (200, 0)));
}

#[test]
fn scaling_moves_no_living_flow() {
    let mut bed = TestBed::new(&[2], vec![chain(&[0])]);
    let before = instances(&mut bed, 300);
    bed.add_instance(0, 2);
    bed.apply();
    assert_eq!(instances(&mut bed, 300), before);
    let new = (300..600).map(|flow| bed.path(flow, false)[0]).collect::<Vec<_>>();
    assert!(new.iter().filter(|to| **to == port(0, 2, false)).count() > 60);
    // A drained instance keeps its flows, and gets no new ones.
    bed.plan.services[0].instances[0].is_draining = true;
    bed.apply();
    assert_eq!(instances(&mut bed, 300), before);
    assert!((600..900).all(|flow| bed.path(flow, false)[0] != port(0, 0, false)));
    // Without packets, flows are forgotten.
    for _ in 0..200 {
        bed.now += 1_000_000_000;
        bed.steering.expire_flows(bed.now, 0);
    }
    assert_eq!(bed.steering.chains().instances(0)[0].flows, 0);
    // Its removal moves no flow of the others.
    let before = instances(&mut bed, 300);
    bed.plan.services[0].instances.remove(0);
    bed.apply();
    assert_eq!(instances(&mut bed, 300), before);
}

#[test]
fn flows_of_an_instance_that_ends_go_on_at_the_others() {
    let mut bed = TestBed::new(&[3], vec![chain(&[0])]);
    let before = instances(&mut bed, 300);
    bed.steering.flush_port(port(0, 1, true));
    let after = instances(&mut bed, 300);
    for (before, after) in before.iter().zip(&after) {
        assert!(if *before == port(0, 1, false) { after != before } else { after == before });
    }
    // When it is back, flows stay where they went.
    bed.steering.resume_port(port(0, 1, true));
    assert_eq!(instances(&mut bed, 300), after);
    assert_eq!(bed.steering.chains().instances(0).iter().map(|found| found.flows).sum::<u64>(), 300);
    for slot in 0..3 {
        bed.steering.flush_port(port(0, slot, false));
    }
    let lost = bed.decide(&frame(7, false), UPLINK, FrameMark::default());
    assert_eq!(lost, Decision::Lose(Reason::NO_INSTANCE));
    let hop = bed.steering.chains().counters(0).unwrap().hops[0][0];
    assert_eq!(hop, HopCounters { packets: 901, bytes: 901 * 60, lost: 1 });
    // The service counts it, and no instance does.
    let instances = bed.steering.chains().instances(0);
    assert_eq!(
        instances
            .iter()
            .map(|found| (found.packets, found.lost))
            .fold((0, 0), |(packets, lost), found| { (packets + found.0, lost + found.1) }),
        (900, 0)
    );
    assert_eq!(bed.steering.chains().without_instance(0), 1);
}

#[test]
fn a_crowded_instance_closes_only_the_chains_that_lead_to_it() {
    let other = ChainPlan { number: 1, from: Some(key(MIRROR)), both_ways: false, ..chain(&[0]) };
    let mut bed = TestBed::new(&[1, 2], vec![chain(&[0, 1]), other]);
    let crowded = bed.path(7, false)[1];
    let free = (0..).find(|flow| bed.path(*flow, false)[1] != crowded).unwrap();
    bed.steering.set_crowded(crowded, true);
    let none = FrameMark::default();
    assert_eq!(bed.decide(&frame(7, false), UPLINK, none), Decision::Lose(Reason::CONGESTED));
    // Its other port has room.
    assert!(matches!(bed.decide(&frame(7, true), WAN, none), Decision::ToFunction(..)));
    assert!(matches!(bed.decide(&frame(free, false), UPLINK, none), Decision::ToFunction(..)));
    assert!(matches!(bed.decide(&frame(7, false), MIRROR, none), Decision::ToFunction(..)));
    // It is known which hop and which instance is the cause.
    let hops = bed.steering.chains().counters(0).unwrap().hops.clone();
    assert_eq!(hops.iter().map(|hop| hop.map(|way| way.lost)).collect::<Vec<_>>(), [[0, 0], [1, 0]]);
    let lost =
        |service| bed.steering.chains().instances(service).iter().map(|found| found.lost).collect::<Vec<_>>();
    assert_eq!((lost(0), lost(1).iter().sum::<u64>()), (vec![0], 1));
    assert_eq!(lost(1)[usize::from((crowded.0 - port(1, 0, false).0) / 2)], 1);
    bed.steering.set_crowded(crowded, false);
    assert!(matches!(bed.decide(&frame(7, false), UPLINK, none), Decision::ToFunction(..)));
}

#[test]
fn packets_under_way_finish_the_chain_that_was_replaced() {
    let mut bed = TestBed::new(&[2, 2, 2], vec![chain(&[0, 1])]);
    let before: Vec<_> = (0..50).map(|flow| bed.path(flow, false)).collect();
    let (to, marked) = mark(bed.decide(&frame(3, false), UPLINK, FrameMark::default()), Answer::Next);
    bed.plan.chains = vec![chain(&[2, 1, 0])];
    bed.apply();
    let next = bed.decide(&frame(3, false), PortId(to.0 + 1), marked);
    let (to, marked) = mark(next, Answer::Next);
    assert_eq!(to, before[3][1]);
    assert_eq!(bed.decide(&frame(3, false), PortId(to.0 + 1), marked), Decision::To(WAN));
    // Flows keep the instances that they had, at another place of the chain.
    for (flow, before) in (0..50).zip(before) {
        let path = bed.path(flow, false);
        assert_eq!((path[1], path[2], path[3]), (before[1], before[0], WAN));
    }
    bed.plan.chains.clear();
    bed.apply();
    assert_eq!(bed.decide(&frame(3, false), UPLINK, FrameMark::default()), Decision::FlowMiss);
    assert_eq!(bed.decide(&frame(3, false), PortId(to.0 + 1), marked), Decision::To(WAN));
}

/// Flows from a port of an instance concern what any instance of the service sends and is looked up, also of one that comes
/// later.
#[test]
fn packets_that_come_back_arrive_at_the_port_of_the_service() {
    let mut bed = TestBed::new(&[1, 1], vec![]);
    let back = flow(2, Some(key(port(0, 0, true))), FlowOutput::Port(key(WAN)));
    bed.steering.add_flow(back, bed.now).unwrap();
    let into = flow(1, Some(key(UPLINK)), FlowOutput::Chain(9));
    bed.steering.add_flow(into, bed.now).unwrap();
    bed.add_instance(0, 1);
    bed.apply();
    for slot in [0, 1] {
        for outer in [false, true] {
            let decision = bed.decide(&frame(3, false), port(0, slot, outer), FrameMark::default());
            assert_eq!(decision, Decision::To(WAN), "instance {slot}, {outer}");
        }
    }
    assert_eq!(bed.steering.flows(1, 1, bed.now)[0].packets, 4);
    // The ports of another service are others, and when there is no service, the flow is that of its port.
    let other = bed.decide(&frame(3, false), port(1, 0, true), FrameMark::default());
    assert_eq!(other, Decision::FlowMiss);
    bed.plan = ChainsPlan::default();
    bed.apply();
    let mut decide = |from| bed.decide(&frame(3, false), from, FrameMark::default());
    assert_eq!((decide(port(0, 0, true)), decide(port(0, 1, true))), (Decision::To(WAN), Decision::FlowMiss));
}

/// A function whose answer leads back into its chain, and two that send to each other.
#[test]
fn packets_that_go_around_without_end_are_cut_and_counted() {
    let mut bed = TestBed::new(&[1, 1], vec![ChainPlan { from: None, both_ways: false, ..chain(&[0]) }]);
    for (service, other) in [(0, 1), (1, 0)] {
        bed.plan.services[service].destinations = vec![DestinationPlan::Service(other)];
    }
    bed.apply();
    bed.steering.add_flow(flow(1, None, FlowOutput::Chain(0)), bed.now).unwrap();
    for answer in [Answer::LookUp, Answer::Service(0)] {
        let mut visits = 0;
        let mut decision = bed.decide(&frame(7, false), UPLINK, FrameMark::default());
        while let Decision::ToFunction(to, tag) = decision {
            visits += 1;
            assert!(visits < 100, "{answer:?}");
            decision = bed.decide(&frame(7, false), to, FrameMark { tag, meta: answer.to_meta() });
        }
        assert_eq!((decision, visits), (Decision::Lose(Reason::ENDLESS_LOOP), 33), "{answer:?}");
    }
    // Two that send to each other's chain.
    bed.steering.remove_flow(1, bed.now);
    bed.plan.chains = vec![chain(&[0]), ChainPlan { number: 1, from: None, both_ways: false, ..chain(&[1]) }];
    for (service, other) in [(0, 1), (1, 0)] {
        bed.plan.services[service].destinations = vec![DestinationPlan::Chain(other)];
    }
    bed.apply();
    for answer in [Answer::Chain(0), Answer::FlowChain(0)] {
        let (path, decision) = bed.walk(7, false, &[(0, answer), (1, answer)]);
        assert_eq!((decision, path.len()), (Decision::Lose(Reason::ENDLESS_LOOP), 33), "{answer:?}");
    }
    // What the last one said holds.
    assert_eq!(bed.path(7, false), [port(1, 0, false), WAN]);
}

/// What earlier versions of a chain counted stays when they are forgotten.
#[test]
fn a_chain_keeps_its_books_when_it_is_changed() {
    let mut bed = TestBed::new(&[1, 1], vec![chain(&[0, 1])]);
    let books = |bed: &TestBed| bed.steering.chains().books(0).unwrap();
    for number in 1..=3 {
        (0..10).for_each(|flow| drop(bed.path(flow, false)));
        bed.plan.chains = vec![chain(if number % 2 == 1 { &[0] } else { &[0, 1] })];
        bed.apply();
        assert_eq!((books(&bed).entered, books(&bed).left), (10 * number, 10 * number));
        for _ in 0..130 {
            bed.now += 1_000_000_000;
            bed.steering.expire_flows(bed.now, 0);
        }
    }
    let expected = ChainBooks { entered: 30, returned: 50, sent: 50, left: 30, ..ChainBooks::default() };
    assert_eq!(books(&bed), expected);
}

/// The packet enters the other chain in the direction that it had, and leaves it as it would have left its own one.
#[test]
fn a_function_sends_packets_into_another_chain() {
    let mut bed = diverting();
    let into = [(0, Answer::Chain(1))];
    assert_eq!(bed.walk(7, false, &into), (vec![port(0, 0, false), port(2, 0, false)], Decision::To(WAN)));
    let back = vec![port(1, 0, true), port(0, 0, true), port(2, 0, true)];
    assert_eq!(bed.walk(7, true, &into), (back, Decision::To(UPLINK)));
    // The flow stays in its chain. A destination of another kind, one that is not there, and no right at all: the packet goes on.
    let straight = vec![port(0, 0, false), port(1, 0, false)];
    let overruled =
        [Answer::Chain(0), Answer::FlowChain(0), Answer::Port(1), Answer::Chain(2), Answer::FlowChain(9)];
    for answer in overruled {
        assert_eq!(bed.walk(7, false, &[(0, answer)]), (straight.clone(), Decision::To(WAN)), "{answer:?}");
    }
    let instances = [0, 1, 2].map(|service| bed.steering.chains().instances(service)[0]);
    assert_eq!(instances.map(|found| (found.packets, found.overruled)), [(7, 5), (6, 0), (2, 0)]);
    let books =
        ChainBooks { entered: 7, returned: 13, sent: 13, left: 5, elsewhere: 2, ..ChainBooks::default() };
    assert_eq!(bed.books(0), books);
    assert_eq!(
        bed.books(1),
        ChainBooks { entered: 2, returned: 2, sent: 2, left: 2, ..ChainBooks::default() }
    );
    let one = HopCounters { packets: 1, bytes: 60, lost: 0 };
    let counters = bed.steering.chains().counters(1).unwrap();
    assert_eq!((counters.hops, counters.left), (vec![[one; 2]], [one; 2]));
    // A chain that ends elsewhere is passed in the forward direction, whatever comes.
    bed.plan.chains[1].to = key(MIRROR);
    bed.apply();
    let back = vec![port(1, 0, true), port(0, 0, true), port(2, 0, false)];
    assert_eq!(bed.walk(7, true, &into), (back, Decision::To(MIRROR)));
    // The chain takes no packets for a later instance that has little room.
    bed.plan.chains[0].services = vec![0];
    bed.plan.chains[1].services = vec![2, 1];
    bed.apply();
    bed.steering.set_crowded(port(1, 0, false), true);
    assert_eq!(bed.walk(8, false, &into).1, Decision::Lose(Reason::CONGESTED));
    assert_eq!((bed.books(1).congested, bed.books(1).entered), (1, 4));
}

/// The side at which a function sends a packet says its direction, also if the packet enters another chain.
#[test]
fn a_packet_that_a_function_returns_enters_another_chain_in_its_new_direction() {
    let mut bed = diverting();
    let [there, back] = [false, true].map(|back| frame(7, back));
    let (to, marked) = mark(bed.decide(&there, UPLINK, FrameMark::default()), Answer::Chain(1));
    let (to, marked) = mark(bed.decide(&back, to, marked), Answer::Next);
    assert_eq!(to, port(2, 0, true));
    assert_eq!(bed.decide(&back, port(2, 0, false), marked), Decision::To(UPLINK));
    let (_, marked) = mark(bed.decide(&back, WAN, FrameMark::default()), Answer::Next);
    let (to, marked) = mark(bed.decide(&back, port(1, 0, false), marked), Answer::Chain(1));
    let (to, marked) = mark(bed.decide(&there, to, marked), Answer::Next);
    assert_eq!(to, port(2, 0, false));
    assert_eq!(bed.decide(&there, port(2, 0, true), marked), Decision::To(WAN));
    let books = ChainBooks { entered: 2, returned: 3, sent: 3, elsewhere: 2, ..ChainBooks::default() };
    let other = ChainBooks { entered: 2, returned: 2, sent: 2, left: 2, ..ChainBooks::default() };
    assert_eq!((bed.books(0), bed.books(1)), (books, other));
}

#[test]
fn a_function_gives_a_flow_another_chain() {
    let mut bed = diverting();
    let (there, back) = (vec![port(2, 0, false), WAN], vec![port(2, 0, true), UPLINK]);
    let straight = [port(0, 0, false), port(1, 0, false), WAN];
    let divert = |bed: &mut TestBed| {
        let path = bed.walk(7, false, &[(0, Answer::FlowChain(1))]);
        assert_eq!(path, (vec![port(0, 0, false), port(2, 0, false)], Decision::To(WAN)));
    };
    divert(&mut bed);
    // Its packets of both directions take the other chain from now on, and those of other flows don't.
    assert_eq!((bed.path(7, false), bed.path(7, true)), (there.clone(), back.clone()));
    assert_eq!(bed.path(8, false), straight);
    let books =
        ChainBooks { entered: 4, returned: 3, sent: 3, left: 1, elsewhere: 3, ..ChainBooks::default() };
    assert_eq!(bed.books(0), books);
    assert_eq!(
        bed.books(1),
        ChainBooks { entered: 3, returned: 3, sent: 3, left: 3, ..ChainBooks::default() }
    );
    assert_eq!(bed.steering.chains().flows(), (3, 0));
    // Both chains change under traffic.
    bed.plan.chains[0].services = vec![1, 0];
    bed.apply();
    assert_eq!((bed.path(7, false), bed.path(7, true)), (there.clone(), back.clone()));
    bed.plan.chains[0].services = vec![0, 1];
    bed.plan.chains[1].services = vec![2, 1];
    bed.apply();
    assert_eq!(bed.path(7, false), [port(2, 0, false), port(1, 0, false), WAN]);
    bed.plan.chains[1].services = vec![2];
    bed.apply();
    // A function of the other chain gives it the first one again: by a packet of the reverse direction.
    let path = bed.walk(7, true, &[(2, Answer::FlowChain(0))]);
    assert_eq!(path, (vec![port(2, 0, true), port(1, 0, true), port(0, 0, true)], Decision::To(UPLINK)));
    assert_eq!(bed.path(7, false), straight);
    // As long as it has packets it is known.
    divert(&mut bed);
    for _ in 0..3 {
        bed.now += 100_000_000_000;
        bed.steering.expire_flows(bed.now, 0);
        assert_eq!(bed.path(7, false), there);
    }
    for _ in 0..130 {
        bed.now += 1_000_000_000;
        bed.steering.expire_flows(bed.now, 0);
    }
    assert_eq!(bed.path(7, false), straight);
    // If the chain is removed, the flow takes the first one; another chain with its number is another one.
    divert(&mut bed);
    let other = bed.plan.chains.pop().unwrap();
    bed.apply();
    assert_eq!(bed.path(7, false), straight);
    assert_eq!(bed.walk(7, false, &[(0, Answer::FlowChain(1))]), (straight[..2].to_vec(), Decision::To(WAN)));
    assert_eq!(bed.steering.chains().instances(0)[0].overruled, 1);
    bed.plan.chains.push(other);
    bed.apply();
    assert_eq!(bed.path(7, false), straight);
    divert(&mut bed);
    assert_eq!(bed.path(7, false), there);
}

/// A packet that an instance already has, when its chain changes, says what becomes of its flow in the new version.
#[test]
fn a_packet_of_an_earlier_version_speaks_for_its_flow() {
    let mut bed = diverting();
    let into = Answer::FlowChain(1);
    let (to, marked) = mark(bed.decide(&frame(7, false), UPLINK, FrameMark::default()), into);
    bed.plan.chains[0].services = vec![0];
    bed.apply();
    assert_eq!(bed.path(7, false), [port(0, 0, false), WAN]);
    let (to, _) = mark(bed.decide(&frame(7, false), PortId(to.0 + 1), marked), Answer::Next);
    assert_eq!((to, bed.path(7, false)), (port(2, 0, false), vec![port(2, 0, false), WAN]));
}

/// A packet that is under way while a chain changes closes a circle: its flow takes one of the chains.
#[test]
fn chains_that_a_flow_takes_form_no_circle() {
    let other = |number| ChainPlan { number, from: None, both_ways: false, ..chain(&[number]) };
    let mut bed = TestBed::new(&[1, 1, 1], vec![chain(&[0]), other(1), other(2)]);
    for (service, next) in [(0, 1), (1, 2), (2, 0)] {
        bed.plan.services[service].destinations = vec![DestinationPlan::Chain(next)];
    }
    bed.apply();
    for service in [0, 1] {
        let path = bed.walk(7, false, &[(service, Answer::FlowChain(0))]);
        assert_eq!(path, ([service, service + 1].map(|at| port(at, 0, false)).into(), Decision::To(WAN)));
    }
    let entered = bed.decide(&frame(7, false), UPLINK, FrameMark::default());
    let (_, marked) = mark(entered, Answer::FlowChain(0));
    bed.plan.chains[1].services = vec![1, 0];
    bed.apply();
    let (to, _) = mark(bed.decide(&frame(7, false), port(2, 0, true), marked), Answer::Next);
    assert_eq!(to, port(0, 0, false));
    // The first packet goes around until it may no more.
    let entered = |bed: &TestBed| [0, 1, 2].map(|chain| bed.books(chain).entered);
    for more in [11, 1] {
        let before = entered(&bed);
        assert_eq!(bed.path(7, false), [port(2, 0, false), WAN]);
        assert_eq!(bed.path(7, true), [port(2, 0, true), UPLINK]);
        assert_eq!(entered(&bed), before.map(|count| count + more + 1));
    }
}

/// An answer concerns the flow of the packet that was given to the function, whatever the function made of it.
#[test]
fn a_function_changes_no_flows_of_others() {
    let mut bed = diverting();
    let straight = [port(0, 0, false), port(1, 0, false), WAN];
    let (to, marked) = mark(bed.decide(&frame(7, false), UPLINK, FrameMark::default()), Answer::FlowChain(1));
    // With the addresses of another flow the packet is diverted, and no flow.
    let (second, _) = mark(bed.decide(&frame(8, false), PortId(to.0 + 1), marked), Answer::Next);
    assert_eq!(second, port(2, 0, false));
    // Nor by the identity of a packet of another instance, or a made-up one.
    let (to, marked) = mark(bed.decide(&frame(9, false), UPLINK, FrameMark::default()), Answer::Next);
    let (_, stolen) = mark(bed.decide(&frame(9, false), PortId(to.0 + 1), marked), Answer::FlowChain(1));
    for tag in [stolen.tag, 0, 1 << 63, stolen.tag ^ 1, stolen.tag ^ 1 << 40] {
        let decision = bed.decide(&frame(9, false), port(0, 0, true), FrameMark { tag, ..stolen });
        assert_eq!(mark(decision, Answer::Next).0, port(2, 0, false), "{tag:x}");
    }
    for flow in [7, 8, 9] {
        assert_eq!(bed.path(flow, false), straight, "{flow}");
    }
    // A flow of one chain is not released by somebody whom it is not sent to.
    assert_eq!(bed.walk(7, false, &[(0, Answer::FlowChain(1))]).1, Decision::To(WAN));
    bed.plan.services[1].destinations = vec![DestinationPlan::Chain(0)];
    bed.plan.chains.push(ChainPlan { number: 2, from: Some(key(MIRROR)), both_ways: false, ..chain(&[1]) });
    bed.apply();
    let (to, marked) = mark(bed.decide(&frame(7, false), MIRROR, FrameMark::default()), Answer::FlowChain(0));
    assert_eq!(to, port(1, 0, false));
    bed.decide(&frame(7, false), PortId(to.0 + 1), marked);
    assert_eq!(bed.path(7, false), [port(2, 0, false), WAN]);
}

/// A controller sends packets to a service, whose function gives their flow a chain. The entries of the controller count on.
#[test]
fn a_function_gives_a_flow_of_a_controller_a_chain() {
    let mut bed = diverting();
    let from_uplink = Match::any().with(Field::InPort, key(UPLINK).0.into()).unwrap();
    let mut change = Change::new(Command::Add, from_uplink, 5);
    change.instructions = Instructions::output(Output::Service(0));
    SteeringShards::new([&mut bed.steering]).change_entries(&change, bed.now).unwrap();
    let into = [(0, Answer::FlowChain(1))];
    assert_eq!(bed.walk(7, false, &into), (vec![port(0, 0, false), port(2, 0, false)], Decision::To(WAN)));
    assert_eq!(bed.walk(7, false, &into), (vec![port(2, 0, false)], Decision::To(WAN)));
    // A reply would leave the chain where it came from, so it goes to the service.
    let from_wan = Match::any().with(Field::InPort, key(WAN).0.into()).unwrap();
    let back = Change { matching: from_wan, ..change };
    SteeringShards::new([&mut bed.steering]).change_entries(&back, bed.now).unwrap();
    let (path, decision) = bed.walk(7, true, &[(0, Answer::Drop)]);
    assert_eq!((path, decision), (vec![port(0, 0, false)], Decision::Lose(Reason::FUNCTION_DROP)));
    // Another function that sends the packet there is taken at its word.
    bed.plan.services[2].destinations = vec![DestinationPlan::Service(0)];
    bed.apply();
    let (path, _) = bed.walk(7, false, &[(0, Answer::Drop), (2, Answer::Service(0))]);
    assert_eq!(path, [port(2, 0, false), port(0, 0, false)]);
    let mut packets = 0;
    SteeringShards::new([&mut bed.steering]).entries_from(0, 10, |entry| packets += entry.packets);
    assert_eq!(packets, 4);
    let books =
        ChainBooks { entered: 3, returned: 3, sent: 3, left: 2, elsewhere: 1, ..ChainBooks::default() };
    assert_eq!((bed.books(1), bed.books(0)), (books, ChainBooks::default()));
}
