//! OpenFlow controllers of a steering switch: from the command line to the packets in a box.

mod support;

use flow_table::{
    Action, Band, BandType, Bucket, Change, Command, Field, GroupType, Instructions, Match, MeterDefinition,
    Output,
};
use openflow::message::{
    FlowMod, GroupMod, Hello, Message, MeterMod, PacketInReason, PacketOut, PacketOutAction, PortMod,
};
use openflow::{ErrorCode, VERSION};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::controller::{Controller, listener, to_controller};
use support::planes::{Planes, until};
use support::{Daemon, TIMEOUT};

/// Sends a packet every ten milliseconds.
const SOURCE: &str = "TimedSource(INTERVAL 10ms, DATA \\<0102>)
    -> UDPIPEncap(10.0.0.1, 9, 10.0.0.2, 80) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2)
    -> ToDevice(0);\n";

const SINK: &str = "FromDevice(0) -> c :: Counter -> Discard;\n";

/// Is in the cookies of entries that a controller writes one after the other.
const WRITTEN: u64 = 1 << 40;

/// Creates a box that counts packets, and one that sends some, at a switch.
fn create_boxes(check: impl Fn(&[&str]), sink: &str, source: &str, switch: &str) {
    let name = |box_name: &str| format!("{box_name}-{switch}");
    check(&["create", &name("sink"), sink, "--sandbox", "process", "--attach", switch]);
    let attach = format!("{switch},mac=02:00:00:00:00:01");
    check(&["create", &name("source"), source, "--sandbox", "process", "--attach", &attach]);
}

fn count(daemon: &Daemon, handler: &str) -> u64 {
    daemon.run(&["read", handler]).1.trim().parse().unwrap_or(0)
}

fn kill(process: u32) {
    let process = Pid::from_raw(process.cast_signed()).expect("a process");
    kill_process(process, Signal::KILL).expect("a process of ours");
}

#[test]
fn a_controller_steers_packets() {
    steer_packets("1");
}

#[test]
fn a_controller_steers_packets_in_all_threads() {
    steer_packets("2");
}

