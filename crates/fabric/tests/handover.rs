//! The state of flows is handed over under traffic, on a fabric with boxes that run configurations.

mod support;

use boundary::{FlowExport, FlowList, StateRecord, StateTuple};
use model::{
    Attachment, EventKind, HandoverPhase, HandoverStatus, ImageDigest, ImageSource, InstanceStatus,
    SwitchMode,
};
use protocol::fabric::{ServiceDefinition, orders};
use protocol::memory_file;
use serde_bytes::ByteBuf;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::Duration;
use support::{TestBed, chain, definition, service};

/// A source of UDP packets of some hundred flows, as many as the handler `limit` says.
const SOURCE: &str = "
    s :: RatedSource(LENGTH 18, RATE 10000, LIMIT 0, ACTIVE false) -> UDPIPEncap(10.0.0.1, 1000, 10.9.0.1, 53)
    -> SetRandIPAddress(10.0.0.0/24) -> StoreIPAddress(src) -> SetIPChecksum -> SetUDPChecksum
    -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToDevice(0);
    FromDevice(0) -> back :: Counter -> Discard;";
const SINK: &str = "FromDevice(0) -> got :: Counter -> EtherMirror -> Strip(14) -> CheckIPHeader -> IPMirror -> Unstrip(14) -> ToDevice(0);";
/// Lets replies pass only if it saw the packet. Packets wait in a queue before.
const FIREWALL: &str = "
    f :: IPRewriter(keep 0 1, drop);
    FromDevice(0) -> Queue(1000) -> Unqueue -> Strip(14) -> CheckIPHeader -> f; f[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]f; f[1] -> Unstrip(14) -> ToDevice(0);";
/// Keeps state of hosts, which all of their flows share.
const HOSTS: &str = "
    f :: IPAddrRewriter(keep 0 1, drop);
    FromDevice(0) -> Strip(14) -> CheckIPHeader -> f; f[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]f; f[1] -> Unstrip(14) -> ToDevice(0);";
