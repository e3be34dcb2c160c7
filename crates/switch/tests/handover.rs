//! Flows that are frozen while their state is handed over: their frames wait in order, and go on to the instances that have it.

use switch::{
    ChainBooks, ChainPlan, ChainsPlan, Decision, FlowEnd, FlowTuple, Forward, FrameHead, FrameMark,
    InstancePlan, Outcome, PortId, PortKey, Reason, ServicePlan, Steering, SteeringSettings, Target,
};

const UPLINK: PortId = PortId(0);
const WAN: PortId = PortId(1);

/// Frames that wait at once.
const ROOM: usize = 4096;

fn port(slot: u8) -> PortId {
    PortId(2 + u16::from(slot))
}

fn key(port: PortId) -> PortKey {
    PortKey(port.0 + 1)
}

/// A UDP packet of a flow, with a number as its payload.
fn frame(flow: u16, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 9, 0, 1]);
    frame.extend(flow.to_be_bytes());
    frame.extend([0, 53, 0, 12, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// What became of frames that wait, or go on.
#[derive(Debug, Default)]
struct Outcomes {
    sent: Vec<(PortId, u64, Vec<u8>)>,
    taken: usize,
    lost: Vec<Reason>,
}

impl Outcome for Outcomes {
    fn send(&mut self, target: Target, frame: &[u8]) {
        let Target::Function(port, tag) = target else { panic!("{target:?}") };
        self.sent.push((port, tag, frame.to_vec()));
    }

    fn take(&mut self) {
        self.taken += 1;
    }

    fn lose(&mut self, reason: Reason) {
        self.lost.push(reason);
    }
}

struct TestBed {
    steering: Steering,
    plan: ChainsPlan,
}

impl TestBed {
    /// A service of two instances, whose second one is drained when the flows have begun.
    fn new() -> Self {
        let settings = SteeringSettings { seed: [3, 4], chained_flows: 4096, ..SteeringSettings::default() };
        let mut steering = Steering::new(settings);
        for port in [UPLINK, WAN, port(0), port(1)] {
            assert!(steering.set_port_key(port, key(port)));
            steering.resume_port(port);
        }
        let instance =
            |slot| InstancePlan { slot, ports: [key(port(slot)); 2], is_draining: false, range: None };
        let instances = vec![instance(0), instance(1)];
        let service = ServicePlan { number: 0, instances, destinations: Vec::new(), translation: None };
        let (from, to) = (Some(key(UPLINK)), key(WAN));
        let chain = ChainPlan { number: 0, services: vec![0], from, to, both_ways: false };
        let mut bed = Self { steering, plan: ChainsPlan { services: vec![service], chains: vec![chain] } };
        bed.steering.set_chains(&bed.plan);
        bed
    }

    fn drain(&mut self) {
        self.plan.services[0].instances[1].is_draining = true;
        self.steering.set_chains(&self.plan);
    }

    fn tuple(&self, flow: u16) -> FlowTuple {
        let end = |address, port| FlowEnd { address, port };
        self.steering.flow_tuple(17, [end(0x0a00_0001, flow), end(0x0a09_0001, 53)])
    }

    /// Receives frames of these flows from a port in one batch. Frames that wait are kept.
    fn receive(
        &mut self,
        frames: &[(u16, u32)],
        from: PortId,
        tags: &[u64],
        outcome: &mut Outcomes,
    ) -> Vec<Decision> {
        let frames: Vec<Vec<u8>> = frames.iter().map(|(flow, number)| frame(*flow, *number)).collect();
        let mut all = Vec::new();
        self.steering.begin_batch();
        for (part, frames) in frames.chunks(32).enumerate() {
            let mark = |at: usize| FrameMark { tag: tags.get(part * 32 + at).copied().unwrap_or(0), meta: 0 };
            let heads: Vec<FrameHead> = frames
                .iter()
                .enumerate()
                .map(|(at, frame)| FrameHead { head: frame, length: frame.len(), mark: mark(at) })
                .collect();
            let mut decisions = vec![Decision::Drop; heads.len()];
            self.steering.decide_heads(&heads, from, 0, &mut decisions);
            all.append(&mut decisions);
        }
        for (frame, decision) in frames.iter().zip(&all) {
            if *decision == Decision::Perform {
                self.steering.perform(frame, from, 0, outcome);
            }
        }
        all
    }

    /// The instance to which frames of a flow go.
    fn instance(&mut self, flow: u16) -> u8 {
        let found = self.receive(&[(flow, 0)], UPLINK, &[], &mut Outcomes::default());
        let [Decision::ToFunction(to, tag)] = found[..] else { panic!("{found:?}") };
        let back = self.receive(&[(flow, 0)], to, &[tag], &mut Outcomes::default());
        assert_eq!(back, [Decision::To(WAN)]);
        (to.0 - 2) as u8
    }

    /// Flows of an instance.
    fn flows_of(&mut self, slot: u8, count: usize) -> Vec<u16> {
        (1000..2000).filter(|flow| self.instance(*flow) == slot).take(count).collect()
    }

    fn books(&self) -> ChainBooks {
        self.steering.chains().books(0).unwrap()
    }

    fn release_all(&mut self, outcome: &mut Outcomes) {
        while self.steering.next_held().is_some() {
            self.steering.release_held(0, outcome);
        }
    }
}

/// What is in the frames that were sent on.
fn numbers(outcome: &Outcomes) -> Vec<(PortId, u32)> {
    let number = |frame: &[u8]| u32::from_be_bytes(*frame[42..].first_chunk().unwrap());
    outcome.sent.iter().map(|(port, _, frame)| (*port, number(frame))).collect()
}

#[test]
fn frames_of_frozen_flows_wait_in_order() {
    let mut bed = TestBed::new();
    let flows = bed.flows_of(1, 3);
    bed.drain();
    let [one, other, third] = flows[..] else { panic!("{flows:?}") };
    let before = bed.books();
    let tuples = [one, other].map(|flow| bed.tuple(flow));
    assert!(bed.steering.chains_mut().freeze_flows(0, 1, tuples.map(|tuple| tuple.hash).into()));
    let mut outcome = Outcomes::default();
    let batch: Vec<(u16, u32)> = (0..90).map(|number| (flows[number as usize % 3], number)).collect();
    let decisions = bed.receive(&batch, UPLINK, &[], &mut outcome);
    for ((flow, _), decision) in batch.iter().zip(&decisions) {
        match *flow == third {
            true => {
                assert!(matches!(decision, Decision::ToFunction(to, _) if *to == port(1)), "{decision:?}")
            }
            false => assert_eq!(*decision, Decision::Perform),
        }
    }
    assert_eq!((outcome.taken, outcome.lost.len(), bed.steering.chains().held()), (60, 0, 60));
    let waiting = ChainBooks { entered: before.entered + 90, sent: before.sent + 30, waiting: 60, ..before };
    assert_eq!(bed.books(), waiting);
    assert_eq!(bed.steering.next_held(), None, "nothing goes on while flows are frozen");
    // One of them is handed over; the other one stays.
    let heir = bed.steering.chains().heir(0, 1, tuples[0].hash).unwrap();
    assert_eq!(heir, 0);
    bed.steering.chains_mut().reassign(0, &tuples[0], (1, 0));
    bed.steering.chains_mut().thaw(false);
    // The first frame may go on if its new instance has room.
    assert_eq!(bed.steering.next_held(), Some(Some(port(0))));
    for _ in 0..10 {
        bed.steering.release_held(0, &mut outcome);
    }
    // What comes meanwhile waits behind the others; other flows do not wait.
    let decisions = bed.receive(&[(one, 90), (third, 91), (other, 92)], UPLINK, &[], &mut outcome);
    assert_eq!((decisions[0], decisions[2]), (Decision::Perform, Decision::Perform));
    assert!(matches!(decisions[1], Decision::ToFunction(..)));
    bed.release_all(&mut outcome);
    let to = |flow: u16| if flow == one { port(0) } else { port(1) };
    let expected: Vec<(PortId, u32)> = batch
        .iter()
        .chain(&[(one, 90), (other, 92)])
        .filter(|(flow, _)| *flow != third)
        .map(|(flow, number)| (to(*flow), *number))
        .collect();
    assert_eq!(numbers(&outcome), expected);
    let after =
        ChainBooks { entered: before.entered + 93, sent: before.sent + 93, waiting: 0, ..bed.books() };
    assert_eq!((bed.books(), bed.steering.chains().held()), (after, 0));
    // What the new instance returns goes on.
    let tags: Vec<u64> =
        outcome.sent.iter().filter(|(to, ..)| *to == port(0)).map(|(_, tag, _)| *tag).collect();
    let back: Vec<(u16, u32)> = (0..tags.len() as u32).map(|number| (one, number)).collect();
    let decisions = bed.receive(&back, port(0), &tags, &mut outcome);
    assert!(decisions.iter().all(|decision| *decision == Decision::To(WAN)), "{decisions:?}");
    assert_eq!((bed.instance(one), bed.instance(other), bed.instance(third)), (0, 1, 1));
    let is_elsewhere =
        |bed: &TestBed, slot| tuples.map(|flow| bed.steering.chains().is_elsewhere(0, flow.hash, slot));
    assert_eq!((is_elsewhere(&bed, 1), is_elsewhere(&bed, 0)), ([true, false], [false, true]));
    assert!(!bed.steering.chains().is_elsewhere(0, bed.tuple(999).hash, 1), "a flow that is unknown");
}

#[test]
fn what_waits_is_bounded_and_counted() {
    let mut bed = TestBed::new();
    let flow = bed.flows_of(1, 1)[0];
    bed.drain();
    let before = bed.books();
    assert!(bed.steering.chains_mut().freeze_instance(0, 1));
    let mut outcome = Outcomes::default();
    for number in 0..ROOM as u32 + 10 {
        assert_eq!(bed.receive(&[(flow, number)], UPLINK, &[], &mut outcome), [Decision::Perform]);
    }
    assert_eq!((outcome.taken, outcome.lost.as_slice()), (ROOM, &[Reason::HANDOVER_FULL; 10][..]));
    let expected = ChainBooks {
        entered: before.entered + ROOM as u64 + 10,
        waiting: ROOM as u64,
        overflowed: 10,
        ..before
    };
    assert_eq!(bed.books(), expected);
    assert!(!bed.steering.chains_mut().reassign_rest((0, 1), None, 0..4096));
    bed.steering.chains_mut().thaw(true);
    // They go on even without room.
    assert_eq!(bed.steering.next_held(), Some(None));
    bed.release_all(&mut outcome);
    let sent: Vec<(PortId, u32)> = (0..ROOM as u32).map(|number| (port(0), number)).collect();
    assert_eq!(numbers(&outcome), sent);
    let expected = ChainBooks { sent: before.sent + ROOM as u64, waiting: 0, ..expected };
    assert_eq!(bed.books(), expected);
    let flows: Vec<u64> = bed.steering.chains().instances(0).iter().map(|found| found.flows).collect();
    assert_eq!((flows[1], bed.instance(flow)), (0, 0));
}

#[test]
fn frames_go_on_when_the_instance_ends_meanwhile() {
    let mut bed = TestBed::new();
    let flow = bed.flows_of(1, 1)[0];
    bed.drain();
    assert!(bed.steering.chains_mut().freeze_instance(0, 1));
    let mut outcome = Outcomes::default();
    bed.receive(&[(flow, 1), (flow, 2)], UPLINK, &[], &mut outcome);
    bed.steering.flush_port(port(1));
    bed.steering.chains_mut().thaw(false);
    bed.release_all(&mut outcome);
    assert_eq!((numbers(&outcome), outcome.lost.len()), (vec![(port(0), 1), (port(0), 2)], 0));
    let books = bed.books();
    assert_eq!((books.waiting, books.no_instance), (0, 0));
}

/// Frames of a flow that has another instance already do not overtake those that wait.
#[test]
fn frames_wait_behind_those_of_their_flow_when_it_is_assigned() {
    let mut bed = TestBed::new();
    let [flow, other] = bed.flows_of(1, 2)[..] else { panic!("two flows") };
    bed.drain();
    let before = bed.books();
    assert!(bed.steering.chains_mut().freeze_instance(0, 1));
    let mut outcome = Outcomes::default();
    bed.receive(&[(flow, 1)], UPLINK, &[], &mut outcome);
    assert!(!bed.steering.chains_mut().reassign_rest((0, 1), Some(0), 0..4096));
    let decisions = bed.receive(&[(flow, 2), (other, 3)], UPLINK, &[], &mut outcome);
    assert_eq!(decisions[0], Decision::Perform);
    assert!(matches!(decisions[1], Decision::ToFunction(to, _) if to == port(0)), "{decisions:?}");
    assert_eq!((outcome.taken, bed.steering.chains().held()), (2, 2));
    bed.steering.chains_mut().thaw(false);
    bed.release_all(&mut outcome);
    assert_eq!((numbers(&outcome), outcome.lost.len()), (vec![(port(0), 1), (port(0), 2)], 0));
    let expected = ChainBooks { entered: before.entered + 3, sent: before.sent + 3, ..before };
    assert_eq!((bed.books(), bed.instance(flow), bed.instance(other)), (expected, 0, 0));
}

/// An instance may name any flows: those of others do not wait, nor do those that begin.
#[test]
fn flows_of_other_instances_are_not_frozen() {
    let mut bed = TestBed::new();
    let (own, other) = (bed.flows_of(1, 1)[0], bed.flows_of(0, 1)[0]);
    bed.drain();
    let before = bed.books();
    let new = 3000;
    let hashes = [own, other, new].map(|flow| bed.tuple(flow).hash);
    assert!(bed.steering.chains_mut().freeze_flows(0, 1, hashes.into()));
    let mut outcome = Outcomes::default();
    let decisions = bed.receive(&[(own, 1), (other, 2), (new, 3), (own, 4)], UPLINK, &[], &mut outcome);
    assert_eq!((decisions[0], decisions[3]), (Decision::Perform, Decision::Perform));
    for decision in &decisions[1..3] {
        assert!(matches!(decision, Decision::ToFunction(to, _) if *to == port(0)), "{decisions:?}");
    }
    assert_eq!((outcome.taken, bed.steering.chains().held()), (2, 2));
    // Nor does the other flow move.
    let tuple = bed.tuple(other);
    bed.steering.chains_mut().reassign(0, &tuple, (1, 2));
    bed.steering.chains_mut().thaw(false);
    bed.release_all(&mut outcome);
    assert_eq!((numbers(&outcome), outcome.lost.len()), (vec![(port(1), 1), (port(1), 4)], 0));
    let expected = ChainBooks { entered: before.entered + 4, sent: before.sent + 4, ..before };
    assert_eq!((bed.books(), bed.instance(own), bed.instance(other)), (expected, 1, 0));
}
