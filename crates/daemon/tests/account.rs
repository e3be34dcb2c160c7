//! The accounts of all places, compared with books kept outside.

mod support;

use api::{
    AccountPlace, AccountQuery, AccountReport, AccountRow, AddPort, CreateBox, CreateSwitch, ErrorCode,
    Limits, MacAddr, PortDriver, PortRequest, Quota, Restart, Right, Sandbox,
};
use daemon::{Caller, Settings, Supervisor, User};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use support::{Folder, ThreadFabric, handler, name, process, state, switch, until};
use test_support::{Capability, require};

/// Examples that run in a box.
const MIN_EXAMPLES: usize = 5;

/// Runs `check` with boxes in each kind of sandbox.
fn in_each(check: impl Fn(&Supervisor, Sandbox)) {
    let start = || Supervisor::start(&support::settings_of(image::CLICKBOX, "clickbox", 2)).unwrap();
    let kinds = start().host().unwrap().sandboxes;
    assert_eq!(kinds.contains(&Sandbox::Vm), require(Capability::Kvm));
    kinds.into_iter().for_each(|kind| check(&start(), kind));
}

fn port(name: &str, driver: PortDriver) -> AddPort {
    AddPort {
        name: name.parse().unwrap(),
        driver,
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    }
}

fn make(sandbox: Sandbox, name: &str, text: &str, ports: &[&str]) -> CreateBox {
    CreateBox { sandbox, memory: api::Size(8 << 20), ..process(name, text, ports) }
}

fn read(supervisor: &Supervisor, path: &str) -> u64 {
    supervisor.read(&handler(path), b"").unwrap().value.text().trim().parse().unwrap()
}

fn account(supervisor: &Supervisor, subject: Option<&str>) -> AccountReport {
    let subject = subject.map(str::to_string);
    supervisor.account(&AccountQuery { subject, elements: true }).unwrap()
}

fn row<'a>(report: &'a AccountReport, place: &str) -> &'a AccountRow {
    let found = report.places.iter().find(|row| row.place.to_string() == place);
    found.unwrap_or_else(|| panic!("no {place} in {report:#?}"))
}

/// The numbers of a row: in, made, out, lost, discarded, delivered, consumed, waiting.
fn numbers(report: &AccountReport, place: &str) -> [u64; 8] {
    let row = row(report, place);
    let [incoming, out, waiting] =
        [row.incoming, row.out, row.waiting].map(|count| count.expect("a box that reports"));
    [incoming, row.made, out, row.lost(), row.discarded, row.delivered, row.consumed, waiting]
}

fn losses(report: &AccountReport, place: &str) -> BTreeMap<String, u64> {
    row(report, place).lost.clone()
}

/// Checks that the two sides of each row are equal, and nothing passed.
fn check_rest(report: &AccountReport) {
    for row in &report.places {
        assert_eq!((row.difference, row.moved), (Some(0), 0), "{}: {row:?}", row.place);
    }
}

/// A frame with an IPv4 header that is right and 400 bytes from there on.
fn frame(to: MacAddr, from: MacAddr) -> Vec<u8> {
    let mut header = [0x45, 0, 1, 0x90, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>();
    let check = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&check.to_be_bytes());
    [&to.0.0[..], &from.0.0, &[8, 0], &header, &[9; 380]].concat()
}

fn write_capture(path: &Path, frames: &[Vec<u8>]) {
    let encoder = capture::PcapEncoder::new(capture::LinkType::ETHERNET);
    let mut file = encoder.file_header().to_vec();
    for frame in frames {
        encoder.record(0, frame.len() as u32, frame, &mut file);
    }
    std::fs::write(path, &file).unwrap();
}

/// The number of records in a capture.
fn records(path: &Path) -> u64 {
    let mut decoder = capture::Decoder::new();
    decoder.feed(&std::fs::read(path).unwrap_or_default());
    let mut count = 0;
    while let Ok(Some(_)) = decoder.record() {
        count += 1;
    }
    count
}

