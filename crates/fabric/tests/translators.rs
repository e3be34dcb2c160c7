//! Replicas of translators on a fabric, with boxes that run configurations.

#[path = "translators/cores.rs"]
mod cores;
mod support;

use model::{
    AddressRange, EventKind, File, HandoverPhase, HandoverStatus, InstanceStatus, RefusedTuples, SwitchMode,
    Translation, TranslationStatus, Value,
};
use protocol::fabric::{
    Configuration, FabricError, ServiceDefinition, SteeringReply, TranslationDefinition, orders,
};
use std::ops::Range;
use support::{TestBed, chain, configuration, service};

/// Sends the packets of the sources that are added to it. Each contains the address of its client. In a reply, it is written over
/// the destination: if that was another one, the checksum is wrong.
const SOURCE: &str = "
    sent :: Counter;
    sent -> GetIPAddress(12) -> k :: IPClassifier(udp, tcp);
    k[0] -> StoreIPAddress(28) -> SetIPChecksum -> SetUDPChecksum -> out :: EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2);
    k[1] -> StoreIPAddress(40) -> SetIPChecksum -> SetTCPChecksum -> out;
    out -> ToDevice(0);
    FromDevice(0) -> Strip(14) -> CheckIPHeader -> b :: IPClassifier(udp, tcp, -);
    b[0] -> CheckUDPHeader -> GetIPAddress(28) -> check :: StoreIPAddress(16);
    b[1] -> CheckTCPHeader -> GetIPAddress(40) -> check;
    check -> is_right :: CheckIPHeader -> back :: Counter -> Discard;
    is_right[1] -> wrong :: Counter -> Discard;
    b[2] -> wrong;";
const SINK: &str = "
    FromDevice(0) -> got :: Counter -> EtherMirror -> Strip(14) -> CheckIPHeader -> IPMirror -> Unstrip(14) -> ToDevice(0);";
/// Lets replies pass only if it saw the packet.
const FIREWALL: &str = "
    f :: IPRewriter(keep 0 1, drop);
    FromDevice(0) -> Strip(14) -> CheckIPHeader -> f; f[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]f; f[1] -> Unstrip(14) -> ToDevice(0);";
const NAT: &str = "
    define($TRANSLATE_ADDRESS 192.0.2.1, $TRANSLATE_PORTS 1-65535);
    f :: IPRewriter(pattern $TRANSLATE_ADDRESS $TRANSLATE_PORTS - - 0 1, drop);
    FromDevice(0) -> Strip(14) -> CheckIPHeader -> f; f[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]f; f[1] -> Unstrip(14) -> ToDevice(0);";

/// UDP and TCP flows, each of another client.
const FLOWS: u64 = 6000;

/// Packets that are sent at once: fewer than a ring has slots.
const PART: u64 = 1000;

fn flows(numbers: Range<u64>) -> String {
    let mut text = String::from("!data src sport dst dport ip_proto payload_len\n");
    for number in numbers {
        let (high, low) = (number / 250, number % 250 + 1);
        let (port, server) = (1024 + number % 7, number % 5 + 1);
        let (protocol, to) = if number % 2 == 0 { ('U', 53) } else { ('T', 80) };
        text += &format!("10.0.{high}.{low} {port} 198.51.100.{server} {to} {protocol} 8\n");
    }
    text
}

/// Starts the source. It has all flows in two rounds, each in parts.
fn start_source(bed: &TestBed) {
    let (mut text, mut files) = (SOURCE.to_string(), Vec::new());
    for part in 0..FLOWS / PART {
        let contents = Value(flows(part * PART..(part + 1) * PART).into_bytes());
        files.push(File { name: format!("part{part}"), contents });
        for round in 0..4 {
            text += &format!(
                "s{round}_{part} :: FromIPSummaryDump(part{part}, CHECKSUM true, ACTIVE false) -> RatedUnqueue(8000) -> sent;\n"
            );
        }
    }
    bed.define("source", 1);
    bed.start_with("source", Configuration { files, ..configuration(&text) }).unwrap();
}

