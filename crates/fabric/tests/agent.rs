//! An agent that may be hostile: the fabric answers or closes the connection, and goes on.

mod support;

use fabric::{Fabric, Settings, serve};
use flow_table::{
    Action, Bucket, Change, Command, EntryFlags, Field, GroupType, Instructions, Match, Output, port_number,
};
use model::{
    AddPort, ControllerRole, CreateSwitch, EventKind, Limits, PortDriver, SocketRole, SwitchMode, SwitchName,
};
use openflow::message::{
    FlowMod, FlowSelection, GroupMod, Message, MultipartReply, MultipartRequest, PacketOut, PacketOutAction,
    PortStatusReason,
};
use protocol::agent::{ControllerState, Reply, Request, ToFabric, VERSION};
use protocol::fabric::{Client, FabricError, orders};
use protocol::{Channel, Hello};
use random::Random;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect as connect_socket, listen,
    socket_with,
};
use sandbox::{HostSettings, KvmDevice};
use serde_bytes::ByteBuf;
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use support::agent::{STORE, agent, ask, ask_with_wakes, body, connect, receive, switches};

fn fabric(switch_threads: usize) -> Fabric {
    Fabric::start(
        &Settings { image: image::PROBE, workers: 1, shares_processors: false, switch_threads },
        HostSettings { kvm: KvmDevice::Given(None), ..HostSettings::default() },
        STORE,
    )
    .unwrap()
}

fn client(fabric: &Fabric) -> Arc<Client> {
    let (near, far) = Channel::pair().unwrap();
    let fabric = fabric.clone();
    thread::spawn(move || serve(&fabric, &Arc::new(far)));
    let (client, reader) = Client::connect(near, STORE).unwrap();
    thread::spawn(move || reader.run(|_| {}));
    client
}

fn add_switch(client: &Client, name: &str) -> SwitchName {
    let name: SwitchName = name.parse().unwrap();
    let controllers = vec!["tcp:127.0.0.1:1".parse().unwrap()];
    let definition =
        CreateSwitch { mode: SwitchMode::Steering, controllers, ..CreateSwitch::new(name.clone()) };
    client.ask(orders::AddSwitch { definition }).unwrap();
    name
}

#[test]
fn an_agent_serves_the_switches_that_have_controllers() {
    for threads in [1, 2] {
        let fabric = fabric(threads);
        let client = client(&fabric);
        let lan = add_switch(&client, "lan");
        client.ask(orders::AddSwitch { definition: CreateSwitch::new("wan".parse().unwrap()) }).unwrap();
        let agent = agent(&fabric);
        let listed = switches(&agent);
        assert_eq!((listed.len(), &listed[0].name, listed[0].controllers.len()), (1, &lan, 1));
        let switch = listed[0].number;
        let state = ControllerState {
            role: Some(ControllerRole::Master),
            since_seconds: 3,
            error: None,
            gets_misses: false,
        };
        let controllers = vec![ControllerState { error: Some("é".repeat(1000)), ..state.clone() }];
        assert_eq!(ask(&agent, Request::Status { switch, controllers }), Reply::Done);
        let states = client.ask(orders::ControllerStates { switch: lan.clone() }).unwrap();
        assert_eq!((states.len(), states[0].role), (1, state.role));
        assert_eq!(states[0].error.as_ref().map(String::len), Some(200));

        let instructions = Instructions::output(Output::Flood);
        let change = Change { instructions, ..Change::new(Command::Add, Match::any(), 0) };
        let message = Message::FlowMod(FlowMod { change, buffer: None });
        let perform = |body: ByteBuf| Request::Perform { switch, message_type: 14, body };
        assert_eq!(ask(&agent, perform(body(&message))), Reply::Done);
        let cut = ByteBuf::from(body(&message)[..20].to_vec());
        assert!(matches!(ask(&agent, perform(cut)), Reply::Refused { error_type: 1, code: 6 }));
        let request =
            Message::MultipartRequest { request: openflow::message::MultipartRequest::Table, more: false };
        let report = Request::Report { switch, body: body(&request), from: 0 };
        let Reply::Report { bodies, next: None } = ask(&agent, report) else { panic!("no report") };
        let Ok(Message::MultipartReply { reply: MultipartReply::Table(tables), .. }) =
            Message::decode(19, &bodies[0])
        else {
            panic!("no tables")
        };
        assert_eq!((tables.len(), tables[0].active), (64, 1));
        // The daemon gets the same, for users; but not of switches without controllers.
        let report = |switch: &str, request: ByteBuf| {
            client.ask(orders::ControllerReport { switch: switch.parse().unwrap(), request, from: 0 })
        };
        let asked = report("lan", body(&request)).unwrap();
        assert_eq!((asked.bodies, asked.next), (bodies, None));
        assert!(matches!(report("wan", body(&request)), Err(FabricError::Flow(_))));
        assert!(matches!(report("lan", ByteBuf::from(vec![0, 3])), Err(FabricError::Flow(_))));
        assert!(matches!(report("none", body(&request)), Err(FabricError::NoSwitch(_))));

        // The number is never that of another switch.
        client.ask(orders::RemoveSwitch { switch: lan }).unwrap();
        add_switch(&client, "lan");
        assert_eq!(ask(&agent, Request::Events { switch }), Reply::NoSwitch);
        let again = switches(&agent);
        assert_ne!(again[0].number, switch);
        assert_eq!(again[0].datapath, listed[0].datapath);
    }
}

