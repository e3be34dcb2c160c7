//! Services and chains on a fabric, with boxes that run configurations.

mod support;

use capture::Decoder;
use flow_table::Field;
use model::{
    AccountPlace, AccountRow, AddFlow, AddPort, Attachment, BoxName, CapturePoint, CreateBox, CreateChain,
    CreateSwitch, EventKind, FlowOutput, HopTraffic, InstanceStatus, Limits, MacAddr, PortDriver, PortName,
    Restart, Ring, Sandbox, Size, SwitchMode, SwitchName,
};
use protocol::fabric::{
    FabricError, FieldMatch, FlowDefinition, Phase, ServiceDefinition, SteeringDefinition, SteeringReply,
    orders,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, Resource, Rlimit, Signal, getrlimit, kill_process, pidfd_open, setrlimit};
use sandbox::KvmDevice;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::{TestBed, chain, definition, lan, service};
use test_support::{Capability, require};

/// A source of UDP packets of 32 flows, as many as the handler `limit` says.
const SOURCE: &str = "
    s :: RatedSource(LENGTH 18, RATE 20000, LIMIT 0, ACTIVE false) -> UDPIPEncap(10.0.0.1, 1000, 10.9.0.1, 53)
    -> SetRandIPAddress(10.0.0.0/27) -> StoreIPAddress(src) -> SetIPChecksum -> SetUDPChecksum
    -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToDevice(0);
    FromDevice(0) -> back :: Counter -> Discard;";
const SINK: &str = "FromDevice(0) -> got :: Counter -> EtherMirror -> Strip(14) -> CheckIPHeader -> IPMirror -> Unstrip(14) -> ToDevice(0);";
/// A function with two faces, which counts both directions.
const FIREWALL: &str =
    "FromDevice(0) -> out :: Counter -> ToDevice(1); FromDevice(1) -> in :: Counter -> ToDevice(0);";
/// A function with one face, which diverts packets of one host.
const IDS: &str = "
    FromDevice(0) -> c :: Counter -> k :: Classifier(26/0a000003, -);
    k[0] -> bad :: Counter -> ToService(quarantine); k[1] -> ToNext;";
const QUARANTINE: &str = "FromDevice(0) -> got :: Counter -> Discard;";

/// Packets pass a firewall and one of two intrusion detection systems, which divert some, and come back the same way.
#[test]
fn packets_pass_services_in_both_directions() {
    let bed = TestBed::new();
    bed.run("source", 1, SOURCE, &[]);
    bed.run("sink", 1, SINK, &[]);
    bed.run("fw-1", 2, FIREWALL, &[]);
    bed.run("ids-1", 1, IDS, &["quarantine"]);
    bed.run("ids-2", 1, IDS, &["quarantine"]);
    bed.run("jail", 1, QUARANTINE, &[]);
    let services = vec![
        service("fw", "in=0,out=1", &["fw-1"], &[]),
        service("ids", "in=0", &["ids-1", "ids-2"], &["quarantine"]),
        service("quarantine", "in=0", &["jail"], &[]),
    ];
    bed.steer(services, vec![chain(&["fw", "ids"])]).unwrap();
    bed.send(2000);
    let ended = |bed: &TestBed| bed.read("source", "back.count") + bed.read("jail", "got.count");
    bed.until("packets come back", |bed| ended(bed) >= 2000);
    let jailed = bed.read("jail", "got.count");
    assert_eq!((ended(&bed), bed.read("sink", "got.count")), (2000, 2000 - jailed));
    assert!((20..200).contains(&jailed), "{jailed} of 2000 are from one of 32 hosts");
    assert_eq!((bed.read("fw-1", "out.count"), bed.read("fw-1", "in.count")), (2000, 2000 - jailed));
    let at_ids = ["ids-1", "ids-2"].map(|name| bed.read(name, "c.count"));
    assert_eq!(at_ids[0] + at_ids[1], 2000 + 2000 - jailed);
    assert!(at_ids.iter().all(|count| *count > 500), "{at_ids:?}");
    let state = bed.state();
    let hops = state.chains[0].hops.iter().map(|hop| hop.traffic.map(|traffic| traffic.packets));
    assert_eq!(hops.collect::<Vec<_>>(), [[2000, 2000 - jailed]; 2]);
    assert_eq!(state.chains[0].left.map(|left| (left.packets, left.lost)), [(2000 - jailed, 0); 2]);
    assert!(state.chains[0].hops.iter().all(|hop| hop.mean_ns.is_some_and(|time| time > 0)));
    let instances = |index: usize| -> &[InstanceStatus] { &state.services[index].1 };
    assert_eq!(instances(1).iter().map(|found| found.flows).sum::<u64>(), 32);
    assert_eq!(instances(2)[0].packets, jailed);
    assert!(state.services.iter().flat_map(|(_, found)| found).all(|found| found.up && found.overruled == 0));
    bed.0.ask(orders::End {}).unwrap();
}

