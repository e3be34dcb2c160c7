//! A steering switch with controllers: what they change, what they are told, and what becomes of frames without them.

#[path = "controllers/order.rs"]
mod order;
#[path = "controllers/threads.rs"]
mod threads;

use flow_table::{
    Action, Band, BandType, Bucket, Change, Command, FlowModError, GroupType, Instructions, MeterDefinition,
    Output, RemovalReason,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use switch::driver::Pipe;
use switch::{
    Batch, ChainPlan, ChainsPlan, ControlError, ControllerPacket, Driver, FailMode, Field, Flow, FlowError,
    FlowOutput, ForwardingMode, ForwardingPlan, InstancePlan, MadeFrames, Match, PacketOutStep, PacketReason,
    PortId, PortKey, PortSettings, REASONS, Reason, ServicePlan, Shards, Steering, SteeringSettings,
    SteeringShards, Switch, SwitchRunner,
};

const SECOND: u64 = 1_000_000_000;
const PORTS: u16 = 4;

/// A switch with ports 0 to 3, whose keys are 1 to 4, and what it made.
struct Bench {
    switch: Switch<ForwardingMode>,
    made: MadeFrames,
    wakes: Arc<AtomicUsize>,
}

impl Bench {
    fn new() -> Self {
        let settings = SteeringSettings {
            cache: switch::CacheCapacity { ip4: 64, other: 64 },
            ..SteeringSettings::default()
        };
        let mut switch = Switch::new(ForwardingMode::Steering(Box::new(Steering::new(settings))));
        for number in 0..PORTS {
            assert_eq!(switch.add_port(PortSettings::default()), Ok(PortId(number)));
        }
        let mut bench = Self { switch, made: MadeFrames::default(), wakes: Arc::default() };
        for number in 0..PORTS {
            assert!(bench.steering().set_port_key(PortId(number), PortKey(number + 1)));
        }
        bench
    }

    /// A switch with a controller that is connected.
    fn connected(mode: FailMode) -> Self {
        let mut bench = Self::new();
        let wakes = bench.wakes.clone();
        let wake = move || {
            wakes.fetch_add(1, Ordering::Relaxed);
        };
        bench.shards().set_controllers(mode, wake);
        bench.shards().set_connected(true);
        bench
    }

    fn steering(&mut self) -> &mut Steering {
        match self.switch.forward_mut() {
            ForwardingMode::Steering(steering) => steering,
            _ => unreachable!("the switch is a steering one"),
        }
    }

    fn shards(&mut self) -> SteeringShards<'_> {
        SteeringShards::new([self.steering()])
    }

    /// Sends frames to the switch. Returns what the ports get, in the order of the ports.
    fn send(&mut self, from: u16, frames: &[Vec<u8>], now: u64) -> Vec<(u16, Vec<u8>)> {
        let mut sent = self.send_in_order(from, frames, now);
        sent.sort();
        sent
    }

    /// The same; each port's frames are in the order in which it gets them.
    fn send_in_order(&mut self, from: u16, frames: &[Vec<u8>], now: u64) -> Vec<(u16, Vec<u8>)> {
        let (mut batch, mut plan) = (Batch::new(256), ForwardingPlan::default());
        assert!(frames.iter().all(|frame| batch.push(frame)));
        self.switch.switch(&batch, PortId(from), now, &mut plan);
        let mut sent = Vec::new();
        for port in plan.ports() {
            let frames = plan.frames(*port).iter();
            sent.extend(frames.filter_map(|at| Some((port.0, batch.frame(*at as usize)?.to_vec()))));
        }
        for at in plan.performed() {
            self.switch.perform(&frames[*at as usize], PortId(from), now, &mut self.made);
        }
        sent.extend(self.made.frames().into_iter().map(|(port, frame)| (port.0, frame.to_vec())));
        self.made.clear();
        sent
    }

    fn packet_out(&mut self, in_port: Option<u16>, steps: &[PacketOutStep], frame: &[u8]) -> Vec<u16> {
        self.shards().check_packet_out(steps).expect("good steps");
        let number = in_port.map(|port| u32::from(port) + 1);
        self.switch.inject(in_port.map(PortId), &mut self.made, |forward, outcome| match forward {
            ForwardingMode::Steering(steering) => steering.packet_out(number, steps, frame, 0, outcome),
            _ => unreachable!("the switch is a steering one"),
        });
        let mut ports: Vec<u16> = self.made.frames().into_iter().map(|(port, _)| port.0).collect();
        self.made.clear();
        ports.sort_unstable();
        ports
    }

    fn add(&mut self, change: &Change) {
        self.shards().change_entries(change, 0).expect("a good change");
    }

    fn packets(&mut self) -> Vec<ControllerPacket> {
        self.shards().take_packets(usize::MAX)
    }

    fn dropped(&self, reason: Reason) -> u64 {
        self.switch.books().counters.dropped(reason)
    }

    /// Checks that each frame became something. Frames of [`Bench::made`] are planned when they are sent to drivers.
    fn check_books(&self, planned: u64) {
        let books = self.switch.books();
        let lost: u64 = REASONS.into_iter().map(|reason| books.counters.dropped(reason)).sum();
        assert_eq!(
            books.counters.received_frames + books.injected + books.copied,
            planned + books.taken + lost
        );
    }
}

