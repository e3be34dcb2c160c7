//! Limits, errors, timeouts, and the rate of cache hits while entries change.

use std::time::Duration;

use flow_table::{
    Action, ActionError, Arrival, BATCH, CacheCapacity, Change, Command, Field, FlowCache, FlowModError,
    Fragments, Ingress, Instructions, Key, Limits, Match, Operation, Output, Pipeline, RemovalReason, Seed,
};
use random::Random;

const NOW: Duration = Duration::from_secs(1);

fn udp_to(port: u128) -> Match {
    let udp = Match::any().with(Field::EthType, 0x0800).unwrap().with(Field::IpProto, 17).unwrap();
    udp.with(Field::UdpDst, port).unwrap()
}

fn add(matching: Match, priority: u16, port: u32) -> Change {
    let instructions = Instructions::output(Output::Port(port));
    Change { instructions, ..Change::new(Command::Add, matching, priority) }
}

/// A UDP packet from one of many addresses.
fn packet(flow: u32) -> Arrival {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend((0x0a00_0000 + flow).to_be_bytes());
    frame.extend([192, 0, 2, 1]);
    frame.extend([0, 9, (flow >> 8) as u8 & 3, flow as u8, 0, 8, 0, 0]);
    Arrival { key: Key::extract(&frame, &Ingress::default()).0, length: 60 }
}

fn pipeline(limits: Limits) -> Pipeline {
    Pipeline::new(limits, Seed::new(1, 2))
}

#[test]
fn limits_are_errors_that_change_nothing() {
    let mut full = pipeline(Limits { entries: 2, masks: 2, ..Limits::default() });
    full.apply(&add(udp_to(1), 1, 1), NOW).unwrap();
    full.apply(&add(udp_to(1), 1, 2), NOW).expect("replaces");
    full.apply(&add(Match::any(), 0, 1), NOW).unwrap();
    let bytes = full.bytes();
    assert_eq!(full.apply(&add(udp_to(2), 1, 1), NOW), Err(FlowModError::TooManyEntries { limit: 2 }));
    let in_port = Match::any().with(Field::InPort, 1).unwrap();
    assert_eq!(full.apply(&add(in_port, 1, 1), NOW), Err(FlowModError::TooManyMasks { limit: 2 }));
    assert_eq!((full.len(), full.bytes()), (2, bytes));

    let mut small = pipeline(Limits { bytes: bytes - 1, ..Limits::default() });
    small.apply(&add(udp_to(1), 1, 1), NOW).unwrap();
    assert_eq!(
        small.apply(&add(Match::any(), 0, 1), NOW),
        Err(FlowModError::TooManyBytes { limit: bytes - 1 })
    );
    small.apply(&Change::new(Command::Delete, Match::any(), 0), NOW).unwrap();
    assert_eq!((small.len(), small.bytes()), (0, 0), "memory is given back");
}

/// One entry shows the packets of the paths that have not been added up yet.
#[test]
fn an_entry_is_found_with_its_counters() {
    let mut pipeline = pipeline(Limits::default());
    pipeline.apply(&add(udp_to(1), 7, 1), NOW).unwrap();
    pipeline.apply(&add(udp_to(1), 8, 2), NOW).unwrap();
    let later = Duration::from_secs(9);
    FlowCache::new(CacheCapacity { ip4: 8, other: 8 }, Seed::new(1, 2)).look_up(
        &mut pipeline,
        &[packet(1), packet(1), packet(2)],
        later,
    );
    let mut shown = |matching, priority| {
        let entry = pipeline.entry(0, &matching, priority)?;
        Some((entry.packets, entry.bytes, entry.created, entry.used))
    };
    assert_eq!(shown(udp_to(1), 8), Some((2, 120, NOW, later)));
    assert_eq!(shown(udp_to(1), 7), Some((0, 0, NOW, NOW)));
    assert_eq!(shown(udp_to(1), 6), None);
    assert_eq!(shown(udp_to(2), 8), None);
    assert_eq!(pipeline.entry(64, &udp_to(1), 8).map(|entry| entry.packets), None);
}

