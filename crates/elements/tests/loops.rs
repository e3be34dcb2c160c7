//! Loops, as in an IP router whose ICMP errors go back to its route table: batches change nothing, and are large.

mod support;

use std::rc::Rc;

use capture::{LinkType, PcapEncoder};
use random::Random;
use support::{BATCHES, Memory, run_with, state};

/// An IP router with `ports` interfaces. Each writes to another file, and reports errors about packets that live no longer, are too
/// long, have a bad option, or leave by the interface where they arrived. Some packets, and some errors, have no route.
fn ip_router(table: &str, ports: usize, way: &str, end: &str) -> String {
    let mut text = format!(
        "FromDump(testdata/mix.pcap, STOP true) -> c :: Classifier(12/0800, -) -> Strip(14) -> CheckIPHeader -> h :: HashSwitch(4, 8)
         -> StoreData(8, \\<01>) -> SetIPChecksum -> paint :: Paint(1) -> dst :: GetIPAddress(16) -> rt :: {table}(10.0.0.0/9 0, 10.128.0.0/9 1, 192.168.0.0/16 1, 172.16.0.0/12 2, 8.0.0.0/7 2);
         h[1] -> StoreData(6, \\<40>) -> SetIPChecksum -> Paint(2) -> dst; h[2] -> StoreData(16, \\<ac10>) -> SetIPChecksum -> paint;
         h[3] -> StoreData(16, \\<ac1000ff>) -> SetIPChecksum -> dst; h[4] -> StoreData(16, \\<c0a8>) -> SetIPChecksum -> paint; h[5] -> paint; h[6] -> paint; h[7] -> paint;
         c[1] -> Discard;\n"
    );
    for port in 0..ports {
        text += &format!("to{port} :: {} ToDump(out{port});\n", end.replace('#', &port.to_string()));
    }
    for i in 0..3 {
        let port = i % ports;
        let back = |error: &str| format!("ICMPError(10.{}.0.{i}, {error}) -> rt;\n", 100 + 50 * i);
        text += &format!(
            "rt[{i}] -> DropBroadcasts -> cp{i} :: PaintTee({i}) -> gio{i} :: IPGWOptions(10.0.0.{i}) -> FixIPSrc(10.0.0.{i}) -> dt{i} :: DecIPTTL
             -> {way} fr{i} :: IPFragmenter(200) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:1:{i}) -> Counter -> to{port};\n"
        );
        text += &format!("cp{i}[1] -> {}", back("redirect, host"));
        text += &format!("gio{i}[1] -> {}", back("parameterproblem"));
        text += &format!("dt{i}[1] -> {}", back("timeexceeded"));
        text += &format!("fr{i}[1] -> {}", back("unreachable, needfrag"));
    }
    text
}

/// What handlers, files and the log show after a run, and the batches and packets of counters.
type Outcome = (Vec<(String, String)>, Vec<(String, String)>, String, Vec<(u64, u64)>);

fn outcome(text: &str, batch: usize) -> Outcome {
    outcome_with(text, batch, &[])
}

/// The outcome with a file `capture`.
fn outcome_with(text: &str, batch: usize, capture: &[u8]) -> Outcome {
    let memory = Rc::new(Memory::default());
    memory.put("capture", capture);
    let run = run_with(text, batch, memory.clone()).expect(text);
    let number = |path: String| -> Option<u64> { run.router.read(&path, "").ok()?.trim().parse().ok() };
    let sizes = run.router.read("list", "").expect("a list");
    let sizes = sizes
        .lines()
        .filter_map(|name| Some((number(format!("{name}.batches"))?, number(format!("{name}.count"))?)));
    let sizes = sizes.collect();
    let shown = state(&run);
    drop(run);
    (shown, memory.files(), memory.console(), sizes)
}