fn frame(destination: u8, source: u8) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 8, 0], &[0x45; 46][..]].concat()
}

fn entry(priority: u16, matching: Match, actions: &[Action]) -> Change {
    let instructions = Instructions::apply(actions);
    Change { instructions, cookie: 7, ..Change::new(Command::Add, matching, priority) }
}

fn out(port: u16) -> Action {
    Action::Output(Output::Port(u32::from(port) + 1))
}

fn to_controller() -> Action {
    Action::Output(Output::Controller { max_length: 128 })
}

fn destination(last: u8) -> Match {
    Match::any().with(Field::EthDst, 0x0200_0000_0000 | u128::from(last)).expect("an address")
}

#[test]
fn a_controller_gets_what_no_entry_matches_and_then_adds_one() {
    let mut bench = Bench::connected(FailMode::Secure);
    bench.add(&Change { cookie: 99, ..entry(0, Match::any(), &[to_controller()]) });
    assert_eq!(bench.send(2, &[frame(1, 9), frame(1, 8)], 0), []);
    let packets = bench.packets();
    let expected = ControllerPacket {
        reason: PacketReason::TableMiss,
        table: 0,
        cookie: 99,
        in_port: Some(3),
        metadata: 0,
        tunnel: 0,
        max_length: Some(128),
        frame: frame(1, 9),
    };
    assert_eq!((packets.len(), &packets[0]), (2, &expected));
    // One wake-up for both.
    assert_eq!(bench.wakes.load(Ordering::Relaxed), 1);
    bench.add(&entry(5, destination(1), &[out(0)]));
    assert_eq!(bench.packet_out(Some(2), &[PacketOutStep::Table], &frame(1, 9)), [0]);
    assert_eq!(bench.send(2, &[frame(1, 9)], 0), [(0, frame(1, 9))]);
    assert_eq!(bench.packets(), []);
    bench.check_books(2);
}

