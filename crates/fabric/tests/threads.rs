//! A fabric whose switches several threads run: packets, commands, boxes that end, and controllers.

mod support;

use flow_table::{Change, Command, Field, Instructions, Match, Output};
use model::{
    AccountPlace, AddFlow, AddPort, Attachment, ConfigurationName, ControllerRole, CreateChain, CreateSwitch,
    FlowOutput, HandoverPhase, Limits, LinkState, PortDriver, PortName, SocketRole, SwitchMode, SwitchName,
};
use openflow::message::{FlowMod, FlowSelection, Message, MultipartReply, MultipartRequest};
use protocol::Channel;
use protocol::agent::{ControllerState, Reply, Request};
use protocol::fabric::{FabricError, FlowDefinition, PortStats, SteeringDefinition, orders};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use support::{TestBed, agent, chain, lan, service};

/// Sends packets of 300 flows to the box `mirror`, and counts those that come back.
const SOURCE: &str =
    "s :: FastUDPFlows(20000, 0, 60, 2:1:6:73:0:65, 10.0.0.1, 2:1:6:6d:0:72, 10.0.0.2, 300, 1000000,
        ACTIVE false) -> ToDevice(0);
    FromDevice(0) -> r :: Counter -> Discard;";

/// Sends packets back.
const MIRROR: &str = "FromDevice(0) -> c :: Counter -> MarkIPHeader(14) -> EtherMirror -> IPMirror -> Queue(4096) -> ToDevice(0);";

/// Has the source send this many packets. It sends through one thread, which passes about half of them on: fewer than a ring
/// between threads has slots, whatever else the machine does.
fn send(bed: &TestBed, packets: u64) {
    for (handler, value) in [("s.limit", packets.to_string()), ("s.active", "true".into())] {
        let order = orders::WriteHandler {
            name: "source".parse().unwrap(),
            configuration: ConfigurationName::main(),
            handler: handler.into(),
            value: ByteBuf::from(value.into_bytes()),
        };
        bed.0.ask(order).unwrap();
    }
}

fn ports(bed: &TestBed) -> BTreeMap<PortName, PortStats> {
    ports_of(bed, &lan())
}

fn ports_of(bed: &TestBed, switch: &SwitchName) -> BTreeMap<PortName, PortStats> {
    bed.0.ask(orders::Traffic {}).unwrap().switches.remove(switch).unwrap()
}

/// The packets that a port received and sent.
fn traffic(ports: &BTreeMap<PortName, PortStats>, port: &str) -> (u64, u64) {
    let counters = &ports[&port.parse::<PortName>().unwrap()].counters;
    (counters.received_packets, counters.sent_packets)
}

/// Adds the switch `far`, whose port `down` is joined by a pipe to the port `up` of the first switch, with these limits.
fn join_far_switch(bed: &TestBed, limits: Limits) -> SwitchName {
    let far: SwitchName = "far".parse().unwrap();
    bed.0.ask(orders::AddSwitch { definition: CreateSwitch::new(far.clone()) }).unwrap();
    let port = AddPort {
        name: "up".parse().unwrap(),
        driver: PortDriver::Pipe { switch: far.clone(), port: "down".parse().unwrap() },
        addresses: Vec::new(),
        default: false,
        limits,
    };
    bed.0.ask_with(orders::AddPort { switch: lan(), port, instead: None }, &[]).unwrap();
    far
}

/// At rest, each packet is somewhere: at ports, in the switch, in pipes and in boxes.
fn check_account(bed: &TestBed) {
    let order = orders::Account { boxes: None, switches: None, services: false };
    bed.until("the accounts are right", |bed| {
        let rows = bed.0.ask(order.clone()).unwrap();
        let places = rows.iter().filter(|row| !matches!(row.place, AccountPlace::Chain { .. }));
        assert!(places.clone().count() >= 2);
        places.into_iter().all(|row| {
            let lost: u64 = row.lost.values().sum();
            let [incoming, out, waiting] =
                [row.incoming, row.out, row.waiting].map(Option::unwrap_or_default);
            incoming + row.made == out + lost + waiting
                || !matches!(
                    row.place,
                    AccountPlace::Port { .. } | AccountPlace::Switch { .. } | AccountPlace::Pipe { .. }
                )
        })
    });
}