/// What a message caused is announced before its reply, so that the agent knows of it before it answers a barrier.
#[test]
fn effects_of_a_message_are_announced_before_its_reply() {
    for threads in [1, 2] {
        let fabric = fabric(threads);
        let client = client(&fabric);
        add_switch(&client, "lan");
        let agent = agent(&fabric);
        let switch = switches(&agent)[0].number;
        let (role, error) = (Some(ControllerRole::Equal), None);
        let state = ControllerState { role, since_seconds: 0, error, gets_misses: false };
        ask(&agent, Request::Status { switch, controllers: vec![state] });
        let perform = |command| {
            let flags = EntryFlags { send_removed: true, ..EntryFlags::default() };
            let change = Change { flags, ..Change::new(command, Match::any(), 0) };
            let body = body(&Message::FlowMod(FlowMod { change, buffer: None }));
            ask_with_wakes(&agent, Request::Perform { switch, message_type: 14, body })
        };
        // Whatever else waited is announced by now.
        perform(Command::Add);
        assert_eq!(perform(Command::Add), (Reply::Done, 0));
        assert_eq!(perform(Command::Delete), (Reply::Done, 1));
        let Reply::Events { messages, .. } = ask(&agent, Request::Events { switch }) else {
            panic!("no events")
        };
        assert_eq!(messages.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [11]);
    }
}

/// What leads to a group counts once, entries and groups alike (OpenFlow 1.3.5, 7.3.5.9); and what comes from a controller enters at a
/// port of its own (4.5).
#[test]
fn references_of_groups_and_packets_of_controllers_are_counted() {
    for threads in [1, 2] {
        let fabric = fabric(threads);
        let client = client(&fabric);
        add_switch(&client, "lan");
        let agent = agent(&fabric);
        let switch = switches(&agent)[0].number;
        let perform = |message_type, message: Message| {
            let request = Request::Perform { switch, message_type, body: body(&message) };
            assert_eq!(ask(&agent, request), Reply::Done, "{message:?}");
        };
        let report = |request| {
            let body = body(&Message::MultipartRequest { request, more: false });
            let Reply::Report { bodies, next: None } = ask(&agent, Request::Report { switch, body, from: 0 })
            else {
                panic!("no report")
            };
            match Message::decode(19, &bodies[0]) {
                Ok(Message::MultipartReply { reply, .. }) => reply,
                other => panic!("{other:?}"),
            }
        };
        let bucket = |actions: &[Action]| Bucket { actions: actions.to_vec(), ..Bucket::default() };
        let twice = vec![bucket(&[Action::Group(1)]), bucket(&[Action::Group(1)])];
        for (group, buckets) in [(1, vec![bucket(&[])]), (2, twice), (3, vec![])] {
            perform(15, Message::GroupMod(GroupMod::Add { group, group_type: GroupType::All, buckets }));
        }
        let add = |in_port: u32, actions: &[Action]| {
            let matching = Match::any().with(Field::InPort, in_port.into()).unwrap();
            let instructions = Instructions::apply(actions);
            let change = Change { instructions, ..Change::new(Command::Add, matching, 5) };
            perform(14, Message::FlowMod(FlowMod { change, buffer: None }));
        };
        add(7, &[Action::Group(1), Action::Group(1), Action::Group(2)]);
        add(port_number::CONTROLLER, &[Action::Group(2)]);
        for (in_port, actions) in [
            (port_number::CONTROLLER, vec![PacketOutAction::Table]),
            (7, vec![PacketOutAction::Table]),
            (port_number::ANY, vec![PacketOutAction::Table]),
            (port_number::CONTROLLER, vec![]),
        ] {
            let data = vec![2; 60];
            perform(13, Message::PacketOut(PacketOut { buffer: None, in_port, actions, data }));
        }
        let MultipartReply::Group(groups) = report(MultipartRequest::Group(None)) else {
            panic!("no groups")
        };
        let found: Vec<_> =
            groups.iter().map(|group| (group.group, group.references, group.packets, group.bytes)).collect();
        // The second group sends each packet twice to the first one, and so does an entry.
        assert_eq!(found, [(1, 2, 2 + 2 + 2, 360), (2, 2, 2, 120), (3, 0, 0, 0)]);
        let MultipartReply::Flow(flows) = report(MultipartRequest::Flow(FlowSelection::all())) else {
            panic!("no entries")
        };
        let mut found: Vec<_> = flows
            .iter()
            .map(|flow| (flow.matching.get(Field::InPort).unwrap().0, flow.packets, flow.bytes))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(7, 1, 60), (port_number::CONTROLLER.into(), 1, 60)]);
    }
}

