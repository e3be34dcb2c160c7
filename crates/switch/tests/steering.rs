//! A steering switch sends, drops and counts as a linear search of its flows says.

use flow_table::{Fragments, Ingress, Key, Seed};
use random::Random;
use std::time::Duration;
use switch::{
    Batch, Counters, Field, Flow, FlowError, FlowOutput, ForwardingMode, ForwardingPlan, LearningSettings,
    MacAddr, Match, PortId, PortKey, PortSettings, RateLimit, Reason, RemovalReason, Steering,
    SteeringSettings, Switch,
};

const SECOND: u64 = 1_000_000_000;
const ALL: [PortId; 4] = [PortId(0), PortId(1), PortId(2), PortId(3)];

/// A switch whose ports have the keys 100, 101, ...
fn switch(ports: u16) -> Switch<ForwardingMode> {
    let settings = SteeringSettings {
        cache: switch::CacheCapacity { ip4: 64, other: 64 },
        learning: LearningSettings { seed: 9, ..LearningSettings::default() },
        ..SteeringSettings::default()
    };
    let mut switch = Switch::new(ForwardingMode::Steering(Box::new(Steering::new(settings))));
    for number in 0..ports {
        assert_eq!(switch.add_port(PortSettings::default()), Ok(PortId(number)));
        assert!(steering(&mut switch).set_port_key(PortId(number), PortKey(100 + number)));
    }
    switch
}

fn steering(switch: &mut Switch<ForwardingMode>) -> &mut Steering {
    match switch.forward_mut() {
        ForwardingMode::Steering(steering) => steering,
        _ => unreachable!("every switch here is a steering one"),
    }
}

fn flow(id: u64, priority: u16, matching: Match, output: FlowOutput) -> Flow {
    Flow { id, matches: vec![matching], from: None, priority, output, idle_timeout: None, hard_timeout: None }
}

fn to(port: u16) -> FlowOutput {
    FlowOutput::Port(PortKey(100 + port))
}

fn with(fields: &[(Field, u128)]) -> Match {
    fields.iter().fold(Match::any(), |all, (field, value)| all.with(*field, *value).expect("a field"))
}

/// Frames to a TCP port over IPv4 or IPv6.
fn tcp(eth_type: u128, port: u128) -> Match {
    with(&[(Field::EthType, eth_type), (Field::IpProto, 6), (Field::TcpDst, port)])
}

/// Ethernet addresses that end in these numbers, and a payload that starts with an Ethernet type.
fn frame(destination: u8, source: u8, rest: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source], rest].concat()
}

/// A TCP packet over IPv4. `place` is the word with flags and fragment offset.
fn ip4(place: u16, identification: u8, port: u8) -> Vec<u8> {
    let [high, low] = place.to_be_bytes();
    let mut packet =
        vec![8, 0, 0x45, 0, 0, 40, 0, identification, high, low, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0, 9, 0, port]);
    packet.extend([0; 16]);
    packet
}