#[test]
fn packets_of_boxes_pass_all_threads_and_are_counted() {
    for (threads, mode) in [(2, SwitchMode::Learning), (3, SwitchMode::Learning), (2, SwitchMode::Static)] {
        let bed = TestBed::with_threads(threads, mode);
        bed.run("mirror", 1, MIRROR, &[]);
        bed.run("source", 1, SOURCE, &[]);
        let mut sent = 0;
        // A box that ends and starts again continues with all its ring pairs.
        for round in 0..3 {
            if round > 0 {
                bed.0.ask(orders::StopBox { name: "mirror".parse().unwrap(), graceful: false }).unwrap();
                bed.start("mirror", MIRROR, &[]).unwrap();
            }
            sent += 1500;
            send(&bed, 1500);
            bed.until("all packets come back", |bed| bed.read("source", "r.count") == sent);
            assert_eq!(bed.read("mirror", "c.count"), 1500);
        }
        let ports = ports(&bed);
        for port in ["source.0", "mirror.0"] {
            assert_eq!(traffic(&ports, port), (sent, sent), "{threads} threads: {port}");
        }
        assert!(ports.values().all(|port| port.counters.drops.is_empty() && port.fault.is_none()));
        check_account(&bed);
    }
}

#[test]
fn a_pipe_between_boxes_has_all_ring_pairs() {
    let bed = TestBed::with_threads(2, SwitchMode::Learning);
    let pipe = || Attachment::Pipe("direct".parse().unwrap());
    bed.define_at("mirror", 1, pipe());
    bed.define_at("source", 1, pipe());
    bed.start("mirror", MIRROR, &[]).unwrap();
    bed.start("source", SOURCE, &[]).unwrap();
    send(&bed, 1500);
    bed.until("all packets come back", |bed| bed.read("source", "r.count") == 1500);
    check_account(&bed);
    // A box that ends takes its packets along, and continues with all its ring pairs.
    bed.0.ask(orders::StopBox { name: "mirror".parse().unwrap(), graceful: false }).unwrap();
    bed.start("mirror", MIRROR, &[]).unwrap();
    send(&bed, 500);
    bed.until("all packets come back", |bed| bed.read("source", "r.count") == 2000);
    check_account(&bed);
}

/// Ports with one queue belong to a thread; frames reach them from all threads.
#[test]
fn ports_with_one_queue_are_reached_from_all_threads() {
    let bed = TestBed::with_threads(3, SwitchMode::Learning);
    let far = join_far_switch(&bed, Limits::default());
    bed.run("source", 1, SOURCE, &[]);
    bed.define_at("mirror", 1, Attachment::Switch(far.clone()));
    bed.start("mirror", MIRROR, &[]).unwrap();
    send(&bed, 1000);
    bed.until("all packets come back", |bed| bed.read("source", "r.count") == 1000);
    let ports = ports(&bed);
    assert_eq!((traffic(&ports, "up"), traffic(&ports, "source.0")), ((1000, 1000), (1000, 1000)));
    assert!(ports.values().all(|port| port.counters.drops.is_empty()));
    check_account(&bed);
    bed.0.ask(orders::RemovePort { switch: lan(), port: "up".parse().unwrap() }).unwrap();
    bed.0.ask(orders::RemoveSwitch { switch: far }).unwrap();
    check_account(&bed);
}