fn steer_packets(threads: &str) {
    let (listener, address) = listener();
    let daemon = Daemon::start_with(&format!("openflow-{threads}"), &["--switch-threads", threads]);
    let create = ["switch", "create", "lan", "--controller", "ADDRESS", "--mode", "steering"];
    let with = |address: &'static str| create.map(|word| if word == "ADDRESS" { address } else { word });
    daemon.check(&with("udp:127.0.0.1:1"), 2, &["`tcp:ADDRESS:PORT` or `tls:ADDRESS:PORT`"]);
    daemon.check(&with("ptcp:0"), 2, &["a number from 1 to 65535"]);
    daemon.check(&with("tcp:127.0.0.1:1")[..5], 2, &["it needs the mode steering"]);
    let create = create.map(|word| if word == "ADDRESS" { address.as_str() } else { word });
    daemon.check(&create, 0, &[]);
    let (sink, source) = (daemon.file("sink.click", SINK), daemon.file("source.click", SOURCE));
    create_boxes(|words| drop(daemon.check(words, 0, &[])), &sink, &source, "lan");
    let mut controller = Controller::accept(&listener);
    controller.send(&Message::FeaturesRequest);
    let features = controller.wait(|message| match message {
        Message::FeaturesReply(features) => Some(*features),
        _ => None,
    });
    assert_eq!((features.tables, features.auxiliary), (64, 0));
    daemon.until(&["switch", "show", "lan"], "equal");

    // Nothing is sent to a controller that did not ask for it.
    controller.add(0, 99, to_controller());
    let packet = controller.packet_in();
    assert_eq!((packet.reason, packet.table, packet.cookie), (PacketInReason::NoMatch, 0, 99));
    assert_eq!(packet.data.get(6..12), Some(&[2, 0, 0, 0, 0, 1][..]));
    assert_eq!(count(&daemon, "sink-lan/c.count"), 0);
    // Packets are reported when they come, and not once a second. On a loaded machine some come together, and some late.
    let (begin, mut last, mut apart) = (Instant::now(), Instant::now(), 0);
    while apart < 20 {
        controller.packet_in();
        apart += usize::from((2..500).contains(&last.elapsed().as_millis()));
        last = Instant::now();
        assert!(begin.elapsed() < TIMEOUT, "{apart} came apart from others");
    }
    // One packet goes out again, then all go straight.
    let port = controller.port("sink-lan.0");
    let in_port = controller.port("source-lan.0");
    // Users see what a controller's configuration has to name.
    let known = format!("datapath {:#018x}", features.datapath);
    daemon.check(&["service", "create", "ids", "--container"], 0, &[]);
    daemon.check(&["chain", "create", "web", "ids", "--to", "sink-lan.0"], 0, &[]);
    let (service, chain) = (controller.port("service:ids"), controller.port("chain:web"));
    let shown = daemon.check(&["switch", "show", "lan"], 0, &[&known]);
    for (name, number) in
        [("sink-lan.0", port), ("source-lan.0", in_port), ("service:ids", service), ("chain:web", chain)]
    {
        let row = [number.to_string(), name.to_string()];
        assert!(shown.lines().any(|line| line.split_whitespace().eq(&row)), "{name} {number}: {shown}");
    }
    let action = PacketOutAction::Perform(Action::Output(Output::Port(port)));
    controller.send(&Message::PacketOut(PacketOut {
        buffer: None,
        in_port,
        actions: vec![action],
        data: packet.data,
    }));
    daemon.until(&["read", "sink-lan/c.count"], "1");
    controller.add(1, 5, Output::Port(port));
    let pass = || {
        let before = count(&daemon, "sink-lan/c.count");
        until("packets go straight", || count(&daemon, "sink-lan/c.count") > before + 50);
    };
    pass();
    // Those that came before the entry may still be on their way.
    while controller.next(Duration::from_millis(300)).is_some() {}
    pass();
    assert_eq!(controller.next(Duration::ZERO), None);

    // It configures ports, and is told what became of them.
    check_port_config(&daemon, &mut controller);

    // The entries stay when the controller goes, and it finds them when it comes back.
    drop(controller);
    daemon.until(&["switch", "show", "lan"], "the controller closed the connection");
    let before = count(&daemon, "sink-lan/c.count");
    until("packets go on", || count(&daemon, "sink-lan/c.count") > before + 50);
    let mut controller = Controller::accept(&listener);
    let flows = controller.flows(5);
    assert_eq!(flows.len(), 1);
    assert!(flows[0].packets > 100, "{flows:?}");
    check_listed_entries(&daemon, &mut controller, port, in_port);
    // Users see their flows only, unless they ask for others, and both kinds are in one table.
    daemon.check(&["flow", "ls", "lan"], 0, &["no flows: its controllers decide"]);
    daemon.check(&["flow", "add", "lan", "--output", "drop", "--priority", "9"], 0, &[]);
    let delete = Change { table: None, ..Change::new(Command::Delete, Match::any(), 0) };
    controller.send(&Message::FlowMod(FlowMod { change: delete, buffer: None }));
    controller.send(&Message::BarrierRequest);
    controller.wait(|message| matches!(message, Message::BarrierReply).then_some(()));
    daemon.check(&["flow", "ls", "lan"], 0, &["drop"]);
    daemon.check(&["account"], 0, &["switch lan"]);
}