#[test]
fn wrong_changes_are_refused() {
    let mut pipeline = pipeline(Limits::default());
    let mut refused = |change: Change| pipeline.apply(&change, NOW).unwrap_err();
    let with = |instructions: Instructions| Change { instructions, ..add(udp_to(1), 1, 1) };
    let goto = |to| with(Instructions { goto: Some(to), ..Instructions::default() });
    assert_eq!(refused(goto(0)), FlowModError::BadGoto { from: 0, to: 0 });
    assert_eq!(refused(goto(64)), FlowModError::BadGoto { from: 0, to: 64 });
    assert_eq!(refused(Change { table: Some(64), ..goto(1) }), FlowModError::BadTable);
    assert_eq!(refused(Change { table: None, ..goto(1) }), FlowModError::BadTable);
    let zero = Change { idle_timeout: Some(Duration::ZERO), ..add(udp_to(1), 1, 1) };
    assert_eq!(refused(zero), FlowModError::BadTimeout);
    for (action, expected) in [
        (Action::SetField(Field::TcpDst, 1), ActionError::MissingField(Field::TcpDst)),
        (Action::SetField(Field::UdpDst, 1 << 16), ActionError::TooWide(Field::UdpDst)),
        (Action::SetField(Field::InPort, 1), ActionError::NotSettable(Field::InPort)),
        (Action::SetField(Field::VlanVid, 1), ActionError::MissingField(Field::VlanVid)),
        (Action::PopVlan, ActionError::MissingHeader),
        (Action::PushVlan(0x0800), ActionError::BadEthernetType(0x0800)),
    ] {
        assert_eq!(refused(with(Instructions::apply([action]))), FlowModError::Action(expected));
    }
    assert_eq!(
        refused(with(Instructions::apply([Action::PopVlan; 257]))),
        FlowModError::Action(ActionError::TooMany)
    );
    assert!(pipeline.is_empty());
}

#[test]
fn packets_in_the_cache_keep_entries_from_their_idle_timeout() {
    let mut pipeline = pipeline(Limits::default());
    let mut cache = FlowCache::new(CacheCapacity { ip4: 8, other: 8 }, Seed::new(3, 4));
    let idle = Change { idle_timeout: Some(Duration::from_secs(10)), ..add(Match::any(), 0, 1) };
    pipeline.apply(&idle, Duration::ZERO).unwrap();
    for second in 0..100 {
        cache.look_up(&mut pipeline, &[packet(1)], Duration::from_secs(second));
        assert_eq!(pipeline.expire(Duration::from_secs(second), 100), []);
    }
    assert_eq!(cache.counters().hits, 99);
    let removed = pipeline.expire(Duration::from_secs(109), 100);
    let [removed] = &removed[..] else { panic!("{removed:?}") };
    assert_eq!((removed.packets, removed.bytes, removed.reason), (100, 6_000, RemovalReason::IdleTimeout));
}

/// Flows that come and go: those that are used stay in the cache, and the memory of the others is given back once.
#[test]
fn a_cache_whose_flows_have_ended_shrinks() {
    const FLOWS: u32 = 40_000;
    const BUSY: u32 = 100;
    let mut pipeline = pipeline(Limits::default());
    let mut cache = FlowCache::new(CacheCapacity { ip4: 1 << 16, other: 8 }, Seed::new(3, 4));
    let look_up = |cache: &mut FlowCache, pipeline: &mut Pipeline, flows: u32, second: u64| {
        for batch in (0..flows).collect::<Vec<_>>().chunks(BATCH) {
            let batch: Vec<Arrival> = batch.iter().map(|flow| packet(*flow)).collect();
            cache.look_up(pipeline, &batch, Duration::from_secs(second));
        }
    };
    let idle_memory = |cache: &mut FlowCache| -> usize {
        cache.take_idle_memory(1 << 20).map(|memory| memory.end.addr() - memory.start.addr()).sum()
    };
    assert!(!cache.needs_care() && cache.tidy(&pipeline, NOW).is_none(), "a small cache needs none");
    look_up(&mut cache, &mut pipeline, FLOWS, 0);
    look_up(&mut cache, &mut pipeline, BUSY, 50);
    for _ in 0..20 {
        assert_eq!(cache.tidy(&pipeline, Duration::from_secs(60)), Some(Duration::from_millis(250)));
        assert_eq!((cache.len(), idle_memory(&mut cache)), (FLOWS as usize, 0));
    }
    let (mut bytes, mut steps) = (0, 0);
    while cache.tidy(&pipeline, Duration::from_secs(61)).is_some() {
        bytes += idle_memory(&mut cache);
        steps += 1;
        assert!(steps < 1000);
    }
    assert_eq!(cache.len(), BUSY as usize);
    // Slots of 64 bytes, and 8 bytes of a bucket for each.
    let expected = (FLOWS as usize - 4096) * 64..FLOWS as usize * 96;
    assert!(expected.contains(&bytes) && !cache.needs_care(), "{bytes} bytes in {steps} steps");
    look_up(&mut cache, &mut pipeline, BUSY, 62);
    assert_eq!(cache.counters().hits, 2 * u64::from(BUSY));
    look_up(&mut cache, &mut pipeline, FLOWS, 62);
    assert_eq!((cache.len(), cache.counters().evicted), (FLOWS as usize, 0));
}