/// A function gives the flows of one host another chain with their first packets. Both directions pass it from then on.
#[test]
fn flows_take_the_chain_that_a_function_gives_them() {
    let bed = TestBed::new();
    bed.run("source", 1, SOURCE, &[]);
    bed.run("sink", 1, SINK, &[]);
    bed.run("ids-1", 1, &IDS.replace("ToService(quarantine)", "ToChain(scrub, FLOW true)"), &["chain:scrub"]);
    bed.run("scrub-1", 2, FIREWALL, &[]);
    let services = vec![
        service("ids", "in=0", &["ids-1"], &["chain:scrub"]),
        service("scrub", "in=0,out=1", &["scrub-1"], &[]),
    ];
    let scrub =
        CreateChain { name: "scrub".parse().unwrap(), from: None, both_ways: false, ..chain(&["scrub"]) };
    bed.steer(services, vec![chain(&["ids"]), scrub]).unwrap();
    let mut seen = [0, 0];
    for round in 1..=2 {
        bed.send(2000);
        bed.until("packets come back", |bed| bed.read("source", "back.count") == 2000 * round);
        let [bad, scrubbed] = [bed.read("ids-1", "bad.count"), bed.read("scrub-1", "out.count")];
        assert_eq!(bed.read("scrub-1", "in.count"), scrubbed);
        // Those that came before the switch knew it.
        assert!(bad > 0 && scrubbed >= seen[1] + 20, "{bad} {scrubbed} {seen:?}");
        if round == 2 {
            assert_eq!(bad, seen[0]);
        }
        seen = [bad, scrubbed];
        let [web, scrub] = [0, 1].map(|chain| {
            let found = bed.state().chains[chain].clone();
            [found.hops[0].traffic.map(|way| way.packets), found.left.map(|way| way.packets)]
        });
        let straight = 2000 * round - scrubbed;
        assert_eq!(web, [[straight + bad, straight], [straight; 2]]);
        assert_eq!(scrub, [[scrubbed; 2]; 2]);
    }
    let services = bed.state().services;
    assert!(services.iter().flat_map(|(_, found)| found).all(|found| found.overruled + found.lost == 0));
    bed.0.ask(orders::End {}).unwrap();
}

/// When an instance is killed, its flows go on at the other one.
#[test]
fn flows_of_a_killed_instance_go_on() {
    let bed = TestBed::new();
    bed.run("source", 1, SOURCE, &[]);
    bed.run("sink", 1, SINK, &[]);
    for name in ["fw-1", "fw-2"] {
        bed.run(name, 2, FIREWALL, &[]);
    }
    bed.steer(vec![service("fw", "in=0,out=1", &["fw-1", "fw-2"], &[])], vec![chain(&["fw"])]).unwrap();
    bed.send(1000);
    bed.until("packets come back", |bed| bed.read("source", "back.count") == 1000);
    bed.0.ask(orders::StopBox { name: "fw-1".parse().unwrap(), graceful: false }).unwrap();
    bed.until("the switch knows", |bed| !bed.state().services[0].1[0].up);
    bed.send(1000);
    bed.until("packets come back", |bed| bed.read("source", "back.count") == 2000);
    let state = bed.state();
    assert_eq!((state.services[0].1[1].flows, state.services[0].1[0].flows), (32, 0));
    bed.0.ask(orders::StopBox { name: "fw-2".parse().unwrap(), graceful: false }).unwrap();
    bed.until("the switch knows", |bed| !bed.state().services[0].1[1].up);
    bed.send(10);
    bed.until("packets are lost", |bed| bed.state().chains[0].hops[0].traffic[0].lost == 10);
    let ports = bed.0.ask(orders::Traffic {}).unwrap().switches.remove(&lan()).unwrap();
    assert_eq!(ports[&"source.0".parse().unwrap()].counters.drops.get("no_instance"), Some(&10));
    bed.0.ask(orders::End {}).unwrap();
}