/// Known frames come in at a port, and are counted where they leave and where they end.
#[test]
fn at_rest_the_accounts_equal_books_kept_outside() {
    in_each(|supervisor, sandbox| {
        let folder = Folder::new(&format!("account-{sandbox:?}"));
        let (input, output) = (folder.file("in.pcap"), folder.file("out.pcap"));
        let [own, peer] = [1, 2].map(|number| MacAddr::new([2, 0, 0, 0, 0, number]));
        let all = MacAddr::new([0xff; 6]);
        let mut frames = vec![frame(own, peer); 200];
        frames.resize(260, frame(all, peer));
        frames.resize(300, vec![2; 10]);
        write_capture(&input, &frames);

        let (lan, wan, far) = (switch("lan"), switch("wan"), switch("far"));
        for name in [&lan, &wan, &far] {
            supervisor.create_switch(CreateSwitch::new(name.clone())).unwrap();
        }
        supervisor.add_port(&lan, &port("other", PortDriver::Null {})).unwrap();
        supervisor.add_port(&far, &port("end", PortDriver::Null {})).unwrap();
        let write = Some(output.display().to_string());
        let write = PortDriver::Pcap { read: None, write, repeat: 1, rate: None };
        supervisor.add_port(&wan, &port("out", write)).unwrap();
        let link = PortDriver::Pipe { switch: far, port: "near".parse().unwrap() };
        supervisor.add_port(&wan, &port("up", link)).unwrap();
        let text = "FromDevice(0) -> in :: Counter -> t :: Tee
                    -> q :: Queue(64) -> Idle;
                    t[1] -> Strip(14) -> CheckIPHeader -> IPFragmenter(200) -> out :: Counter
                    -> EtherEncap(0x0800, 2:0:0:0:0:3, 2:0:0:0:0:4) -> ToDevice(1);
                    t[2] -> gone :: Discard;
                    InfiniteSource(LIMIT 5) -> SetIPAddress(10.9.9.8)
                    -> arp :: ARPQuerier(10.9.9.9, 2:0:0:0:0:5) -> Discard; Idle -> [1] arp;";
        let mut definition = make(sandbox, "fw", text, &["lan", "wan"]);
        definition.ports[0].mac = Some(own);
        // Each ring has room for all packets.
        definition.ring = "1024".parse().unwrap();
        supervisor.create_box(definition).unwrap();
        let replay = Some(input.display().to_string());
        let replay = PortDriver::Pcap { read: replay, write: None, repeat: 1, rate: Some(1000) };
        supervisor.add_port(&lan, &port("in", replay)).unwrap();
        until("all frames have come", || read(supervisor, "fw/in.count") == 260);
        // Of each packet, the fragmenter makes three.
        until("all frames have left", || records(&output) == 3 * 260);

        // The last frames are too short to get anywhere.
        until("the capture has ended", || {
            numbers(&account(supervisor, Some("lan")), "port lan/in")[0] == 300
        });
        let report = account(supervisor, None);
        check_rest(&report);
        assert_eq!(numbers(&report, "port lan/in"), [300, 0, 300, 0, 0, 0, 0, 0], "{sandbox:?}");
        assert_eq!(numbers(&report, "switch lan"), [300, 60, 320, 40, 0, 0, 0, 0]);
        assert_eq!(losses(&report, "switch lan"), BTreeMap::from([("too_short".into(), 40)]));
        assert_eq!(numbers(&report, "port lan/fw.0"), [260, 0, 260, 0, 0, 0, 0, 0]);
        assert_eq!(numbers(&report, "port lan/other"), [60, 0, 60, 0, 0, 0, 0, 0]);
        assert_eq!(numbers(&report, "ring to fw:0"), [260, 0, 260, 0, 0, 0, 0, 0]);
        assert_eq!(numbers(&report, "ring from fw:1"), [780, 0, 780, 0, 0, 0, 0, 0]);
        // What the handlers of the box say, one by one, is what its account says.
        let [queued, dropped, sent] =
            ["fw/q.length", "fw/q.drops", "fw/out.count"].map(|path| read(supervisor, path));
        assert_eq!([queued, dropped, sent], [64, 196, 780]);
        let inside = numbers(&report, "box fw");
        assert_eq!((inside[0], inside[2], inside[7]), (260, 780, queued + 5), "{inside:?}");
        assert_eq!(row(&report, "box fw").discarded, read(supervisor, "fw/gone.count") + 1);
        assert_eq!(losses(&report, "box fw"), BTreeMap::from([("overflow".into(), dropped)]));
        assert_eq!(numbers(&report, "fw/q"), [260, 0, 0, 196, 0, 0, 0, 64]);
        assert_eq!(numbers(&report, "fw/gone"), [260, 0, 0, 0, 260, 0, 0, 0]);
        assert_eq!(numbers(&report, "fw/arp")[7], 5);
        // To the capture and to the pipe.
        assert_eq!(numbers(&report, "switch wan"), [780, 780, 1560, 0, 0, 0, 0, 0]);
        assert_eq!(numbers(&report, "port wan/out"), [780, 0, records(&output), 0, 0, 0, 0, 0]);
        assert_eq!(numbers(&report, "link far/near - wan/up"), [780, 0, 780, 0, 0, 0, 0, 0]);
        assert_eq!(numbers(&report, "port far/end"), [780, 0, 780, 0, 0, 0, 0, 0]);
        // A switch goes on to be right after a port is gone.
        supervisor.remove_port(&lan, &"in".parse().unwrap()).unwrap();
        let report = account(supervisor, Some("lan"));
        check_rest(&report);
        assert_eq!(numbers(&report, "switch lan"), [300, 60, 320, 40, 0, 0, 0, 0]);
        let shown: Vec<String> = report.places.iter().map(|row| row.place.to_string()).collect();
        assert_eq!(shown, ["port lan/fw.0", "port lan/other", "switch lan"]);
    });
}

