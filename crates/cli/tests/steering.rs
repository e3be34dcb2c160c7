//! The demonstration of OpenNetVM's paper, with the stack of `examples/steering` and a controller that speaks OpenFlow 1.3.

mod support;

use flow_table::{Action, Field, Match, Output};
use openflow::message::{Message, PacketIn, PacketInReason, PacketOut, PacketOutAction};
use std::collections::BTreeMap;
use std::time::Duration;
use support::Daemon;
use support::controller::{Controller, listener, to_controller};
use support::planes::until;

/// Flows of each of two kinds.
const FLOWS: u64 = 32;

/// Cookies of the entries: for misses, for what comes from the service, and for each flow.
const MISS: u64 = 1;
const FROM_IDS: u64 = 2;
const TO_IDS: u64 = 3;

/// A box that sends packets of the flows from 10.0.0.0 and, when `others` is active, from 10.0.1.0; and alarming ones of flow
/// 3.
fn source() -> String {
    let rated = |name: &str, data: &str| {
        format!("{name} :: RatedSource(DATA {data}, RATE 5000, LIMIT 0, ACTIVE false)")
    };
    let mut text = format!(
        "{} -> a :: RoundRobinSwitch; {} -> b :: RoundRobinSwitch;
        {} -> UDPIPEncap(10.0.0.3, 1000, 10.9.0.1, 53) -> sent :: Counter;
        sent -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0);\n",
        rated("flows", "\\<00112233445566778899>"),
        rated("others", "\\<00112233445566778899>"),
        rated("evil", "\"GET /evil HTTP/1.1\""),
    );
    for (switch, third) in [("a", 0), ("b", 1)] {
        for flow in 0..FLOWS {
            text += &format!(
                "{switch}[{flow}] -> UDPIPEncap(10.0.{third}.{flow}, 1000, 10.9.0.1, 53) -> sent;\n"
            );
        }
    }
    text
}

const SINK: &str = "FromDevice(0) -> got :: Counter -> Discard;\n";

struct TestBed {
    daemon: Daemon,
    controller: Controller,
    /// The ports of the source, of the sink and of the service.
    ports: [u32; 3],
}