/// When a function stands still, packets are lost before they enter its chain, and not after other functions.
#[test]
fn a_chain_takes_no_packets_for_a_function_that_stands_still() {
    let bed = TestBed::new();
    bed.run("source", 1, SOURCE, &[]);
    bed.run("sink", 1, SINK, &[]);
    bed.run("fw-1", 2, FIREWALL, &[]);
    bed.run("ids-1", 2, FIREWALL, &[]);
    let services =
        vec![service("fw", "in=0,out=1", &["fw-1"], &[]), service("ids", "in=0,out=1", &["ids-1"], &[])];
    bed.steer(services, vec![chain(&["fw", "ids"])]).unwrap();
    bed.0.ask(orders::SuspendBox { name: "ids-1".parse().unwrap() }).unwrap();
    let dropped = |bed: &TestBed, port: &str, reason: &str| {
        let ports = bed.0.ask(orders::Traffic {}).unwrap().switches.remove(&lan()).unwrap();
        ports[&port.parse().unwrap()].counters.drops.get(reason).copied().unwrap_or(0)
    };
    // Fewer at once than there are slots above the mark from which on a ring counts as crowded.
    for sent in (200..=4000).step_by(200) {
        bed.send(200);
        bed.until("each packet was refused, or has passed the first function", |bed| {
            let [entry, next] = [0, 1].map(|hop| bed.state().chains[0].hops[hop].traffic[0]);
            entry.packets + next.lost == sent && next.packets == sent
        });
    }
    assert!(dropped(&bed, "source.0", "congested") > 1000);
    assert_eq!(dropped(&bed, "ids-1.0", "full"), 0);
    bed.0.ask(orders::ResumeBox { name: "ids-1".parse().unwrap() }).unwrap();
    let refused = dropped(&bed, "source.0", "congested");
    bed.until("the others pass", |bed| bed.read("source", "back.count") == 4000 - refused);
    // The hop that had no room counts them.
    assert_eq!([0, 1].map(|hop| bed.state().chains[0].hops[hop].traffic[0].lost), [0, refused]);
    bed.0.ask(orders::End {}).unwrap();
}

/// A function that takes no packets is ended. Its flows go on at the other one, and the packets in its rings are counted.
#[test]
fn an_instance_that_stands_still_is_ended() {
    let bed = TestBed::new();
    bed.run("source", 1, SOURCE, &[]);
    bed.run("sink", 1, SINK, &[]);
    for name in ["fw-1", "fw-2"] {
        bed.run(name, 2, FIREWALL, &[]);
    }
    let firewalls =
        ServiceDefinition { dead_after_ms: Some(900), ..service("fw", "in=0,out=1", &["fw-1", "fw-2"], &[]) };
    bed.steer(vec![firewalls], vec![chain(&["fw"])]).unwrap();
    bed.send(1000);
    bed.until("packets come back", |bed| bed.read("source", "back.count") == 1000);
    // A box gives slots back after it has sent their packets on.
    let waits = |bed: &TestBed| bed.state().services[0].1.iter().any(|found| found.waiting > 0);
    bed.until("no packets wait", |bed| !waits(bed));
    let before = bed.state().services[0].1.clone();
    assert!(before.iter().all(|found| found.flows > 0), "{before:?}");
    kill_process(bed.process("fw-1"), Signal::STOP).unwrap();
    bed.send(1000);
    bed.until("it is ended and runs again", |bed| {
        bed.runtime("fw-1").restarts == 1 && bed.state().services[0].1[0].up
    });
    let after = bed.state().services[0].1.clone();
    let waited = after[0].packets - before[0].packets;
    assert!((100..900).contains(&waited), "{waited}");
    bed.until("the others come back", |bed| bed.read("source", "back.count") == 2000 - waited);
    let silent = format!(
        "instance fw-1 of service fw took none of the packets that wait for it for 900 ms: packets that wait: {waited}; flows \
         that go on at other instances without its state: {}; it is ended",
        before[0].flows
    );
    assert_eq!(bed.events(EventKind::InstanceSilent), [silent]);
    let lost = format!("packets lost in its rings: {waited}");
    let crashes = bed.events(EventKind::BoxCrashed);
    assert!(matches!(&crashes[..], [crash] if crash.contains(&lost)), "{crashes:?}");
    bed.send(1000);
    bed.until("packets come back", |bed| bed.read("source", "back.count") == 3000 - waited);
    // One that is suspended loses its flows too, but stays. It gets new ones when it is resumed.
    bed.0.ask(orders::SuspendBox { name: "fw-2".parse().unwrap() }).unwrap();
    bed.send(1000);
    bed.until("its flows go on", |bed| !bed.state().services[0].1[1].up);
    let held = bed.state().services[0].1[1].waiting;
    bed.until("some come back", |bed| bed.read("source", "back.count") == 4000 - waited - held);
    bed.send(1000);
    bed.until("all come back", |bed| bed.read("source", "back.count") == 5000 - waited - held);
    let flows = |bed: &TestBed| bed.state().services[0].1.iter().map(|found| found.flows).collect::<Vec<_>>();
    assert_eq!(flows(&bed), [32, 0]);
    bed.0.ask(orders::ResumeBox { name: "fw-2".parse().unwrap() }).unwrap();
    bed.until("the rest comes back", |bed| bed.read("source", "back.count") == 5000 - waited);
    bed.until("it is up", |bed| bed.state().services[0].1.iter().all(|found| found.up && found.waiting == 0));
    assert!(bed.state().services[0].1.iter().all(|found| found.lost == 0));
    bed.0.ask(orders::End {}).unwrap();
}