/// While packets pass, each row differs by what moved during the reading at most.
#[test]
fn under_load_the_accounts_differ_by_what_moved() {
    in_each(|supervisor, sandbox| {
        supervisor.create_switch(CreateSwitch::new(switch("lan"))).unwrap();
        let source =
            "RatedSource(RATE 50000, DATA \\<0200000000090200000000010800>, LIMIT -1) -> ToDevice(0);
                      RatedSource(RATE 20000, LIMIT -1) -> Queue(50) -> Unqueue -> Discard;";
        let middle =
            "FromDevice(0) -> t :: Tee -> ToDevice(1); t[1] -> Queue(100) -> RatedUnqueue(1000) -> Discard;";
        let mac = |mut definition: CreateBox| {
            definition.ports[0].mac = Some(MacAddr::new([2, 0, 0, 0, 0, 9]));
            definition
        };
        supervisor
            .create_box(make(sandbox, "sink", "FromDevice(0) -> c :: Counter -> Discard;", &["pipe:a"]))
            .unwrap();
        supervisor.create_box(mac(make(sandbox, "middle", middle, &["lan", "pipe:a"]))).unwrap();
        supervisor.create_box(make(sandbox, "source", source, &["lan"])).unwrap();
        until("packets pass", || read(supervisor, "sink/c.count") > 1000);
        let mut moved = BTreeMap::new();
        for reading in 0..50 {
            for row in account(supervisor, None).places {
                // A box that does not answer in time is reported without its word.
                let Some(difference) = row.difference else { continue };
                assert!(difference.unsigned_abs() <= row.moved, "{sandbox:?}, {reading}: {row:#?}");
                *moved.entry(row.place.to_string()).or_insert(0) += row.moved;
            }
        }
        for place in ["switch lan", "ring to middle:0", "ring from source:0", "box middle", "pipe a"] {
            assert!(moved[place] > 0, "{sandbox:?}: nothing moved at {place}: {moved:?}");
        }
        // A box that is killed under load: what its rings and its queue held has a row of its own.
        supervisor.kill_box(&name("middle")).unwrap();
        until("it runs again", || {
            account(supervisor, Some("middle")).places.iter().any(|row| {
                row.place.to_string() == "box middle" && row.incoming.is_some_and(|count| count > 0)
            })
        });
        let report = account(supervisor, Some("box/middle"));
        let ended = losses(&report, "ended middle");
        assert!(ended["in_ended_box"] > 0, "{sandbox:?}: {report:#?}");
    });
}