impl TestBed {
    /// The example, with ports that need no rights, and boxes at both ends.
    fn new(name: &str, threads: &str) -> Self {
        let (listener, address) = listener();
        let daemon = Daemon::start_with(&format!("{name}-{threads}"), &["--switch-threads", threads]);
        let folder = format!("{}/../../examples/steering", env!("CARGO_MANIFEST_DIR"));
        let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).expect("an example");
        let stack = read("steering.toml");
        let changed = stack
            .replace("driver = \"tap\"", "driver = \"null\"")
            .replace("tcp:127.0.0.1:6653", &address)
            .replace(".click\"", ".click\"\nsandbox = \"process\"\nring = 2048");
        assert_eq!(changed.matches("sandbox").count(), 2, "{changed}");
        for file in ["ids.click", "quarantine.click"] {
            daemon.file(file, &read(file));
        }
        let path = daemon.file("steering.toml", &changed);
        daemon.check(&["up", &path], 0, &["create  service/ids", "create  service/quarantine"]);
        for (name, text, mac) in [("source", source().as_str(), 1), ("sink", SINK, 2)] {
            let (path, attach) = (daemon.file(name, text), format!("lan,mac=02:00:00:00:00:0{mac}"));
            let options = ["--sandbox", "process", "--ring", "2048", "--attach", &attach];
            daemon.check(&[&["create", name, &path], &options[..]].concat(), 0, &[]);
        }
        let mut controller = Controller::accept(&listener);
        let ports = ["source.0", "sink.0", "service:ids"].map(|name| controller.port(name));
        controller.add(0, MISS, to_controller());
        let from_ids = Match::any().with(Field::InPort, ports[2].into()).expect("a port");
        controller.add_where(from_ids, 10, FROM_IDS, Output::Port(ports[1]));
        Self { daemon, controller, ports }
    }

    fn count(&self, handler: &str) -> u64 {
        let (code, text) = self.daemon.run(&["read", handler]);
        text.trim().parse().unwrap_or_else(|_| panic!("{handler}: {code} {text}"))
    }

    /// Lets a source send this many packets more.
    fn send(&self, source: &str, packets: u64) {
        let limit = self.count(&format!("source/{source}.count")) + packets;
        self.daemon.check(&["write", &format!("source/{source}.limit"), &limit.to_string()], 0, &[]);
        self.daemon.check(&["write", &format!("source/{source}.active"), "true"], 0, &[]);
    }

    /// Waits until this many packets reached the sink and the quarantine.
    fn ended(&self, sink: u64, quarantine: u64) {
        until("packets arrive", || {
            self.count("sink/got.count") >= sink && self.count("quarantine-1/got.count") >= quarantine
        });
        assert_eq!((self.count("sink/got.count"), self.count("quarantine-1/got.count")), (sink, quarantine));
    }

    /// Says "to the IDS" about packets of new flows: what comes from there has an entry.
    fn answer(&mut self, misses: u64) {
        let [source, _, ids] = self.ports;
        for _ in 0..misses {
            let packet = self.controller.packet_in();
            assert_eq!((packet.reason, packet.cookie), (PacketInReason::NoMatch, MISS));
            assert_eq!(packet.fields.get(Field::InPort).map(|(port, _)| port), Some(source.into()));
            self.controller.add_where(
                self.flow_of(&packet),
                5,
                TO_IDS,
                Output::from_port_number(ids, 0).expect("a port"),
            );
            let action =
                PacketOutAction::Perform(Action::Output(Output::from_port_number(ids, 0).expect("a port")));
            self.controller.send(&Message::PacketOut(PacketOut {
                buffer: packet.buffer,
                in_port: source,
                actions: vec![action],
                data: packet.data,
            }));
        }
    }

    fn flow_of(&self, packet: &PacketIn) -> Match {
        let address =
            |at: usize| packet.data[at..at + 4].iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
        [
            (Field::InPort, self.ports[0].into()),
            (Field::EthType, 0x0800),
            (Field::Ipv4Src, address(26)),
            (Field::Ipv4Dst, address(30)),
        ]
        .into_iter()
        .fold(Match::any(), |all, (field, value)| all.with(field, value).expect("a condition"))
    }

    /// Nothing waits for the controller.
    fn is_not_asked(&mut self) {
        let more = self.controller.next(Duration::from_millis(200));
        assert!(!matches!(more, Some(Message::PacketIn(_))), "{more:?}");
        assert_eq!(self.controller.packets, []);
    }

    /// The packets that each instance of the service was sent, and its flows.
    fn instances(&self) -> Vec<[u64; 2]> {
        let shown = self.daemon.json(&["service", "show", "ids"]);
        let instances = shown["instances"].as_array().expect("instances");
        let number = |instance: &serde_json::Value, name: &str| instance[name].as_u64().expect("a number");
        instances.iter().map(|found| ["packets", "flows"].map(|name| number(found, name))).collect()
    }

    /// What the ports of the switch lost, by reason.
    fn dropped(&self) -> Vec<(String, u64)> {
        let shown = self.daemon.json(&["switch", "show", "lan"]);
        let mut sums = BTreeMap::new();
        for port in shown["port_list"].as_array().expect("ports") {
            for (reason, count) in port["drops"].as_object().expect("counters") {
                *sums.entry(reason.clone()).or_default() += count.as_u64().expect("a number");
            }
        }
        sums.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Packets that matched the entries with a cookie.
    fn matched(&mut self, cookie: u64) -> (usize, u64) {
        let flows = self.controller.flows(cookie);
        (flows.len(), flows.iter().map(|flow| flow.packets).sum())
    }
}

/// Claim O23.
#[test]
fn a_controller_says_to_the_ids_then_out() {
    steer_to_the_ids("1");
}

#[test]
fn a_controller_says_to_the_ids_then_out_in_all_threads() {
    steer_to_the_ids("2");
}