#[test]
fn definitions_that_cannot_be_are_refused() {
    let bed = TestBed::new();
    let fw = || service("fw", "in=0", &["fw-1"], &[]);
    let refused = |services: Vec<ServiceDefinition>, chains: Vec<CreateChain>| {
        assert!(matches!(bed.steer(services, chains), Err(FabricError::Flow(_) | FabricError::Limit(..))));
    };
    refused(vec![fw(), fw()], vec![]);
    refused(vec![fw(), service("ids", "in=0", &["fw-1"], &[])], vec![]);
    refused(vec![service("fw", "in=0", &[], &["quarantine"])], vec![]);
    refused(vec![service("fw", "in=0", &[], &["port:sink.0", "ids", "chain:web"])], vec![chain(&["fw"])]);
    refused(vec![fw()], vec![chain(&["ids"])]);
    refused(vec![fw()], vec![chain(&[])]);
    refused(vec![fw()], vec![chain(&["fw", "fw"])]);
    refused(vec![fw()], vec![chain(&["fw"]), chain(&["fw"])]);
    refused(vec![fw()], vec![CreateChain { from: None, ..chain(&["fw"]) }]);
    let many: Vec<String> = (0..129).map(|number| format!("fw-{number}")).collect();
    refused(vec![service("fw", "in=0", &many.iter().map(String::as_str).collect::<Vec<_>>(), &[])], vec![]);
    assert_eq!(bed.state(), SteeringReply::default());
    let plain: SwitchName = "plain".parse().unwrap();
    bed.0.ask(orders::AddSwitch { definition: CreateSwitch::new(plain.clone()) }).unwrap();
    let steering = SteeringDefinition::default();
    let order = orders::SetSteering { switch: plain.clone(), steering };
    assert_eq!(bed.0.ask(order), Err(FabricError::NotSteering(plain)));
    bed.0.ask(orders::End {}).unwrap();
}

/// A box learns what it may send packets to before its configuration is installed.
#[test]
fn a_configuration_names_only_what_its_service_may_send_to() {
    let bed = TestBed::new();
    bed.define("ids-1", 1);
    let Err(FabricError::Rejected(found)) = bed.start("ids-1", IDS, &["port:quarantine"]) else { panic!() };
    assert!(
        found.iter().any(|one| one.message.contains("may not send to a service ‘quarantine’")),
        "{found:?}"
    );
    let into_chain = IDS.replace("ToService(quarantine)", "ToChain(quarantine)");
    let Err(FabricError::Rejected(found)) = bed.start("ids-1", &into_chain, &["quarantine"]) else {
        panic!()
    };
    assert!(
        found.iter().any(|one| one.message.contains("may not send to a chain ‘quarantine’")),
        "{found:?}"
    );
    bed.start("ids-1", IDS, &["port:wan", "quarantine"]).unwrap();
    bed.0.ask(orders::End {}).unwrap();
}

