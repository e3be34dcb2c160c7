//! A fabric that strangers order about: it answers or closes the connection, and goes on.

use fabric::{Fabric, Settings, serve};
use model::{
    AddFlow, AddPort, Attachment, BoxName, ConfigurationName, CreateBox, CreateSwitch, EventKind, FlowOutput,
    Limits, MacAddr, PortDriver, PortName, PortRequest, RecordedWrite, Sandbox, Size, SwitchMode, SwitchName,
    Time, WriteEffect, WriteOrigin,
};
use protocol::fabric::{
    Asked, Client, Configuration, ConfigurationVersion, FabricError, FieldMatch, FlowDefinition, FromFabric,
    Phase, ToFabric, VERSION, orders,
};
use protocol::{Channel, Hello, StoreIdentity};
use random::Random;
use sandbox::{HostSettings, KvmDevice};
use serde_bytes::ByteBuf;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

const STORE: StoreIdentity = [7; 16];

fn fabric() -> Fabric {
    Fabric::start(
        &Settings { image: image::PROBE, workers: 1, shares_processors: false, switch_threads: 1 },
        HostSettings { kvm: KvmDevice::Given(None), ..HostSettings::default() },
        STORE,
    )
    .unwrap()
}

/// A daemon's end of a connection, and the thread that serves it: why it was closed.
fn connect(fabric: &Fabric) -> (Channel, JoinHandle<Option<String>>) {
    let (near, far) = Channel::pair().unwrap();
    let fabric = fabric.clone();
    (near, thread::spawn(move || serve(&fabric, &Arc::new(far))))
}

fn client(fabric: &Fabric) -> Arc<Client> {
    let (client, reader) = Client::connect(connect(fabric).0, STORE).unwrap();
    thread::spawn(move || reader.run(|_| {}));
    client
}

fn name(number: u32) -> BoxName {
    format!("box{number}").parse().unwrap()
}

fn switch(number: u32) -> SwitchName {
    format!("lan{number}").parse().unwrap()
}

#[test]
fn strangers_are_refused_and_others_served() {
    let fabric = fabric();
    let good = client(&fabric);
    let refusal = |hello: Hello| {
        let (near, served) = connect(&fabric);
        near.send(&ToFabric::Hello(hello), &[]).unwrap();
        let why = served.join().unwrap().expect("it is refused");
        drop(near);
        why
    };
    assert!(refusal(Hello { version: VERSION, store: [8; 16] }).contains("another store"));
    assert!(refusal(Hello { version: VERSION + 2, store: STORE }).contains("version"));
    // An order before the greeting.
    let (near, served) = connect(&fabric);
    near.send(&ToFabric::Order { number: 1, order: Box::new(orders::Ping {}.into()) }, &[]).unwrap();
    assert!(served.join().unwrap().is_some());
    // Other messages instead of orders, after a greeting.
    for message in ["{}", "Order", ""] {
        let (near, served) = connect(&fabric);
        near.send(&ToFabric::Hello(Hello { version: VERSION, store: STORE }), &[]).unwrap();
        near.send(&(message, u64::MAX, vec![0u8; 100]), &[]).unwrap();
        // The thread that receives it may be another one than the first, which then ends without a reason.
        let _ = served.join().unwrap();
    }
    assert_eq!(good.ask(orders::Ping {}), Ok(()));
}

#[test]
fn order_channels_are_served_until_the_connection_ends() {
    let fabric = fabric();
    let (near, served) = connect(&fabric);
    let (client, reader) = Client::connect(near, STORE).unwrap();
    let reader = thread::spawn(move || reader.run(|_| {}));
    client.open_channels(4).unwrap();
    let pending = client.begin_alone(orders::Ping {}).unwrap().expect("a channel");
    assert_eq!(client.wait_alone(pending), Ok(()));
    assert_eq!(client.ask(orders::ForgetBox { name: name(0) }), Err(FabricError::NoBox(name(0))));
    let more: Vec<_> = (0..4).map(|_| client.open_channels(19)).collect();
    assert_eq!(more[..3], [const { Ok(()) }; 3]);
    assert!(matches!(more[3], Err(FabricError::Limit(..))), "{more:?}");
    assert_eq!(client.ask(orders::Ping {}), Ok(()));
    client.close();
    assert_eq!((served.join().unwrap(), reader.join().unwrap()), (None, None));
}