/// OpenFlow 1.0, 3.4.
#[test]
fn a_controller_of_openflow_1_0_gets_what_no_entry_matches() {
    let mut bench = Bench::connected(FailMode::Secure);
    bench.shards().set_gets_misses(true);
    assert_eq!(bench.send(2, &[frame(1, 9)], 0), []);
    assert_eq!(bench.packet_out(Some(2), &[PacketOutStep::Table], &frame(1, 9)), []);
    let expected = ControllerPacket {
        reason: PacketReason::TableMiss,
        table: 0,
        cookie: u64::MAX,
        in_port: Some(3),
        metadata: 0,
        tunnel: 0,
        max_length: None,
        frame: frame(1, 9),
    };
    assert_eq!(bench.packets(), [expected.clone(), expected]);
    assert_eq!(bench.dropped(Reason::FLOW_MISS), 0);
    // An entry without output drops.
    bench.add(&entry(5, destination(1), &[]));
    assert_eq!((bench.send(2, &[frame(1, 9)], 0), bench.packets()), (Vec::new(), Vec::new()));
    assert_eq!((bench.dropped(Reason::FLOW_MISS), bench.dropped(Reason::FLOW_DROP)), (0, 1));
    bench.shards().set_gets_misses(false);
    assert_eq!((bench.send(2, &[frame(2, 9)], 0), bench.packets()), (Vec::new(), Vec::new()));
    assert_eq!((bench.dropped(Reason::FLOW_MISS), bench.dropped(Reason::FLOW_DROP)), (1, 1));
}

#[test]
fn without_a_controller_frames_are_dropped_or_bridged() {
    for (mode, expected, lost) in [(FailMode::Secure, 0, 3), (FailMode::Standalone, 3, 0)] {
        let mut bench = Bench::connected(mode);
        bench.shards().set_connected(false);
        // No entry matches.
        let mut sent = bench.send(0, &[frame(1, 9)], 0).len();
        bench.add(&entry(0, Match::any(), &[to_controller()]));
        sent += bench.send(0, &[frame(1, 9)], 0).len();
        // A later table matches nothing.
        let mut change = entry(0, Match::any(), &[]);
        change.instructions.goto = Some(3);
        bench.add(&change);
        sent += bench.send(0, &[frame(1, 9)], 0).len();
        // Flooded to three ports each.
        assert_eq!((sent, bench.dropped(Reason::FLOW_MISS)), (3 * expected, lost), "{mode:?}");
        assert_eq!(bench.packets(), []);
        bench.check_books(sent as u64);
        // An entry that sends frames to controllers decided it: they are not bridged.
        bench.add(&entry(1, destination(1), &[to_controller()]));
        assert_eq!(bench.send(0, &[frame(1, 9)], 0), []);
        assert_eq!(bench.dropped(Reason::CONTROLLER_FULL), 1);
    }
}

#[test]
fn what_waits_for_controllers_is_bounded() {
    let mut bench = Bench::connected(FailMode::Secure);
    bench.add(&entry(0, Match::any(), &[to_controller()]));
    for _ in 0..3 {
        bench.send(0, &vec![frame(1, 9); 200], 0);
    }
    assert_eq!(bench.dropped(Reason::CONTROLLER_FULL), 600 - 256);
    assert_eq!(bench.shards().take_packets(100).len(), 100);
    assert_eq!(bench.packets().len(), 156);
    bench.send(0, &[frame(1, 9)], 0);
    assert_eq!(bench.packets().len(), 1);
    // Nothing of this port waits, unless an entry sends it (OpenFlow 1.3.5, 7.2.1).
    bench.shards().set_reported(PortKey(1), false);
    bench.add(&entry(1, destination(2), &[to_controller()]));
    bench.send(0, &[frame(1, 9), frame(2, 9)], 0);
    assert_eq!((bench.packets().len(), bench.dropped(Reason::PORT_CONFIG)), (1, 1));
    bench.check_books(0);
}