/// What a controller has added is listed for users, on as many pages as it takes.
fn check_listed_entries(daemon: &Daemon, controller: &mut Controller, port: u32, in_port: u32) {
    const MANY: u64 = 600;
    let list = || daemon.json(&["flow", "ls", "lan", "--controllers"]);
    let before = list()["entries"].as_array().expect("a list").len() as u64;
    let with = |matching: Match, field: Field, value: u128| matching.with(field, value).expect("a condition");
    let ip = with(Match::any(), Field::EthType, 0x800);
    for number in 0..MANY {
        let matching = with(ip, Field::Ipv4Src, number.into());
        let instructions = Instructions::output(Output::Normal);
        let change = Change { cookie: 8, instructions, ..Change::new(Command::Add, matching, 2) };
        controller.send(&Message::FlowMod(FlowMod { change, buffer: None }));
    }
    let matching = with(
        with(with(Match::any(), Field::InPort, in_port.into()), Field::EthType, 0x800),
        Field::IpProto,
        6,
    );
    let matching = with(matching, Field::TcpDst, 80);
    let bucket = Bucket { weight: 2, actions: vec![Action::Output(Output::Port(port))], ..Bucket::default() };
    controller.send(&Message::GroupMod(GroupMod::Add {
        group: 7,
        group_type: GroupType::Select,
        buckets: vec![bucket],
    }));
    let band = Band { band_type: BandType::Drop, rate: 50, burst: 0 };
    let meter = MeterDefinition { flags: MeterDefinition::PACKETS, bands: vec![band] };
    controller.send(&Message::MeterMod(MeterMod::Add(3, meter)));
    let instructions = Instructions {
        meter: Some(3),
        apply: vec![Action::SetField(Field::TcpDst, 8080), Action::Group(7)],
        goto: Some(1),
        ..Instructions::default()
    };
    let change = Change {
        cookie: 0xabc,
        idle_timeout: Some(Duration::from_secs(600)),
        instructions,
        ..Change::new(Command::Add, matching, 40_000)
    };
    controller.send(&Message::FlowMod(FlowMod { change, buffer: None }));
    controller.send(&Message::BarrierRequest);
    controller.wait(|message| matches!(message, Message::BarrierReply).then_some(()));
    let listed = list();
    let entries = listed["entries"].as_array().expect("a list");
    assert_eq!(entries.len() as u64, before + MANY + 1);
    let addresses: BTreeSet<&str> = entries
        .iter()
        .filter(|entry| entry["cookie"] == "0x8")
        .filter_map(|entry| entry["match"].as_str())
        .collect();
    assert_eq!(addresses.len() as u64, MANY);
    assert!(addresses.contains("src host 0.0.2.87"), "{addresses:?}");
    // The one of highest priority comes first.
    let mut first = entries[0].clone();
    assert!(first["age_seconds"].take().is_u64());
    assert_eq!(
        first,
        serde_json::json!({
            "table": 0, "priority": 40_000, "match": "ip vers 4 and tcp dst port 80", "in_port": "source-lan.0",
            "instructions": ["meter:3", "set_field:8080->tcp_dst", "group:7", "goto_table:1"],
            "packets": 0, "bytes": 0, "age_seconds": null, "idle_seconds": 600, "cookie": "0xabc",
        })
    );
    let none = |definition: &str| serde_json::json!([{"definition": definition, "packets": 0, "bytes": 0}]);
    let (buckets, bands) = (none("weight:2,output:sink-lan.0"), none("drop above 50 packets/s"));
    assert_eq!(
        (&listed["groups"], &listed["meters"]),
        (
            &serde_json::json!([{"number": 7, "type": "select", "packets": 0, "bytes": 0, "buckets": buckets}]),
            &serde_json::json!([{"number": 3, "packets": 0, "bytes": 0, "bands": bands}]),
        )
    );
    let counted =
        |entry: &serde_json::Value| entry["cookie"] == "0x5" && entry["packets"].as_u64() > Some(100);
    assert!(entries.iter().any(counted), "{listed}");
    daemon.check(
        &["flow", "ls", "lan", "--controllers"],
        0,
        &["meter:3,set_field:8080->tcp_dst,group:7", "idle 600s"],
    );
    check_counters(&list, controller, in_port);
}

/// Packets that pass the meter and then the group are counted by both, and those that the meter drops by its band.
fn check_counters(list: &dyn Fn() -> serde_json::Value, controller: &mut Controller, in_port: u32) {
    let matching = Match::any().with(Field::InPort, in_port.into()).expect("a condition");
    let apply = vec![Action::Group(7)];
    let instructions = Instructions { meter: Some(3), apply, ..Instructions::default() };
    let change =
        |command| Change { instructions: instructions.clone(), ..Change::new(command, matching, 50_000) };
    controller.send(&Message::FlowMod(FlowMod { change: change(Command::Add), buffer: None }));
    let counts = |found: &serde_json::Value| {
        [&found["packets"], &found["bytes"]].map(|count| count.as_u64().unwrap_or(0))
    };
    until("packets are counted", || {
        let listed = list();
        let (group, meter) = (&listed["groups"][0], &listed["meters"][0]);
        let ([through, bytes], dropped) = (counts(group), counts(&meter["bands"][0]));
        assert_eq!(counts(&group["buckets"][0]), [through, bytes]);
        assert_eq!(bytes % through.max(1), 0, "{listed}");
        // The meter is read later.
        assert!(counts(meter)[0] >= through + dropped[0], "{listed}");
        through > 5 && dropped[0] > 5 && dropped[1] == dropped[0] * (bytes / through)
    });
    controller.send(&Message::FlowMod(FlowMod { change: change(Command::DeleteStrict), buffer: None }));
}