/// The entries of pipelines of several threads: each ends once, with the packets of all threads, and is idle if it is in all of them.
#[test]
fn entries_end_in_all_pipelines_together() {
    let mut all = [0; 3].map(|_| pipeline(Limits::default()));
    let second = Duration::from_secs;
    let idle = Change { idle_timeout: Some(second(10)), ..add(Match::any(), 0, 1) };
    let hard = Change { table: Some(1), hard_timeout: Some(second(60)), ..add(Match::any(), 0, 1) };
    for pipeline in &mut all {
        pipeline.apply(&idle, Duration::ZERO).unwrap();
        pipeline.apply(&hard, Duration::ZERO).unwrap();
    }
    let expire = |all: &mut [Pipeline; 3], now| {
        Pipeline::expire_all(&mut all.each_mut().map(|one| one), second(now), 100)
    };
    for now in 0..60 {
        // The first one, which knows the deadlines, has no packet.
        let pipeline = &mut all[1 + now as usize % 2];
        let path = pipeline.look_up(&packet(1).key);
        pipeline.count(path, 1, 60, second(now));
        assert_eq!(expire(&mut all, now), []);
    }
    let found = |removed: Vec<flow_table::FlowRemoved>| {
        removed.iter().map(|one| (one.table, one.packets, one.bytes, one.reason)).collect::<Vec<_>>()
    };
    assert_eq!(found(expire(&mut all, 60)), [(1, 0, 0, RemovalReason::HardTimeout)]);
    assert_eq!(found(expire(&mut all, 68)), []);
    assert_eq!(found(expire(&mut all, 69)), [(0, 60, 3_600, RemovalReason::IdleTimeout)]);
    assert!(all.iter().all(Pipeline::is_empty));
}

/// 5,000 changes and 200,000 packets, as in a second: changes of other flows cost no flow its cached decision.
#[test]
fn changes_of_other_flows_cost_no_hits() {
    const FLOWS: u32 = 20_000;
    let mut random = Random::new(11);
    let mut pipeline = pipeline(Limits::default());
    let mut cache = FlowCache::new(CacheCapacity { ip4: 1 << 16, other: 8 }, Seed::new(3, 4));
    pipeline.apply(&add(Match::any(), 0, 1), NOW).unwrap();
    let flows: Vec<u32> = (0..FLOWS).collect();
    for chunk in flows.chunks(BATCH) {
        let batch: Vec<Arrival> = chunk.iter().map(|flow| packet(*flow)).collect();
        cache.look_up(&mut pipeline, &batch, NOW);
    }
    let start = cache.counters();
    for number in 0..5_000 {
        // Ports that no flow uses, and every hundredth change one that 20 flows use.
        let port = if number % 100 == 0 { number / 100 } else { 0x8000 + random.below(0x1000) };
        pipeline.apply(&add(udp_to(port.into()), 5, 2), NOW).unwrap();
        let batch: Vec<Arrival> = (0..BATCH).map(|_| packet(random.below(FLOWS))).collect();
        cache.look_up(&mut pipeline, &batch, NOW);
    }
    let end = cache.counters();
    let recomputed = end.misses + end.ended + end.superseded - start.misses - start.ended - start.superseded;
    assert!(recomputed > 500 && recomputed <= 50 * 20, "{recomputed} of 160,000 packets were recomputed");
}

#[test]
fn popping_a_tag_resumes_with_the_inner_headers() {
    let tagged = Match::any().with_masked(Field::VlanVid, 0x1000, 0x1000).unwrap();
    let mut pipeline = pipeline(Limits::default());
    let pop = Instructions {
        metadata: Some((5, 7)),
        goto: Some(3),
        write: vec![Action::DecIpTtl],
        ..Instructions::apply([Action::PopVlan])
    };
    pipeline.apply(&Change { instructions: pop, ..add(tagged, 1, 0) }, NOW).unwrap();
    let inner = Match::any().with(Field::Metadata, 5).unwrap().with(Field::VlanVid, 0).unwrap();
    let out = Instructions { write: vec![Action::Output(Output::Port(9))], ..Instructions::default() };
    pipeline.apply(&Change { table: Some(3), instructions: out, ..add(inner, 1, 0) }, NOW).unwrap();

    let mut frame = vec![2; 12];
    frame.extend([0x81, 0, 0, 1, 8, 0, 0x45]);
    let first = pipeline.look_up(&Key::extract(&frame, &Ingress::default()).0);
    assert_eq!(pipeline.path(first).unwrap().operations(), [Operation::Action(Action::PopVlan)]);
    let untagged = [&frame[..12], &frame[16..]].concat();
    let second = pipeline.resume(first, &Key::extract(&untagged, &Ingress::default()).0).unwrap();
    let expected = [Action::DecIpTtl, Action::Output(Output::Port(9))].map(Operation::Action);
    assert_eq!(pipeline.path(second).unwrap().operations(), expected);
    assert!(pipeline.resume(second, &Key::default()).is_none(), "it ended");
}

#[test]
fn memory_has_a_bound_that_is_known_before() {
    assert_eq!(CacheCapacity::default().max_bytes() >> 20, 64 + 16 + 32 + 4);
    assert!(Fragments::max_bytes(1 << 16) <= 16 << 20);
    assert!(CacheCapacity { ip4: usize::MAX, other: 1 }.max_bytes() > 1 << 60);
}