#[test]
fn users_and_controllers_do_not_change_each_others_entries() {
    let mut bench = Bench::connected(FailMode::Secure);
    let flow = |id: u64, matching: Match| Flow {
        id,
        matches: vec![matching],
        from: None,
        priority: 5,
        output: FlowOutput::Port(PortKey(1)),
        idle_timeout: None,
        hard_timeout: None,
    };
    bench.steering().add_flow(flow(1, destination(1)), 0).expect("a flow");
    bench.add(&entry(5, destination(2), &[out(2)]));
    let taken = bench.shards().change_entries(&entry(5, destination(1), &[out(3)]), 0);
    assert_eq!(taken, Err(ControlError::Flow(FlowModError::OtherOwner)));
    let taken = bench.steering().add_flow(flow(2, destination(2)), 0);
    assert_eq!(taken, Err(FlowError::Table(FlowModError::OtherOwner)));
    assert!(bench.steering().remove_flow(2, 0).is_none());
    // A change of all entries, and the deletion of all.
    bench.add(&Change { command: Command::Modify, ..entry(0, Match::any(), &[out(3)]) });
    let frames = [frame(1, 9), frame(2, 9)];
    assert_eq!(bench.send(1, &frames, 0), [(0, frame(1, 9)), (3, frame(2, 9))]);
    let mut all = Change::new(Command::Delete, Match::any(), 0);
    all.table = None;
    bench.add(&all);
    assert_eq!(bench.send(1, &frames, 0), [(0, frame(1, 9))]);
    let mut seen = 0;
    assert_eq!(bench.shards().entries_from(0, 100, |_| seen += 1), None);
    assert_eq!(seen, 0);
    bench.shards().remove_controllers(0);
    assert_eq!(bench.steering().len(), 1);
    assert_eq!(bench.send(1, &frames, 0), [(0, frame(1, 9))]);
}

#[test]
fn controllers_leave_room_for_the_flows_of_users() {
    let settings = SteeringSettings { entries: 8, ..SteeringSettings::default() };
    let mut steering = Steering::new(settings);
    let add = |steering: &mut Steering, last: u8| {
        SteeringShards::new([steering]).change_entries(&entry(1, destination(last), &[out(1)]), 0)
    };
    for last in 0..4 {
        assert_eq!(add(&mut steering, last), Ok(()));
    }
    assert_eq!(add(&mut steering, 4), Err(ControlError::Flow(FlowModError::TooManyEntries { limit: 4 })));
    // Replacing an entry needs no room.
    assert_eq!(add(&mut steering, 3), Ok(()));
}

#[test]
fn actions_change_copy_and_group_frames() {
    let mut bench = Bench::connected(FailMode::Secure);
    let change_source = Action::SetField(Field::EthSrc, 0x0200_0000_0042);
    bench.add(&entry(1, destination(1), &[out(1), change_source, out(2), Action::Output(Output::InPort)]));
    let sent = bench.send(0, &[frame(1, 9)], 0);
    assert_eq!(sent, [(0, frame(1, 0x42)), (1, frame(1, 9)), (2, frame(1, 0x42))]);
    // An entry without actions drops, and one that outputs to the ingress port by its number.
    bench.add(&entry(1, destination(2), &[]));
    bench.add(&entry(1, destination(3), &[out(0), Action::SetField(Field::EthSrc, 1)]));
    assert_eq!(bench.send(0, &[frame(2, 9), frame(3, 9)], 0), []);
    assert_eq!((bench.dropped(Reason::FLOW_DROP), bench.dropped(Reason::SAME_PORT)), (1, 1));

    let bucket = |actions: &[Action]| Bucket { actions: actions.to_vec(), ..Bucket::default() };
    let to_group = entry(1, destination(4), &[Action::Group(5)]);
    let unknown = bench.shards().change_entries(&to_group, 0);
    assert_eq!(unknown, Err(ControlError::NoGroup(5)));
    let buckets = vec![bucket(&[out(1)]), bucket(&[change_source, out(3)])];
    bench.shards().add_group(5, GroupType::All, &buckets, 0).expect("a group");
    bench.add(&to_group);
    assert_eq!(bench.send(0, &[frame(4, 9)], 0), [(1, frame(4, 9)), (3, frame(4, 0x42))]);
    // The first port that is up.
    let watch = |port: u16| Bucket { watch_port: Some(u32::from(port) + 1), ..bucket(&[out(port)]) };
    bench.shards().modify_group(5, GroupType::FastFailover, &[watch(1), watch(2)]).expect("a group");
    bench.shards().set_port_up(PortKey(2), false);
    assert_eq!(bench.send(0, &[frame(4, 9)], 0), [(2, frame(4, 9))]);
    bench.shards().set_port_up(PortKey(2), true);
    assert_eq!(bench.send(0, &[frame(4, 9)], 0), [(1, frame(4, 9))]);
    assert_eq!(bench.shards().groups_from(5).count(), 1);
    bench.check_books(3 + 2 + 1 + 1);
    // Addresses select a bucket, and a flow keeps its own.
    let weighed = |port: u16| Bucket { weight: 1, ..bucket(&[out(port)]) };
    bench.shards().modify_group(5, GroupType::Select, &[weighed(1), weighed(2)]).expect("a group");
    let ip = |host: u8| {
        [&frame(4, 9)[..14], &[0x45, 0, 0, 20, 0, 0, 0, 0, 9, 1, 0, 0, 10, 0, 0, host, 10, 0, 1, 1]].concat()
    };
    let arp = |host: u8| [&frame(4, host)[..12], &[8, 6], &[0; 28]].concat();
    for frames in [(0..40).map(ip).collect::<Vec<_>>(), (0..40).map(arp).collect()] {
        let sent = bench.send(0, &frames, 0);
        let to_first = sent.iter().filter(|(port, _)| *port == 1).count();
        assert_eq!((sent.len(), (8..32).contains(&to_first)), (40, true), "{to_first} to the first");
        assert_eq!(bench.send(0, &frames, 0), sent);
    }
    bench.shards().remove_group(None, 0).expect("a removal");
    assert_eq!(bench.send(0, &[frame(4, 9)], 0), []);
    assert_eq!(bench.dropped(Reason::FLOW_MISS), 1);
}