/// What is no order closes the connection, on whichever channel it comes.
#[test]
fn malformed_messages_on_order_channels_end_the_connection() {
    let fabric = fabric();
    for message in ["{}", "Order", ""] {
        let (near, served) = connect(&fabric);
        near.send(&ToFabric::Hello(Hello { version: VERSION, store: STORE }), &[]).unwrap();
        let (own, far) = Channel::pair().unwrap();
        let order = Box::new(orders::OpenChannels {}.into());
        near.send(&ToFabric::Order { number: 1, order }, &[far.as_fd()]).unwrap();
        drop(far);
        own.send(&(message, u64::MAX, vec![0u8; 100]), &[]).unwrap();
        let _ = served.join().unwrap();
        // Both ends are closed.
        assert!(own.receive::<FromFabric>(1 << 20).unwrap().is_none());
    }
    assert_eq!(client(&fabric).ask(orders::Ping {}), Ok(()));
}

#[test]
fn orders_about_nothing_are_errors() {
    let client = client(&fabric());
    let (unknown, lan) = (name(0), switch(0));
    assert_eq!(
        client.ask(orders::ForgetBox { name: unknown.clone() }),
        Err(FabricError::NoBox(unknown.clone()))
    );
    let start = orders::StartBox {
        name: unknown.clone(),
        configurations: Vec::new(),
        restore: false,
        writes: Vec::new(),
        replay: false,
        has_equals: false,
    };
    assert_eq!(client.ask(start).err(), Some(FabricError::NoBox(unknown)));
    let remove = orders::RemoveSwitch { switch: lan.clone() };
    assert_eq!(client.ask(remove), Err(FabricError::NoSwitch(lan)));
    assert!(client.ask(orders::Inventory {}).unwrap().boxes.is_empty());
}

/// A fabric checks flows as if a stranger had sent them, and keeps nothing of those that it refuses.
#[test]
fn malformed_flows_are_refused() {
    let client = client(&fabric());
    let lan = switch(0);
    let definition = CreateSwitch { mode: SwitchMode::Steering, ..CreateSwitch::new(lan.clone()) };
    client.ask(orders::AddSwitch { definition }).unwrap();
    client.ask(orders::AddSwitch { definition: CreateSwitch::new(switch(1)) }).unwrap();
    let text = |condition: usize| AddFlow {
        condition: Some("x".repeat(condition)),
        in_port: None,
        output: FlowOutput::Port("gone".parse().unwrap()),
        priority: Some(1),
        idle_seconds: None,
        timeout_seconds: None,
    };
    let ip = FieldMatch { field: 5, value: [0, 0x800], mask: [0, 0xffff] };
    let good = FlowDefinition { id: 1, matches: vec![vec![ip]], flow: text(9) };
    let add = |switch: &SwitchName, flow: FlowDefinition| {
        client.ask(orders::AddFlow { switch: switch.clone(), flow })
    };
    let is_refused = |flow| matches!(add(&lan, flow), Err(FabricError::Flow(_)));
    let with = |matches| FlowDefinition { matches, ..good.clone() };
    for matches in [
        vec![],
        vec![vec![ip]; 257],
        vec![vec![ip, ip]],
        vec![vec![ip], vec![ip]],
        vec![vec![ip; 65]],
        vec![vec![FieldMatch { field: 77, ..ip }]],
        vec![vec![FieldMatch { field: 0, ..ip }]],
        vec![vec![FieldMatch { field: 14, ..ip }]],
        vec![vec![FieldMatch { value: [1, 0x800], ..ip }]],
        vec![vec![FieldMatch { mask: [0, 0xff], ..ip }]],
    ] {
        assert!(is_refused(with(matches.clone())), "{matches:?}");
    }
    assert!(is_refused(FlowDefinition { flow: text(5000), ..good.clone() }));
    assert!(is_refused(FlowDefinition {
        flow: AddFlow { idle_seconds: Some(0), ..text(1) },
        ..good.clone()
    }));
    assert_eq!(add(&switch(1), good.clone()), Err(FabricError::NotSteering(switch(1))));
    assert_eq!(client.ask(orders::Flows { switch: lan.clone(), after: 0, most: None }), Ok(Vec::new()));
    assert_eq!(add(&lan, good.clone()), Ok(()));
    assert!(is_refused(good.clone()) && is_refused(FlowDefinition { id: 2, ..good }));
    let flows = client.ask(orders::Flows { switch: lan.clone(), after: 0, most: None }).unwrap();
    assert_eq!(flows.iter().map(|status| (status.id, &status.flow)).collect::<Vec<_>>(), [(1, &text(9))]);
    let remove = || client.ask(orders::RemoveFlow { switch: lan.clone(), id: 1 });
    assert_eq!((remove(), remove()), (Ok(()), Err(FabricError::NoFlow(lan.clone(), 1))));
}

