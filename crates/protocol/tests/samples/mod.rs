//! An order of each kind with an answer, to record the bytes of a version of the protocol.

use model::{
    AccountRow, AddFlow, AddPort, AddressEntry, AddressKind, BoxName, ChainStatus, ConfigurationName,
    CoreCount, CrashReport, CreateBox, CreateChain, CreateSwitch, Diagnostic, Event, EventKind, File,
    FlowOutput, FlowStatus, HandoverPhase, HandoverStatus, HopStatus, HopTraffic, ImageDigest,
    InstanceStatus, Isolation, Limits, LogLine, MacAddr, OpenFlowPort, OverruledAnswers, PortDriver,
    PortName, PortRequest, RefusedTuples, RemovedInstances, Sandbox, Severity, SteeringStatus, SwitchName,
    Time, TranslationStatus, Value,
};
use protocol::fabric::{
    Ask, Asked, BoxInventory, BoxRuntime, BoxStats, CheckLimits, CheckOutcome, Configuration,
    ConfigurationState, ConfigurationVersion, ControllerReportReply, Counters, EventPage, FabricError,
    FabricFacts, FieldMatch, FileStatus, FlowDefinition, InstanceDefinition, InventoryReply, LinkEnd,
    LogPage, NewPortNumbersReply, Phase, PortInventory, PortNumberMark, PortStats, ResourceUsage,
    RewriteReply, SandboxKind, ServiceDefinition, Started, SteeringDefinition, SteeringReply,
    SwitchInventory, TrafficSnapshot, TranslationDefinition, WritesReply, orders,
};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;
use std::time::Duration;

/// Gets each sample.
pub(crate) trait Visit {
    fn visit<A: Ask>(&mut self, name: &'static str, order: A, answer: A::Answer);
}

fn name() -> BoxName {
    "fw".parse().expect("a name")
}

fn flow() -> AddFlow {
    AddFlow {
        condition: Some("ip".into()),
        in_port: Some(port_name()),
        output: FlowOutput::Normal,
        priority: Some(7),
        idle_seconds: Some(60),
        timeout_seconds: None,
    }
}

fn switch() -> SwitchName {
    "lan".parse().expect("a name")
}

fn port_name() -> PortName {
    "uplink".parse().expect("a name")
}

fn mac() -> MacAddr {
    "02:00:00:00:00:01".parse().expect("an address")
}

fn time() -> Time {
    "2026-01-02T03:04:05Z".parse().expect("a time")
}

fn port(driver: PortDriver) -> AddPort {
    AddPort { name: port_name(), driver, addresses: vec![mac()], default: true, limits: Limits::default() }
}

fn definition() -> CreateBox {
    let attach = |text: &str| PortRequest {
        attach: text.parse().expect("an attachment"),
        mac: Some(mac()),
        ..PortRequest::default()
    };
    CreateBox {
        sandbox: Sandbox::Process,
        ports: ["lan", "pipe:p", "-"].map(attach).to_vec(),
        ..CreateBox::new(name(), "Idle -> Discard;")
    }
}

fn steering() -> SteeringDefinition {
    SteeringDefinition {
        services: vec![ServiceDefinition {
            name: "ids".parse().expect("a name"),
            faces: "in=0,out=1".parse().expect("faces"),
            destinations: configuration().destinations,
            instances: vec![InstanceDefinition {
                name: name(),
                draining: true,
                range: Some("203.0.113.1:1024-2047".parse().expect("a range")),
            }],
            dead_after_ms: Some(200),
            places: Some(2),
            pool: Some("ann".parse().expect("a name")),
            translation: Some(TranslationDefinition {
                mappings: vec!["tcp 203.0.113.1:80 -> 10.0.0.5:8080".parse().expect("a mapping")],
            }),
        }],
        chains: vec![CreateChain {
            name: "web".parse().expect("a name"),
            switch: switch(),
            services: vec!["ids".parse().expect("a name")],
            from: Some(port_name()),
            to: port_name(),
            both_ways: true,
        }],
    }
}

fn numbers() -> Vec<(OpenFlowPort, u16)> {
    let number = |(text, number): (&str, u16)| (text.parse().expect("a name"), number);
    [("uplink", 3), ("service:ids", 32768), ("chain:web", 40961)].map(number).to_vec()
}

fn image() -> ImageDigest {
    ImageDigest([0xab; 32])
}

fn version() -> ConfigurationVersion {
    ConfigurationVersion { installed: time(), swaps: 2 }
}

fn configuration() -> Configuration {
    Configuration {
        name: ConfigurationName::main(),
        version: version(),
        text: "Idle -> Discard;".into(),
        files: vec![File { name: "routes".into(), contents: Value(vec![1, 255]) }],
        destinations: ["ids", "port:wan"].map(|text| text.parse().expect("a destination")).to_vec(),
        parameters: vec![("PORTS".into(), "1024-2047".into())],
    }
}

fn diagnostic() -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        file: None,
        line: Some(1),
        column: Some(2),
        message: "a remark".into(),
        hint: None,
        related: Vec::new(),
    }
}