/// The packets in the rings and inside a box when it ends have a row of their own, which is exact if the box had reported
/// everything before.
#[test]
fn packets_lost_with_a_box_have_a_row() {
    in_each(|supervisor, sandbox| {
        let text = "FromDevice(0) -> q :: Queue(1000) -> Idle; FromDevice(1) -> c :: Counter -> Discard;
                    n :: Idle -> ToDevice(2);";
        let source = "RatedSource(RATE 20000, LIMIT 150, DATA \\<000000000000000000000001080000000000>) -> ToDevice(0);
                      RatedSource(RATE 20000, LIMIT 70, DATA \\<000000000000000000000001080000000000>) -> ToDevice(1);
                      RatedSource(RATE 20000, LIMIT 30, DATA \\<000000000000000000000001080000000000>) -> ToDevice(2);";
        let pipes = ["pipe:a", "pipe:b", "pipe:c"];
        let to = CreateBox { restart: Restart::Never, ..make(sandbox, "to", text, &pipes) };
        supervisor.create_box(to).unwrap();
        supervisor.create_box(make(sandbox, "from", source, &pipes)).unwrap();
        let settled = || {
            let report = account(supervisor, Some("to"));
            let reported = numbers(&report, "box to") == [220, 0, 0, 0, 70, 0, 0, 150];
            reported && numbers(&report, "ring to to:2") == [30, 0, 0, 0, 0, 0, 0, 30]
        };
        until("all packets have come", settled);
        check_rest(&account(supervisor, None));
        supervisor.kill_box(&name("to")).unwrap();
        until("it is gone", || state(supervisor, "to") == api::BoxState::Crashed);
        let report = account(supervisor, None);
        check_rest(&report);
        assert_eq!(numbers(&report, "ended to"), [250, 0, 0, 180, 70, 0, 0, 0], "{sandbox:?}");
        let lost = BTreeMap::from([("box_ended".into(), 30), ("in_ended_box".into(), 150)]);
        assert_eq!(losses(&report, "ended to"), lost);
        assert!(!report.places.iter().any(|row| row.place.to_string() == "box to"));
        assert!(!report.places.iter().any(|row| row.estimated));
        // A new run begins a new account.
        supervisor.start_box(&name("to")).unwrap();
        let report = account(supervisor, Some("to"));
        check_rest(&report);
        assert_eq!(numbers(&report, "box to"), [0; 8]);
        assert_eq!(numbers(&report, "ended to")[0], 250);
    });
}