fn steer_to_the_ids(threads: &str) {
    let mut bed = TestBed::new("steering", threads);
    // The first packet of each flow is a miss.
    bed.send("flows", FLOWS);
    bed.answer(FLOWS);
    bed.ended(FLOWS, 0);
    // Later packets go straight.
    bed.send("flows", 10 * FLOWS);
    bed.ended(11 * FLOWS, 0);
    bed.is_not_asked();
    assert_eq!(bed.instances(), [[11 * FLOWS, FLOWS]]);
    assert_eq!(bed.matched(MISS), (1, FLOWS));
    assert_eq!(bed.matched(TO_IDS), (FLOWS as usize, 10 * FLOWS));
    assert_eq!(bed.matched(FROM_IDS), (1, 11 * FLOWS));

    // A second instance shares the load. Flows of the first one stay there, and the controller changes nothing for it.
    bed.daemon.check(&["service", "scale", "ids", "2"], 0, &["ids has 2 instances"]);
    bed.send("flows", FLOWS);
    bed.ended(12 * FLOWS, 0);
    assert_eq!(bed.instances(), [[12 * FLOWS, FLOWS], [0, 0]]);
    bed.send("others", FLOWS);
    bed.answer(FLOWS);
    bed.send("others", 9 * FLOWS);
    bed.ended(22 * FLOWS, 0);
    bed.is_not_asked();
    let [[first, flows], [second, new]] = bed.instances()[..] else { panic!("two instances") };
    assert_eq!((first + second, flows + new), (22 * FLOWS, 2 * FLOWS));
    assert!(new > FLOWS / 4 && flows > FLOWS + FLOWS / 4, "{flows} and {new} flows");
    assert_eq!(second, 10 * new);
    let seen = ["ids-1", "ids-2"].map(|name| bed.count(&format!("{name}/seen.count")));
    assert_eq!(seen, [first, second]);

    // The IDS diverts a flow without asking, and its later packets too.
    bed.send("evil", 1);
    bed.ended(22 * FLOWS, 1);
    bed.send("flows", 10 * FLOWS);
    bed.ended(32 * FLOWS - 10, 11);
    bed.is_not_asked();
    assert_eq!((bed.count("ids-1/alerts.count"), bed.count("ids-1/diverted.count")), (1, 11));
    assert_eq!(bed.count("ids-2/alerts.count") + bed.count("ids-2/diverted.count"), 0);
    assert_eq!(bed.matched(MISS), (1, 2 * FLOWS));
    assert_eq!(bed.matched(TO_IDS), (2 * FLOWS as usize, 30 * FLOWS + 1));
    assert_eq!(bed.matched(FROM_IDS), (1, 32 * FLOWS - 10));
    // Nothing was overruled or lost.
    let shown = bed.daemon.json(&["service", "show", "ids"]);
    assert!(
        shown["instances"].as_array().is_some_and(|all| all.iter().all(|found| found["overruled"] == 0)),
        "{shown}"
    );
    bed.daemon.check(&["account"], 0, &["switch lan"]);
    assert_eq!(bed.dropped(), []);
}

/// What a flow-mod sends to the service that the packet comes from goes nowhere, and packets that functions and entries send
/// around without end are cut.
#[test]
fn entries_that_loop_are_cut_and_counted() {
    cut_loops("1");
}

#[test]
fn entries_that_loop_are_cut_and_counted_in_all_threads() {
    cut_loops("2");
}

fn cut_loops(threads: &str) {
    let mut bed = TestBed::new("steering-loops", threads);
    let [_, _, ids] = bed.ports;
    let to_ids = Output::from_port_number(ids, 0).expect("a port");
    // Without the ingress port in its match, above the entry for what comes back.
    bed.controller.add(20, TO_IDS, to_ids);
    bed.send("flows", FLOWS);
    let same_port = ("same_port".to_string(), FLOWS);
    until("packets are cut", || bed.dropped() == [same_port.clone()]);
    assert_eq!(bed.instances(), [[FLOWS, FLOWS]]);
    // Two services that send to each other.
    let quarantine = bed.controller.port("service:quarantine");
    let pass = bed.daemon.file("pass.click", "FromDevice(0) -> got :: Counter -> ToNext;\n");
    bed.daemon.check(&["service", "reload", "quarantine", &pass], 0, &[]);
    let from = |port: u32| Match::any().with(Field::InPort, port.into()).expect("a port");
    let to_quarantine = Output::from_port_number(quarantine, 0).expect("a port");
    bed.controller.add_where(from(ids), 30, FROM_IDS, to_quarantine);
    bed.controller.add_where(from(quarantine), 30, FROM_IDS, to_ids);
    bed.send("flows", FLOWS);
    let endless = ("endless_loop".to_string(), FLOWS);
    until("packets are cut", || bed.dropped() == [endless.clone(), same_port.clone()]);
    // 33 visits of each packet, of which 17 are at the first service.
    assert_eq!(
        (bed.instances(), bed.count("quarantine-1/got.count")),
        (vec![[18 * FLOWS, FLOWS]], 16 * FLOWS)
    );
    assert_eq!(bed.count("sink/got.count"), 0);
    bed.daemon.check(&["account"], 0, &["switch lan"]);
}