#[test]
fn a_router_with_a_loop_of_errors_gives_the_same_with_batches() {
    for table in ["StaticIPLookup", "RadixIPLookup", "LinearIPLookup", "DirectIPLookup", "RangeIPLookup"] {
        for (ports, way, end) in [
            (3, "", ""),
            (1, "", ""),
            (2, "Queue(50) -> Unqueue ->", ""),
            (3, "Null ->", "Queue(3000) -> Unqueue(7) ->"),
            (3, "Print(x, 4) ->", ""),
        ] {
            let text = ip_router(table, ports, way, end);
            let single = outcome(&text, 1);
            assert!(
                single.2.contains("no route for")
                    == ["Static", "Radix", "Linear"].iter().any(|name| table.starts_with(name)),
                "{text}\n{}",
                single.2
            );
            let errors = single.0.iter().filter(|(name, count)| {
                name.starts_with("ICMPError") && name.ends_with(".ocounts") && count.trim() != "0"
            });
            assert!(errors.count() > 2, "{text}\n{:?}", single.0);
            for batch in BATCHES {
                let run = outcome(&text, batch);
                let (batches, packets) =
                    run.3.iter().fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
                let has_batches = batch > 1 && !way.starts_with("Print");
                assert_eq!(
                    batches * 10 < packets * 9,
                    has_batches,
                    "{packets} packets in {batches} batches: {text}"
                );
                assert_eq!(run.0, single.0, "batches of {batch}: {text}");
                assert_eq!(run.2, single.2, "batches of {batch}: {text}");
                assert!(run.1 == single.1, "batches of {batch}: {text}");
            }
        }
    }
}

/// An element that depends on order sees a packet that returns before the packets behind it.
#[test]
fn packets_return_before_those_behind_them() {
    for text in [
        "FromDump(testdata/mix.pcap, STOP true) -> s :: RoundRobinSwitch; s[0] -> Null -> s; s[1] -> ToDump(out);",
        // Headers are numbered in their order.
        "FromDump(testdata/mix.pcap, STOP true) -> e :: UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2) -> k :: HashSwitch(30, 3) -> l :: CheckLength(300)
         -> e; l[1] -> to :: ToDump(out); k[1] -> to; k[2] -> e;",
    ] {
        let single = outcome(text, 1);
        assert!(single.1.iter().any(|(name, written)| name == "out" && written.len() > 1_000), "{text}");
        for batch in BATCHES {
            assert!(outcome(text, batch) == single, "batches of {batch}: {text}");
        }
    }
}

/// The table logs the first packets without a route, in their order.
#[test]
fn errors_without_a_route_are_logged_in_order() {
    let text = "FromDump(capture, STOP true) -> SetIPChecksum -> CheckIPHeader -> rt :: TABLE(10.0.0.0/8 0);
        rt[0] -> dt :: DecIPTTL -> Discard; dt[1] -> ICMPError(10.0.0.9, timeexceeded) -> rt;";
    // Packets with and without a route in turn. The former live no longer, and the errors about them have no route.
    let encoder = PcapEncoder::new(LinkType::RAW);
    let mut capture = encoder.file_header().to_vec();
    for destination in [0x0a00_0002, 0x0909_0909].into_iter().cycle().take(40) {
        let words =
            [0x4500_001c, 0x0001_0000, 0x0111_0000, 0x0101_0101, destination, 0x04d2_0035, 0x0008_0000];
        encoder.record(1, 28, &words.map(u32::to_be_bytes).concat(), &mut capture);
    }
    for (table, name) in [
        ("StaticIPLookup", "LinearIPLookup"),
        ("LinearIPLookup", "LinearIPLookup"),
        ("RadixIPLookup", "IPRouteTable"),
    ] {
        let text = text.replace("TABLE", table);
        let line = |address: &str| format!("{name}: no route for {address}\n");
        let expected: String = (0..5).map(|at| line(["1.1.1.1", "9.9.9.9"][at % 2])).collect();
        for batch in BATCHES {
            let run = outcome_with(&text, batch, &capture);
            assert_eq!(run.2, expected, "batches of {batch}: {table}");
            assert!(run.0.contains(&("rt.icounts".into(), "60\n".into())), "batches of {batch}: {:?}", run.0);
        }
    }
}