/// A port that may not send gets nothing, one that may not receive gives nothing, and both can again.
fn check_port_config(daemon: &Daemon, controller: &mut Controller) {
    const NO_RECEIVE: u32 = 1 << 2;
    const NO_FORWARD: u32 = 1 << 5;
    for (name, bit) in [("sink-lan.0", NO_FORWARD), ("source-lan.0", NO_RECEIVE), ("sink-lan.0", 1)] {
        let port = controller.ports().into_iter().find(|port| port.name == name).expect("the port");
        let set = |config| {
            Message::PortMod(PortMod {
                port: port.number,
                address: port.address,
                config,
                mask: bit,
                advertise: 0,
            })
        };
        controller.send(&set(bit));
        let changed = controller.wait(|message| match message {
            Message::PortStatus(status) => Some(status.port.clone()),
            Message::Error { code, .. } => panic!("{code}"),
            _ => None,
        });
        let state = if bit == 1 { 0 } else { port.state };
        assert_eq!((changed.number, changed.config, changed.state), (port.number, bit, state));
        let lost = || {
            let shown = daemon.json(&["switch", "show", "lan"]);
            shown["drops"]["port_config"].as_u64().unwrap_or(0)
        };
        let before = lost();
        until("frames of a closed port are dropped", || lost() > before);
        controller.send(&set(0));
        controller.wait(|message| matches!(message, Message::PortStatus(_)).then_some(()));
        let before = count(daemon, "sink-lan/c.count");
        until("packets pass again", || count(daemon, "sink-lan/c.count") > before);
    }
    let port = controller.ports().into_iter().find(|port| port.name == "service:ids").expect("the port");
    let (port, address) = (port.number, port.address);
    controller.send(&Message::PortMod(PortMod { port, address, config: 1, mask: 1, advertise: 0 }));
    let refused = controller.wait(|message| match message {
        Message::Error { code, .. } => Some(*code),
        _ => None,
    });
    assert_eq!(refused, ErrorCode::PMFC_BAD_CONFIG);
}

#[test]
fn a_switch_without_its_controller_forwards_as_a_bridge_if_it_should() {
    forward_without_a_controller("1");
}

#[test]
fn all_threads_forward_without_a_controller_as_a_bridge_if_they_should() {
    forward_without_a_controller("2");
}

fn forward_without_a_controller(threads: &str) {
    let daemon = Daemon::start_with(&format!("openflow-alone-{threads}"), &["--switch-threads", threads]);
    let (sink, source) = (daemon.file("sink.click", SINK), daemon.file("source.click", SOURCE));
    // Nothing listens there.
    let controller = ["--mode", "steering", "--controller", "tcp:127.0.0.1:1"];
    daemon.check(&[&["switch", "create", "closed"], &controller[..]].concat(), 0, &[]);
    let open = ["switch", "create", "open", "--fail-mode", "standalone"];
    daemon.check(&[&open, &controller[..]].concat(), 0, &[]);
    for switch in ["closed", "open"] {
        create_boxes(|words| drop(daemon.check(words, 0, &[])), &sink, &source, switch);
    }
    until("packets are forwarded", || count(&daemon, "sink-open/c.count") > 20);
    assert_eq!(count(&daemon, "sink-closed/c.count"), 0);
    daemon.until(&["switch", "show", "closed"], "flow_miss");
    daemon.until(&["switch", "show", "closed"], "Connection refused");
}