#[test]
fn tables_continue_after_a_removed_header() {
    let mut bench = Bench::connected(FailMode::Secure);
    let tagged: Vec<u8> = [&frame(1, 9)[..12], &[0x81, 0, 0, 5], &frame(1, 9)[12..]].concat();
    let vlan = Match::any().with(Field::VlanVid, 0x1005).expect("a VLAN");
    let mut pop = entry(1, vlan, &[Action::PopVlan]);
    pop.instructions.metadata = Some((3, u64::MAX));
    pop.instructions.goto = Some(1);
    bench.add(&pop);
    let untagged = Match::any().with(Field::VlanVid, 0).and_then(|all| all.with(Field::Metadata, 3));
    let second = Change { table: Some(1), cookie: 8, ..entry(1, untagged.expect("a match"), &[out(2)]) };
    bench.add(&second);
    assert_eq!(bench.send(0, std::slice::from_ref(&tagged), 0), [(2, frame(1, 9))]);
    let mut packets = Vec::new();
    bench.shards().entries_from(0, 100, |entry| packets.push((entry.table, entry.packets)));
    assert_eq!(packets, [(0, 1), (1, 1)]);
    // To the controller, which gets the cookie and the table of the last entry.
    bench.add(&Change { instructions: Instructions::apply([to_controller()]), ..second });
    assert_eq!(bench.send(0, &[tagged], 0), []);
    let packet = bench.packets().remove(0);
    assert_eq!((packet.table, packet.cookie, packet.reason), (1, 8, PacketReason::Action));
    assert_eq!(packet.frame, frame(1, 9));
    bench.check_books(1);
}

#[test]
fn meters_limit_frames() {
    let mut bench = Bench::connected(FailMode::Secure);
    let band = Band { band_type: BandType::Drop, rate: 10, burst: 2 };
    let meter = MeterDefinition { flags: MeterDefinition::PACKETS, bands: vec![band] };
    let mut change = entry(1, Match::any(), &[out(1)]);
    change.instructions.meter = Some(6);
    assert_eq!(bench.shards().change_entries(&change, 0), Err(ControlError::NoMeter(6)));
    bench.shards().add_meter(6, meter, 0).expect("a meter");
    bench.add(&change);
    assert_eq!(bench.send(0, &vec![frame(1, 9); 5], 0).len(), 2);
    assert_eq!(bench.dropped(Reason::METER_DROP), 3);
    bench.check_books(2);
    bench.shards().remove_meter(Some(6), 0);
    assert_eq!(bench.send(0, &[frame(1, 9)], 0), []);
}