fn state() -> ConfigurationState {
    ConfigurationState {
        name: ConfigurationName::main(),
        version: version(),
        diagnostics: vec![diagnostic()],
    }
}

fn statistics() -> PortStats {
    let drops = BTreeMap::from([("full".to_string(), 3)]);
    let counters =
        Counters { received_packets: 1, received_bytes: 64, sent_packets: 2, sent_bytes: 128, drops };
    let fault = Some("down".into());
    PortStats { counters, cost: Duration::from_micros(7), fault, ..PortStats::default() }
}

fn runtime() -> BoxRuntime {
    BoxRuntime {
        name: name(),
        phase: Phase::Running,
        started: Some(time()),
        uptime: Some(Duration::from_secs(5)),
        boot: Some(Duration::from_millis(1)),
        restarts: 1,
        crash: Some(CrashReport {
            time: time(),
            cause: "panic".into(),
            address: None,
            function: None,
            configuration: Some("main".into()),
            element: Some("c".into()),
            message: "a message".into(),
            registers: Vec::new(),
            packet: Some(Value(vec![1, 2, 3])),
            batch: None,
        }),
        usage: ResourceUsage { time: Duration::from_millis(3), turns: 4, overruns: 0 },
        core_times: vec![Duration::from_millis(1), Duration::from_millis(2)],
        drops: BTreeMap::from([("denied".to_string(), 9)]),
        account: model::PacketAccount::default(),
        places: model::PacketPlaces::default(),
        stats: Some(BoxStats { heap_used: 1, heap_peak: 2, lost_events: 0 }),
        process: Some(77),
        other_processes: vec![78],
        processor: None,
        sandbox: Some(SandboxKind::Process),
        attachments: definition().ports.into_iter().map(|port| port.attach).collect(),
        configurations: vec![state()],
    }
}

fn inventory() -> InventoryReply {
    let port = PortInventory { port: port(PortDriver::Null {}), implied: false };
    InventoryReply {
        boxes: vec![BoxInventory {
            definition: definition(),
            phase: Phase::Waiting,
            configurations: vec![(ConfigurationName::main(), version())],
            last_line: 12,
            last_write: 0,
        }],
        switches: vec![SwitchInventory {
            definition: CreateSwitch::new(switch()),
            ports: vec![port],
            addresses: vec![(mac(), port_name())],
        }],
        last_event: 34,
        started: None,
        images: Vec::new(),
    }
}

fn event() -> Event {
    Event {
        sequence: 34,
        time: time(),
        kind: EventKind::BoxCrashed,
        subject: "box/fw".into(),
        message: "box fw crashed".into(),
        owner: None,
    }
}