/// Sends a packet of each flow, and waits for the replies.
fn send(bed: &TestBed, round: u64) {
    for part in 0..FLOWS / PART {
        write(bed, &format!("s{round}_{part}.active"));
        let expected = round * FLOWS + (part + 1) * PART;
        bed.until("replies come", |bed| bed.read("source", "back.count") == expected);
    }
}

fn translation() -> Translation {
    let ranges = ["203.0.113.1:1024-65535", "203.0.113.2:1024-65535"].map(|text| text.parse().unwrap());
    Translation { ranges: ranges.to_vec(), slices: 8, mappings: Vec::new() }
}

fn slice(number: u16) -> AddressRange {
    translation().slice(number).unwrap()
}

/// Starts an instance of the translator.
fn start(bed: &TestBed, number: u16) -> Result<(), FabricError> {
    let name = format!("nat-{number}");
    bed.define(&name, 2);
    bed.start_with(&name, Configuration { parameters: slice(number).parameters(), ..configuration(NAT) })
}

/// The translator with these instances.
fn nat(numbers: &[u16], draining: &[u16]) -> ServiceDefinition {
    let names: Vec<String> = numbers.iter().map(|number| format!("nat-{number}")).collect();
    let mut nat = service("nat", "in=0,out=1", &names.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    for (number, instance) in numbers.iter().zip(&mut nat.instances) {
        instance.range = Some(slice(*number));
        instance.draining = draining.contains(number);
    }
    nat.translation = Some(TranslationDefinition::default());
    nat
}

fn write(bed: &TestBed, handler: &str) {
    let order = orders::WriteHandler {
        name: "source".parse().unwrap(),
        configuration: model::ConfigurationName::main(),
        handler: handler.into(),
        value: serde_bytes::ByteBuf::from("true"),
    };
    bed.0.ask(order).unwrap();
}

/// Gives the switch a chain of a firewall, the translator, and a firewall as intrusion detection.
fn steer(bed: &TestBed, nat: ServiceDefinition) {
    let pair = |name: &str, one: &str, two: &str| service(name, "in=0,out=1", &[one, two], &[]);
    let services = vec![pair("fw", "fw-1", "fw-2"), nat, pair("ids", "ids-1", "ids-2")];
    bed.steer(services, vec![chain(&["fw", "nat", "ids"])]).unwrap();
}

/// Sends a packet of each flow through the chain with three translators, and checks what is known then.
fn check_first_round(bed: &TestBed) -> SteeringReply {
    start_source(bed);
    bed.run("sink", 1, SINK, &[]);
    for name in ["fw-1", "fw-2", "ids-1", "ids-2"] {
        bed.run(name, 2, FIREWALL, &[]);
    }
    (1..=3).for_each(|number| start(bed, number).unwrap());
    steer(bed, nat(&[1, 2, 3], &[]));
    send(bed, 0);
    let state = bed.state();
    let of = |service: usize| -> &[InstanceStatus] { &state.services[service].1 };
    for service in 0..3 {
        assert_eq!(of(service).iter().map(|found| found.flows).sum::<u64>(), FLOWS);
    }
    for (number, found) in (1..).zip(of(1)) {
        let expected = TranslationStatus {
            range: slice(number),
            learnt: found.flows,
            refused: RefusedTuples::default(),
        };
        assert_eq!(found.translation, Some(expected));
        assert!(found.flows.abs_diff(FLOWS / 3) < FLOWS / 30, "{:?}", of(1));
        assert_eq!(bed.read(found.name.as_str(), "f.table_size"), found.flows);
    }
    state
}

/// Checks that all packets of some rounds passed all hops in both directions, and reached the right clients.
fn check_all(bed: &TestBed, rounds: u64) {
    let hops = &bed.state().chains[0].hops;
    let traffic = hops.iter().map(|hop| hop.traffic.map(|traffic| (traffic.packets, traffic.lost)));
    assert_eq!(traffic.collect::<Vec<_>>(), [[(rounds * FLOWS, 0); 2]; 3]);
    assert_eq!((bed.read("source", "wrong.count"), bed.read("source", "is_right.drops")), (0, 0));
}

/// Checks that the flows of the second instance went to another one, and that all others stayed where they were.
fn check_handed_over(before: &[InstanceStatus], after: &[InstanceStatus]) {
    let drained = before[1].flows;
    for (at, found) in after.iter().enumerate() {
        let before = before.get(at).map_or(0, |found| found.flows);
        let expected = if at == 1 { 0 } else { before + found.taken_over };
        assert_eq!((found.flows, found.taken_over == 0 || found.taken_over == drained), (expected, true));
    }
    assert_eq!(after.iter().map(|found| found.taken_over).sum::<u64>(), drained);
}

/// Replies belong to other threads than requests: both reach the same instances all the same, also of the services on both sides of
/// the translator, when instances have come since, and when the flows of one were handed over. Nothing is counted twice.
#[test]
fn replies_return_to_their_clients_in_all_threads() {
    let bed = TestBed::with_threads(2, SwitchMode::Steering);
    let before = check_first_round(&bed);
    for (name, configuration) in [("fw-3", FIREWALL), ("ids-3", FIREWALL)] {
        bed.run(name, 2, configuration, &[]);
    }
    start(&bed, 4).unwrap();
    let three = |name: &str, all: [&str; 3]| service(name, "in=0,out=1", &all, &[]);
    let services = vec![
        three("fw", ["fw-1", "fw-2", "fw-3"]),
        nat(&[1, 2, 3, 4], &[2]),
        three("ids", ["ids-1", "ids-2", "ids-3"]),
    ];
    bed.steer(services, vec![chain(&["fw", "nat", "ids"])]).unwrap();
    wait_for_handover(&bed);
    send(&bed, 1);
    let after = bed.state();
    for service in [0, 2] {
        let [before, after] = [&before, &after].map(|state| &state.services[service].1);
        for (before, after) in before.iter().zip(after) {
            assert_eq!((after.flows, after.packets, after.lost), (before.flows, 2 * before.packets, 0));
        }
        assert_eq!(after.last().map(|new| (new.flows, new.packets)), Some((0, 0)));
    }
    check_handed_over(&before.services[1].1, &after.services[1].1);
    check_all(&bed, 2);
    let drops = bed.0.ask(orders::Traffic {}).unwrap().switches.into_values().flatten();
    assert!(drops.into_iter().all(|(_, port)| port.counters.drops.is_empty()));
    bed.0.ask(orders::End {}).unwrap();
}

/// Every reply returns to its client, by the same instances, however many there are.
#[test]
fn replies_return_to_their_clients() {
    let bed = TestBed::new();
    let state = check_first_round(&bed);
    // One more instance, and one that is drained: its flows go to one of the others, and these stay where they are.
    start(&bed, 4).unwrap();
    steer(&bed, nat(&[1, 2, 3, 4], &[2]));
    wait_for_handover(&bed);
    send(&bed, 1);
    check_handed_over(&state.services[1].1, &bed.state().services[1].1);
    check_all(&bed, 2);
    bed.0.ask(orders::End {}).unwrap();
}

/// Waits until the flows of the drained instances are handed over.
fn wait_for_handover(bed: &TestBed) {
    bed.until("flows are handed over", |bed| {
        let state = bed.state();
        let instances = state.services.iter().flat_map(|(_, instances)| instances);
        let mut drained = instances.filter_map(|found| found.handover.as_ref());
        drained.all(|status| !matches!(status.phase, HandoverPhase::Waiting | HandoverPhase::Running))
    });
}

/// Instances that are drained hand over their mappings with their ranges, and get their ranges back with the flows in them.
#[test]
fn mappings_move_with_their_ranges() {
    let bed = TestBed::new();
    start_source(&bed);
    bed.run("sink", 1, SINK, &[]);
    (1..=3).for_each(|number| start(&bed, number).unwrap());
    let steer = |nat: ServiceDefinition| bed.steer(vec![nat], vec![chain(&["nat"])]).unwrap();
    steer(nat(&[1, 2, 3], &[]));
    send(&bed, 0);
    let sizes = |bed: &TestBed, numbers: &[u16]| -> Vec<u64> {
        numbers.iter().map(|number| bed.read(&format!("nat-{number}"), "f.table_size")).collect()
    };
    let before = sizes(&bed, &[1, 2, 3]);
    assert!(before.iter().sum::<u64>() == FLOWS && before.iter().all(|size| *size > 1000), "{before:?}");
    steer(nat(&[1, 2, 3], &[2, 3]));
    wait_for_handover(&bed);
    let state = bed.state();
    let instances = &state.services[0].1;
    for (instance, size) in instances.iter().zip(&before).skip(1) {
        let expected =
            HandoverStatus { phase: HandoverPhase::Done, handed_over: *size, ..HandoverStatus::default() };
        assert_eq!((instance.handover.as_ref(), instance.flows), (Some(&expected), 0));
    }
    assert_eq!((instances[0].flows, instances[0].taken_over), (FLOWS, before[1] + before[2]));
    assert_eq!(sizes(&bed, &[1, 2, 3]), [FLOWS, 0, 0]);
    // The instances go, and the mappings are as before.
    steer(nat(&[1], &[]));
    send(&bed, 1);
    assert_eq!(sizes(&bed, &[1]), [FLOWS]);
    // An instance that comes again gets the flows in its range.
    steer(nat(&[1, 2], &[]));
    bed.until("flows return", |bed| sizes(bed, &[1, 2]) == [FLOWS - before[1], before[1]]);
    bed.until("the instance gets flows", |bed| !bed.state().services[0].1[1].draining);
    send(&bed, 2);
    // The other way round.
    steer(nat(&[1, 2], &[1]));
    wait_for_handover(&bed);
    assert_eq!(sizes(&bed, &[1, 2]), [0, FLOWS]);
    send(&bed, 3);
    let state = bed.state();
    let refused: Vec<_> =
        state.services[0].1.iter().map(|found| found.translation.unwrap().refused).collect();
    assert_eq!(refused, [RefusedTuples::default(); 2]);
    let hop = state.chains[0].hops[0].traffic.map(|traffic| (traffic.packets, traffic.lost));
    assert_eq!(hop, [(4 * FLOWS, 0); 2]);
    assert_eq!((bed.read("source", "wrong.count"), bed.read("source", "is_right.drops")), (0, 0));
    bed.0.ask(orders::End {}).unwrap();
}

/// Flows of each group of the source.
const GROUP: u64 = 8;

/// Mappings of whole addresses go to another instance with the address of a drained one, and back. The flows that depend on one go with
/// it, under traffic and whatever thread they belong to; those of other mappings stay. `second`: the second client, and whom it calls.
fn check_mappings_of_addresses(element: &str, threads: usize, second: [&str; 2]) {
    let ranges = ["203.0.113.1", "203.0.113.2"].map(|text| text.parse().unwrap()).to_vec();
    let translation = Translation { ranges, slices: 2, mappings: Vec::new() };
    let slice = |number: u16| translation.slice(number).unwrap();
    let text = NAT
        .replace("pattern $TRANSLATE_ADDRESS $TRANSLATE_PORTS - - 0 1", "pattern $TRANSLATE_ADDRESS - 0 1");
    let text = text.replace("IPRewriter", element);
    let bed = TestBed::with_threads(threads, SwitchMode::Steering);
    let mut source = String::from(
        "s :: RatedSource(LENGTH 18, RATE 10000, LIMIT 0, ACTIVE false) -> which :: Switch(0);
        out :: EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0);
        FromDevice(0) -> Strip(14) -> CheckIPHeader -> CheckUDPHeader -> c :: IPClassifier(
            dst host 10.0.0.1 and src host 10.9.0.1, -);
        c[0] -> first :: Counter -> Discard; c[1] -> second :: Counter -> Discard;
        which[0] -> g0 :: RoundRobinSwitch; which[1] -> g1 :: RoundRobinSwitch;
        which[2] -> both :: RoundRobinSwitch; both[0] -> g0; both[1] -> g1;\n",
    );
    for (group, [client, server]) in [["10.0.0.1", "10.9.0.1"], second].into_iter().enumerate() {
        for flow in 0..GROUP {
            source +=
                &format!("g{group}[{flow}] -> UDPIPEncap({client}, {}, {server}, 53) -> out;\n", 1000 + flow);
        }
    }
    bed.run("source", 1, &source, &[]);
    let sink = SINK.replace(
        "got ::",
        "Strip(14) -> CheckIPHeader -> from :: IPClassifier(src host 203.0.113.1, src host 203.0.113.2, -);
        from[0] -> one :: Counter -> u :: Unstrip(14); from[1] -> two :: Counter -> u; from[2] -> other :: Counter -> u;
        u -> got ::",
    );
    bed.run("sink", 1, &sink, &[]);
    for number in 1..=2 {
        let name = format!("nat-{number}");
        bed.define(&name, 2);
        let configuration = Configuration { parameters: slice(number).parameters(), ..configuration(&text) };
        bed.start_with(&name, configuration).unwrap();
    }
    let steer = |numbers: &[u16], draining: &[u16]| {
        let mut nat = nat(numbers, draining);
        nat.instances.iter_mut().zip(numbers).for_each(|(found, number)| found.range = Some(slice(*number)));
        bed.steer(vec![nat], vec![chain(&["nat"])]).unwrap();
    };
    // Packets of the first and the second group that were sent.
    let sent = std::cell::Cell::new([0; 2]);
    let begin = |group: u64, count: u64| {
        let [first, second] = sent.get();
        let more = if group == 2 { [count / 2; 2] } else { [(1 - group) * count, group * count] };
        sent.set([first + more[0], second + more[1]]);
        bed.write("source", "which.switch", &group.to_string());
        bed.send(count);
    };
    // Each reply reaches its client, and each client keeps its address.
    let all_reply = || {
        let read = |name: &str, counters: [&str; 2]| {
            counters.map(|counter| bed.read(name, &format!("{counter}.count")))
        };
        bed.until("replies come", |_| read("source", ["first", "second"]) == sent.get());
        assert_eq!((read("sink", ["one", "two"]), bed.read("sink", "other.count")), (sent.get(), 0));
    };
    let sizes = || [1, 2].map(|number| bed.read(&format!("nat-{number}"), "f.table_size"));
    let counts = || -> Vec<(u64, u64)> {
        bed.state().services[0].1.iter().map(|found| (found.flows, found.taken_over)).collect()
    };
    let done = HandoverStatus { phase: HandoverPhase::Done, handed_over: 1, ..HandoverStatus::default() };
    let status = |number: usize| bed.state().services[0].1[number - 1].handover.clone();
    steer(&[1], &[]);
    begin(0, 400);
    all_reply();
    steer(&[1, 2], &[1]);
    wait_for_handover(&bed);
    assert_eq!((status(1), counts(), sizes()), (Some(done.clone()), vec![(0, 0), (GROUP, 1)], [0, 1]));
    begin(1, 400);
    all_reply();
    assert_eq!((counts(), sizes()), (vec![(0, 0), (2 * GROUP, 1)], [0, 2]));
    steer(&[2], &[]);
    // The instance comes again under traffic: fewer packets than fit a ring.
    begin(2, 2000);
    bed.until("replies come", |bed| bed.read("source", "first.count") > sent.get()[0] - 900);
    steer(&[1, 2], &[]);
    bed.until("the instance gets flows", |bed| !bed.state().services[0].1[0].draining);
    assert_eq!((counts(), sizes()), (vec![(GROUP, 1), (GROUP, 1)], [1, 1]));
    all_reply();
    begin(2, 400);
    all_reply();
    assert_eq!((counts(), sizes()), (vec![(GROUP, 1), (GROUP, 1)], [1, 1]));
    // The other way round.
    steer(&[1, 2], &[2]);
    wait_for_handover(&bed);
    assert_eq!((status(2), counts(), sizes()), (Some(done), vec![(2 * GROUP, 2), (0, 1)], [2, 0]));
    begin(2, 400);
    all_reply();
    let events = bed.events(EventKind::StateHandedOver);
    let way = |from: u16, to: u16| {
        format!("instance nat-{from} of service nat handed 1 flows over to instance nat-{to} in ")
    };
    let ways = [way(1, 2), way(2, 1), way(2, 1)];
    assert!(
        events.len() == 3 && events.iter().zip(&ways).all(|(event, way)| event.starts_with(way)),
        "{events:?}"
    );
    assert_eq!(bed.events(EventKind::StateKept), [""; 0]);
    let state = bed.state();
    let refused = state.services[0].1.iter().map(|found| found.translation.unwrap().refused);
    assert_eq!(refused.collect::<Vec<_>>(), [RefusedTuples::default(); 2]);
    let all = sent.get().iter().sum::<u64>();
    let hop = state.chains[0].hops[0].traffic.map(|traffic| (traffic.packets, traffic.lost));
    assert_eq!(hop, [(all, 0); 2]);
    let drops = bed.0.ask(orders::Traffic {}).unwrap().switches.into_values().flatten();
    assert!(drops.into_iter().all(|(_, port)| port.counters.drops.is_empty()));
    bed.0.ask(orders::End {}).unwrap();
}