#[test]
fn removed_entries_are_reported_if_asked_for() {
    let mut bench = Bench::connected(FailMode::Secure);
    for (last, asks, idle) in [(1, true, Some(1)), (2, false, Some(1)), (3, true, None)] {
        let mut change = entry(1, destination(last), &[out(0)]);
        change.flags.send_removed = asks;
        change.idle_timeout = idle.map(Duration::from_secs);
        bench.add(&change);
    }
    bench.shards().expire_entries(SECOND / 2, 10);
    assert_eq!(bench.shards().take_removed(10), []);
    bench.shards().expire_entries(2 * SECOND, 10);
    let removed = bench.shards().take_removed(10);
    assert_eq!((removed.len(), removed[0].matching), (1, destination(1)));
    bench.add(&Change::new(Command::Delete, Match::any(), 0));
    assert_eq!(bench.shards().take_removed(10).len(), 1);
}

#[test]
fn entries_are_read_in_parts() {
    let mut bench = Bench::connected(FailMode::Secure);
    (0..100).for_each(|last| bench.add(&entry(1, destination(last), &[out(0)])));
    let (mut seen, mut from) = (Vec::new(), Some(0));
    while let Some(first) = from {
        from = bench.shards().entries_from(first, 7, |entry| seen.push(*entry.matching));
    }
    assert_eq!(seen, (0..100).map(destination).collect::<Vec<_>>());
}

#[test]
fn controllers_send_frames() {
    let mut bench = Bench::connected(FailMode::Secure);
    let perform = |output: Output| [PacketOutStep::Perform(Action::Output(output))];
    assert_eq!(bench.packet_out(None, &perform(Output::Flood), &frame(1, 9)), [0, 1, 2, 3]);
    assert_eq!(bench.packet_out(Some(1), &perform(Output::All), &frame(1, 9)), [0, 2, 3]);
    assert_eq!(bench.packet_out(Some(1), &perform(Output::InPort), &frame(1, 9)), [1]);
    assert_eq!(bench.packet_out(None, &perform(Output::Port(3)), &frame(1, 9)), [2]);
    assert_eq!(bench.packet_out(None, &[PacketOutStep::Table], &frame(1, 9)), []);
    assert_eq!(bench.dropped(Reason::FLOW_MISS), 1);
    // A station that the bridge knows.
    bench.send(3, &[frame(8, 7)], 0);
    assert_eq!(bench.packet_out(None, &perform(Output::Normal), &frame(7, 9)), [3]);
    for (output, port) in [(Output::Port(0), 0), (Output::Local, u32::MAX - 1)] {
        assert_eq!(bench.shards().check_packet_out(&perform(output)), Err(ControlError::BadPort(port)));
    }
    bench.check_books(4 + 3 + 1 + 1 + 1);
}