/// What a box did after it was last asked is known when it has ended: exactly if it had come to rest, and otherwise up to
/// what passed in its last turn.
#[test]
fn an_ended_box_accounts_up_to_its_last_turn() {
    in_each(|supervisor, sandbox| {
        let text = "FromDevice(0) -> c :: Counter -> f :: IPClassifier(udp, -) -> Discard;
                    f[1] -> Paint(1) -> CheckIPHeader -> Discard; FromDevice(1) -> d :: Counter -> ToDevice(1);";
        let pipes = ["pipe:a", "pipe:b"];
        let to = CreateBox { restart: Restart::Never, ..make(sandbox, "to", text, &pipes) };
        supervisor.create_box(to.clone()).unwrap();
        account(supervisor, Some("to"));
        let source = "RatedSource(RATE 20000, LIMIT 150, DATA \\<000000000000000000000001080000000000>) -> ToDevice(0);";
        supervisor.create_box(make(sandbox, "from", source, &pipes)).unwrap();
        // This does not make the box report its account.
        until("all packets have come", || read(supervisor, "to/c.count") == 150);
        supervisor.kill_box(&name("to")).unwrap();
        until("it is gone", || state(supervisor, "to") == api::BoxState::Crashed);
        let report = account(supervisor, Some("to"));
        check_rest(&report);
        assert_eq!(numbers(&report, "ended to"), [150, 0, 0, 150, 0, 0, 0, 0], "{sandbox:?}");
        supervisor.remove_box(&name("from")).unwrap();
        supervisor.remove_box(&name("to")).unwrap();
        // Under load, and several times.
        let source = "InfiniteSource(LENGTH 60) -> ToDevice(0); InfiniteSource(LENGTH 60) -> ToDevice(1);
                      FromDevice(1) -> Discard;";
        supervisor.create_box(CreateBox { restart: Restart::OnFailure, ..to }).unwrap();
        supervisor.create_box(make(sandbox, "from", source, &pipes)).unwrap();
        for round in 1..=5 {
            let count = || {
                let read = supervisor.read(&handler("to/d.count"), b"");
                read.ok().and_then(|read| read.value.text().trim().parse::<u64>().ok()).unwrap_or_default()
            };
            until("packets pass", || count() > 10_000);
            supervisor.kill_box(&name("to")).unwrap();
            let report = account(supervisor, Some("to"));
            let row = report.places.iter().find(|row| row.place.to_string() == "ended to").unwrap();
            let (difference, moved) = (row.difference.unwrap().unsigned_abs(), row.moved);
            assert!(difference <= moved, "{sandbox:?}, round {round}: {row:#?}");
            assert!(!row.estimated && moved < row.incoming.unwrap(), "{row:#?}");
        }
    });
}

/// The examples, with real and random frames at their ports: every row is right once nothing passes any more.
#[test]
fn the_accounts_of_the_examples_are_right() {
    let supervisor = Supervisor::start(&support::settings_of(image::CLICKBOX, "clickbox", 2)).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (folder, mut random) = (Folder::new("account-examples"), random::Random::new(7));
    let noise = folder.file("noise.pcap");
    let length = |random: &mut random::Random| (random.next() % 200) as usize;
    let frames: Vec<Vec<u8>> =
        (0..200).map(|_| (0..length(&mut random)).map(|_| random.next() as u8).collect()).collect();
    write_capture(&noise, &frames);
    let mix = root.join("testdata/mix.pcap").canonicalize().unwrap();
    let lan = switch("lan");
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "click") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        supervisor.create_switch(CreateSwitch::new(lan.clone())).unwrap();
        let definition = make(Sandbox::Process, "example", &text, &["lan", "-", "lan"]);
        // Some read a capture, which a box does not have.
        if supervisor.create_box(definition).is_ok() {
            for (number, path) in [&mix, &noise].into_iter().enumerate() {
                let read = Some(path.display().to_string());
                let read = PortDriver::Pcap { read, write: None, repeat: 1, rate: Some(20_000) };
                supervisor.add_port(&lan, &port(&format!("in{number}"), read)).unwrap();
            }
            let (mut before, mut report) = (Vec::new(), account(&supervisor, None));
            until("everything has passed", || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                before = std::mem::replace(&mut report, account(&supervisor, None)).places;
                // What a box has not answered for yet has no number. A source without an end never rests; its rows
                // differ by what moved.
                let is_complete = report.places.iter().all(|row| row.difference.is_some());
                let never_rests = text.contains("InfiniteSource") || text.contains("RatedSource");
                is_complete && (never_rests || before == report.places)
            });
            for row in &report.places {
                let difference = row.difference;
                let difference = difference.unwrap_or_else(|| panic!("{}: {row:#?}", path.display()));
                let difference = difference.unsigned_abs();
                assert!(difference <= row.moved, "{}: {row:#?}", path.display());
            }
            count += 1;
            supervisor.remove_box(&name("example")).unwrap();
        }
        supervisor.remove_switch(&lan).unwrap();
    }
    assert!(count >= MIN_EXAMPLES, "only {count} examples run in a box");
}