/// A tap device refuses a frame without an Ethernet header, and buffers have no room for one that is too long.
#[test]
fn packets_of_controllers_are_frames() {
    let fabric = fabric(1);
    let client = client(&fabric);
    add_switch(&client, "lan");
    let agent = agent(&fabric);
    let switch = switches(&agent)[0].number;
    let send = |length: usize| {
        let actions = vec![PacketOutAction::Perform(Action::Output(Output::Flood))];
        let packet =
            PacketOut { buffer: None, in_port: port_number::CONTROLLER, actions, data: vec![2; length] };
        let body = body(&Message::PacketOut(packet));
        ask(&agent, Request::Perform { switch, message_type: 13, body })
    };
    for length in [14, 60, switch::MAX_FRAME] {
        assert_eq!(send(length), Reply::Done, "{length}");
    }
    for length in [0, 3, 13, switch::MAX_FRAME + 1] {
        assert_eq!(send(length), Reply::Refused { error_type: 1, code: 12 }, "{length}");
    }
}

/// A port whose peer is not connected has no link to controllers. They hear when it comes and goes.
#[test]
fn controllers_hear_of_links() {
    const LINK_DOWN: u32 = 1;
    const LIVE: u32 = 4;
    let fabric = fabric(1);
    let client = client(&fabric);
    let (lan, far) = (add_switch(&client, "lan"), SwitchName::from_str("far").unwrap());
    client.ask(orders::AddSwitch { definition: CreateSwitch::new(far.clone()) }).unwrap();
    let path = std::env::temp_dir().join(format!("agent-memif-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let socket =
        || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let (address, listener, peer) = (SocketAddrUnix::new(&path).unwrap(), socket(), socket());
    bind(&listener, &address).unwrap();
    listen(&listener, 8).unwrap();
    connect_socket(&peer, &address).unwrap();
    std::fs::remove_file(&path).unwrap();
    let add = |switch: &SwitchName, role, socket: &OwnedFd| {
        let driver = PortDriver::Memif { path: "/nowhere".into(), role, id: 1, secret: None, queues: None };
        let (name, limits) = ("memif".parse().unwrap(), Limits::default());
        let port = AddPort { name, driver, addresses: Vec::new(), default: false, limits };
        let order = orders::AddPort { switch: switch.clone(), port, instead: None };
        client.ask_with(order, &[socket.as_fd()]).unwrap();
    };
    add(&lan, SocketRole::Server, &listener);
    let agent = agent(&fabric);
    let switch = switches(&agent)[0].number;
    let request = MultipartRequest::PortDescription;
    let request = body(&Message::MultipartRequest { request, more: false });
    let Reply::Report { bodies, .. } = ask(&agent, Request::Report { switch, body: request, from: 0 }) else {
        panic!("no report")
    };
    let Ok(Message::MultipartReply { reply: MultipartReply::PortDescription(ports), .. }) =
        Message::decode(19, &bodies[0])
    else {
        panic!("no ports")
    };
    assert_eq!(
        ports.iter().map(|port| (port.name.as_str(), port.state)).collect::<Vec<_>>(),
        [("memif", LINK_DOWN)]
    );
    let state = ControllerState {
        role: Some(ControllerRole::Equal),
        since_seconds: 0,
        error: None,
        gets_misses: false,
    };
    ask(&agent, Request::Status { switch, controllers: vec![state] });
    ask(&agent, Request::Events { switch });
    let hears = |wanted: u32| {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(20) {
            let Reply::Events { messages, .. } = ask(&agent, Request::Events { switch }) else {
                panic!("no events")
            };
            if let Some((kind, body)) = messages.first() {
                let Ok(Message::PortStatus(status)) = Message::decode(*kind, body) else {
                    panic!("no message about a port")
                };
                assert_eq!((status.reason, status.port.state), (PortStatusReason::Modify, wanted));
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("controllers do not hear of the state {wanted}");
    };
    add(&far, SocketRole::Client, &peer);
    hears(LIVE);
    client.ask(orders::RemovePort { switch: far, port: "memif".parse().unwrap() }).unwrap();
    hears(LINK_DOWN);
}

#[test]
fn what_the_agent_said_is_forgotten_with_it() {
    for threads in [1, 2] {
        let fabric = fabric(threads);
        let client = client(&fabric);
        let lan = add_switch(&client, "lan");
        let (near, served) = connect(&fabric);
        receive(&near);
        near.send(&ToFabric::Hello(Hello { version: VERSION, store: STORE }), &[]).unwrap();
        let switch = switches(&near)[0].number;
        let state = ControllerState {
            role: Some(ControllerRole::Equal),
            since_seconds: 0,
            error: None,
            gets_misses: false,
        };
        ask(&near, Request::Status { switch, controllers: vec![state] });
        assert_eq!(client.ask(orders::ControllerStates { switch: lan.clone() }).unwrap().len(), 1);
        drop(near);
        served.join().unwrap();
        assert_eq!(client.ask(orders::ControllerStates { switch: lan }).unwrap(), []);
    }
}

/// Events tell which controllers came and went, also while no agent was there, and not for ever.
#[test]
fn controllers_that_come_and_go_are_events() {
    let fabric = fabric(1);
    let client = client(&fabric);
    add_switch(&client, "lan");
    let report = |agent: &Channel, role: Option<ControllerRole>, error: Option<&str>| {
        let switch = switches(agent)[0].number;
        let error = error.map(String::from);
        let state = ControllerState { role, since_seconds: 0, error, gets_misses: false };
        // More than the switch has.
        assert_eq!(ask(agent, Request::Status { switch, controllers: vec![state; 3] }), Reply::Done);
    };
    let events = || -> Vec<(EventKind, String)> {
        let page = client.ask(orders::Events { after: 0, most: 1000 }).unwrap();
        page.events.into_iter().map(|event| (event.kind, event.message)).collect()
    };
    let name = "controller tcp:127.0.0.1:1 of switch lan";
    let connected = (EventKind::ControllerConnected, format!("{name} is connected"));
    let (near, served) = connect(&fabric);
    receive(&near);
    near.send(&ToFabric::Hello(Hello { version: VERSION, store: STORE }), &[]).unwrap();
    // One that was never connected is none.
    report(&near, None, Some("refused"));
    report(&near, Some(ControllerRole::Equal), None);
    report(&near, Some(ControllerRole::Master), None);
    assert_eq!(events(), std::slice::from_ref(&connected));
    drop(near);
    served.join().unwrap();
    let agent = agent(&fabric);
    report(&agent, None, Some("reset\n"));
    let lost = (EventKind::ControllerLost, format!("{name} is not connected any more: reset\\n"));
    assert_eq!(events(), [connected.clone(), lost]);
    for _ in 0..50 {
        report(&agent, Some(ControllerRole::Equal), None);
        report(&agent, None, None);
    }
    let all = events();
    assert!((8..20).contains(&all.len()), "{all:?}");
    assert_eq!(
        all[2..4],
        [connected, (EventKind::ControllerLost, format!("{name} is not connected any more"))]
    );
}

#[test]
fn a_hostile_agent_is_harmless() {
    for threads in [1, 2] {
        let fabric = fabric(threads);
        let client = client(&fabric);
        add_switch(&client, "lan");
        // Another version, a request before the greeting, and messages that are none.
        for message in [
            ToFabric::Hello(Hello { version: VERSION + 2, store: STORE }),
            ToFabric::Hello(Hello { version: VERSION, store: [8; 16] }),
            ToFabric::Request(Request::Switches),
        ] {
            let (near, served) = connect(&fabric);
            near.send(&message, &[]).unwrap();
            served.join().unwrap();
        }
        let (near, served) = connect(&fabric);
        near.send(&("Hello", vec![0u8; 100]), &[]).unwrap();
        served.join().unwrap();
        // Random bytes as messages of every type.
        let agent = agent(&fabric);
        let switch = switches(&agent)[0].number;
        let mut random = Random::new(7);
        for round in 0..3000u32 {
            let length = random.below(120) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            if let Some(kind) = bytes.get_mut(..2) {
                kind.copy_from_slice(&[0, random.below(15) as u8]);
            }
            let body = ByteBuf::from(bytes);
            let request = match round % 3 {
                0 => Request::Report { switch, body, from: random.next() >> random.below(64) },
                1 => Request::Events { switch: switch + u64::from(random.below(2)) },
                _ => Request::Perform { switch, message_type: random.below(32) as u8, body },
            };
            ask(&agent, request);
        }
        client.ask(orders::Ping {}).unwrap();
    }
}