#[test]
fn mappings_of_addresses_move_with_their_address() {
    check_mappings_of_addresses("IPAddrRewriter", 1, ["10.0.0.2", "10.9.0.1"]);
}

/// Mappings of pairs of addresses: the same client has both.
#[test]
fn mappings_of_pairs_of_addresses_move_with_their_address() {
    check_mappings_of_addresses("IPAddrPairRewriter", 2, ["10.0.0.1", "10.9.0.3"]);
}

/// An instance that has two mappings of addresses, and another one with room for one more: both stay where they are.
#[test]
fn mappings_of_addresses_stay_together() {
    let ranges = ["203.0.113.1", "203.0.113.2", "203.0.113.3"].map(|text| text.parse().unwrap()).to_vec();
    let translation = Translation { ranges, slices: 3, mappings: Vec::new() };
    let slice = |number: u16| translation.slice(number).unwrap();
    let text = NAT.replace(
        "IPRewriter(pattern $TRANSLATE_ADDRESS $TRANSLATE_PORTS - - 0 1, drop)",
        "IPAddrRewriter(pattern $TRANSLATE_ADDRESS - 0 1, drop, MAPPING_CAPACITY 2)",
    );
    let bed = TestBed::new();
    let source = "
        s :: RatedSource(LENGTH 18, RATE 10000, LIMIT 0, ACTIVE false) -> UDPIPEncap(10.0.0.1, 1000, 10.9.0.1, 53)
        -> SetRandIPAddress(10.0.0.0/26) -> StoreIPAddress(src) -> SetIPChecksum -> SetUDPChecksum
        -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0);
        FromDevice(0) -> back :: Counter -> Discard;";
    bed.run("source", 1, source, &[]);
    bed.run("sink", 1, SINK, &[]);
    for number in 1..=3 {
        let name = format!("nat-{number}");
        bed.define(&name, 2);
        let configuration = Configuration { parameters: slice(number).parameters(), ..configuration(&text) };
        bed.start_with(&name, configuration).unwrap();
    }
    let steer = |draining: &[u16]| {
        let mut nat = nat(&[1, 2, 3], draining);
        nat.instances.iter_mut().zip(1..).for_each(|(found, number)| found.range = Some(slice(number)));
        bed.steer(vec![nat], vec![chain(&["nat"])]).unwrap();
    };
    let sizes = || [1, 2, 3].map(|number| bed.read(&format!("nat-{number}"), "f.table_size"));
    steer(&[]);
    // Each instance has one host. The others have no address left.
    bed.send(1000);
    bed.until("all have a host", |_| sizes() == [1; 3]);
    steer(&[3]);
    wait_for_handover(&bed);
    let holder = if sizes() == [2, 1, 0] { 1 } else { 2 };
    let expected = if holder == 1 { [2, 1, 0] } else { [1, 2, 0] };
    assert_eq!(sizes(), expected);
    steer(&[3, holder]);
    wait_for_handover(&bed);
    let found = bed.state().services[0].1.clone();
    let status = found[usize::from(holder) - 1].handover.clone().unwrap();
    let other = 3 - holder;
    let problem =
        format!("states of whole addresses move all or none: box nat-{other}: there is no room for the flow");
    assert_eq!(
        (status.phase, status.handed_over, status.lost, status.problem),
        (HandoverPhase::Failed, 0, 0, Some(problem))
    );
    // The one that was accepted before is not there any more, so that the host translates as before.
    assert_eq!(sizes(), expected);
    assert!(bed.read("source", "back.count") > 0);
    let before = bed.read("source", "back.count");
    bed.send(1000);
    bed.until("replies come", |bed| bed.read("source", "back.count") > before);
    let refused =
        bed.state().services[0].1.iter().map(|found| found.translation.unwrap().refused).collect::<Vec<_>>();
    assert_eq!((sizes(), refused), (expected, vec![RefusedTuples::default(); 3]));
    bed.0.ask(orders::End {}).unwrap();
}