/// The rings of a memif port are divided among the threads, at both ends, and packets pass by all of them.
#[test]
fn rings_of_a_memif_port_are_in_all_threads() {
    for (threads, server_queues, rings) in [(2, None, 2), (3, Some(2), 2), (2, Some(1), 1)] {
        let bed = TestBed::with_threads(threads, SwitchMode::Learning);
        let far: SwitchName = "far".parse().unwrap();
        bed.0.ask(orders::AddSwitch { definition: CreateSwitch::new(far.clone()) }).unwrap();
        let path = std::env::temp_dir().join(format!("threads-memif-{}-{threads}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let socket =
            || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let (listener, client) = (socket(), socket());
        bind(&listener, &address).unwrap();
        listen(&listener, 8).unwrap();
        connect(&client, &address).unwrap();
        let add = |switch: SwitchName, role, queues, socket: &OwnedFd| {
            let path = "/nowhere".into();
            let driver = PortDriver::Memif { path, role, id: 1, secret: None, queues };
            let limits = Limits::default();
            let name = "memif".parse().unwrap();
            let port = AddPort { name, driver, addresses: Vec::new(), default: false, limits };
            bed.0.ask_with(orders::AddPort { switch, port, instead: None }, &[socket.as_fd()]).map(drop)
        };
        add(lan(), SocketRole::Server, server_queues, &listener).unwrap();
        assert!(matches!(
            add(far.clone(), SocketRole::Client, Some(17), &client),
            Err(FabricError::Device(_))
        ));
        add(far.clone(), SocketRole::Client, None, &client).unwrap();
        std::fs::remove_file(&path).unwrap();
        let end = |bed: &TestBed, switch: &SwitchName| {
            let mut traffic = bed.0.ask(orders::Traffic {}).unwrap();
            traffic.switches.remove(switch).unwrap().remove(&"memif".parse::<PortName>().unwrap()).unwrap()
        };
        bed.until("the ends are connected", |bed| {
            [&lan(), &far].into_iter().all(|switch| end(bed, switch).link == Some(LinkState::Up))
        });
        assert_eq!([end(&bed, &lan()).queues, end(&bed, &far).queues], [rings; 2]);
        bed.run("source", 1, SOURCE, &[]);
        bed.define_at("mirror", 1, Attachment::Switch(far.clone()));
        bed.start("mirror", MIRROR, &[]).unwrap();
        send(&bed, 1000);
        bed.until("all packets come back", |bed| bed.read("source", "r.count") == 1000);
        for switch in [&lan(), &far] {
            let PortStats { counters, fault, .. } = end(&bed, switch);
            assert_eq!((counters.received_packets, counters.sent_packets), (1000, 1000));
            assert!(counters.drops.is_empty() && fault.is_none());
        }
        check_account(&bed);
        bed.0.ask(orders::RemovePort { switch: lan(), port: "memif".parse().unwrap() }).unwrap();
        bed.until("the client notices", |bed| end(bed, &far).fault.is_some());
        assert_eq!(end(&bed, &far).queues, 0);
        send(&bed, 100);
        check_account(&bed);
    }
}

/// A chain with two instances of its service: both directions of a flow reach the same instance, and all counters are sums.
#[test]
fn packets_pass_chains_in_all_threads() {
    let bed = TestBed::with_threads(2, SwitchMode::Steering);
    let function =
        "FromDevice(0) -> i :: Counter -> ToDevice(1); FromDevice(1) -> o :: Counter -> ToDevice(0);";
    bed.run("sink", 1, MIRROR, &[]);
    bed.run("source", 1, SOURCE, &[]);
    for name in ["fw-1", "fw-2"] {
        bed.run(name, 2, function, &[]);
    }
    bed.steer(vec![service("fw", "in=0,out=1", &["fw-1", "fw-2"], &[])], vec![chain(&["fw"])]).unwrap();
    let all_back = |bed: &TestBed, count: u64| {
        bed.until("all packets come back", |bed| bed.read("source", "r.count") == count);
    };
    send(&bed, 1500);
    all_back(&bed, 1500);
    let passed = ["fw-1", "fw-2"].map(|name| (bed.read(name, "i.count"), bed.read(name, "o.count")));
    assert_eq!(passed[0].0 + passed[1].0, 1500);
    assert!(passed.iter().all(|(there, back)| there == back && *there > 200), "{passed:?}");
    let state = bed.state();
    let instances = &state.services[0].1;
    let flows: u64 = instances.iter().map(|instance| instance.flows).sum();
    // Some flows of the source had no packet. Both directions of a flow have one record.
    assert!((270..=300).contains(&flows) && instances.iter().all(|instance| instance.up), "{flows}");
    for (instance, (there, back)) in instances.iter().zip(passed) {
        assert_eq!((instance.packets, instance.overruled, instance.lost), (there + back, 0, 0));
    }
    let chain_state = &state.chains[0];
    let packets = |traffic: [model::HopTraffic; 2]| traffic.map(|traffic| traffic.packets);
    assert_eq!((packets(chain_state.hops[0].traffic), packets(chain_state.left)), ([1500; 2], [1500; 2]));
    // An instance ends: its flows continue at the other one, in both threads.
    bed.0.ask(orders::StopBox { name: "fw-1".parse().unwrap(), graceful: false }).unwrap();
    send(&bed, 1000);
    all_back(&bed, 2500);
    assert_eq!(bed.read("fw-2", "i.count"), passed[1].0 + 1000);
    // One that is drained has none of the flows that the other one got, and hands over nothing.
    bed.start("fw-1", function, &[]).unwrap();
    let mut draining = service("fw", "in=0,out=1", &["fw-1", "fw-2"], &[]);
    draining.instances[1].draining = true;
    bed.steer(vec![draining], vec![chain(&["fw"])]).unwrap();
    bed.until("the hand-over ends", |bed| {
        let status = bed.state().services[0].1[1].handover.clone();
        status.is_some_and(|status| !matches!(status.phase, HandoverPhase::Waiting | HandoverPhase::Running))
    });
    send(&bed, 500);
    all_back(&bed, 3000);
    let ports = ports(&bed);
    assert_eq!((traffic(&ports, "source.0"), traffic(&ports, "sink.0")), ((3000, 3000), (3000, 3000)));
    assert!(ports.values().all(|port| port.counters.drops.is_empty()), "{ports:?}");
    check_account(&bed);
}

/// Flows of the table match in all threads, and their counters are sums.
#[test]
fn flows_of_the_table_hold_in_all_threads() {
    let bed = TestBed::with_threads(2, SwitchMode::Steering);
    bed.run("mirror", 1, MIRROR, &[]);
    bed.run("source", 1, SOURCE, &[]);
    let flow = |id: u64, in_port: &str, output: FlowOutput| FlowDefinition {
        id,
        matches: vec![Vec::new()],
        flow: AddFlow {
            condition: None,
            in_port: Some(in_port.parse().unwrap()),
            output,
            priority: None,
            idle_seconds: None,
            timeout_seconds: None,
        },
    };
    let add = |flow| bed.0.ask(orders::AddFlow { switch: lan(), flow });
    add(flow(1, "source.0", FlowOutput::Port("mirror.0".parse().unwrap()))).unwrap();
    add(flow(2, "mirror.0", FlowOutput::Normal)).unwrap();
    send(&bed, 1000);
    bed.until("all packets come back", |bed| bed.read("source", "r.count") == 1000);
    let flows = |bed: &TestBed| {
        let found = bed.0.ask(orders::Flows { switch: lan(), after: 0, most: None }).unwrap();
        found.iter().map(|flow| (flow.id, flow.packets)).collect::<Vec<_>>()
    };
    assert_eq!(flows(&bed), [(1, 1000), (2, 1000)]);
    bed.0.ask(orders::RemoveFlow { switch: lan(), id: 1 }).unwrap();
    send(&bed, 200);
    bed.until("nothing matches", |bed| {
        let ports = ports(bed);
        ports[&"source.0".parse::<PortName>().unwrap()].counters.drops == drops("flow_miss", 200)
    });
    assert_eq!((flows(&bed), bed.read("source", "r.count")), (vec![(2, 1000)], 1000));
    check_account(&bed);
    // A flow ends in all threads together.
    let mut timed = flow(3, "source.0", FlowOutput::Drop);
    timed.flow.idle_seconds = Some(1);
    add(timed).unwrap();
    send(&bed, 200);
    bed.until("the flow drops all", |bed| flows(bed).get(1) == Some(&(3, 200)));
    bed.until("the flow ends", |bed| flows(bed).len() == 1);
    send(&bed, 100);
    bed.until("nothing matches again", |bed| {
        let ports = ports(bed);
        let drops = &ports[&"source.0".parse::<PortName>().unwrap()].counters.drops;
        *drops == BTreeMap::from([("flow_drop".to_string(), 200), ("flow_miss".to_string(), 300)])
    });
    check_account(&bed);
}

fn drops(reason: &str, count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(reason.to_string(), count)])
}