/// The counters of a service and its row in the account include instances that it no longer has, while their boxes are still there
/// and after these were removed.
#[test]
fn a_service_keeps_the_counts_of_removed_instances() {
    const DENY: &str = "FromDevice(0) -> Strip(14) -> CheckIPHeader -> IPFilter(deny src host 10.0.0.3, deny src host 10.0.0.4, \
                        deny src host 10.0.0.5, deny src host 10.0.0.6, allow all) -> Unstrip(14) -> ToDevice(1); \
                        FromDevice(1) -> ToDevice(0);";
    let bed = TestBed::new();
    bed.run("source", 1, SOURCE, &[]);
    bed.run("sink", 1, SINK, &[]);
    let names = ["fw-1", "fw-2", "fw-3"];
    names.iter().for_each(|name| bed.run(name, 2, DENY, &[]));
    bed.steer(vec![service("fw", "in=0,out=1", &names, &[])], vec![chain(&["fw"])]).unwrap();
    // What `service show` and the metrics add up.
    let totals = |bed: &TestBed| {
        let state = bed.state();
        let (_, removed) = &state.removed[0];
        let there = state.services[0].1.iter().map(|found| [found.packets, found.lost, found.overruled]);
        let removed = [removed.packets, removed.lost, removed.overruled];
        there.fold(removed, |sum, found| [0, 1, 2].map(|index| sum[index] + found[index]))
    };
    let rows = |bed: &TestBed, boxes: Option<&[&str]>| {
        let boxes = boxes.map(|names| names.iter().map(|name| name.parse().unwrap()).collect());
        bed.0.ask(orders::Account { boxes, switches: None, services: true }).unwrap()
    };
    let account = |bed: &TestBed, boxes: Option<&[&str]>| {
        let mut rows = rows(bed, boxes);
        rows.retain(|row| matches!(row.place, AccountPlace::Service { .. }));
        let row = rows.remove(0);
        assert_eq!((row.difference, row.moved, row.waiting, rows.len()), (Some(0), 0, Some(0), 0), "{row:?}");
        (row.incoming.unwrap(), row.out.unwrap(), row.lost)
    };
    let pass = |packets: u64| {
        let (before, (_, _, lost)) = (bed.read("source", "back.count"), account(&bed, None));
        let denied = |lost: &BTreeMap<String, u64>| lost.get("denied").copied().unwrap_or(0);
        bed.send(packets);
        bed.until("all have ended", |bed| {
            let rows = rows(bed, None);
            let more = denied(&lost_in_service(&rows)) - denied(&lost);
            // A box gives slots back after it has sent their packets on.
            let rests = rows.iter().all(|row| row.waiting.is_none_or(|waiting| waiting == 0));
            rests && bed.read("source", "back.count") - before + more == packets
        });
    };
    pass(2000);
    let (before, counted) = (account(&bed, None), totals(&bed));
    let denied = before.2["denied"];
    assert!((100..500).contains(&denied), "{before:?}");
    assert_eq!(before.2.len(), 1);
    assert_eq!((before.0, before.1), (2 * 2000 - denied, 2 * (2000 - denied)));
    assert_eq!(counted, [2 * 2000 - denied, 0, 0]);
    let of_last = bed.state().services[0].1[2].packets;
    assert!(of_last > 500, "{of_last}");
    // The boxes of the others are there for a while.
    bed.steer(vec![service("fw", "in=0,out=1", &names[..1], &[])], vec![chain(&["fw"])]).unwrap();
    assert_eq!((account(&bed, None), totals(&bed)), (before.clone(), counted));
    assert_eq!(account(&bed, Some(&names[..1])), before);
    for name in &names[1..] {
        bed.0.ask(orders::ForgetBox { name: name.parse().unwrap() }).unwrap();
        assert_eq!((account(&bed, None), totals(&bed)), (before.clone(), counted));
    }
    assert!(rows(&bed, None).iter().all(|row| !matches!(row.place, AccountPlace::Ended { .. })));
    // Both go on from there, also when the same names come again.
    pass(1000);
    bed.run("fw-2", 2, DENY, &[]);
    bed.steer(vec![service("fw", "in=0,out=1", &names[..2], &[])], vec![chain(&["fw"])]).unwrap();
    pass(1000);
    let (after, now) = (account(&bed, None), totals(&bed));
    let more = after.2["denied"];
    assert_eq!((after.0, after.1), (2 * 4000 - more, 2 * (4000 - more)));
    assert_eq!(now, [2 * 4000 - more, 0, 0]);
    // Another service of the same name starts at zero.
    bed.steer(Vec::new(), Vec::new()).unwrap();
    bed.steer(vec![service("fw", "in=0,out=1", &names[..2], &[])], vec![chain(&["fw"])]).unwrap();
    assert_eq!(totals(&bed), [0; 3]);
    bed.0.ask(orders::End {}).unwrap();
}

/// What the row of the only service says is lost.
fn lost_in_service(rows: &[AccountRow]) -> BTreeMap<String, u64> {
    let row = rows.iter().find(|row| matches!(row.place, AccountPlace::Service { .. }));
    row.map(|row| row.lost.clone()).unwrap_or_default()
}

#[test]
fn nothing_is_counted_at_the_start() {
    let bed = TestBed::new();
    bed.steer(vec![service("fw", "in=0", &["fw-1"], &[])], vec![chain(&["fw"])]).unwrap();
    let state = bed.state();
    assert_eq!(state.chains[0].hops[0].traffic, [HopTraffic::default(); 2]);
    let expected = InstanceStatus {
        name: "fw-1".parse::<BoxName>().unwrap(),
        up: false,
        suspended: false,
        draining: false,
        flows: 0,
        packets: 0,
        overruled: 0,
        counters: Default::default(),
        translation: None,
        waiting: 0,
        lost: 0,
        handover: None,
        taken_over: 0,
    };
    assert_eq!(state.services[0].1, [expected]);
    bed.0.ask(orders::End {}).unwrap();
}