/// Passes a sample of each order and its answer.
pub(crate) fn visit(visit: &mut impl Visit) {
    macro_rules! samples {
        ($($order:ident { $($field:ident: $value:expr),* } => $answer:expr;)*) => {
            $(visit.visit(stringify!($order), orders::$order { $($field: $value),* }, $answer);)*
        };
    }
    let main = ConfigurationName::main;
    samples! {
        Ping {} => ();
        Inventory {} => inventory();
        Facts {} => FabricFacts {
            process: 7, version: "0.1.0".into(), started: time(), sandboxes: vec![SandboxKind::Vm],
            cores: 4, workers: 3, capture_lost: 0, raises_priority: false, isolation: Isolation::default()
        };
        AddSwitch { definition: CreateSwitch::new(switch()) } => ();
        ControllerStates { switch: switch() } => vec![protocol::agent::ControllerState {
            role: Some(model::ControllerRole::Master), since_seconds: 3, error: Some("closed".into()), gets_misses: false }];
        RemoveSwitch { switch: switch() } => ();
        CheckVacant { switch: switch(), port: port_name() } => ();
        AddPort { switch: switch(), port: port(PortDriver::Tap { device: None, queues: None }), instead: None } => ();
        OpenLink { switch: switch(), port: port(PortDriver::Pipe { switch: switch(), port: port_name() }) } => ();
        JoinLink { switch: switch(), port: port(PortDriver::Pipe { switch: switch(), port: port_name() }) } => ();
        ReopenPort { switch: switch(), port: port(PortDriver::AfPacket { device: None }), instead: None } => ();
        DuplicateDevice { switch: switch(), port: port_name() } => ();
        RemovePort { switch: switch(), port: port_name() } => ();
        SetAddress { switch: switch(), mac: mac(), port: port_name() } => ();
        RemoveAddress { switch: switch(), mac: mac() } => ();
        SetDefault { switch: switch(), port: Some(port_name()) } => ();
        AddFlow {
            switch: switch(),
            flow: FlowDefinition {
                id: 3,
                matches: vec![vec![FieldMatch { field: 5, value: [0, 0x800], mask: [0, 0xffff] }]],
                flow: flow()
            }
        } => ();
        RemoveFlow { switch: switch(), id: 3 } => ();
        Flows { switch: switch(), after: 2, most: Some(9) } => vec![FlowStatus {
            id: 3, flow: flow(), packets: 4, bytes: 300, age_seconds: 5, unused_seconds: 1
        }];
        SetSteering { switch: switch(), steering: steering() } => ();
        SetPortNumbers { switch: switch(), numbers: numbers() } => ();
        PortNumbers { switch: switch() } => numbers();
        NewPortNumbers { switch: switch(), since: PortNumberMark { switch: 5, change: 1 } } => NewPortNumbersReply {
            mark: PortNumberMark { switch: 5, change: 4 }, numbers: numbers()
        };
        ControllerReport { switch: switch(), request: ByteBuf::from(vec![0, 7, 0, 0]), from: 16 } => ControllerReportReply {
            bodies: vec![ByteBuf::from(vec![0, 7, 0, 1])], next: Some(32)
        };
        ServeFunctions { switch: switch(), service: "ids".parse().expect("a name"), token: ByteBuf::from(vec![97; 32]) } => ();
        Steering { switch: switch() } => SteeringReply {
            services: vec![("ids".parse().expect("a name"), vec![InstanceStatus {
                name: name(), up: true, suspended: false, draining: false, flows: 3, packets: 9, overruled: 1, counters: BTreeMap::new(),
                waiting: 2, lost: 4, taken_over: 6,
                handover: Some(HandoverStatus {
                    phase: HandoverPhase::Failed, handed_over: 5, kept: 2, lost: 1, problem: Some("no room".into())
                }),
                translation: Some(TranslationStatus {
                    range: "203.0.113.1:1024-2047".parse().expect("a range"),
                    learnt: 5,
                    refused: RefusedTuples { out_of_range: 1, taken: 2, no_room: 3 },
                }),
            }])],
            chains: vec![ChainStatus {
                chain: steering().chains.remove(0),
                hops: vec![HopStatus {
                    service: "ids".parse().expect("a name"),
                    traffic: [HopTraffic { packets: 9, bytes: 600, lost: 1 }, HopTraffic::default()],
                    mean_ns: Some(700),
                    waiting: 0,
                }],
                left: [HopTraffic::default(), HopTraffic { packets: 2, bytes: 128, lost: 0 }],
            }],
            removed: vec![(
                "ids".parse().expect("a name"),
                RemovedInstances {
                    packets: 8, lost: 3, overruled: 2, taken_over: 1,
                    refused: RefusedTuples { out_of_range: 3, taken: 2, no_room: 1 },
                },
            )],
            no_instance: vec![("ids".parse().expect("a name"), 5)],
            overruled: vec![(
                "ids".parse().expect("a name"),
                vec![OverruledAnswers { destination: Some("chain:web".parse().expect("a destination")), answers: 2 }],
            )],
        };
        Addresses { switch: switch() } => vec![AddressEntry {
            mac: mac(), port: port_name(), kind: AddressKind::Learned, age_seconds: Some(3)
        }];
        Ports { switch: switch() } => inventory().switches.remove(0).ports;
        Traffic {} => TrafficSnapshot {
            switches: BTreeMap::from([(switch(), BTreeMap::from([(port_name(), statistics())]))]),
            addresses: BTreeMap::from([(switch(), 5)]),
            boxes: BTreeMap::from([(name(), BTreeMap::from([(1, statistics())]))]),
            steering: BTreeMap::from([(switch(), SteeringStatus { flows: 3, ..SteeringStatus::default() })]),
            removed: BTreeMap::from([(switch(), statistics())])
        };
        Account { boxes: Some(vec![name()]), switches: None, services: true } => Vec::<AccountRow>::new();
        LinkEnds {} => vec![LinkEnd {
            switch: switch(), port: port_name(), far_switch: switch(), far_port: port_name(), link: 4, sent: 3,
            received: 2, waiting: 1
        }];
        Capture { point: "fw:0".parse().expect("a point"), snap: Some(64), count: None } => ();
        DefineBox { definition: definition(), stopped: true, prepare: false } => ();
        DefineBoxes { boxes: vec![(definition(), true)] } => vec![None, Some(FabricError::NoSwitch(switch()))];
        ForgetBox { name: name() } => ();
        StartBox {
            name: name(), configurations: vec![configuration()], restore: true, writes: Vec::new(), replay: false, has_equals: false
        } => Started {
            boot: Duration::from_millis(1), configurations: vec![state()], runtime: Some(Box::new(runtime()))
        };
        LaunchBox { definition: definition(), configurations: vec![configuration()], writes: Vec::new() } => Started {
            boot: Duration::from_millis(1), configurations: vec![state()], runtime: Some(Box::new(runtime()))
        };
        StopBox { name: name(), graceful: true } => ();
        SuspendBox { name: name() } => ();
        ResumeBox { name: name() } => ();
        KillBox { name: name() } => ();
        ReattachBox { name: name(), number: 1, port: definition().ports.remove(0) } => true;
        AlterBox { definition: definition() } => ();
        Install { name: name(), configuration: configuration(), writes: None } => vec![diagnostic()];
        Redefine { name: name(), configuration: configuration(), writes: Vec::new() } => ();
        Rewrite {
            configuration: configuration(), changes: vec![("c".into(), "1".into())],
            limits: Some(CheckLimits::default()), image: None
        } => RewriteReply { text: String::new(), refused: Vec::new() };
        RemoveConfiguration { name: name(), configuration: main() } => ();
        ReadHandler {
            name: name(), configuration: main(), handler: "c.count".into(),
            argument: ByteBuf::from(vec![1]), timeout_ms: 500
        } => ByteBuf::from(vec![55, 0, 255]);
        WriteHandler {
            name: name(), configuration: main(), handler: "c.reset".into(), value: ByteBuf::from(vec![2])
        } => None;
        Writes { name: name() } => WritesReply::default();
        BoxRuntimes { names: vec![name()], ask: Asked::Active } => vec![runtime()];
        Log { name: name(), after: 3, most: 100 } => LogPage {
            lines: vec![(4, LogLine { time: time(), configuration: None, text: "hello".into(), lost: 0 })],
            lost: 0, last: 4, first: 1
        };
        Files { name: name() } => vec![FileStatus { name: "out.pcap".into(), bytes: 24, lost: 0 }];
        OpenFile { name: name(), file: "out.pcap".into() } => 24;
        Check { configuration: configuration(), ports: 2, limits: Some(CheckLimits::default()), image: None, cores: CoreCount::default(), faces: vec![0, 1] } => CheckOutcome::Rejected(vec![diagnostic()]);
        LoadImage { image: image(), bytes: 3 } => ();
        ForgetImage { image: image() } => ();
        Events { after: 33, most: 10 } => EventPage { events: vec![event()], lost: 0, talkative: vec![name()] };
        OpenChannels {} => ();
        UseFolder {} => ();
        EndWithConnection {} => ();
        End {} => ();
    }
}