/// What a controller asked for with this request, as one answer.
fn report(agent: &Channel, switch: u64, request: MultipartRequest) -> MultipartReply {
    let request = Message::MultipartRequest { request, more: false };
    let order = Request::Report { switch, body: agent::body(&request), from: 0 };
    let Reply::Report { bodies, next: None } = agent::ask(agent, order) else { panic!("no report") };
    match Message::decode(19, &bodies[0]) {
        Ok(Message::MultipartReply { reply, .. }) => reply,
        other => panic!("{other:?}"),
    }
}

/// Entries of controllers match in all threads, their counters are sums, and they end in all threads together. Packets reach
/// controllers from all threads.
#[test]
fn controllers_change_all_threads() {
    let (bed, fabric) = TestBed::with_fabric(2, SwitchMode::Static);
    let name: SwitchName = "other".parse().unwrap();
    let definition = CreateSwitch {
        mode: SwitchMode::Steering,
        controllers: vec!["tcp:127.0.0.1:1".parse().unwrap()],
        ..CreateSwitch::new(name.clone())
    };
    bed.0.ask(orders::AddSwitch { definition }).unwrap();
    for (name_of_box, text) in [("mirror", MIRROR), ("source", SOURCE)] {
        bed.define_at(name_of_box, 1, Attachment::Switch(name.clone()));
        bed.start(name_of_box, text, &[]).unwrap();
    }
    let agent = agent::agent(&fabric);
    let switch = agent::switches(&agent)[0].number;
    let state = ControllerState {
        role: Some(ControllerRole::Master),
        since_seconds: 0,
        error: None,
        gets_misses: false,
    };
    let connect = Request::Status { switch, controllers: vec![state] };
    assert_eq!(agent::ask(&agent, connect), Reply::Done);
    let MultipartReply::PortDescription(ports) = report(&agent, switch, MultipartRequest::PortDescription)
    else {
        panic!("no ports")
    };
    let number = |port: &str| ports.iter().find(|found| found.name == port).unwrap().number;
    let [source, mirror] = ["source.0", "mirror.0"].map(number);
    let add = |priority: u16, in_port: Option<u32>, output: Output| {
        let from = in_port.map(|port| Match::any().with(Field::InPort, port.into()).unwrap());
        let mut change = Change::new(Command::Add, from.unwrap_or(Match::any()), priority);
        (change.instructions, change.cookie) = (Instructions::output(output), priority.into());
        change.flags.send_removed = true;
        change.idle_timeout = (priority == 2).then_some(Duration::from_secs(2));
        let message = Message::FlowMod(FlowMod { change, buffer: None });
        let order = Request::Perform { switch, message_type: 14, body: agent::body(&message) };
        assert_eq!(agent::ask(&agent, order), Reply::Done);
    };
    // Without entries nothing is sent. With one for all packets, the controller gets them.
    let drops_of =
        |port: &str| ports_of(&bed, &name)[&port.parse::<PortName>().unwrap()].counters.drops.clone();
    // The source is given a smaller number each time: a greater one would start it at once.
    send(&bed, 800);
    bed.until("nothing matches", |_| drops_of("source.0") == drops("flow_miss", 800));
    add(0, None, Output::Controller { max_length: 128 });
    send(&bed, 300);
    let events = |packets: &mut usize, messages: &mut Vec<Message>| {
        let Reply::Events { packets: found, messages: told } = agent::ask(&agent, Request::Events { switch })
        else {
            panic!("no events")
        };
        *packets += found.len();
        // It is told of the ports too.
        let told = told.iter().map(|(kind, body)| Message::decode(*kind, body).unwrap());
        messages.extend(told.filter(|message| !matches!(message, Message::PortStatus(_))));
    };
    let (mut packets, mut messages) = (0, Vec::new());
    let begin = Instant::now();
    while packets < 300 {
        events(&mut packets, &mut messages);
        assert!(begin.elapsed() < Duration::from_secs(40), "{packets} packets");
    }
    assert_eq!((packets, messages.len()), (300, 0));
    add(1, Some(mirror), Output::Normal);
    add(2, Some(source), Output::Port(mirror));
    send(&bed, 250);
    bed.until("all packets come back", |bed| bed.read("source", "r.count") == 250);
    let all = MultipartRequest::Flow(FlowSelection::all());
    let MultipartReply::Flow(mut flows) = report(&agent, switch, all) else { panic!("no entries") };
    flows.sort_by_key(|flow| flow.cookie);
    let counted: Vec<_> = flows.iter().map(|flow| (flow.cookie, flow.packets)).collect();
    assert_eq!(counted, [(0, 300), (1, 250), (2, 250)]);
    // The entry is idle in both threads, and ends once.
    while messages.is_empty() {
        events(&mut packets, &mut messages);
        assert!(begin.elapsed() < Duration::from_secs(40), "it does not end");
    }
    let Message::FlowRemoved(removed) = &messages[0] else { panic!("{messages:?}") };
    assert_eq!((messages.len(), removed.cookie, removed.packets), (1, 2, 250));
    assert_eq!(drops_of("source.0"), drops("flow_miss", 800));
    check_account(&bed);
}