fn any_box(random: &mut Random) -> CreateBox {
    let attach = ["-", "lan0", "lan1", "pipe:a"];
    let port = |random: &mut Random| PortRequest {
        attach: attach[random.below(4) as usize].parse().unwrap(),
        ..PortRequest::default()
    };
    CreateBox {
        sandbox: Sandbox::Process,
        memory: Size(1 << 20),
        ports: (0..random.below(3)).map(|_| port(random)).collect(),
        ..CreateBox::new(name(random.below(3)), "")
    }
}

fn any_configuration(random: &mut Random) -> Configuration {
    let texts = ["mirror", "drop", "nonsense", "crash"];
    Configuration {
        name: ConfigurationName::main(),
        version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
        text: texts[random.below(4) as usize].into(),
        files: Vec::new(),
        destinations: Vec::new(),
        parameters: Vec::new(),
    }
}

fn any_writes(random: &mut Random) -> Vec<RecordedWrite> {
    let count = random.below(3);
    let write = |_| RecordedWrite {
        number: random.next() % 8,
        configuration: ConfigurationName::main(),
        handler: ["setting", "edit", "nothing"][random.below(3) as usize].into(),
        value: ["7", "refuse"][random.below(2) as usize].into(),
        effect: [WriteEffect::Action, WriteEffect::Setting, WriteEffect::Edit][random.below(3) as usize],
        in_config: false,
        time: Time::now(),
        origin: [WriteOrigin::Client, WriteOrigin::Box][random.below(2) as usize],
        times: None,
    };
    (0..count).map(write).collect()
}

fn any_port(random: &mut Random) -> AddPort {
    let name: PortName = format!("port{}", random.below(3)).parse().unwrap();
    let driver = match random.below(4) {
        0 => PortDriver::Null {},
        1 => PortDriver::Tap { device: None, queues: None },
        2 => PortDriver::Pipe { switch: switch(random.below(2)), port: name.clone() },
        _ => PortDriver::Box { name: self::name(random.below(3)), port: 0 },
    };
    AddPort { name, driver, addresses: Vec::new(), default: random.below(4) == 0, limits: Limits::default() }
}

/// Sends random orders, most of which make no sense at their time. The errors don't matter.
fn order(client: &Client, random: &mut Random) {
    let (of, lan) = (name(random.below(3)), switch(random.below(2)));
    let main = ConfigurationName::main();
    match random.below(16) {
        0 => drop(client.ask(orders::AddSwitch { definition: CreateSwitch::new(lan) })),
        1 => drop(client.ask(orders::RemoveSwitch { switch: lan })),
        2 => drop(client.ask(orders::AddPort { switch: lan, port: any_port(random), instead: None })),
        3 => drop(client.ask(orders::RemovePort { switch: lan, port: any_port(random).name })),
        4..6 => drop(client.ask(orders::DefineBox {
            definition: any_box(random),
            stopped: false,
            prepare: random.below(2) == 0,
        })),
        6..8 => {
            let configurations = vec![any_configuration(random)];
            let (restore, replay) = (random.below(2) == 0, random.below(2) == 0);
            let writes = any_writes(random);
            let has_equals = random.below(2) == 0;
            let order = orders::StartBox { name: of, configurations, restore, writes, replay, has_equals };
            drop(client.ask(order));
        }
        8 => drop(client.ask(orders::ForgetBox { name: of })),
        9 => drop(client.ask(orders::StopBox { name: of, graceful: random.below(2) == 0 })),
        10 => drop(client.ask(orders::KillBox { name: of })),
        11 => {
            let writes = (random.below(2) == 0).then(|| any_writes(random));
            let configuration = any_configuration(random);
            drop(client.ask(orders::Install { name: of, configuration, writes }));
        }
        12 => {
            let handler = ["value", "setting", "edit"][random.below(3) as usize].to_string();
            let value = ByteBuf::from(vec![1, 2, 3]);
            drop(client.ask(orders::WriteHandler { name: of, configuration: main, handler, value }));
        }
        13 => drop(client.ask(orders::AlterBox { definition: any_box(random) })),
        14 if random.below(2) == 0 => drop(client.ask(orders::Writes { name: of })),
        14 => drop(client.ask(orders::BoxRuntimes { names: vec![of], ask: Asked::All })),
        _ => drop(client.ask(orders::Inventory {})),
    }
}