/// An instance whose configuration chooses its addresses itself.
#[test]
fn packets_from_outside_of_the_range_are_dropped() {
    let bed = TestBed::new();
    start_source(&bed);
    bed.run("sink", 1, SINK, &[]);
    bed.run("nat-1", 2, NAT, &[]);
    bed.steer(vec![nat(&[1], &[])], vec![chain(&["nat"])]).unwrap();
    write(&bed, "s0_0.active");
    let refused = |bed: &TestBed| bed.state().services[0].1[0].translation.unwrap().refused;
    let all = RefusedTuples { out_of_range: PART, ..RefusedTuples::default() };
    bed.until("packets are dropped", |bed| refused(bed) == all);
    let ports = bed.0.ask(orders::Traffic {}).unwrap().switches.remove(&support::lan()).unwrap();
    let drops = &ports[&"nat-1.1".parse().unwrap()].counters.drops;
    assert_eq!((drops.get("out_of_range"), bed.read("sink", "got.count")), (Some(&PART), 0));
    bed.0.ask(orders::End {}).unwrap();
}

#[test]
fn impossible_translators_are_refused() {
    let bed = TestBed::new();
    let refused = |change: &dyn Fn(&mut ServiceDefinition)| {
        let mut nat = nat(&[1, 2], &[]);
        change(&mut nat);
        let found = bed.steer(vec![nat], vec![]);
        assert!(matches!(found, Err(FabricError::Flow(_) | FabricError::Limit(..))), "{found:?}");
    };
    refused(&|nat| nat.faces = "in=0".parse().unwrap());
    refused(&|nat| nat.instances[1].range = nat.instances[0].range);
    refused(&|nat| nat.instances[1].range = Some("203.0.113.1:2000".parse().unwrap()));
    refused(&|nat| {
        let mapping = "tcp 203.0.113.9:80 -> 10.0.0.5:8080".parse().unwrap();
        nat.translation = Some(TranslationDefinition { mappings: vec![mapping; 1025] });
    });
    bed.0.ask(orders::End {}).unwrap();
}