/// A controller reads what passed a service and a chain, summed over all threads, by itself and with all ports. The counters do not fall
/// when instances go.
#[test]
fn services_and_chains_have_counters_of_ports() {
    let (bed, fabric) = TestBed::with_fabric(2, SwitchMode::Static);
    let name: SwitchName = "other".parse().unwrap();
    let definition = CreateSwitch {
        mode: SwitchMode::Steering,
        controllers: vec!["tcp:127.0.0.1:1".parse().unwrap()],
        ..CreateSwitch::new(name.clone())
    };
    bed.0.ask(orders::AddSwitch { definition }).unwrap();
    let firewall = "FromDevice(0) -> ToDevice(1); FromDevice(1) -> ToDevice(0);";
    for (box_name, ports, text) in [("mirror", 1, MIRROR), ("source", 1, SOURCE), ("fw-1", 2, firewall)] {
        bed.define_at(box_name, ports, Attachment::Switch(name.clone()));
        bed.start(box_name, text, &[]).unwrap();
    }
    let web = CreateChain { switch: name.clone(), to: "mirror.0".parse().unwrap(), ..chain(&["fw"]) };
    let steer = |instances: &[&str]| {
        let services = vec![service("fw", "in=0,out=1", instances, &[]), service("idle", "in=0", &[], &[])];
        let steering = SteeringDefinition { services, chains: vec![web.clone()] };
        bed.0.ask(orders::SetSteering { switch: name.clone(), steering }).unwrap();
    };
    steer(&["fw-1"]);
    send(&bed, 300);
    bed.until("all packets come back", |bed| bed.read("source", "r.count") == 300);

    let agent = agent::agent(&fabric);
    let switch = agent::switches(&agent)[0].number;
    let MultipartReply::PortDescription(ports) = report(&agent, switch, MultipartRequest::PortDescription)
    else {
        panic!("no ports")
    };
    let stats = |port: Option<u32>| match report(&agent, switch, MultipartRequest::PortStats(port)) {
        MultipartReply::PortStats(stats) => stats,
        reply => panic!("{reply:?}"),
    };
    let numbers: Vec<u32> = stats(None).iter().map(|stats| stats.port).collect();
    assert_eq!(numbers, ports.iter().map(|port| port.number).collect::<Vec<_>>());
    let counted = |port: &str| {
        let number = ports.iter().find(|found| found.name == port).unwrap().number;
        let [found] = stats(Some(number))[..] else { panic!("not one port") };
        assert!(stats(None).iter().any(|stats| (stats.port, stats.tx_packets) == (number, found.tx_packets)));
        let lost = (found.rx_dropped, found.tx_dropped);
        ((found.rx_packets, found.rx_bytes), (found.tx_packets, found.tx_bytes), lost)
    };
    let bytes = ports_of(&bed, &name)[&"source.0".parse::<PortName>().unwrap()].counters.received_bytes;
    assert_eq!(counted("source.0"), ((300, bytes), (300, bytes), (0, 0)));
    // Each packet passes the service there and back.
    assert_eq!(counted("service:fw"), ((600, 2 * bytes), (600, 2 * bytes), (0, 0)));
    assert_eq!(counted("service:idle"), ((0, 0), (0, 0), (0, 0)));
    // Bytes of what enters a chain are not counted.
    assert_eq!(counted("chain:web"), ((600, 2 * bytes), (600, u64::MAX), (0, 0)));
    // Another instance takes its place. What it counted stays while it is there, and when it is removed.
    bed.define_at("fw-2", 2, Attachment::Switch(name.clone()));
    bed.start("fw-2", firewall, &[]).unwrap();
    steer(&["fw-2"]);
    assert_eq!(counted("service:fw"), ((600, 2 * bytes), (600, 2 * bytes), (0, 0)));
    bed.0.ask(orders::ForgetBox { name: "fw-1".parse().unwrap() }).unwrap();
    assert_eq!(counted("service:fw"), ((600, 2 * bytes), (600, 2 * bytes), (0, 0)));
    send(&bed, 300);
    bed.until("all packets come back", |bed| bed.read("source", "r.count") == 600);
    let bytes = 2 * bytes;
    assert_eq!(counted("service:fw"), ((1200, 2 * bytes), (1200, 2 * bytes), (0, 0)));
    assert_eq!(counted("chain:web"), ((1200, 2 * bytes), (1200, u64::MAX), (0, 0)));
    // One that lost its port, and one of the same name.
    bed.0.ask(orders::ForgetBox { name: "fw-2".parse().unwrap() }).unwrap();
    assert_eq!(counted("service:fw"), ((1200, 2 * bytes), (1200, 2 * bytes), (0, 0)));
    steer(&[]);
    assert_eq!(counted("service:fw"), ((1200, 2 * bytes), (1200, 2 * bytes), (0, 0)));
    check_account(&bed);
}