/// A free port of this host.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// Connects to a switch that listens.
fn connect(port: u16) -> TcpStream {
    let begin = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(begin.elapsed() < TIMEOUT, "the switch does not listen: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn controllers_connect_to_switches_with_tls_and_without() {
    let made = rcgen::generate_simple_self_signed(["switch".to_string()]).expect("a certificate");
    let folder = std::env::temp_dir().join(format!("clickbox-openflow-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a file");
        path.to_str().expect("a path").to_string()
    };
    let certificate = file("certificate.pem", &made.cert.pem());
    let key = file("key.pem", &made.signing_key.serialize_pem());
    let options = [
        "--controller-certificate",
        &certificate,
        "--controller-key",
        &key,
        "--controller-authority",
        &certificate,
    ];
    let daemon = Daemon::start_with("openflow-listens", &options);
    let (plain, protected) = (port(), port());
    let (first, second) = (format!("ptcp:{plain}"), format!("ptls:{protected}:127.0.0.1"));
    let create = ["switch", "create", "lan", "--mode", "steering", "--controller", &first];
    daemon.check(&[&create[..], &["--controller", &second]].concat(), 0, &[]);
    let mut controller = Controller::of(connect(plain));
    controller.send(&Message::Hello(Hello { versions: Some(1 << VERSION) }));
    controller.wait(|message| matches!(message, Message::Hello(_)).then_some(()));
    daemon.until(&["switch", "show", "lan"], "equal");
    // Without a certificate nothing is said.
    let mut stranger = connect(protected);
    stranger.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stranger.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).expect("the switch reads");
    let mut said = Vec::new();
    let _ = stranger.read_to_end(&mut said);
    assert_eq!(said.first(), Some(&21), "only an alert: {said:02x?}");
    daemon.until(&["switch", "show", "lan"], "TLS failed");
    daemon.check(
        &["switch", "show", "lan"],
        0,
        &[&format!("ptcp:{plain}:127.0.0.1"), &format!("ptls:{protected}:127.0.0.1")],
    );
    drop(daemon);
    std::fs::remove_dir_all(&folder).expect("a folder");
}

#[test]
fn certificates_for_controllers_are_checked_at_the_start() {
    let start = |options: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_clickbox"))
            .args(["launcher", "--socket", "/nonexistent/launcher.sock"])
            .args(options)
            .output()
            .expect("the program");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = start(&["--controller-certificate", "/nonexistent/c.pem"]);
    assert!(code == Some(2) && text.contains("--controller-key"), "{text}");
    let files = ["--controller-certificate", "/dev/null", "--controller-key", "/dev/null"];
    let (code, text) = start(&[&files[..], &["--controller-authority", "/dev/null"]].concat());
    assert!(code == Some(2) && text.contains("/dev/null"), "{text}");
}

#[test]
fn a_hostile_controller_harms_its_session_only() {
    let (listener, address) = listener();
    let daemon = Daemon::start("openflow-hostile");
    daemon.check(&["switch", "create", "lan", "--mode", "steering", "--controller", &address], 0, &[]);
    let (sink, source) = (daemon.file("sink.click", SINK), daemon.file("source.click", SOURCE));
    create_boxes(|words| drop(daemon.check(words, 0, &[])), &sink, &source, "lan");
    // Other bytes than OpenFlow's, half a message, and one that ends before its header.
    for bytes in [&[0xff; 4096][..], &[4, 0, 0, 64, 0, 0, 0, 1], &[4, 2, 0, 3, 0, 0, 0, 1]] {
        let (mut stream, _) = listener.accept().expect("the switch connects");
        stream.write_all(bytes).expect("the switch reads");
        drop(stream);
    }
    // Requests without end, whose answers it does not read: the switch stops reading.
    let mut controller = Controller::accept(&listener);
    controller.add(0, 1, to_controller());
    controller.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    let request = Message::EchoRequest(vec![7; 60_000]).encode(1).expect("a message");
    let begin = Instant::now();
    while controller.stream.write_all(&request).is_ok() {
        assert!(begin.elapsed() < TIMEOUT, "the switch reads without end");
    }
    // Packets for it are lost and counted; the daemon and the other planes respond.
    daemon.until(&["switch", "show", "lan"], "connected");
    drop(controller);
    let mut controller = Controller::accept(&listener);
    let port = controller.port("sink-lan.0");
    controller.add(1, 2, Output::Port(port));
    until("packets arrive", || count(&daemon, "sink-lan/c.count") > 20);
}