/// When the process of an instance is killed, its flow goes on at the other one as soon as the kernel reports the end.
#[test]
fn the_flow_of_a_dead_instance_goes_on_at_once() {
    const ROUNDS: usize = 20;
    let bed = TestBed::new();
    let out: PortName = "out".parse().unwrap();
    let port = AddPort {
        name: out.clone(),
        driver: PortDriver::Null {},
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    };
    bed.0.ask(orders::AddPort { switch: lan(), port, instead: None }).unwrap();
    let point = CapturePoint::Switch(lan(), out.clone());
    let (_, socket) = bed.0.ask_with(orders::Capture { point, snap: None, count: None }, &[]).unwrap();
    let arrivals = arrivals(File::from(socket.into_iter().next().unwrap()));
    bed.run("source", 1, &SOURCE.replace("10.0.0.0/27", "10.0.0.0/32"), &[]);
    let names = ["fw-1", "fw-2"];
    // Each instance writes its number into the packet.
    let start = |bed: &TestBed, number: usize| {
        let text = format!("FromDevice(0) -> StoreData(42, \\<0{number}>) -> ToDevice(1);");
        bed.start(names[number], &text, &[])
    };
    for number in [0, 1] {
        let found = definition(names[number], 2, Attachment::Switch(lan()));
        bed.define_box(CreateBox { restart: Restart::Never, ..found }, false);
        start(&bed, number).unwrap();
    }
    let web = CreateChain { to: out, both_ways: false, ..chain(&["fw"]) };
    bed.steer(vec![service("fw", "in=0,out=1", &names, &[])], vec![web]).unwrap();
    bed.send(10_000_000);
    let next = || arrivals.recv_timeout(Duration::from_secs(40)).unwrap();
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            bed.until("both are up", |bed| bed.state().services[0].1.iter().all(|found| found.up));
            while arrivals.try_recv().is_ok() {}
            let (at, _) = next();
            let process = bed.process(names[at]);
            let descriptor = pidfd_open(process, PidfdFlags::empty()).unwrap();
            kill_process(process, Signal::KILL).unwrap();
            poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None).unwrap();
            let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let (_, first) = std::iter::repeat_with(next).find(|(number, _)| *number != at).unwrap();
            bed.until("it runs again", |bed| start(bed, at).is_ok());
            first.saturating_sub(ended)
        })
        .collect();
    times.sort_unstable();
    println!("from the end of an instance to the next packet of its flow: {times:?}");
    // A loaded machine delays many of them, but not all.
    assert!(times[ROUNDS / 4] < Duration::from_millis(200), "{times:?}");
    let crashes = bed.events(EventKind::BoxCrashed);
    let told = crashes.iter().filter(|text| text.ends_with("; flows that go on without its state: 1"));
    assert_eq!((crashes.len(), told.count()), (ROUNDS, ROUNDS), "{crashes:?}");
    bed.0.ask(orders::End {}).unwrap();
}