/// Keeps state over IPv6 that it cannot hand over.
const HOSTS6: &str = "
    f :: AddressTranslator(0, 1, 1, 0, 2001:db8::9 6000 6400);
    FromDevice(0) -> Strip(14) -> f; f[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> Strip(14) -> [1]f; f[1] -> Unstrip(14) -> ToDevice(0);";
/// A source of UDP packets over IPv6, of as many flows.
const SOURCE6: &str = "
    s :: RatedSource(DATA \\<020000000002 020000000001 86dd 60000000 0008 11 40
        fd000000000000000000000000000001 20010db8000000000000000000000063 03e8 0035 0008 0101>,
        RATE 10000, LIMIT 0, ACTIVE false)
    -> SetRandIPAddress(10.0.0.0/24) -> StoreIPAddress(34) -> sent :: Counter -> ToDevice(0);
    FromDevice(0) -> Discard;";
/// Keeps no state.
const COUNTER: &str = "FromDevice(0) -> out :: Counter -> ToDevice(1); FromDevice(1) -> ToDevice(0);";

fn firewall(numbers: &[u16], draining: &[u16]) -> ServiceDefinition {
    let names: Vec<String> = numbers.iter().map(|number| format!("fw-{number}")).collect();
    let mut found = service("fw", "in=0,out=1", &names.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    for (number, instance) in numbers.iter().zip(&mut found.instances) {
        instance.draining = draining.contains(number);
    }
    found
}

fn instances(bed: &TestBed) -> Vec<InstanceStatus> {
    bed.state().services[0].1.clone()
}

/// A source, a sink, and a chain through three instances that run this configuration.
fn start(text: &str, threads: usize) -> TestBed {
    start_with(SOURCE, text, threads)
}

fn start_with(source: &str, text: &str, threads: usize) -> TestBed {
    let bed = TestBed::with_threads(threads, SwitchMode::Steering);
    bed.run("source", 1, source, &[]);
    bed.run("sink", 1, SINK, &[]);
    for name in ["fw-1", "fw-2", "fw-3"] {
        bed.run(name, 2, text, &[]);
    }
    bed.steer(vec![firewall(&[1, 2, 3], &[])], vec![chain(&["fw"])]).unwrap();
    bed
}

fn steer(bed: &TestBed, numbers: &[u16], draining: &[u16]) {
    bed.steer(vec![firewall(numbers, draining)], vec![chain(&["fw"])]).unwrap();
}

fn wait_for_handover(bed: &TestBed) -> Vec<HandoverStatus> {
    let of_drained = |bed: &TestBed| -> Vec<HandoverStatus> {
        instances(bed).into_iter().filter_map(|found| found.handover).collect()
    };
    bed.until("flows are handed over", |bed| {
        of_drained(bed)
            .iter()
            .all(|status| !matches!(status.phase, HandoverPhase::Waiting | HandoverPhase::Running))
    });
    of_drained(bed)
}

/// No port lost a packet, and no chain either.
fn nothing_is_lost(bed: &TestBed) {
    let ports = bed.0.ask(orders::Traffic {}).unwrap().switches.remove(&support::lan()).unwrap();
    for (name, port) in ports {
        assert!(port.counters.drops.is_empty(), "{name}: {:?}", port.counters.drops);
    }
    let state = bed.state();
    assert!(state.chains[0].hops.iter().flat_map(|hop| hop.traffic).all(|traffic| traffic.lost == 0));
    assert!(instances(bed).iter().all(|found| (found.lost, found.overruled) == (0, 0)));
}

#[test]
fn flows_move_under_traffic() {
    check_moves(1, 6);
}

/// As above, with flows that are divided among threads.
#[test]
fn flows_move_under_traffic_in_all_threads() {
    check_moves(2, 3);
}

/// Every reply needs the state of its flow, wherever that is.
fn check_moves(threads: usize, rounds: u16) {
    let bed = start(FIREWALL, threads);
    bed.send(2000);
    bed.until("replies come", |bed| bed.read("source", "back.count") == 2000);
    let before: Vec<u64> = instances(&bed).iter().map(|found| found.flows).collect();
    let all: u64 = before.iter().sum();
    assert!(all > 100 && before.iter().all(|flows| *flows > 20), "{before:?}");
    for round in 0..rounds {
        // Fewer than fit a ring, at a rate that takes longer than the hand-over.
        bed.send(2000);
        // Two of three go, and others come.
        let stays = round % 3 + 1;
        let go: Vec<u16> = (1..=3).filter(|number| *number != stays).collect();
        steer(&bed, &[1, 2, 3], &go);
        for status in wait_for_handover(&bed) {
            assert_eq!((status.phase, status.kept, status.lost), (HandoverPhase::Done, 0, 0), "{status:?}");
        }
        let flows: Vec<u64> = instances(&bed).iter().map(|found| found.flows).collect();
        let sum: u64 = flows.iter().sum();
        assert!(sum >= all && flows[usize::from(stays) - 1] == sum, "{flows:?}");
        let expected = 2000 * (u64::from(round) + 2);
        bed.until("replies come", |bed| bed.read("source", "back.count") == expected);
        steer(&bed, &[1, 2, 3], &[]);
    }
    let sizes: Vec<u64> = (1..=3).map(|number| bed.read(&format!("fw-{number}"), "f.table_size")).collect();
    assert_eq!((sizes[0], sizes[1]), (0, 0));
    assert!(sizes[2] >= all, "{sizes:?}");
    nothing_is_lost(&bed);
    bed.0.ask(orders::End {}).unwrap();
}

/// Packets wait in it for longer than flows are frozen at a time. They go on in between.
#[test]
fn a_box_that_is_busy_for_a_while_is_asked_again() {
    let bed = start(&FIREWALL.replace("Queue(1000) -> Unqueue", "q :: Queue(1000) -> u :: Unqueue"), 1);
    bed.send(1000);
    bed.until("replies come", |bed| bed.read("source", "back.count") == 1000);
    bed.write("fw-2", "u.active", "false");
    bed.send(1000);
    bed.until("packets wait in it", |bed| bed.read("fw-2", "q.length") > 100);
    steer(&bed, &[1, 2, 3], &[2]);
    std::thread::sleep(Duration::from_millis(1500));
    bed.write("fw-2", "u.active", "true");
    let status = wait_for_handover(&bed).remove(0);
    assert_eq!((status.phase, status.kept, status.lost), (HandoverPhase::Done, 0, 0), "{status:?}");
    assert!(status.handed_over > 20, "{status:?}");
    bed.until("replies come", |bed| bed.read("source", "back.count") == 2000);
    assert_eq!(bed.read("fw-2", "f.table_size"), 0);
    nothing_is_lost(&bed);
    bed.0.ask(orders::End {}).unwrap();
}

#[test]
fn elements_that_lose_flows_keep_them() {
    let bed = &start_with(SOURCE6, HOSTS6, 1);
    bed.send(1000);
    bed.until("packets pass", |bed| bed.read("sink", "got.count") == 1000);
    let before: Vec<u64> = instances(bed).iter().map(|found| found.flows).collect();
    steer(bed, &[1, 2, 3], &[2]);
    let status = wait_for_handover(bed).remove(0);
    assert_eq!((status.phase, status.handed_over, status.lost), (HandoverPhase::Failed, 0, 0));
    assert_eq!(status.problem.as_deref(), Some("its elements cannot hand over the state of flows: f"));
    assert_eq!(instances(bed).iter().map(|found| found.flows).collect::<Vec<_>>(), before);
    let events = bed.0.ask(orders::Events { after: 0, most: 1000 }).unwrap().events;
    let kept: Vec<&str> = events
        .iter()
        .filter(|event| event.kind == EventKind::StateKept)
        .map(|event| event.message.as_str())
        .collect();
    assert_eq!(
        kept,
        [
            "not all flows of instance fw-2 of service fw were handed over: its elements cannot hand over the state of flows: f; flows stay there"
        ]
    );
    bed.send(1000);
    bed.until("packets pass", |bed| bed.read("sink", "got.count") == 2000);
    nothing_is_lost(bed);
    bed.0.ask(orders::End {}).unwrap();
}

/// States that flows share go with all flows to one instance.
#[test]
fn states_of_hosts_move_with_all_flows() {
    for threads in [1, 2] {
        let bed = start(HOSTS, threads);
        bed.send(2000);
        bed.until("replies come", |bed| bed.read("source", "back.count") == 2000);
        let before: Vec<u64> = instances(&bed).iter().map(|found| found.flows).collect();
        let all: u64 = before.iter().sum();
        let sizes = |bed: &TestBed| [1, 2, 3].map(|number| bed.read(&format!("fw-{number}"), "f.table_size"));
        let hosts = sizes(&bed);
        assert!(all > 100 && hosts.iter().all(|size| *size > 20), "{before:?} {hosts:?}");
        for round in 0..2 {
            bed.send(2000);
            let (go, stays) = if round == 0 { (2, [1, 3]) } else { (1, [2, 3]) };
            steer(&bed, &[1, 2, 3], &[go]);
            let status = wait_for_handover(&bed).remove(0);
            assert_eq!((status.phase, status.kept, status.lost), (HandoverPhase::Done, 0, 0), "{status:?}");
            let found = instances(&bed);
            let of = |number: usize| &found[number - 1];
            // Nothing else moved.
            let takers: Vec<u64> =
                stays.map(|number| of(number).taken_over).into_iter().filter(|count| *count > 0).collect();
            assert!(takers.contains(&status.handed_over), "{takers:?} {status:?}");
            assert_eq!(
                (of(go.into()).flows, found.iter().map(|found| found.flows).sum::<u64>() >= all),
                (0, true)
            );
            bed.until("replies come", |bed| bed.read("source", "back.count") == 2000 * (round + 2));
            steer(&bed, &[1, 2, 3], &[]);
        }
        assert_eq!(sizes(&bed)[0], 0);
        assert!(sizes(&bed).iter().sum::<u64>() >= hosts.iter().sum(), "{hosts:?}");
        nothing_is_lost(&bed);
        bed.0.ask(orders::End {}).unwrap();
    }
}

/// Instances have given addresses to hosts on their own, so that some are taken: all states stay, and no translation changes.
#[test]
fn states_of_hosts_all_stay_if_one_is_refused() {
    let bed = start(&HOSTS.replace("keep 0 1", "pattern 192.0.2.1-192.0.2.250 - 0 1"), 1);
    let sizes = |bed: &TestBed| [1, 2, 3].map(|number| bed.read(&format!("fw-{number}"), "f.table_size"));
    let flows = |bed: &TestBed| -> u64 { instances(bed)[1].flows };
    // All hosts.
    bed.send(2000);
    bed.until("packets pass", |bed| bed.read("sink", "got.count") == 2000);
    bed.send(2000);
    bed.until("packets pass", |bed| bed.read("sink", "got.count") == 4000);
    let (before, flows_before) = (sizes(&bed), flows(&bed));
    steer(&bed, &[1, 2, 3], &[2]);
    let status = wait_for_handover(&bed).remove(0);
    assert_eq!((status.phase, status.handed_over, status.lost), (HandoverPhase::Failed, 0, 0), "{status:?}");
    let problem = status.problem.unwrap();
    assert!(problem.starts_with("states of whole addresses move all or none: box fw-"), "{problem}");
    assert!(problem.ends_with(": another flow has the addresses and ports"), "{problem}");
    assert_eq!((sizes(&bed)[1], flows(&bed)), (before[1], flows_before));
    bed.send(2000);
    bed.until("packets pass", |bed| bed.read("sink", "got.count") == 6000);
    assert_eq!(sizes(&bed)[1], before[1]);
    nothing_is_lost(&bed);
    bed.0.ask(orders::End {}).unwrap();
}

#[test]
fn flows_without_state_go_on_at_once() {
    let bed = start(COUNTER, 1);
    bed.send(2000);
    steer(&bed, &[1, 2, 3], &[1, 3]);
    for status in wait_for_handover(&bed) {
        assert_eq!(status, HandoverStatus { phase: HandoverPhase::Done, ..HandoverStatus::default() });
    }
    bed.until("replies come", |bed| bed.read("source", "back.count") == 2000);
    let flows: Vec<u64> = instances(&bed).iter().map(|found| found.flows).collect();
    assert_eq!((flows[0], flows[2]), (0, 0));
    nothing_is_lost(&bed);
    bed.0.ask(orders::End {}).unwrap();
}

/// The flow of a client of the source, or of another network.
fn flow(network: u8, client: u8) -> StateTuple {
    let end = |address: [u8; 4], port| (Ipv4Addr::from(address).to_ipv6_mapped(), port);
    StateTuple { protocol: 17, ends: [end([10, 0, network, client], 1000), end([10, 9, 0, 1], 53)] }
}

/// Two instances: one that keeps no state, and one that is drained and answers so when it is asked for the state of its flows, the last
/// question after this many microseconds. It names flows of the other one, too.
fn drain_liar(listed: &FlowList, exported: &FlowExport, pause: &str) -> (TestBed, HandoverStatus) {
    let bed = TestBed::new();
    bed.run("source", 1, SOURCE, &[]);
    bed.run("sink", 1, SINK, &[]);
    bed.run("fw-1", 2, COUNTER, &[]);
    let file = memory_file::create(image::PROBE).unwrap();
    let order = orders::LoadImage { image: ImageDigest([1; 32]), bytes: image::PROBE.len() as u64 };
    bed.0.ask_with(order, &[file.as_fd()]).unwrap();
    let mut liar = definition("fw-2", 2, Attachment::Switch(support::lan()));
    liar.image = Some(ImageSource::Digest(ImageDigest([1; 32])));
    bed.define_box(liar, false);
    bed.start("fw-2", "forward", &[]).unwrap();
    for (handler, value) in
        [("listed", listed.encode()), ("exported", exported.encode()), ("pause", pause.into())]
    {
        let order = orders::WriteHandler {
            name: "fw-2".parse().unwrap(),
            configuration: model::ConfigurationName::main(),
            handler: handler.into(),
            value: ByteBuf::from(value),
        };
        bed.0.ask(order).unwrap();
    }
    steer(&bed, &[1, 2], &[]);
    bed.send(2000);
    bed.until("replies come", |bed| bed.read("source", "back.count") == 2000);
    let before: Vec<u64> = instances(&bed).iter().map(|found| found.flows).collect();
    assert!(before.iter().all(|flows| *flows > 20), "{before:?}");
    steer(&bed, &[1, 2], &[2]);
    bed.send(2000);
    let status = wait_for_handover(&bed).remove(0);
    bed.until("replies come", |bed| bed.read("source", "back.count") == 4000);
    let found = instances(&bed);
    // What was named of the other one stays there. Flows that have begun go there, too.
    assert!(found[0].flows >= before[0] && found[0].taken_over == status.handed_over, "{found:?} {before:?}");
    match status.handed_over {
        0 => assert_eq!(found[1].flows, before[1]),
        _ => assert_eq!(found[1].flows, 0),
    }
    nothing_is_lost(&bed);
    (bed, status)
}

/// Whatever a box says, only its own flows wait, for a bounded time, and none of another instance moves.
#[test]
fn a_box_that_lies_about_flows_delays_only_its_own() {
    let list = |count: u8| {
        let groups = (0..count).map(|client| vec![flow(0, client)]).collect();
        FlowList { next: None, groups, lost: Vec::new() }
    };
    let other = |client| StateRecord {
        element: "out".into(),
        format: "x".into(),
        version: 1,
        tuples: [flow(7, client); 2],
        payload: vec![1],
    };
    let others = FlowExport { groups: Some(1000), states: vec![other(1), other(2)] };
    let never = FlowExport::default();
    let too_many = "box fw-2: the box's reply is invalid";
    let cases = [
        (list(128), never.clone(), "0", 0, "packets of these flows wait in it for too long"),
        (list(128), never.clone(), "8000000", 0, "box fw-2: the box did not answer in time"),
        (list(128), others, "0", 4, "states of other flows came than were asked for"),
        (list(200), never, "0", 0, too_many),
    ];
    std::thread::scope(|scope| {
        for (listed, exported, pause, lost, problem) in cases {
            scope.spawn(move || {
                let (bed, status) = drain_liar(&listed, &exported, pause);
                assert_eq!((status.phase, status.kept, status.lost), (HandoverPhase::Failed, 0, lost));
                assert_eq!(status.problem.as_deref(), Some(problem));
                assert_eq!(status.handed_over > 0, lost > 0, "{status:?}");
                let kept = bed.events(EventKind::StateKept);
                assert!(kept.len() == 1 && kept[0].contains(problem), "{kept:?}");
                bed.0.ask(orders::End {}).unwrap();
            });
        }
    });
}