/// A TCP packet over IPv6, behind a header with destination options.
fn ip6(port: u8) -> Vec<u8> {
    let mut packet = vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 36, 60, 64];
    packet.extend([0xfd; 32]);
    packet.extend([6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend([0, 9, 0, port]);
    packet.extend([0; 16]);
    packet
}

fn tagged(tag: u8, packet: &[u8]) -> Vec<u8> {
    [&[0x81, 0, 0, tag], packet].concat()
}

fn plan(
    switch: &mut Switch<ForwardingMode>,
    from: u16,
    frames: &[Vec<u8>],
    now: u64,
) -> Vec<(u16, Vec<u32>)> {
    let mut batch = Batch::new(frames.len().max(1));
    for frame in frames {
        assert!(batch.push(frame));
    }
    let mut plan = ForwardingPlan::default();
    switch.switch(&batch, PortId(from), now, &mut plan);
    let ports = ALL.iter().filter(|port| !plan.frames(**port).is_empty());
    ports.map(|port| (port.0, plan.frames(*port).to_vec())).collect()
}

fn counters(received: &[Vec<u8>], drops: &[(Reason, u64)]) -> Counters {
    let received_bytes = received.iter().map(|frame| frame.len() as u64).sum();
    let mut counters =
        Counters { received_frames: received.len() as u64, received_bytes, ..Counters::default() };
    drops.iter().for_each(|(reason, count)| counters.drop(*reason, *count));
    counters
}

fn check_books(switch: &Switch<ForwardingMode>) {
    let books = switch.books();
    let lost: u64 = books.counters.drops.iter().sum();
    assert_eq!(books.counters.received_frames + books.copied, books.planned + lost);
}

/// The packets of each flow, by number.
fn packets(switch: &mut Switch<ForwardingMode>) -> Vec<(u64, u64, u64)> {
    let flows = steering(switch).flows(0, usize::MAX, 0);
    flows.iter().map(|status| (status.id, status.packets, status.bytes)).collect()
}

#[test]
fn mixed_frames_follow_their_flows() {
    let mut switch = switch(4);
    let steering = steering(&mut switch);
    let web = Flow { matches: vec![tcp(0x0800, 80), tcp(0x86dd, 80)], ..flow(1, 9, Match::any(), to(2)) };
    steering.add_flow(web, 0).unwrap();
    steering.add_flow(flow(2, 10, with(&[(Field::VlanVid, 0x1005)]), to(3)), 0).unwrap();
    steering.add_flow(flow(3, 5, with(&[(Field::EthType, 0x0806)]), FlowOutput::Flood), 0).unwrap();
    steering.add_flow(flow(4, 5, tcp(0x0800, 22), FlowOutput::Drop), 0).unwrap();
    steering.add_flow(flow(5, 5, tcp(0x0800, 23), to(9)), 0).unwrap();
    steering.add_flow(flow(6, 5, tcp(0x0800, 24), to(0)), 0).unwrap();
    steering.add_flow(flow(7, 1, tcp(0x0800, 25), FlowOutput::Normal), 0).unwrap();
    let from_one = Flow { from: Some(PortKey(101)), ..flow(8, 1, Match::any(), FlowOutput::Normal) };
    steering.add_flow(from_one, 0).unwrap();
    let frames = [
        frame(2, 1, &ip4(0, 0, 80)),
        frame(2, 1, &ip6(80)),
        frame(2, 1, &tagged(5, &ip4(0, 0, 80))),
        frame(2, 1, &tagged(6, &ip6(80))),
        // A packet in three fragments, of which one comes too early.
        frame(2, 1, &ip4(4, 7, 99)),
        frame(2, 1, &ip4(0x2000, 7, 80)),
        frame(2, 1, &ip4(4, 7, 99)),
        frame(2, 1, &ip4(0, 0, 22)),
        frame(2, 1, &ip4(0, 0, 23)),
        frame(2, 1, &ip4(0, 0, 24)),
        frame(2, 1, &ip4(0, 0, 25)),
        frame(2, 1, &[8, 6]),
        frame(2, 1, &[0x88, 0xb5]),
        vec![2; 13],
    ];
    let expected = [(1, vec![10, 11]), (2, vec![0, 1, 3, 5, 6, 10, 11]), (3, vec![2, 10, 11])];
    assert_eq!(plan(&mut switch, 0, &frames, 0), expected);
    let drops = [
        (Reason::FLOW_MISS, 2),
        (Reason::FLOW_DROP, 1),
        (Reason::NO_ROUTE, 1),
        (Reason::SAME_PORT, 1),
        (Reason::TOO_SHORT, 1),
    ];
    assert_eq!(switch.counters(PortId(0)), Some(&counters(&frames, &drops)));
    assert_eq!(switch.books().copied, 4);
    check_books(&switch);
    // The station at port 0 was learned from its frames, whatever flows they belong to.
    let back = [frame(1, 2, &ip4(0, 0, 9)), frame(2, 3, &ip4(0, 0, 80))];
    assert_eq!(plan(&mut switch, 1, &back, 0), [(0, vec![0]), (2, vec![1])]);
    let sizes = |list: &[usize]| list.iter().map(|at| frames[*at].len() as u64).sum::<u64>();
    let mut expected: Vec<_> =
        [vec![0, 1, 3, 5, 6], vec![2], vec![11], vec![7], vec![8], vec![9], vec![10], vec![]]
            .iter()
            .zip(1..)
            .map(|(list, id)| (id, list.len() as u64, sizes(list)))
            .collect();
    for (at, length) in [(0, back[1].len()), (7, back[0].len())] {
        expected[at].1 += 1;
        expected[at].2 += length as u64;
    }
    assert_eq!(packets(&mut switch), expected);
}

/// Source addresses and limits are checked before any flow.
#[test]
fn ports_are_guarded_as_in_other_modes() {
    let mut switch = switch(3);
    steering(&mut switch).add_flow(flow(1, 1, Match::any(), to(2)), 0).unwrap();
    steering(&mut switch).bridge_mut().bind(MacAddr([2, 0, 0, 0, 0, 7]), PortId(1)).unwrap();
    let only = Some(MacAddr([2, 0, 0, 0, 0, 3]));
    let rate_limit = RateLimit { broadcasts: 1, ..RateLimit::default() };
    let settings = PortSettings { new_addresses: 1, rate_limit, ..PortSettings::default() };
    assert!(switch.set_port(PortId(0), settings));
    let mut group = frame(2, 1, &ip4(0, 0, 80));
    group[6] = 3;
    let mut all = frame(2, 1, &ip4(0, 0, 80));
    all[..6].fill(0xff);
    let frames = [
        frame(2, 7, &ip4(0, 0, 80)),
        group,
        frame(2, 1, &ip4(0, 0, 80)),
        frame(2, 1, &ip4(0, 0, 81)),
        frame(2, 4, &ip4(0, 0, 80)),
        all.clone(),
        all,
    ];
    assert_eq!(plan(&mut switch, 0, &frames, 0), [(2, vec![2, 3, 5])]);
    let drops =
        [(Reason::SPOOFED, 1), (Reason::BAD_SOURCE, 1), (Reason::CAPPED, 1), (Reason::BROADCASTS_CAPPED, 1)];
    assert_eq!(switch.counters(PortId(0)), Some(&counters(&frames, &drops)));
    assert!(switch.set_port(PortId(1), PortSettings { source: only, ..PortSettings::default() }));
    let other = [frame(2, 1, &ip4(0, 0, 80)), frame(2, 3, &ip4(0, 0, 80))];
    assert_eq!(plan(&mut switch, 1, &other, 0), [(2, vec![1])]);
    assert_eq!(switch.counters(PortId(1)), Some(&counters(&other, &[(Reason::SPOOFED, 1)])));
    assert_eq!(packets(&mut switch)[0].1, 4, "only admitted frames belong to flows");
    check_books(&switch);
}

/// A flow to a removed port delivers nothing, also when another port has its number; the port's return restores it.
#[test]
fn flows_follow_a_port_and_not_its_number() {
    let mut switch = switch(3);
    let from_two = Flow { from: Some(PortKey(102)), ..flow(2, 9, Match::any(), to(0)) };
    steering(&mut switch).add_flow(from_two, 0).unwrap();
    steering(&mut switch).add_flow(flow(1, 1, Match::any(), to(2)), 0).unwrap();
    let frames = [frame(2, 1, &ip4(0, 0, 80))];
    assert_eq!(plan(&mut switch, 0, &frames, 0), [(2, vec![0])]);
    switch.remove_port(PortId(2)).unwrap();
    assert_eq!(plan(&mut switch, 0, &frames, 0), []);
    assert_eq!(switch.add_port(PortSettings::default()), Ok(PortId(2)));
    assert_eq!(plan(&mut switch, 0, &frames, 0), []);
    // Without a key it is no flow's ingress port either; a key belongs to one port.
    assert_eq!(plan(&mut switch, 2, &frames, 0), []);
    assert!(!steering(&mut switch).set_port_key(PortId(2), PortKey(100)));
    assert!(!steering(&mut switch).set_port_key(PortId(2), PortKey(u16::MAX)));
    assert!(steering(&mut switch).set_port_key(PortId(2), PortKey(555)));
    assert_eq!(plan(&mut switch, 0, &frames, 0), []);
    assert!(steering(&mut switch).set_port_key(PortId(1), PortKey(102)));
    assert_eq!(plan(&mut switch, 0, &frames, 0), [(1, vec![0])]);
    assert_eq!(plan(&mut switch, 1, &frames, 0), [(0, vec![0])]);
    assert_eq!(
        switch.counters(PortId(0)),
        Some(&counters(&vec![frames[0].clone(); 5], &[(Reason::NO_ROUTE, 3)]))
    );
    assert_eq!(switch.counters(PortId(2)), Some(&counters(&frames, &[(Reason::NO_ROUTE, 1)])));
    check_books(&switch);
}

/// OpenFlow 1.3.5, 7.2.3.7.
#[test]
fn frames_match_the_tunnel_of_their_port() {
    let mut switch = switch(3);
    let frames = [frame(1, 2, &ip4(0, 0, 80))];
    for (id, tunnel, port) in [(1, 4711, 0), (2, 4712, 1)] {
        let matching = with(&[(Field::TunnelId, tunnel)]);
        steering(&mut switch).add_flow(flow(id, 5, matching, to(port)), 0).unwrap();
    }
    assert_eq!(plan(&mut switch, 2, &frames, 0), []);
    for (tunnel, to) in [(4711, Some(0)), (4712, Some(1)), (4713, None)] {
        steering(&mut switch).set_tunnel(PortId(2), tunnel);
        assert_eq!(
            plan(&mut switch, 2, &frames, 0),
            to.map(|port| (port, vec![0])).into_iter().collect::<Vec<_>>()
        );
        assert_eq!(plan(&mut switch, 0, &frames, 0), []);
    }
    // With another key, the port is no tunnel before it is said to be one.
    steering(&mut switch).set_tunnel(PortId(2), 4711);
    assert!(steering(&mut switch).set_port_key(PortId(2), PortKey(555)));
    assert_eq!(plan(&mut switch, 2, &frames, 0), []);
    let received = vec![frames[0].clone(); 5];
    assert_eq!(switch.counters(PortId(2)), Some(&counters(&received, &[(Reason::FLOW_MISS, 3)])));
    check_books(&switch);
}

#[test]
fn refused_flows_change_nothing() {
    let mut switch = switch(2);
    let steering = steering(&mut switch);
    steering.add_flow(flow(1, 5, tcp(0x0800, 80), to(1)), 0).unwrap();
    let two = |id, first, second| Flow { matches: vec![first, second], ..flow(id, 5, first, to(1)) };
    let in_port = with(&[(Field::InPort, 1)]);
    let mut refused = |flow: Flow| steering.add_flow(flow, 0).unwrap_err();
    assert_eq!(refused(flow(1, 6, Match::any(), to(1))), FlowError::Exists(1));
    assert_eq!(refused(Flow { matches: vec![], ..flow(2, 5, in_port, to(1)) }), FlowError::NoMatch);
    assert_eq!(refused(flow(2, 5, in_port, to(1))), FlowError::PortInMatch);
    assert_eq!(refused(two(2, tcp(0x86dd, 80), tcp(0x0800, 80))), FlowError::SameMatch { flow: 1 });
    assert_eq!(refused(two(2, tcp(0x86dd, 80), tcp(0x86dd, 80))), FlowError::SameMatch { flow: 2 });
    let bad = FlowOutput::Port(PortKey(0x8000));
    assert_eq!(refused(flow(2, 6, Match::any(), bad)), FlowError::BadPort(PortKey(0x8000)));
    assert_eq!(steering.len(), 1);
    steering.add_flow(two(2, tcp(0x86dd, 80), tcp(0x86dd, 81)), 0).expect("nothing was left behind");
    assert_eq!(steering.remove_flow(2, 7).map(|status| status.age), Some(Duration::from_nanos(7)));
    assert_eq!(steering.remove_flow(2, 0), None);

    let mut small = Steering::new(SteeringSettings { entries: 2, ..SteeringSettings::default() });
    let three =
        Flow { matches: (0..3).map(|port| tcp(0x0800, port)).collect(), ..flow(1, 1, Match::any(), to(0)) };
    assert!(matches!(small.add_flow(three, 0), Err(FlowError::Table(_))));
    assert!(small.is_empty());
    small.add_flow(two(1, tcp(0x0800, 0), tcp(0x0800, 1)), 0).expect("room for two");
}

/// A flow with several matches ends when all of them are idle, not one by one.
#[test]
fn timeouts_end_whole_flows() {
    let mut switch = switch(2);
    let seconds = |count| Some(Duration::from_secs(count));
    let both = vec![tcp(0x0800, 80), tcp(0x0800, 81)];
    let base = flow(1, 9, Match::any(), to(1));
    let idle = Flow { matches: both, idle_timeout: seconds(10), ..base.clone() };
    let hard = Flow { id: 2, idle_timeout: seconds(8), hard_timeout: seconds(20), priority: 1, ..base };
    steering(&mut switch).add_flow(idle, 0).unwrap();
    steering(&mut switch).add_flow(hard, 0).unwrap();
    let (one, other) = ([frame(2, 1, &ip4(0, 0, 80))], [frame(2, 1, &ip4(0, 0, 9))]);
    let mut ended = Vec::new();
    for second in 0..=60 {
        let now = second * SECOND;
        // Up to second 25 one match of the first flow is used, and the second flow in every fifth second.
        if second <= 25 {
            plan(&mut switch, 0, &one, now);
        }
        if second % 5 == 0 {
            plan(&mut switch, 0, &other, now);
        }
        for flow in steering(&mut switch).expire_flows(now, 2) {
            ended.push((second, flow.status.id, flow.status.packets, flow.reason));
        }
    }
    assert_eq!(ended, [(20, 2, 5, RemovalReason::HardTimeout), (35, 1, 26, RemovalReason::IdleTimeout)]);
    let counters = switch.counters(PortId(0)).unwrap();
    assert_eq!(counters.dropped(Reason::FLOW_MISS), 8);
    assert_eq!(steering(&mut switch).expire_flows(u64::MAX, 100), []);
}

/// A flow is idle when no shard of the switch uses it, and its counters are the sums.
#[test]
fn timeouts_hold_over_all_shards() {
    let mut shards = [switch(2), switch(2)];
    let seconds = |count| Some(Duration::from_secs(count));
    let base = flow(1, 9, Match::any(), to(1));
    let idle = Flow { matches: vec![tcp(0x0800, 80)], idle_timeout: seconds(10), ..base.clone() };
    let hard = Flow { id: 2, hard_timeout: seconds(20), priority: 1, ..base };
    for shard in &mut shards {
        steering(shard).add_flow(idle.clone(), 0).unwrap();
        steering(shard).add_flow(hard.clone(), 0).unwrap();
    }
    let mut ended = Vec::new();
    for second in 0..=40 {
        let now = second * SECOND;
        // Each of them uses the flow every 12 seconds, in turn.
        if second <= 24 && second % 6 == 0 {
            plan(&mut shards[second as usize / 6 % 2], 0, &[frame(2, 1, &ip4(0, 0, 80))], now);
        }
        let [one, other] = &mut shards;
        for flow in Steering::expire_flows_of(&mut [steering(one), steering(other)], now, 2) {
            ended.push((second, flow.status.id, flow.status.packets, flow.reason));
        }
    }
    assert_eq!(ended, [(20, 2, 0, RemovalReason::HardTimeout), (34, 1, 5, RemovalReason::IdleTimeout)]);
    for shard in &mut shards {
        assert!(steering(shard).is_empty() && steering(shard).next_deadline().is_none());
        assert_eq!(shard.counters(PortId(0)).unwrap().dropped(Reason::FLOW_MISS), 0);
    }
}

/// What a linear search of the flows decides.
struct Oracle {
    flows: Vec<(Flow, u64)>,
    fragments: Fragments,
}

impl Oracle {
    fn decide(&mut self, bytes: &[u8], from: u16, now: u64) -> Option<FlowOutput> {
        let ingress = Ingress { port: u32::from(100 + from), ..Ingress::default() };
        let (mut key, fragment) = Key::extract(bytes, &ingress);
        if let Some(fragment) = fragment {
            self.fragments.resolve(&mut key, fragment, Duration::from_nanos(now));
        }
        let is_met = |flow: &Flow| {
            flow.from.is_none_or(|port| port.0 == 100 + from)
                && flow.matches.iter().any(|one| one.matches(&key))
        };
        // Of the highest priority, the one that was added first.
        let found = self.flows.iter_mut().filter(|(flow, _)| is_met(flow));
        let (flow, packets) = found.rev().max_by_key(|(flow, _)| flow.priority)?;
        *packets += 1;
        Some(flow.output)
    }
}

fn random_flow(random: &mut Random, id: u64) -> Flow {
    let matching = |random: &mut Random| match random.below(6) {
        0 => Match::any(),
        1 => with(&[(Field::VlanVid, 0x1000 + u128::from(random.below(3)))]),
        2 => with(&[(Field::EthDst, 0x0200_0000_0000 + u128::from(random.below(4)))]),
        3 => with(&[(Field::EthType, 0x0800), (Field::IpProto, 6)]),
        4 => tcp(0x86dd, random.below(4).into()),
        _ => tcp(0x0800, random.below(4).into()),
    };
    let outputs = [to(0), to(1), to(2), to(3), to(4), FlowOutput::Drop, FlowOutput::Flood];
    Flow {
        matches: (0..=random.below(2)).map(|_| matching(random)).collect(),
        from: (random.below(3) == 0).then(|| PortKey(100 + random.below(4) as u16)),
        ..flow(id, random.below(3) as u16, Match::any(), outputs[random.below(7) as usize])
    }
}

fn random_frame(random: &mut Random) -> Vec<u8> {
    let port = random.below(4) as u8;
    let packet = match random.below(6) {
        0..=2 => ip4(0, 0, port),
        3 => ip4([0x2000, 4][random.below(2) as usize], random.below(4) as u8, port),
        4 => ip6(port),
        _ => vec![8, 6, 0, 1],
    };
    let packet = if random.below(3) == 0 { tagged(random.below(3) as u8, &packet) } else { packet };
    let mut bytes = frame(random.below(4) as u8, 1 + random.below(3) as u8, &packet);
    bytes.truncate(if random.below(16) == 0 { random.below(40) as usize } else { bytes.len() });
    bytes
}

/// Random flows come and go between random batches; each frame goes where the linear search says, and is counted.
#[test]
fn a_linear_search_decides_the_same() {
    let mut seen = [0; 6];
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let mut switch = switch(4);
        let mut oracle = Oracle { flows: Vec::new(), fragments: Fragments::new(4096, Seed::new(0, 0)) };
        for round in 0..150u64 {
            let now = round * SECOND / 10;
            if random.below(2) == 0 {
                let flow = random_flow(&mut random, round);
                match steering(&mut switch).add_flow(flow.clone(), now) {
                    Ok(()) => oracle.flows.push((flow, 0)),
                    Err(FlowError::SameMatch { .. }) => seen[5] += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            if random.below(4) == 0 && !oracle.flows.is_empty() {
                let at = random.below(oracle.flows.len() as u32) as usize;
                let (flow, packets) = oracle.flows.remove(at);
                let last = steering(&mut switch).remove_flow(flow.id, now).expect("the flow");
                assert_eq!(last.packets, packets);
            }
            let from = random.below(4) as u16;
            let frames: Vec<_> = (0..random.below(100)).map(|_| random_frame(&mut random)).collect();
            let before = *switch.counters(PortId(from)).unwrap();
            let found = plan(&mut switch, from, &frames, now);
            let mut expected = vec![Vec::new(); 4];
            let mut drops = Vec::new();
            for (number, bytes) in (0..).zip(&frames) {
                let others = || (0..4).filter(|port| *port != from);
                if bytes.len() < 14 {
                    drops.push((Reason::TOO_SHORT, 1));
                    continue;
                }
                match oracle.decide(bytes, from, now) {
                    Some(FlowOutput::Port(PortKey(key))) if others().any(|port| 100 + port == key) => {
                        seen[0] += 1;
                        expected[usize::from(key - 100)].push(number);
                    }
                    Some(FlowOutput::Port(PortKey(key))) => {
                        seen[1] += 1;
                        let is_back = key == 100 + from;
                        drops.push((if is_back { Reason::SAME_PORT } else { Reason::NO_ROUTE }, 1));
                    }
                    Some(FlowOutput::Flood) => {
                        seen[2] += 1;
                        others().for_each(|port| expected[usize::from(port)].push(number));
                    }
                    Some(_) => {
                        seen[3] += 1;
                        drops.push((Reason::FLOW_DROP, 1));
                    }
                    None => {
                        seen[4] += 1;
                        drops.push((Reason::FLOW_MISS, 1));
                    }
                }
            }
            let expected = (0..).zip(expected).filter(|(_, list)| !list.is_empty());
            assert_eq!(found, expected.collect::<Vec<_>>(), "seed {seed}, round {round}");
            let mut after = before;
            after += counters(&frames, &drops);
            assert_eq!(switch.counters(PortId(from)), Some(&after));
            check_books(&switch);
        }
        let mut expected: Vec<_> = oracle.flows.iter().map(|(flow, packets)| (flow.id, *packets)).collect();
        expected.sort_unstable();
        let found: Vec<_> = packets(&mut switch).iter().map(|(id, packets, _)| (*id, *packets)).collect();
        assert_eq!(found, expected);
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}
