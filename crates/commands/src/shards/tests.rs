//! Tests of configurations in one and in several shards.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::{LinkType, Parser, PcapEncoder};
use router::{Options, RunEnd};

use super::{Engines, Plan};
use crate::configuration;

/// The longest time that a run may take.
const LIMIT: Duration = Duration::from_secs(60);
const SERVER: [u8; 4] = [9, 9, 9, 9];
const PUBLIC: [u8; 4] = [198, 51, 100, 1];

/// An end of a flow: address and port.
type End = ([u8; 4], u16);

/// A folder for the files of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("clickbox-shards-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn build(text: &str, shards: u32) -> Result<Engines, String> {
    let is_class = |name: &str| configuration::registry().contains(name);
    let compiled = click_lang::compile(text, &click_lang::Options::new("config", &is_class));
    assert!(!compiled.has_errors(), "{:?}", compiled.diagnostics);
    let options = Options { seed: Some(1), source: text.into(), ..Options::default() };
    let plan = Plan { graph: compiled.graph, options, captures: Vec::new() };
    let built = Engines::build(shards, &plan).expect("threads");
    built
        .map(|(engines, _)| engines)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<String>>().join("\n"))
}

/// Runs a configuration to its end; returns the values of handlers.
fn run(text: &str, shards: u32, handlers: &[&str]) -> Vec<String> {
    let mut engines = build(text, shards).expect("a sound configuration");
    engines.start();
    assert_eq!(engines.wait(LIMIT), Some(RunEnd::Stopped));
    // Reasons of losses come in the order in which they occur.
    let sorted = |value: String| {
        let mut lines: Vec<&str> = value.split_inclusive('\n').collect();
        lines.sort_unstable();
        lines.concat()
    };
    let values = handlers.iter().map(|path| sorted(engines.read(path).expect("a handler"))).collect();
    let snapshot = engines.snapshot();
    assert_eq!(snapshot.account.inflow(), snapshot.account.outflow(), "the books of all shards");
    assert_eq!(engines.finish(), Vec::<String>::new());
    values
}

