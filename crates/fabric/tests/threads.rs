//! A fabric whose switches several threads run: packets, commands, boxes that end, and what is refused.

mod support;

use model::{
    AccountPlace, AddPort, Attachment, ConfigurationName, CreateSwitch, Limits, PortDriver, PortName,
    SwitchMode, SwitchName,
};
use protocol::fabric::{FabricError, PortStats, orders};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;
use support::{TestBed, lan};

/// Sends packets of 300 flows to the box `mirror`, and counts those that come back.
const SOURCE: &str =
    "s :: FastUDPFlows(20000, 0, 60, 2:1:6:73:0:65, 10.0.0.1, 2:1:6:6d:0:72, 10.0.0.2, 300, 1000000,
        ACTIVE false) -> ToDevice(0);
    FromDevice(0) -> r :: Counter -> Discard;";

/// Sends packets back.
const MIRROR: &str = "FromDevice(0) -> c :: Counter -> MarkIPHeader(14) -> EtherMirror -> IPMirror -> Queue(4096) -> ToDevice(0);";

/// Has the source send this many packets.
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
    bed.0.ask(orders::Traffic {}).unwrap().switches.remove(&lan()).unwrap()
}

/// The packets that a port received and sent.
fn traffic(ports: &BTreeMap<PortName, PortStats>, port: &str) -> (u64, u64) {
    let counters = &ports[&port.parse::<PortName>().unwrap()].counters;
    (counters.received_packets, counters.sent_packets)
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
            sent += 2000;
            send(&bed, 2000);
            bed.until("all packets come back", |bed| bed.read("source", "r.count") == sent);
            assert_eq!(bed.read("mirror", "c.count"), 2000);
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
    let far: SwitchName = "far".parse().unwrap();
    bed.0.ask(orders::AddSwitch { definition: CreateSwitch::new(far.clone()) }).unwrap();
    let definition = AddPort {
        name: "up".parse().unwrap(),
        driver: PortDriver::Pipe { switch: far.clone(), port: "down".parse().unwrap() },
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    };
    bed.0.ask_with(orders::AddPort { switch: lan(), port: definition }, &[]).unwrap();
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

#[test]
fn what_threads_cannot_share_is_refused() {
    let bed = TestBed::with_threads(2, SwitchMode::Learning);
    let refused = |result: Result<(), FabricError>, what: &str| match result {
        Err(FabricError::Flow(text)) => {
            assert!(text.starts_with(what) && text.ends_with("`--switch-threads 1`"), "{text}");
        }
        other => panic!("{other:?}"),
    };
    let port = |limits: Limits| {
        let definition = AddPort {
            name: "capped".parse().unwrap(),
            driver: PortDriver::Null {},
            addresses: Vec::new(),
            default: false,
            limits,
        };
        bed.0.ask_with(orders::AddPort { switch: lan(), port: definition }, &[]).map(drop)
    };
    for limits in [
        Limits { frames: Some(1), ..Limits::default() },
        Limits { bits: Some(1), ..Limits::default() },
        Limits { broadcasts: Some(1), ..Limits::default() },
        Limits { new_addresses: Some(1), ..Limits::default() },
    ] {
        refused(
            port(limits),
            "a limit of frames, bits, broadcasts or new addresses of a port is not possible",
        );
    }
    port(Limits::default()).unwrap();
}