#[test]
fn accounts_are_asked_for_by_name() {
    let supervisor = Supervisor::start(&support::settings_of(image::CLICKBOX, "clickbox", 2)).unwrap();
    supervisor.create_switch(CreateSwitch::new(switch("fw"))).unwrap();
    supervisor.create_switch(CreateSwitch::new(switch("lan"))).unwrap();
    let text = "FromDevice(0) -> Discard; FromDevice(1) -> Discard;";
    let mut definition = make(Sandbox::Process, "fw", text, &["lan"]);
    definition.ports.push(PortRequest::default());
    supervisor.create_box(definition).unwrap();
    let places = |subject: &str| {
        let query = AccountQuery { subject: Some(subject.into()), elements: false };
        let report = supervisor.account(&query)?;
        Ok::<_, daemon::OperationError>(
            report.places.iter().map(|row| row.place.to_string()).collect::<Vec<_>>(),
        )
    };
    assert_eq!(places("switch/fw").unwrap(), ["switch fw"]);
    assert_eq!(places("lan").unwrap(), ["port lan/fw.0", "switch lan"]);
    assert_eq!(
        places("box/fw").unwrap(),
        [
            "port lan/fw.0",
            "unattached fw:1",
            "ring to fw:0",
            "ring from fw:0",
            "ring to fw:1",
            "ring from fw:1",
            "box fw"
        ]
    );
    let codes = ["fw", "none", "box/none", "switch/none", "stack/none", "daemon"];
    let codes = codes.map(|subject| places(subject).unwrap_err().code());
    let missing = ErrorCode::NotFound;
    assert_eq!(codes, [ErrorCode::Invalid, missing, missing, missing, missing, ErrorCode::Invalid]);
    let message = places("fw").unwrap_err().to_string();
    assert!(message.contains("box/fw or switch/fw"), "{message}");
    let kind = serde_json::to_value(AccountPlace::Box { name: name("fw") }).unwrap();
    assert_eq!(kind, serde_json::json!({ "kind": "box", "name": "fw" }));
}

/// The rows of a report that belong to no box alone, as they are shown.
fn network(report: &AccountReport) -> Vec<String> {
    let places = report.places.iter().map(|row| row.place.to_string());
    places
        .filter(|place| ["switch", "proxy", "port", "link"].iter().any(|kind| place.starts_with(kind)))
        .collect()
}