/// Reads a capture: which instance each packet passed, and when.
fn arrivals(mut socket: File) -> Receiver<(usize, Duration)> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut decoder = Decoder::new();
        while let Ok(count @ 1..) = socket.read(decoder.space()) {
            decoder.filled(count);
            while let Ok(Some(record)) = decoder.record() {
                let time = Duration::from_nanos(record.time_ns.try_into().unwrap());
                if sender.send((usize::from(record.bytes[42]), time)).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

/// All instances of a service are killed at once, again and again, under traffic. Each packet has a fate.
#[test]
fn each_packet_has_a_fate_when_all_instances_die() {
    check_storm(KvmDevice::Given(None), Sandbox::Process);
    if require(Capability::Kvm) {
        check_storm(KvmDevice::Open, Sandbox::Vm);
    }
}

fn check_storm(kvm: KvmDevice, sandbox: Sandbox) {
    let (bed, _) = TestBed::with_kvm(kvm, 1, SwitchMode::Steering);
    bed.run("source", 1, SOURCE, &[]);
    bed.run("sink", 1, SINK, &[]);
    let names = ["fw-1", "fw-2", "fw-3", "fw-4"];
    for name in names {
        let found = definition(name, 2, Attachment::Switch(lan()));
        bed.define_box(CreateBox { restart: Restart::Never, sandbox, ..found }, false);
        bed.start(name, FIREWALL, &[]).unwrap();
    }
    bed.steer(vec![service("fw", "in=0,out=1", &names, &[])], vec![chain(&["fw"])]).unwrap();
    bed.send(10_000_000);
    for _ in 0..5 {
        let before = bed.read("source", "back.count");
        bed.until("packets come back", |bed| bed.read("source", "back.count") > before + 200);
        match sandbox {
            Sandbox::Process => {
                let processes = names.map(|name| bed.process(name));
                processes.into_iter().for_each(|process| kill_process(process, Signal::KILL).unwrap());
            }
            _ => in_threads(&names, |name| {
                bed.0.ask(orders::KillBox { name: name.parse().unwrap() }).unwrap();
            }),
        }
        bed.until("all have ended", |bed| names.iter().all(|name| bed.runtime(name).phase == Phase::Crashed));
        let lost = bed.state().chains[0].hops[0].traffic[0].lost;
        bed.until("packets are lost", |bed| bed.state().chains[0].hops[0].traffic[0].lost > lost);
        in_threads(&names, |name| bed.start(name, FIREWALL, &[]).unwrap());
    }
    bed.write("source", "s.active", "false");
    let account = || {
        let rows = bed.0.ask(orders::Account { boxes: None, switches: None, services: true }).unwrap();
        // Only what a box did in the turn in which it was killed is not known.
        let is_right = |row: &AccountRow| match row.place {
            AccountPlace::Ended { .. } | AccountPlace::Service { .. } => {
                row.difference.unwrap().unsigned_abs() <= row.moved
            }
            _ => (row.difference, row.moved, row.waiting) == (Some(0), 0, Some(0)),
        };
        let wrong = rows.iter().filter(|row| !is_right(row)).cloned().collect::<Vec<_>>();
        (rows, wrong)
    };
    bed.until("the account is right", |_| account().1.is_empty());
    let rows = account().0;
    let kinds = |is_kind: fn(&AccountPlace) -> bool| rows.iter().filter(|row| is_kind(&row.place)).count();
    assert_eq!(kinds(|place| matches!(place, AccountPlace::Ended { .. })), 4);
    assert_eq!(kinds(|place| matches!(place, AccountPlace::Service { .. })), 1);
    assert_eq!(kinds(|place| matches!(place, AccountPlace::Chain { .. })), 1);
    assert_eq!(kinds(|place| matches!(place, AccountPlace::Port { .. })), 10);
    // From end to end: what is lost is lost in boxes that ended, and for lack of an instance.
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    let mut unknown = 0;
    for row in &rows {
        match row.place {
            AccountPlace::Chain { .. } | AccountPlace::Service { .. } => continue,
            AccountPlace::Ended { .. } => unknown += row.moved,
            _ => {}
        }
        row.lost.iter().for_each(|(reason, count)| *lost.entry(reason).or_default() += count);
    }
    let sent = bed.read("source", "sent.count");
    let all = bed.read("source", "back.count") + lost.values().sum::<u64>();
    assert!(lost["no_instance"] > 0, "{lost:?}");
    assert!(sent.abs_diff(all) <= unknown, "{sent}, {all}, {unknown}, {lost:?}");
    bed.0.ask(orders::End {}).unwrap();
}

/// Does something with all items, several at a time.
fn in_threads<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for items in items.chunks(items.len().div_ceil(16)) {
            scope.spawn(move || items.iter().for_each(work));
        }
    });
}