/// The limits of a port hold over all threads, and what exceeds them is counted.
#[test]
fn limits_of_a_port_hold_over_all_threads() {
    let bed = TestBed::with_threads(2, SwitchMode::Learning);
    let far = join_far_switch(
        &bed,
        Limits {
            frames: Some(1),
            bits: Some(1_000_000),
            broadcasts: Some(1),
            new_addresses: Some(1),
            ..Limits::default()
        },
    );
    bed.run("source", 1, SOURCE, &[]);
    bed.define_at("mirror", 1, Attachment::Switch(far.clone()));
    bed.start("mirror", MIRROR, &[]).unwrap();
    let begin = std::time::Instant::now();
    send(&bed, 1000);
    let far_end = |bed: &TestBed| {
        let mut traffic = bed.0.ask(orders::Traffic {}).unwrap();
        traffic.switches.remove(&far).unwrap().remove(&"down".parse::<PortName>().unwrap()).unwrap().counters
    };
    bed.until("all packets are at the limited port", |bed| far_end(bed).received_packets == 1000);
    let counters = far_end(&bed);
    let capped: u64 = counters.drops.values().sum();
    assert_eq!(counters.drops, drops("capped", capped));
    // The first one passes at once, and then one a second.
    let passed = 1000 - capped;
    assert!((1..=2 + begin.elapsed().as_secs()).contains(&passed), "{passed}");
    bed.until("the others reach the box", |bed| bed.read("mirror", "c.count") == passed);
    check_account(&bed);
}