#[test]
fn controllers_send_frames_into_chains() {
    let mut bench = Bench::connected(FailMode::Secure);
    let instance = InstancePlan { slot: 0, ports: [PortKey(3); 2], is_draining: false, range: None };
    let service =
        ServicePlan { number: 0, instances: vec![instance], destinations: Vec::new(), translation: None };
    let chain = ChainPlan { number: 0, services: vec![0], from: None, to: PortKey(4), both_ways: false };
    bench.steering().set_chains(&ChainsPlan { services: vec![service], chains: vec![chain] });
    bench.add(&entry(5, destination(1), &[out(1), Action::Output(Output::Chain(0))]));
    bench.add(&entry(5, destination(2), &[Action::Output(Output::Service(0)), out(1)]));
    bench.add(&entry(5, destination(3), &[out(1), Action::Output(Output::Chain(7))]));
    // No instance is up.
    assert_eq!(bench.send(0, &[frame(1, 9)], 0), [(1, frame(1, 9))]);
    assert_eq!(bench.dropped(Reason::NO_INSTANCE), 1);
    bench.switch.resume_port(PortId(2));
    assert_eq!(bench.send(0, &[frame(1, 9)], 0), [(1, frame(1, 9)), (2, frame(1, 9))]);
    assert_eq!(bench.send(0, &[frame(2, 9)], 0), [(1, frame(2, 9)), (2, frame(2, 9))]);
    assert_eq!(bench.send(0, &[frame(3, 9)], 0), [(1, frame(3, 9))]);
    assert_eq!(bench.dropped(Reason::NO_INSTANCE), 2);
    assert_eq!(
        bench.packet_out(Some(0), &[PacketOutStep::Perform(Action::Output(Output::Chain(0)))], &frame(4, 9)),
        [2]
    );
    let counters = bench.steering().chains().counters(0).unwrap();
    assert_eq!((counters.hops[0][0].packets, counters.hops[0][0].lost), (3, 1));
    bench.check_books(7);
}

/// A controller sees services as ports: frames go there, and come from there whichever instance sent them.
#[test]
fn services_are_ports_to_controllers() {
    let mut bench = Bench::connected(FailMode::Secure);
    let of = |slot: u8| InstancePlan {
        slot,
        ports: [PortKey(3 + u16::from(slot)); 2],
        is_draining: false,
        range: None,
    };
    let service =
        ServicePlan { number: 0, instances: vec![of(0), of(1)], destinations: Vec::new(), translation: None };
    bench.steering().set_chains(&ChainsPlan { services: vec![service], chains: Vec::new() });
    (2..4).for_each(|port| bench.switch.resume_port(PortId(port)));
    let number = Output::Service(0).port_number().expect("a number");
    bench.add(&Change { cookie: 99, ..entry(0, Match::any(), &[to_controller()]) });
    // Frames without identity, from both instances.
    assert_eq!(
        (bench.send(2, &[frame(1, 9)], 0), bench.send(3, &[frame(1, 9)], 0)),
        (Vec::new(), Vec::new())
    );
    let packets = bench.packets();
    assert_eq!(packets.iter().map(|packet| packet.in_port).collect::<Vec<_>>(), [Some(number); 2]);
    let from_service = Match::any().with(Field::InPort, number.into()).expect("a port");
    bench.add(&entry(5, from_service, &[out(1)]));
    let to_wan = vec![(1, frame(1, 9))];
    assert_eq!(
        (bench.send(2, &[frame(1, 9)], 0), bench.send(3, &[frame(1, 9)], 0)),
        (to_wan.clone(), to_wan)
    );
    // Nothing goes back to where it came from, unless that is what the action says (OpenFlow 1.3.5, 5.12).
    bench.add(&entry(5, from_service, &[Action::Output(Output::Service(0))]));
    assert_eq!(bench.send(2, &[frame(1, 9)], 0), []);
    bench.add(&entry(5, from_service, &[Action::Output(Output::Service(0)), out(1)]));
    assert_eq!(bench.send(2, &[frame(1, 9)], 0), [(1, frame(1, 9))]);
    assert_eq!(bench.dropped(Reason::SAME_PORT), 2);
    // A message that names the service as the ingress port.
    let steps = |output| [PacketOutStep::Perform(Action::Output(output))];
    let mut sent = |output| {
        bench.switch.inject(None, &mut bench.made, |forward, outcome| match forward {
            ForwardingMode::Steering(steering) => {
                steering.packet_out(Some(number), &steps(output), &frame(1, 9), 0, outcome);
            }
            _ => unreachable!("the switch is a steering one"),
        });
        let ports: Vec<u16> = bench.made.frames().into_iter().map(|(port, _)| port.0).collect();
        bench.made.clear();
        ports
    };
    let [back, none] = [sent(Output::InPort), sent(Output::Service(0))];
    assert!(back == [2] || back == [3], "{back:?}");
    assert_eq!((none, bench.dropped(Reason::SAME_PORT)), (Vec::new(), 3));
    // Functions get what is sent to them, and not what is sent to all.
    bench.add(&entry(9, destination(1), &[Action::Output(Output::Flood)]));
    assert_eq!(bench.send(0, &[frame(1, 9)], 0).len(), 3);
    (2..4).for_each(|port| bench.switch.set_flooded(PortId(port), false));
    assert_eq!(bench.send(0, &[frame(1, 9)], 0), [(1, frame(1, 9))]);
    bench.add(&entry(9, destination(1), &[Action::Output(Output::Flood), to_controller()]));
    assert_eq!(bench.send(0, &[frame(1, 9)], 0), [(1, frame(1, 9))]);
    bench.check_books(2 + 1 + 1 + 3 + 1 + 1);
}