/// Boxes of two owners at a switch that one shares: the link between the two fabrics has a row, and so has the proxy. Both
/// equal what the boxes have sent and received.
#[test]
fn links_between_fabrics_have_rows() {
    let fabrics = ThreadFabric::new(image::CLICKBOX, 1);
    let settings = Settings { fabric_per_owner: true, ..Settings::new(fabrics.clone(), "clickbox") };
    let supervisor = Supervisor::start(&settings).unwrap();
    let of = |owner: &str, name: &str, peer: u8, limit: i64| {
        let text = format!(
            "FromDevice(0) -> in :: Counter -> Discard;
             s :: RatedSource(DATA \\<02000000000{peer} 020000000009 0800>, RATE 20000, LIMIT {limit}) -> out :: Counter
             -> ToDevice(0);"
        );
        let mut definition = make(Sandbox::Process, name, &text, &["lan"]);
        definition.ports[0].mac = Some(MacAddr::new([2, 0, 0, 0, 0, 3 - peer]));
        definition.ring = "1024".parse().unwrap();
        CreateBox { owner: owner.parse().unwrap(), ..definition }
    };
    let shared_with = ["bob".parse().unwrap()].into();
    let lan =
        CreateSwitch { owner: "alice".parse().unwrap(), shared_with, ..CreateSwitch::new(switch("lan")) };
    supervisor.create_switch(lan).unwrap();
    supervisor.create_box(of("alice", "hers", 2, 300)).unwrap();
    supervisor.create_box(of("bob", "his", 1, 500)).unwrap();
    let books = || {
        ["hers/out.count", "hers/in.count", "his/out.count", "his/in.count"]
            .map(|path| read(&supervisor, path))
    };
    // Her first frames may come before his box is there.
    until("all frames have passed", || {
        let [out_a, in_a, out_b, _] = books();
        (out_a, in_a, out_b) == (300, 500, 500)
    });
    let report = account(&supervisor, None);
    check_rest(&report);
    let shown = [
        "port lan/from-bob",
        "port lan/hers.0",
        "switch lan",
        "port lan@bob/his.0",
        "port lan@bob/uplink",
        "proxy lan@bob",
    ];
    let link = "link lan/from-bob - lan@bob";
    assert_eq!(network(&report), [&shown[..], &[link]].concat());
    let [_, _, _, received] = books();
    assert_eq!(numbers(&report, link), [received + 500, 0, received + 500, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(&report, "ring to his:0")[..3], [received, 0, received]);
    assert_eq!(numbers(&report, "port lan@bob/his.0"), [received + 500, 0, received + 500, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(&report, "proxy lan@bob")[0], received + 500);
    // Who asks for the switch sees the link and the proxy, and so does the owner of the boxes there.
    assert_eq!(network(&account(&supervisor, Some("lan"))), [&shown[..], &[link]].concat());
    let bob = supervisor.for_caller(Caller::User(Arc::new(User {
        name: "bob".parse().unwrap(),
        owner: "bob".parse().unwrap(),
        rights: Right::OF_TOKENS.into(),
        quota: Quota::default(),
    })));
    assert_eq!(network(&account(&bob, None)), [&shown[3..], &[link]].concat());

    // Under load, each row differs by what moved at most.
    for name in ["hers", "his"] {
        supervisor.write(&handler(&format!("{name}/s.limit")), b"-1").unwrap();
        supervisor.write(&handler(&format!("{name}/s.active")), b"true").unwrap();
    }
    let mut moved = 0;
    for _ in 0..50 {
        for row in account(&supervisor, None).places {
            let Some(difference) = row.difference else { continue };
            assert!(difference.unsigned_abs() <= row.moved, "{row:#?}");
            moved += if row.place.to_string() == link { row.moved } else { 0 };
        }
    }
    assert!(moved > 0);
    // The fabric of one owner ends. What is lost at the link is counted, and the row starts at zero.
    let [before, ..] = numbers(&account(&supervisor, None), link);
    fabrics.kill(2);
    until("the link is back", || {
        let report = account(&supervisor, Some("lan"));
        let row = report.places.iter().find(|row| row.place.to_string() == link);
        row.is_some_and(|row| row.incoming.is_some_and(|incoming| incoming > 0 && incoming < before))
    });
    supervisor.write(&handler("hers/s.active"), b"false").unwrap();
    // His box starts again, as in its definition.
    until("his box has sent all", || {
        let sent = supervisor.read(&handler("his/out.count"), b"");
        sent.is_ok_and(|read| read.value.text().trim() == "500")
    });
    until("nothing passes any more", || {
        account(&supervisor, Some("lan")).places.iter().all(|row| row.moved == 0)
    });
    let report = account(&supervisor, Some("lan"));
    check_rest(&report);
    assert!(numbers(&report, link)[0] > 0);
    // Losses at both ends of the link show at the switch.
    let detail = supervisor.show_switch(&switch("lan")).unwrap();
    let to_bob = detail.port_list.iter().find(|port| port.name.to_string() == "from-bob").unwrap();
    for reason in ["down", "full"] {
        let lost = |place: &str| losses(&report, place).get(reason).copied().unwrap_or(0);
        let both = lost("port lan/from-bob") + lost("port lan@bob/uplink");
        assert_eq!(to_bob.drops.get(reason).copied().unwrap_or(0), both, "{reason}");
    }
}