/// Four threads order at random, at the same time. Afterwards the fabric does what it is told.
#[test]
fn random_orders_are_harmless() {
    let fabric = fabric();
    let client = client(&fabric);
    let seed = Time::now().system().elapsed().map_or(1, |time| time.as_nanos() as u64);
    println!("seed {seed}");
    thread::scope(|scope| {
        for thread in 0..4 {
            let client = client.clone();
            scope.spawn(move || {
                let mut random = Random::new(seed ^ thread);
                (0..150).for_each(|_| order(&client, &mut random));
            });
        }
    });
    let there = client.ask(orders::Inventory {}).unwrap();
    for found in there.boxes {
        client.ask(orders::ForgetBox { name: found.definition.name }).unwrap();
    }
    for found in there.switches {
        client.ask(orders::RemoveSwitch { switch: found.definition.name }).unwrap();
    }
    let definition = CreateBox { sandbox: Sandbox::Process, ..CreateBox::new(name(0), "") };
    client.ask(orders::DefineBox { definition, stopped: false, prepare: false }).unwrap();
    let configuration = Configuration { text: "mirror".into(), ..any_configuration(&mut Random::new(1)) };
    let configurations = vec![configuration];
    client
        .ask(orders::StartBox {
            name: name(0),
            configurations,
            restore: false,
            writes: Vec::new(),
            replay: false,
            has_equals: false,
        })
        .unwrap();
    let runtimes = client.ask(orders::BoxRuntimes { names: Vec::new(), ask: Asked::All }).unwrap();
    assert_eq!(runtimes.iter().map(|runtime| runtime.phase).collect::<Vec<_>>(), [Phase::Running]);
}

/// A box whose sandbox is created before its start runs like others, and one that is forgotten leaves nothing.
#[test]
fn prepared_boxes_start_or_are_forgotten() {
    let client = client(&fabric());
    let text = |text: &str| Configuration { text: text.into(), ..any_configuration(&mut Random::new(1)) };
    for (number, text) in [text("mirror"), text("unknown program")].into_iter().enumerate() {
        let name = name(number as u32);
        let definition = CreateBox { sandbox: Sandbox::Process, ..CreateBox::new(name.clone(), "") };
        client.ask(orders::DefineBox { definition, stopped: false, prepare: true }).unwrap();
        let start = || orders::StartBox {
            name: name.clone(),
            configurations: vec![text.clone()],
            restore: false,
            writes: Vec::new(),
            replay: false,
            has_equals: false,
        };
        assert_eq!(client.ask(start()).is_ok(), number == 0);
        // The second one has no sandbox any more, and gets another one.
        assert!(client.ask(start()).is_err());
    }
    let definition = CreateBox { sandbox: Sandbox::Process, ..CreateBox::new(name(2), "") };
    client.ask(orders::DefineBox { definition, stopped: false, prepare: true }).unwrap();
    (0..3).for_each(|number| client.ask(orders::ForgetBox { name: name(number) }).unwrap());
    assert!(client.ask(orders::Inventory {}).unwrap().boxes.is_empty());
    let events = client.ask(orders::Events { after: 0, most: 100 }).unwrap().events;
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    // Those that never ran were not stopped.
    assert_eq!(kinds, [EventKind::BoxStarted, EventKind::BoxStopped]);
}

/// An order about many boxes has a result for each.
#[test]
fn many_boxes_are_defined_by_one_order() {
    let client = client(&fabric());
    let box_at = |number: u32, switch: Option<u32>| {
        let attach = switch.map_or(Attachment::Nothing, |number| Attachment::Switch(self::switch(number)));
        let mac = Some(MacAddr::new([2, 0, 0, 0, 0, number as u8]));
        let ports = vec![PortRequest { attach, mac, ..PortRequest::default() }];
        (CreateBox { sandbox: Sandbox::Process, ports, ..CreateBox::new(name(number), "") }, false)
    };
    client.ask(orders::AddSwitch { definition: CreateSwitch::new(switch(0)) }).unwrap();
    let boxes =
        vec![box_at(0, Some(0)), box_at(1, Some(9)), box_at(0, None), box_at(2, None), box_at(3, None)];
    let defined = client.ask(orders::DefineBoxes { boxes }).unwrap();
    let exists = FabricError::Exists((&name(0)).into());
    assert_eq!(defined, [None, Some(FabricError::NoSwitch(switch(9))), Some(exists), None, None]);
    let ports = client.ask(orders::Ports { switch: switch(0) }).unwrap();
    assert_eq!(ports.len(), 1);
    let there = client.ask(orders::Inventory {}).unwrap().boxes;
    let there: Vec<BoxName> = there.into_iter().map(|found| found.definition.name).collect();
    assert_eq!(there, [0, 2, 3].map(name));
}