/// A thousand services, one of them with 128 replicas that run, and ten thousand flows. All instances have two faces. Those
/// of most services do not run.
#[test]
fn a_switch_has_a_thousand_services() {
    const REPLICAS: u32 = 128;
    const SERVICES: u32 = 1000;
    const FLOWS: u64 = 10_000;
    // As the launcher does.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let bed = TestBed::new();
    bed.run("source", 1, &SOURCE.replace("10.0.0.0/27", "10.0.0.0/20"), &[]);
    bed.run("sink", 1, "FromDevice(0) -> got :: Counter -> Discard;", &[]);
    let define = |name: &str, number: u32, slots: u32, stopped: bool| {
        let mut found = CreateBox {
            ring: Ring::try_from(slots).unwrap(),
            memory: Size(4 << 20),
            ..definition(name, 2, Attachment::Switch(lan()))
        };
        for (port, request) in (0..).zip(&mut found.ports) {
            let [high, low] = (number as u16).to_be_bytes();
            request.mac = Some(MacAddr::new([2, 2, high, low, 0, port]));
        }
        bed.define_box(found, stopped);
    };
    let replicas: Vec<String> = (0..REPLICAS).map(|number| format!("nf-{number}")).collect();
    let others: Vec<String> = (1..SERVICES).map(|number| format!("s{number}-1")).collect();
    let boxes: Vec<(u32, &String)> = (0..).zip(replicas.iter().chain(&others)).collect();
    in_threads(&boxes, |(number, name)| {
        let runs = *number < REPLICAS + 2;
        // The instances of other services get all packets of a chain.
        define(name, *number, if *number < REPLICAS { 128 } else { 2048 }, !runs);
        if runs {
            bed.start(name, FIREWALL, &[]).unwrap();
        }
    });
    let mut services =
        vec![service("nf", "in=0,out=1", &replicas.iter().map(String::as_str).collect::<Vec<_>>(), &[])];
    services.extend(others.iter().map(|name| service(&name[..name.len() - 2], "in=0,out=1", &[name], &[])));
    let of = |name: &str, services: &[&str]| CreateChain {
        name: name.parse().unwrap(),
        from: None,
        both_ways: false,
        ..chain(services)
    };
    let mut chains = vec![
        of("c0", &["nf"]),
        of("c1", &["nf", "s1"]),
        of("c2", &["s2", "nf"]),
        of("c3", &["s1", "nf", "s2"]),
    ];
    chains.extend(services[3..].iter().map(|service| of(service.name.as_str(), &[service.name.as_str()])));
    bed.steer(services, chains).unwrap();
    let ids: Vec<u64> = (1..=FLOWS).collect();
    in_threads(&ids, |id| {
        let id = *id;
        let condition = |field: Field, value: u64, mask: u64| FieldMatch {
            field: field as u8,
            value: [0, value],
            mask: [0, mask],
        };
        let flow = AddFlow {
            condition: None,
            in_port: None,
            output: FlowOutput::Chain(format!("c{}", id % 4).parse().unwrap()),
            priority: None,
            idle_seconds: None,
            timeout_seconds: None,
        };
        let matches = vec![vec![
            condition(Field::EthType, 0x800, 0xffff),
            condition(Field::Ipv4Src, 0x0a00_0000 + id - 1, 0xffff_ffff),
        ]];
        bed.0.ask(orders::AddFlow { switch: lan(), flow: FlowDefinition { id, matches, flow } }).unwrap();
    });
    bed.send(2000);
    bed.until("all packets arrive", |bed| bed.read("sink", "got.count") == 2000);
    let ports = bed.0.ask(orders::Traffic {}).unwrap().switches.remove(&lan()).unwrap();
    assert_eq!(ports.len(), 2 * (127 + SERVICES as usize) + 2);
    assert!(ports.values().all(|port| port.counters.drops.is_empty()));
    // What each flow counted, and from that what the chains have to have counted.
    let mut flows = Vec::new();
    while (flows.len() as u64) < FLOWS {
        let after = flows.last().map_or(0, |(id, _)| *id);
        let page = bed.0.ask(orders::Flows { switch: lan(), after, most: None }).unwrap();
        assert!(!page.is_empty(), "{after}");
        flows.extend(page.iter().map(|flow| (flow.id, flow.packets)));
    }
    let state = bed.state();
    let of_chain = |chain: u64| -> u64 {
        flows.iter().filter(|(id, _)| id % 4 == chain).map(|(_, packets)| packets).sum()
    };
    let sums: Vec<u64> = (0..4).map(of_chain).collect();
    assert_eq!(sums.iter().sum::<u64>(), 2000);
    for (chain, sum) in state.chains.iter().zip(&sums) {
        let hops = chain.hops.iter().map(|hop| hop.traffic.map(|traffic| (traffic.packets, traffic.lost)));
        assert!(hops.clone().all(|hop| hop == [(*sum, 0), (0, 0)]), "{sum}: {:?}", hops.collect::<Vec<_>>());
        assert_eq!(chain.left.map(|left| (left.packets, left.lost)), [(*sum, 0), (0, 0)]);
    }
    let idle = state.chains[4..].iter();
    assert!(idle.clone().flat_map(|chain| &chain.hops).all(|hop| hop.traffic == [HopTraffic::default(); 2]));
    assert_eq!((idle.len(), state.services.len()), (SERVICES as usize - 3, SERVICES as usize));
    let used = flows.iter().filter(|(_, packets)| *packets > 0).count() as u64;
    let instances = &state.services[0].1;
    assert_eq!(instances.len(), REPLICAS as usize);
    let is_used = |found: &&InstanceStatus| found.up && found.flows > 0 && found.lost + found.overruled == 0;
    assert_eq!(instances.iter().find(|found| !is_used(found)), None);
    assert_eq!(instances.iter().map(|found| found.flows).sum::<u64>(), used);
    assert_eq!(instances.iter().map(|found| found.packets).sum::<u64>(), 2000);
    let others = |service: usize| {
        let [found] = &state.services[service].1[..] else { panic!() };
        (found.up, found.packets)
    };
    assert_eq!([others(1), others(2)], [(true, sums[1] + sums[3]), (true, sums[2] + sums[3])]);
    assert!((3..SERVICES as usize).all(|service| others(service) == (false, 0)));
    bed.0.ask(orders::End {}).unwrap();
}