/// A UDP packet in an Ethernet frame.
fn frame(source: End, destination: End, number: u32) -> Vec<u8> {
    let mut frame = [&[2; 12][..], &[8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0]].concat();
    frame.extend(source.0.into_iter().chain(destination.0));
    let checksum = packet::checksum::internet(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(source.1.to_be_bytes().into_iter().chain(destination.1.to_be_bytes()));
    frame.extend([0, 12, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame
}

/// The addresses, ports and the number of such a packet.
fn fields(ip: &[u8]) -> (End, End, u32) {
    let address = |at: usize| *ip[at..].first_chunk().expect("an address");
    let port = |at: usize| u16::from_be_bytes(*ip[at..].first_chunk().expect("a port"));
    let number = u32::from_be_bytes(*ip[28..].first_chunk().expect("a number"));
    ((address(12), port(20)), (address(16), port(22)), number)
}

fn write_capture(path: &str, frames: &[Vec<u8>]) {
    let encoder = PcapEncoder::new(LinkType::ETHERNET);
    let mut bytes = encoder.file_header().to_vec();
    for (index, frame) in frames.iter().enumerate() {
        encoder.record(index as i64 * 1_000, frame.len() as u32, frame, &mut bytes);
    }
    std::fs::write(path, bytes).expect("a file");
}

/// The times and packets of a capture.
fn read_capture(path: &str) -> Vec<(i64, Vec<u8>)> {
    let bytes = std::fs::read(path).expect("a capture");
    let (mut parser, mut unread) = (Parser::new(), &bytes[..]);
    std::iter::from_fn(|| parser.record(&mut unread).expect("sound"))
        .map(|record| (record.time_ns, record.bytes.to_vec()))
        .collect()
}

fn clients() -> impl Iterator<Item = End> {
    (0..400u16).map(|client| ([10, 0, client.to_be_bytes()[0], client.to_be_bytes()[1]], 5_000))
}

#[test]
fn counters_add_up_and_captures_are_joined_in_order() {
    let folder = Folder::new("counters");
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mix.pcap");
    let config = |shards: u32| {
        let out = folder.path(&format!("out{shards}.pcap"));
        format!(
            "FromDump({}, STOP true) -> k :: Classifier(12/0800, -) -> Strip(14) -> check :: CheckIPHeader(VERBOSE false)
                -> Unstrip(14) -> q :: Queue(100000) -> Unqueue -> c :: Counter -> ToDump({out});
             k[1] -> other :: Counter -> Discard;",
            trace.display()
        )
    };
    let handlers = [
        "c.count",
        "c.byte_count",
        "other.count",
        "k.ocounts",
        "check.drops",
        "check.losses",
        "q.capacity",
        "q.drops",
        "k.config",
        "discards",
    ];
    let alone = run(&config(1), 1, &handlers);
    let packets = read_capture(&folder.path("out1.pcap"));
    assert_eq!(alone[0], packets.len().to_string());
    for shards in [2, 3] {
        assert_eq!(run(&config(shards), shards, &handlers), alone);
        // The times of this trace differ, so that the order is the same.
        assert!(read_capture(&folder.path(&format!("out{shards}.pcap"))) == packets, "{shards} shards");
        let parts = std::fs::read_dir(&folder.0).expect("a folder").filter_map(Result::ok);
        assert_eq!(parts.filter(|entry| entry.file_name().to_string_lossy().contains("shard")).count(), 0);
    }
    let values = run(&config(2), 2, &["shard0/c.count", "shard1/c.count", "shard1/account", "waiting"]);
    assert!(values[2].contains(&format!("delivered {}\n", values[1])), "{}", values[2]);
    assert_eq!(values[3], "");
    let values = &values[..2];
    let counts = values.iter().map(|value| value.parse::<usize>().expect("a count"));
    assert_eq!(counts.sum::<usize>(), packets.len());
}

#[test]
fn what_needs_one_shard_is_refused_by_name() {
    let refused = |text: &str, shards: u32, cause: &str| {
        let error = build(text, shards).err().unwrap_or_default();
        assert!(error.contains(cause), "{text}: {error}");
        let other = build(text, 1).err().filter(|_| !text.contains("(-)"));
        assert_eq!(other, None, "{text} runs in one shard");
    };
    let behind = |element: &str| format!("x :: FromDump(/dev/null, ACTIVE false) -> {element} -> Discard");
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mix.pcap").display().to_string();
    let behind = |element: &str| behind(element).replace("/dev/null", &trace);
    for (element, cause) in [
        // It maps a client to one address, whatever the client talks to.
        (
            "Strip(14) -> CheckIPHeader -> a :: IPAddrRewriter(pattern 1.0.0.1-1.0.0.9 - 0 0)",
            "‘a :: IPAddrRewriter’ can't run",
        ),
        ("a :: RoundRobinSwitch", "‘a :: RoundRobinSwitch’ can't run in 2 shards"),
        ("a :: Script(TYPE PACKET)", "‘a :: Script’ can't run in 2 shards"),
        ("a :: Counter(COUNT_CALL 5 stop)", "needs one shard"),
        ("Queue(1) -> Unqueue", "CAPACITY 1 cannot be divided among 2 shards"),
        ("Queue -> Unqueue(LIMIT 5)", "LIMIT needs one shard"),
        ("Queue -> Shaper(1) -> Unqueue", "RATE 1 cannot be divided among 2 shards"),
        (
            "Strip(14) -> CheckIPHeader -> IPEncap(4, 1.0.0.1, 2.0.0.2) -> a :: AggregateIPFlows",
            "‘a :: AggregateIPFlows’ can't run in 2 shards",
        ),
        (
            "Strip(14) -> CheckIPHeader -> a :: AggregateIPFlows(TRACEINFO /dev/zero)",
            "TRACEINFO needs one shard",
        ),
        (
            "Strip(14) -> CheckIPHeader -> IPRewriter(pattern 1.0.0.1 - - - 0 0)",
            "several shards need a pattern with a range",
        ),
        ("Strip(14) -> CheckIPHeader -> IPRewriter(pattern 1.0.0.1 5-7 - - 0 0)", "a range of at least 4"),
        ("Strip(14) -> CheckIPHeader -> IPRewriter(pattern - - 1.0.0.1 80 0 0)", "sets the destination"),
        (
            "Strip(14) -> CheckIPHeader -> r :: IPReassembler -> IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0)",
            "‘r :: IPReassembler’ can't run in 2 shards",
        ),
        (
            "Strip(14) -> CheckIPHeader -> IPRewriter(pattern 1.0.0.1 1024-2047 - - 0 0) -> IPRewriter(pattern 1.0.0.1 2000-3000 - - 0 0)",
            "ranges that do not overlap",
        ),
        ("Discard; RandomSeed(5); Idle", "RandomSeed’ can't run in 2 shards"),
    ] {
        refused(&behind(element), 2, cause);
    }
    refused(&format!("FromDump({trace}, TIMING true) -> Discard"), 2, "needs one shard");
    refused("FromDump(-) -> Discard", 2, "can't read standard input");
}

#[test]
fn generators_work_in_the_first_shard() {
    let text = "InfiniteSource(LIMIT 10, STOP true) -> c :: Counter -> Discard";
    let mut engines = build(text, 2).expect("sound");
    engines.start();
    // The second shard has nothing to do.
    assert_eq!(engines.wait(LIMIT), Some(RunEnd::Stopped));
    let values =
        ["c.count", "shard0/c.count", "shard1/c.count"].map(|path| engines.read(path).expect("a count"));
    assert_eq!(values, ["10", "10", "0"]);
    engines.finish();
}

/// A client of a control socket.
struct Control(BufReader<UnixStream>);

impl Control {
    fn connect(path: &str) -> Control {
        let mut control = Control(BufReader::new(UnixStream::connect(path).expect("a control socket")));
        assert!(control.line().starts_with("Click::ControlSocket"));
        control
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        line.trim_end().to_string()
    }

    fn send(&mut self, text: &str) -> String {
        self.0.get_mut().write_all(text.as_bytes()).expect("sent");
        let mut line = self.line();
        let mut lines = line.clone();
        while line.as_bytes().get(3) == Some(&b'-') {
            line = self.line();
            lines = format!("{lines}\n{line}");
        }
        lines
    }

    fn read(&mut self, path: &str) -> String {
        assert_eq!(self.send(&format!("READ {path}\n")), format!("200 Read handler '{path}' OK"));
        let length = self.line();
        let length = length.strip_prefix("DATA ").and_then(|length| length.parse().ok()).expect("a length");
        let mut data = vec![0; length];
        self.0.read_exact(&mut data).expect("data");
        String::from_utf8(data).expect("text")
    }

    fn write(&mut self, path: &str, value: &str) -> String {
        self.send(&format!("WRITEDATA {path} {}\n{value}", value.len()))
    }

    /// Reads until a handler has this value.
    fn wait_for(&mut self, path: &str, value: &str) {
        for _ in 0..100_000 {
            if self.read(path).trim_end() == value {
                return;
            }
        }
        panic!("{path} is {}", self.read(path));
    }
}

/// What the translator under test is: its input, and where packets of both sides go.
fn translator(folder: &Folder, sources: &str) -> String {
    format!(
        "ControlSocket(unix, {}, RETRIES 1, RETRY_WARNINGS false);
         rw :: IPRewriter(pattern 198.51.100.1 1024-65535# - - 0 1, drop);
         {sources}
         rw[0] -> outside :: ToDump({}, ENCAP IP);
         rw[1] -> inside :: ToDump({}, ENCAP IP);",
        folder.path("control"),
        folder.path("outside.pcap"),
        folder.path("inside.pcap"),
    )
}

#[test]
fn a_translator_gives_no_tuple_twice_and_replies_find_their_shard() {
    let folder = Folder::new("translator");
    let path = |name: &str| folder.path(name);
    let requests: Vec<_> = clients().map(|client| frame(client, (SERVER, 53), 0)).collect();
    write_capture(&path("requests.pcap"), &requests);
    let source = |name: &str, port: u32| {
        format!(
            "{name} :: FromDump({}) -> Strip(14) -> CheckIPHeader -> [{port}] rw;",
            path(&format!("{name}.pcap"))
        )
    };
    let both = format!("{} Idle -> [1] rw;", source("requests", 0));
    let mut engines = build(&translator(&folder, &both), 2).expect("sound");
    engines.start();
    let mut control = Control::connect(&path("control"));
    control.wait_for("outside.count", "400");
    let shares = ["shard0/outside.count", "shard1/outside.count"].map(|path| control.read(path));
    assert!(
        shares.iter().all(|share| (100..300).contains(&share.parse::<u32>().expect("a count"))),
        "{shares:?}"
    );
    assert_eq!(control.read("rw.patterns"), "198.51.100.1 1024-65535 - - [400]\n<drop>\n");
    assert_eq!(control.read("rw.table_size"), "400");
    let table = control.read("rw.udp_table");
    assert_eq!(table.lines().count(), 800, "the flows of both shards, a line for each direction");
    // The external tuples: as many as flows.
    let external: BTreeSet<String> = table
        .lines()
        .filter_map(|line| line.strip_prefix("(10.0.")?.split(" => ").nth(1)?.split(" [").next())
        .map(str::to_string)
        .collect();
    assert_eq!(external.len(), 400, "no external tuple is used twice");
    // Replies come in a new configuration, which takes over in all shards at once.
    let ports: BTreeMap<u16, u32> = external
        .iter()
        .enumerate()
        .map(|(number, tuple)| {
            let port = tuple.split(", ").nth(1).and_then(|port| port.parse().ok()).expect("a port");
            (port, number as u32)
        })
        .collect();
    assert_eq!(ports.len(), 400);
    let replies: Vec<_> =
        ports.iter().map(|(port, number)| frame((SERVER, 53), (PUBLIC, *port), *number)).collect();
    write_capture(&path("replies.pcap"), &replies);
    let wrong = control.write("hotconfig", &translator(&folder, "Nothing -> [0] rw; Idle -> [1] rw;"));
    assert!(wrong.starts_with("520-"), "{wrong}");
    let other_range = translator(&folder, &both).replace("1024", "2048");
    let refused = control.write("hotconfig", &other_range);
    assert!(refused.contains("can't change while several shards run"), "{refused}");
    let next = translator(&folder, &format!("{} {}", source("requests", 0), source("replies", 1)));
    let accepted = control.write("hotconfig", &next);
    assert!(accepted.starts_with("200"), "{accepted}");
    let mut control = Control::connect(&path("control"));
    control.wait_for("inside.count", "400");
    assert_eq!(control.read("rw.losses"), "", "each reply found its flow");
    assert_eq!(
        control.write("shard1/rw.clear", ""),
        "530 Write to all shards: leave 'shard1/' out of 'shard1/rw.clear'"
    );
    assert!(control.write("rw.clear", "").starts_with("200"));
    assert_eq!(control.read("rw.table_size"), "0", "writes go to all shards");
    assert!(control.write("stop", "").starts_with("200"));
    assert_eq!(engines.wait(LIMIT), Some(RunEnd::Stopped));
    assert_eq!(engines.finish(), Vec::<String>::new());
    let inside = read_capture(&path("inside.pcap"));
    let receivers: BTreeSet<_> = inside.iter().map(|(_, ip)| fields(ip).1).collect();
    assert_eq!(receivers, clients().collect(), "each client got the reply to its request");
    let outside: BTreeSet<_> =
        read_capture(&path("outside.pcap")).iter().map(|(_, ip)| fields(ip).0).collect();
    assert_eq!(outside.len(), 400);
    assert!(outside.iter().all(|(address, _)| Ipv4Addr::from(*address) == Ipv4Addr::from(PUBLIC)));
}