#[test]
fn a_frame_is_not_copied_without_end() {
    let mut bench = Bench::connected(FailMode::Secure);
    let group = |number: u32| Bucket { actions: vec![Action::Group(number)], ..Bucket::default() };
    let last = Bucket { actions: vec![out(1)], ..Bucket::default() };
    for number in 1..6 {
        let buckets = vec![if number == 1 { last.clone() } else { group(number - 1) }; 100];
        bench.shards().add_group(number, GroupType::All, &buckets, 0).expect("a group");
    }
    bench.add(&entry(1, Match::any(), &[Action::Group(5)]));
    let sent = bench.send(0, &[frame(1, 9)], 0).len();
    assert!((1..=4096).contains(&sent), "{sent} copies");
    bench.check_books(sent as u64);
}

#[test]
fn a_runner_sends_what_the_operations_make() {
    let steering = Steering::new(SteeringSettings::default());
    let mut runner = SwitchRunner::new(ForwardingMode::Steering(Box::new(steering))).expect("a runner");
    let mut ends = Vec::new();
    for number in 0..3 {
        let (near, far) = Pipe::pair().expect("a pipe");
        let port = runner.add_port(Box::new(near), PortSettings::default()).expect("a port");
        ends.push(far);
        if let ForwardingMode::Steering(steering) = runner.switch().forward_mut() {
            assert!(steering.set_port_key(port, PortKey(number + 1)));
            let change_source = Action::SetField(Field::EthSrc, 0x0200_0000_0042);
            let change = entry(1, destination(1), &[out(1), change_source, out(2)]);
            SteeringShards::new([&mut **steering]).change_entries(&change, 0).expect("a good change");
        }
    }
    let mut batch = Batch::new(4);
    assert!(batch.push(&frame(1, 9)) && batch.push(&frame(1, 8)));
    assert_eq!(ends[0].send(&batch, &[0, 1]).expect("a pipe").frames, 2);
    assert_eq!(runner.step(), 2);
    runner.inject(Some(PortId(0)), |forward, outcome| {
        if let ForwardingMode::Steering(steering) = forward {
            steering.packet_out(Some(1), &[PacketOutStep::Table], &frame(1, 7), 0, outcome);
        }
    });
    let changed = std::array::from_fn(|_| frame(1, 0x42));
    for (end, expected) in [(1, [frame(1, 9), frame(1, 8), frame(1, 7)]), (2, changed)] {
        let mut batch = Batch::new(4);
        ends[end].receive(&mut batch).expect("a pipe");
        assert_eq!(batch.frames().map(<[u8]>::to_vec).collect::<Vec<_>>(), expected);
        let books = runner.port_books(PortId(end as u16)).expect("a port");
        assert_eq!((books.planned, books.went), (3, 3));
    }
    let books = runner.switch().books();
    assert_eq!((books.counters.received_frames, books.injected, books.copied, books.planned), (2, 1, 3, 6));
}