/// A controller that adds its entries to another fabric means the ports that it meant before.
#[test]
fn ports_keep_their_numbers_in_another_fabric() {
    let (listener, address) = listener();
    let planes = Planes::new("openflow-numbers");
    let mut daemon = planes.start();
    let check = |words: &[&str]| drop(planes.check(words, 0, &[]));
    check(&["switch", "create", "lan", "--mode", "steering", "--controller", &address]);
    let sink = planes.file("sink.click", SINK);
    for name in ["first", "second", "third"] {
        check(&["create", name, &sink, "--sandbox", "process", "--attach", "lan"]);
    }
    for name in ["dpi", "ids"] {
        check(&["service", "create", name, "--container", "--switch", "lan"]);
    }
    for name in ["to-dpi", "to-ids"] {
        check(&["chain", "create", name, "ids", "--switch", "lan", "--to", "third.0"]);
    }
    check(&["rm", "--force", "first"]);
    check(&["chain", "rm", "to-dpi", "--switch", "lan"]);
    check(&["service", "rm", "dpi"]);
    let numbers = |controller: &mut Controller| {
        ["second.0", "third.0", "service:ids", "chain:to-ids"].map(|name| controller.port(name))
    };
    let mut controller = Controller::accept(&listener);
    assert_eq!(numbers(&mut controller), [2, 3, 0x8001, 0xa001]);
    kill(planes.fabric().expect("a fabric"));
    drop(controller);
    let mut controller = Controller::accept(&listener);
    // The switch has a controller before it has all its ports again.
    until("the ports are there", || controller.ports().len() == 4);
    assert_eq!(numbers(&mut controller), [2, 3, 0x8001, 0xa001]);
    // The number of a removed port waits for its name.
    for name in ["fourth", "first"] {
        check(&["create", name, &sink, "--sandbox", "process", "--attach", "lan"]);
    }
    assert_eq!(["first.0", "fourth.0"].map(|name| controller.port(name)), [1, 4]);
    daemon.kill().expect("a running daemon");
    daemon.wait().expect("an end");
}

#[test]
fn controllers_go_on_when_the_daemon_is_killed() {
    let (listener, address) = listener();
    let planes = Planes::new("openflow");
    let mut daemon = planes.start();
    planes.check(&["switch", "create", "lan", "--mode", "steering", "--controller", &address], 0, &[]);
    let (sink, source) = (planes.file("sink.click", SINK), planes.file("source.click", SOURCE));
    create_boxes(|words| drop(planes.check(words, 0, &[])), &sink, &source, "lan");
    let mut controller = Controller::accept(&listener);
    controller.add(0, 1, to_controller());
    controller.packet_in();
    // It writes all the time: before the daemon is killed, while there is none, and when there is one again.
    let port = controller.port("sink-lan.0");
    let (written, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let writes = |count: u64| until("the controller writes", || written.load(Ordering::SeqCst) >= count);
    let (mut daemon, mut controller) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let number = written.load(Ordering::SeqCst);
                let matching = Match::any().with(Field::EthType, 0x800).expect("a condition");
                let matching = matching.with(Field::Ipv4Src, number.into()).expect("a condition");
                controller.add_where(matching, 2, WRITTEN | number, Output::Port(port));
                written.fetch_add(1, Ordering::SeqCst);
            }
            controller
        });
        writes(20);
        daemon.kill().expect("a running daemon");
        let killed_at = written.load(Ordering::SeqCst);
        daemon.wait().expect("an end");
        writes(killed_at + 20);
        let daemon = planes.start();
        writes(written.load(Ordering::SeqCst) + 20);
        stop.store(true, Ordering::SeqCst);
        (daemon, writer.join().expect("all are added"))
    });
    let all = written.into_inner();
    let mut found: Vec<u64> =
        controller.flows_where(WRITTEN, WRITTEN).iter().map(|flow| flow.cookie).collect();
    found.sort_unstable();
    assert_eq!(found, (0..all).map(|number| WRITTEN | number).collect::<Vec<_>>());
    controller.add(1, 2, Output::Port(port));
    until("packets arrive", || planes.number("sink-lan/c.count") > 20);
    // The same session, and the same switch.
    controller.add(1, 3, Output::Port(port));
    let shown = planes.json(&["switch", "show", "lan"]);
    assert_eq!(shown["controllers"][0]["connected"], true, "{shown}");
    // The agent may do little.
    let agent = planes.agent().expect("an agent");
    let status = std::fs::read_to_string(format!("/proc/{agent}/status")).expect("its status");
    for line in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "Threads:\t1"] {
        assert!(status.contains(line), "no {line} in: {status}");
    }
    // An agent that was killed is followed by another one, and the entries stay.
    let fabric = planes.fabric().expect("a fabric");
    kill(agent);
    let mut controller = Controller::accept(&listener);
    let before = planes.number("sink-lan/c.count");
    until("packets go on", || planes.number("sink-lan/c.count") > before + 20);
    controller.add(1, 4, Output::Port(port));
    assert_eq!(planes.fabric(), Some(fabric));
    daemon.kill().expect("a running daemon");
    daemon.wait().expect("an end");
}