/// A configuration in which the ways from a split have random elements, side exits and ends.
fn random_ways(random: &mut Random) -> String {
    let ways = 2 + random.below(3) as usize;
    let mut pick = |most: u32| random.below(most) as usize;
    let mut text = String::from(
        "FromDump(testdata/mix.pcap, STOP true) -> c :: Classifier(12/0800, -) -> Strip(14) -> CheckIPHeader -> h :: HashSwitch(4, 6)
         -> StoreData(8, \\<01>) -> sum :: SetIPChecksum -> dst :: GetIPAddress(16) -> s; c[1] -> Discard;
         h[1] -> StoreData(6, \\<40>) -> sum; h[2] -> StoreData(16, \\<ac10>) -> sum; h[3] -> StoreData(16, \\<c0a8>) -> Paint(1) -> sum;
         h[4] -> Paint(2) -> dst; h[5] -> dst; shared :: ToDump(shared);\n",
    );
    let split = match pick(4) {
        0 => "HashSwitch(5, WAYS)".replace("WAYS", &ways.to_string()),
        1 => "RoundRobinSwitch".into(),
        table => {
            let class = ["StaticIPLookup", "DirectIPLookup"][table - 2];
            let routes =
                ["10.0.0.0/9 0", "192.168.0.0/16 1", "172.16.0.0/12 2", "10.128.0.0/9 3", "10.64.0.0/10 1"];
            let routes: Vec<_> = routes
                .iter()
                .filter(|route| route.as_bytes()[route.len() - 1] - b'0' < ways as u8)
                .copied()
                .collect();
            format!("{class}({})", routes.join(", "))
        }
    };
    let back = ["s", "Null -> s", "shared", "Discard", "Counter -> s"][pick(5)];
    text = text.replace("-> s; c[1]", &format!("-> s :: {split}; c[1]"));
    text += &format!(
        "all :: ICMPError(10.100.0.1, unreachable, needfrag) -> {back}; Idle -> all; Idle -> shared;\n"
    );
    for way in 0..ways {
        let mut line = format!("s[{way}]");
        let mut exits = Vec::new();
        for at in 0..pick(6) {
            let name = format!("e{way}_{at}");
            let (element, exit) = match pick(12) {
                0 => ("Counter".into(), None),
                1 => ("Null".into(), None),
                2 => (format!("FixIPSrc(10.0.0.{way})"), None),
                3 => ("SetIPDSCP(4) -> SetIPChecksum".into(), None),
                4 => (format!("{name} :: DecIPTTL"), Some("timeexceeded")),
                5 => (format!("{name} :: PaintTee({})", pick(3)), Some("redirect, host")),
                6 => (format!("{name} :: IPGWOptions(10.0.0.{way})"), Some("parameterproblem")),
                7 => (format!("{name} :: IPFragmenter({})", 100 + pick(900)), Some("unreachable, needfrag")),
                8 => (format!("{name} :: CheckLength({})", 60 + pick(600)), Some("sourcequench")),
                9 => (format!("{name} :: IPClassifier(tcp, -) -> {name}n :: Null"), None),
                10 => (format!("{name} :: DropBroadcasts"), None),
                _ => (format!("{name} :: Tee"), None),
            };
            line += &format!(" -> {element}");
            if element.contains("IPClassifier") {
                exits.push(format!("{name}[1] -> {name}n;"));
            }
            if let Some(error) = exit {
                let to = match pick(7) {
                    0 | 4 => "all".into(),
                    1 => "shared".into(),
                    2 => "Discard".into(),
                    3 => format!("ICMPError(10.100.0.{at}, {error}) -> shared"),
                    _ => format!("ICMPError(10.100.{way}.{at}, {error}) -> {back}"),
                };
                exits.push(format!("{name}[1] -> {to};"));
            }
        }
        let end = match pick(6) {
            0 => format!("UDPIPEncap(1.0.0.{way}, 1, 2.0.0.2, 2) -> ToDump(out{way})"),
            1 => format!("Queue(60) -> Unqueue({}) -> ToDump(out{way})", 1 + pick(9)),
            2 => "shared".into(),
            3 => "Counter -> Discard".into(),
            4 => format!("UDPIPEncap(1.0.0.{way}, 1, 2.0.0.2, 2) -> shared"),
            _ => format!("ToDump(out{way})"),
        };
        text += &format!("{line} -> {end};\n{}\n", exits.join("\n"));
    }
    text
}

#[test]
fn random_ways_give_the_same_with_batches() {
    for seed in 0..60 {
        let text = random_ways(&mut Random::new(seed));
        let single = outcome(&text, 1);
        for batch in BATCHES {
            let run = outcome(&text, batch);
            assert_eq!(run.0, single.0, "seed {seed}, batches of {batch}: {text}");
            assert!(run.1 == single.1, "seed {seed}, batches of {batch}: {text}");
        }
    }
}