/// The bytes that daemons of this version and the one before send.
fn recorded(kind: &str) -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../protocol/tests/previous");
    let mut found = Vec::new();
    for version in VERSION.saturating_sub(1).max(1)..=VERSION {
        let text = std::fs::read_to_string(format!("{folder}/{version}.txt")).unwrap();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [of, name, digits] = words[..] else { panic!("{line:?}") };
            let bytes = (0..digits.len()).step_by(2);
            let bytes = bytes.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
            if of == kind {
                found.push((format!("{version}: {name}"), bytes));
            }
        }
    }
    found
}

/// Sends encoded bytes as a message.
fn send_bytes(near: &Channel, bytes: &[u8]) {
    // A message that a channel sends inline begins with its form.
    let message = [&[0], bytes].concat();
    rustix::net::send(near, &message, rustix::net::SendFlags::NOSIGNAL).unwrap();
}

/// Every order of a daemon of the previous version is understood and answered.
#[test]
fn a_fabric_works_with_an_earlier_daemon() {
    let orders = recorded("order");
    assert!(orders.len() >= protocol::fabric::Order::NAMES.len());
    for (name, bytes) in orders {
        let fabric = fabric();
        let (near, served) = connect(&fabric);
        for (_, hello) in recorded("hello").iter().filter(|(name, _)| name.ends_with("daemon")).take(1) {
            send_bytes(&near, hello);
        }
        let greeting = near.receive::<FromFabric>(1 << 20).unwrap().unwrap();
        assert!(matches!(greeting.message, FromFabric::Hello(_)), "{name}");
        send_bytes(&near, &bytes);
        loop {
            match near.receive::<FromFabric>(1 << 20).unwrap().expect(&name).message {
                FromFabric::Reply(reply) => {
                    let is_known =
                        !matches!(reply.result, Err(FabricError::Unsupported | FabricError::Protocol(_)));
                    assert!(is_known && reply.number == 1, "{name}: {:?}", reply.result);
                    break;
                }
                FromFabric::Notice(_) => {}
                FromFabric::Hello(_) => panic!("{name}: it greets twice"),
            }
        }
        near.shut_down();
        assert_eq!(served.join().unwrap(), None, "{name}");
    }
}

/// An order of a later version is refused, and the conversation goes on.
#[test]
fn a_fabric_refuses_orders_of_a_later_daemon() {
    #[derive(serde::Serialize)]
    enum Later {
        Hello(Hello),
        Order { number: u64, order: LaterOrder },
    }
    #[derive(serde::Serialize)]
    enum LaterOrder {
        Paint { colour: &'static str },
        DefineBox { definition: LaterBox, stopped: bool },
        Ping { loudness: u8 },
    }
    #[derive(serde::Serialize)]
    struct LaterBox {
        name: &'static str,
        configuration: &'static str,
        colour: &'static str,
    }
    let fabric = fabric();
    let (near, served) = connect(&fabric);
    near.send(&Later::Hello(Hello { version: VERSION + 1, store: STORE }), &[]).unwrap();
    let greeting = near.receive::<FromFabric>(1 << 20).unwrap().unwrap();
    assert!(matches!(greeting.message, FromFabric::Hello(_)));
    let definition = LaterBox { name: "fw", configuration: "", colour: "red" };
    let orders = [
        (LaterOrder::Paint { colour: "red" }, false),
        // What the box needs is unknown, so there is none.
        (LaterOrder::DefineBox { definition, stopped: false }, false),
        (LaterOrder::Ping { loudness: 7 }, true),
    ];
    for (number, (order, is_known)) in (1..).zip(orders) {
        near.send(&Later::Order { number, order }, &[]).unwrap();
        let FromFabric::Reply(reply) = near.receive(1 << 20).unwrap().unwrap().message else { panic!() };
        assert_eq!(
            (reply.number, reply.result.err()),
            (number, (!is_known).then_some(FabricError::Unsupported))
        );
    }
    assert!(client(&fabric).ask(orders::Inventory {}).unwrap().boxes.is_empty());
    near.shut_down();
    let _ = served.join().unwrap();
}
