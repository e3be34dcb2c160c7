//! A box whose configuration runs in several engines: packets of a flow reach the engine that has it, and the box is one to
//! everybody else.

use crate::support::{TestBed, configuration, lan};
use crate::{SINK, SOURCE, flows};
use model::{
    AccountPlace, Attachment, BoxName, ConfigurationName, CreateBox, CreateSwitch, File, Limits, PortRequest,
    Restart, Ring, Sandbox, Size, SwitchMode, SwitchName, Value,
};
use protocol::fabric::{Asked, Configuration, FabricError, Phase, orders};
use serde_bytes::ByteBuf;
use std::os::fd::AsFd;

/// Gives each flow a port of 203.0.113.1.
const NAT: &str = "
    f :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop);
    FromDevice(0) -> there :: Counter -> Strip(14) -> CheckIPHeader -> f; f[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> back :: Counter -> Strip(14) -> CheckIPHeader -> [1]f; f[1] -> Unstrip(14) -> ToDevice(0);";
/// The same with another element.
const OTHER_NAT: &str = "
    f :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop);
    FromDevice(0) -> there :: Counter -> more :: Counter -> Strip(14) -> CheckIPHeader -> f; f[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> back :: Counter -> Strip(14) -> CheckIPHeader -> [1]f; f[1] -> Unstrip(14) -> ToDevice(0);";
/// Flows, each of another client.
const FLOWS: u64 = 1500;

fn far() -> SwitchName {
    "far".parse().unwrap()
}

fn name(text: &str) -> BoxName {
    text.parse().unwrap()
}

/// A definition of a box with a port at each of these switches.
fn definition(text: &str, cores: u32, switches: &[SwitchName]) -> CreateBox {
    let port = |(number, switch): (u8, &SwitchName)| PortRequest {
        attach: Attachment::Switch(switch.clone()),
        mac: Some(model::MacAddr::new([2, 9, text.as_bytes()[0], text.as_bytes()[1], 0, number])),
        limits: Limits { transparent: true, ..Limits::default() },
    };
    CreateBox {
        sandbox: Sandbox::Process,
        memory: Size(16 << 20),
        restart: Restart::OnFailure,
        ring: Ring::try_from(2048).unwrap(),
        cores: cores.try_into().unwrap(),
        ports: (0..).zip(switches).map(port).collect(),
        ..CreateBox::new(name(text), "")
    }
}

fn define(bed: &TestBed, definition: CreateBox) -> Result<(), FabricError> {
    bed.0.ask(orders::DefineBox { definition, stopped: false, prepare: false })
}

/// Two switches, with a box of this many cores between a source of flows and a sink.
fn network(threads: usize, cores: u32) -> TestBed {
    let bed = TestBed::with_threads(threads, SwitchMode::Learning);
    bed.0.ask(orders::AddSwitch { definition: CreateSwitch::new(far()) }).unwrap();
    define(&bed, definition("nat", cores, &[lan(), far()])).unwrap();
    bed.start("nat", NAT, &[]).unwrap();
    define(&bed, definition("sink", 1, &[far()])).unwrap();
    bed.start("sink", SINK, &[]).unwrap();
    define(&bed, definition("source", 1, &[lan()])).unwrap();
    let file = File { name: "flows".into(), contents: Value(flows(0..FLOWS).into_bytes()) };
    let rounds = (0..3).map(|round| {
        format!("s{round} :: FromIPSummaryDump(flows, CHECKSUM true, ACTIVE false) -> RatedUnqueue(8000) -> sent;\n")
    });
    let text = SOURCE.to_string() + &rounds.collect::<String>();
    bed.start_with("source", Configuration { files: vec![file], ..configuration(&text) }).unwrap();
    bed
}

/// Sends a packet of each flow, and does something meanwhile. All replies come.
fn send_during(bed: &TestBed, round: u64, meanwhile: impl FnOnce(&TestBed)) {
    write(bed, "source", &format!("s{round}.active"), "true").unwrap();
    meanwhile(bed);
    let expected = (round + 1) * FLOWS;
    bed.until("replies come", |bed| bed.read("source", "back.count") == expected);
    assert_eq!(bed.read("source", "wrong.count"), 0);
    assert_eq!(bed.read("sink", "got.count"), expected);
}

fn write(bed: &TestBed, of: &str, handler: &str, value: &str) -> Result<(), FabricError> {
    let order = orders::WriteHandler {
        name: name(of),
        configuration: ConfigurationName::main(),
        handler: handler.into(),
        value: ByteBuf::from(value),
    };
    bed.0.ask(order).map(drop)
}

fn install(bed: &TestBed, of: &str, text: &str) -> Result<(), FabricError> {
    let order = orders::Install { name: name(of), configuration: configuration(text), writes: None };
    bed.0.ask(order).map(drop)
}

/// At rest, all rows balance.
fn check_account(bed: &TestBed) {
    let order = orders::Account { boxes: None, switches: None, services: false };
    bed.until("the accounts are right", |bed| {
        let rows = bed.0.ask(order.clone()).unwrap();
        assert!(rows.iter().any(|row| row.place == AccountPlace::Box { name: name("nat") }));
        rows.iter().all(|row| row.difference == Some(0))
    });
}

#[test]
fn replies_reach_the_core_that_has_their_flow() {
    for threads in [1, 2] {
        let bed = network(threads, 2);
        send_during(&bed, 0, |_| {});
        for counter in ["there.count", "back.count"] {
            let parts = [0, 1].map(|core| bed.read("nat", &format!("shard{core}/{counter}")));
            assert_eq!(bed.read("nat", counter), FLOWS);
            assert!(parts[0] + parts[1] == FLOWS && parts[0] > 0 && parts[1] > 0, "{parts:?}");
        }
        let mappings = [0, 1].map(|core| bed.read("nat", &format!("shard{core}/f.size")));
        let forward = [0, 1].map(|core| bed.read("nat", &format!("shard{core}/there.count")));
        assert_eq!(mappings, forward, "each core has the flows of its packets");
        check_account(&bed);
        let runtime =
            &bed.0.ask(orders::BoxRuntimes { names: vec![name("nat")], ask: Asked::All }).unwrap()[0];
        assert_eq!((runtime.core_times.len(), runtime.other_processes.len()), (2, 1));
        assert!(runtime.drops.is_empty(), "{:?}", runtime.drops);
    }
}

#[test]
fn a_swap_is_made_in_all_cores_or_in_none() {
    let bed = network(1, 2);
    send_during(&bed, 0, |bed| install(bed, "nat", OTHER_NAT).unwrap());
    send_during(&bed, 1, |bed| {
        let Err(FabricError::Rejected(found)) =
            install(bed, "nat", "FromDevice(0) -> q :: RoundRobinSwitch -> ToDevice(0);")
        else {
            panic!("it needs all packets in one engine");
        };
        assert!(found[0].message.contains("‘q’") || found[0].message.contains("q :: "), "{found:?}");
        let other_range = NAT.replace("1024-65535", "2048-65535");
        let Err(FabricError::Rejected(found)) = install(bed, "nat", &other_range) else {
            panic!("packets are spread by the range");
        };
        assert!(found[0].message.contains("the ranges of translators can't change"), "{found:?}");
    });
    // The flows are still there: replies to a third packet of each go to the same clients.
    send_during(&bed, 2, |bed| install(bed, "nat", NAT).unwrap());
    assert_eq!(bed.read("nat", "f.size"), FLOWS);
    assert_eq!(bed.read("nat", "there.count"), 3 * FLOWS);
    check_account(&bed);
}

#[test]
fn answers_about_addresses_reach_all_cores_and_writes_too() {
    let bed = TestBed::with_threads(1, SwitchMode::Learning);
    // Files there have no names.
    let folder = std::fs::File::open(std::env::temp_dir()).unwrap();
    bed.0.ask_with(orders::UseFolder {}, &[folder.as_fd()]).unwrap();
    let text = "FromDevice(0) -> k :: Classifier(12/0806 20/0001, 12/0806 20/0002, -);
        k[0] -> asked :: Counter -> Discard; k[1] -> answered :: Counter -> ToDump(seen, UNBUFFERED true) -> CheckIPHeader -> Discard; k[2] -> Discard;";
    define(&bed, definition("cores", 3, &[lan()])).unwrap();
    bed.start("cores", text, &[]).unwrap();
    define(&bed, definition("source", 1, &[lan()])).unwrap();
    let arp = |name: &str, operation: u8| {
        let head = "ffffffffffff0209736f0000 0806 0001 0800 06 04 00";
        format!(
            "{name} :: InfiniteSource(DATA \\<{head} 0{operation} {}>, LIMIT 50, ACTIVE false) -> q;\n",
            "00".repeat(38)
        )
    };
    let text = "q :: Queue(200) -> ToDevice(0);\n".to_string() + &arp("asks", 1) + &arp("answers", 2);
    bed.start("source", &text, &[]).unwrap();
    write(&bed, "source", "asks.active", "true").unwrap();
    write(&bed, "source", "answers.active", "true").unwrap();
    bed.until("all arrive", |bed| bed.read("cores", "answered.count") == 150);
    bed.until("all arrive", |bed| bed.read("cores", "asked.count") == 50);
    let of_core = |handler: &str| [0, 1, 2].map(|core| bed.read("cores", &format!("shard{core}/{handler}")));
    assert_eq!((of_core("asked.count"), of_core("answered.count")), ([50, 0, 0], [50, 50, 50]));
    // A file is in parts, and lines of the log name their core. A record has 16 bytes before the packet's.
    let files = || bed.0.ask(orders::Files { name: name("cores") }).unwrap();
    let written = [0, 1, 2].map(|core| (format!("seen.core{core}"), 24 + 50 * (16 + 60)));
    bed.until("all is written", |_| {
        files().into_iter().map(|file| (file.name, file.bytes)).collect::<Vec<_>>() == written
    });
    let log = bed.0.ask(orders::Log { name: name("cores"), after: 0, most: 500 }).unwrap();
    for core in [0, 1, 2] {
        assert!(
            log.lines.iter().any(|(_, line)| line.text.starts_with(&format!("core {core}: "))),
            "{log:?}"
        );
    }
    write(&bed, "cores", "answered.reset_counts", "").unwrap();
    write(&bed, "cores", "asked.reset_counts", "").unwrap();
    assert_eq!((of_core("asked.count"), of_core("answered.count")), ([0; 3], [0; 3]));
    let refused = write(&bed, "cores", "hotconfig", "Idle -> Discard;");
    assert!(
        matches!(refused, Err(FabricError::HandlerRefused(_) | FabricError::NoHandler(..))),
        "{refused:?}"
    );
}

#[test]
fn the_end_of_one_core_restarts_the_box() {
    let bed = network(1, 2);
    send_during(&bed, 0, |_| {});
    let runtime = |bed: &TestBed| {
        let order = orders::BoxRuntimes { names: vec![name("nat")], ask: Asked::All };
        bed.0.ask(order).unwrap().remove(0)
    };
    let core = rustix::process::Pid::from_raw(runtime(&bed).other_processes[0]).unwrap();
    rustix::process::kill_process(core, rustix::process::Signal::KILL).unwrap();
    bed.until("it restarts", |bed| runtime(bed).restarts == 1 && runtime(bed).phase == Phase::Running);
    assert_eq!(runtime(&bed).crash.unwrap().cause, "killed by signal 9");
    let log = bed.0.ask(orders::Log { name: name("nat"), after: 0, most: 100 }).unwrap();
    let crashes = log.lines.iter().filter(|line| line.1.text.contains("core 1 of box nat crashed"));
    assert_eq!(crashes.count(), 1, "{log:?}");
    // The flows are gone with both cores, and come into being again.
    send_during(&bed, 1, |_| {});
    assert_eq!(bed.read("nat", "f.size"), FLOWS);
    check_account(&bed);
}

#[test]
fn what_cores_cannot_do_is_refused() {
    let bed = TestBed::new();
    let at_steering = define(&bed, definition("nat", 2, &[lan()]));
    assert!(matches!(at_steering, Err(FabricError::Cores(..))), "{at_steering:?}");
    let mut piped = definition("nat", 2, &[lan()]);
    piped.ports[0].attach = "pipe:a".parse().unwrap();
    let piped = define(&bed, piped);
    assert!(matches!(piped, Err(FabricError::Cores(..))), "{piped:?}");
    // Without a switch, and at a steering one later.
    let mut alone = definition("nat", 2, &[lan()]);
    alone.ports[0].attach = Attachment::Nothing;
    define(&bed, alone.clone()).unwrap();
    let Err(FabricError::Rejected(found)) =
        bed.start("nat", "FromDevice(0) -> q :: RoundRobinSwitch -> ToDevice(0);", &[])
    else {
        panic!("it needs all packets in one engine");
    };
    assert!(found.iter().any(|found| found.message.contains("can't run in 2 shards")), "{found:?}");
    bed.start("nat", "FromDevice(0) -> ToDevice(0);", &[]).unwrap();
    let check = orders::Check {
        configuration: configuration("FromDevice(0) -> q :: RoundRobinSwitch -> ToDevice(0);"),
        ports: 1,
        limits: None,
        image: None,
        cores: 2.try_into().unwrap(),
        faces: Vec::new(),
    };
    let outcome = bed.0.ask(check).unwrap();
    assert!(format!("{outcome:?}").contains("can't run in 2 shards"), "{outcome:?}");
}
