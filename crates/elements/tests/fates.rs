//! Each class declares what it does with packets apart from passing them on, and does nothing else with them.
//!
//! The examples of all classes and the corpus run here once more. Their books are checked where they run for their
//! results (`examples.rs`, `corpus.rs`); here it is checked which fates occurred.

#[path = "support/case.rs"]
mod case;
#[path = "support/probe.rs"]
mod probe;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use case::cases;
use element::{Class, ClassInfo, Fate};
use support::{Memory, books, run_graph, run_with};

/// The batch size of these runs: the results do not depend on it.
const BATCH: usize = 7;

/// Configurations for fates that occur in no example and no corpus case.
const MORE: &[&str] = &[
    "InfiniteSource(LIMIT 2) -> UDPIPEncap(1.0.0.1, 1, 1.0.0.2, 2) -> Pad(200) -> CheckIPHeader2 -> Discard",
    "FromDump(testdata/mix.pcap, END 1) -> TimedSink(1ms); Script(wait 1s, stop)",
    "InfiniteSource(LIMIT 2) -> ToDump(out)",
    "InfiniteSource(LIMIT 2) -> ToDump(full)",
    "InfiniteSource(LIMIT 2) -> ToIPSummaryDump(full, FIELDS len)",
    "InfiniteSource(LIMIT 2) -> ToIPSummaryDump(out, FIELDS len)",
    "FromIPSummaryDump(DATA \"!data ip_src\\n1.0.0.1\\n1.0.0.2\\n\", SAMPLE 0) -> Discard",
    "FromIPSummaryDump(DATA \"!data timestamp ip_src\\n0 1.0.0.1\\n9000 1.0.0.2\\n\", TIMING true) -> Discard",
    "InfiniteSource(LIMIT 2) -> NotifierQueue -> Idle",
    "InfiniteSource(LIMIT 2) -> QuickNoteQueue -> Idle",
    "InfiniteSource(LIMIT 2) -> ThreadSafeQueue -> Idle",
    "InfiniteSource(LIMIT 2) -> q :: MixedQueue -> Idle; InfiniteSource(LIMIT 3) -> [1] q;",
    "InfiniteSource(LIMIT 4) -> q :: MixedQueue(3) -> Idle; InfiniteSource(LIMIT 4) -> [1] q;",
    "InfiniteSource(LIMIT 5) -> FrontDropQueue(3) -> Idle",
    "InfiniteSource(LIMIT 2) -> Queue -> DelayUnqueue(7200s) -> Discard",
    "InfiniteSource(LIMIT 2) -> Queue -> DelayShaper(7200s) -> Unqueue -> Discard",
    "InfiniteSource(LIMIT 2) -> Queue -> l :: LinkUnqueue(7200s, 1Gbps) -> Discard; Script(wait 1s, write l.reset)",
    "InfiniteSource(LIMIT 9) -> RatedSplitter(1) -> Discard",
    "InfiniteSource(LIMIT 99) -> BandwidthRatedSplitter(80bps) -> Discard",
    "InfiniteSource(LIMIT 5) -> s :: Switch(-1) -> Discard",
    "InfiniteSource(LIMIT 5) -> StaticSwitch(-1) -> Discard",
    "InfiniteSource(LIMIT 5) -> StrideSwitch(0) -> Discard",
    "InfiniteSource(LIMIT 5) -> Hub -> Discard",
    "InfiniteSource(LIMIT 5) -> Script(TYPE PACKET, return -1) -> Discard",
    "InfiniteSource(LIMIT 5) -> Classifier(0/00) -> Discard",
    "InfiniteSource(LIMIT 5) -> IPClassifier(tcp) -> Discard",
    "InfiniteSource(LIMIT 5) -> AggregateIP(ip src) -> Discard",
    "InfiniteSource(LIMIT 5, LENGTH 3) -> StoreEtherAddress(1:2:3:4:5:6, src) -> Discard",
    "InfiniteSource(LIMIT 5, LENGTH 3) -> GetEtherAddress(0, src) -> Discard",
    "InfiniteSource(LIMIT 2) -> LinearIPLookup(1.0.0.0/8 0) -> Discard",
    "InfiniteSource(LIMIT 2) -> StaticIPLookup(1.0.0.0/8 0) -> Discard",
    "InfiniteSource(LIMIT 2) -> RadixIPLookup(1.0.0.0/8 0) -> Discard",
    "InfiniteSource(LIMIT 2) -> DirectIPLookup(1.0.0.0/8 0) -> Discard",
    "InfiniteSource(LIMIT 2) -> RangeIPLookup(1.0.0.0/8 0) -> Discard",
    "InfiniteSource(LIMIT 2) -> LookupIPRouteMP(1.0.0.0/8 0) -> Discard",
    "InfiniteSource(LIMIT 2) -> LookupIP6Route(1::/16 ::0 0) -> Discard",
    // Packets that wait where they are chosen from.
    "InfiniteSource(LIMIT 5, LENGTH 900) -> Queue -> d :: DRRSched(10) -> RatedUnqueue(1) -> Discard;
     InfiniteSource(LIMIT 5) -> Queue -> [1] d; Script(wait 1s, stop)",
    "InfiniteSource(LIMIT 5) -> Queue -> d :: TimeSortedSched(BUFFER 3) -> RatedUnqueue(1) -> Discard;
     InfiniteSource(LIMIT 5) -> Queue -> [1] d; Script(wait 3s, stop)",
    // Packets that are too long for what is added.
    "InfiniteSource(LIMIT 1, LENGTH 1048512) -> Unstrip(64) -> t :: Tee; t -> Align(4, 2) -> Discard;
     t[1] -> SetCRC32 -> Discard; t[2] -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;
     t[3] -> MarkIPHeader -> EnsureEther -> Discard; t[4] -> VLANEncap(1) -> Discard;
     t[5] -> EtherVLANEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, 1) -> Discard; t[6] -> IPEncap(udp, 1.0.0.1, 1.0.0.2) -> Discard;
     t[7] -> ICMPPingEncap(1.0.0.1, 1.0.0.2) -> Discard; t[8] -> ICMPIPEncap(1.0.0.1, 1.0.0.2, echo) -> Discard;
     t[9] -> UDPIPEncap(1.0.0.1, 1, 1.0.0.2, 2) -> Discard; t[10] -> DynamicUDPIPEncap(1.0.0.1, 1, 1.0.0.2, 2) -> Discard;",
    "RatedSource(RATE 100, LIMIT 3000) -> PI(0.01, 0.1, 0.00001, 10) -> Queue(5000) -> Idle",
    "InfiniteSource(LIMIT 2, LENGTH 500) -> UDPIPEncap(1.0.0.1, 1, 1.0.0.2, 2) -> f :: IPFragmenter(20) -> Discard",
    // Fragments whose first one is missing wait for it.
    "InfiniteSource(LIMIT 1, LENGTH 500) -> UDPIPEncap(1.0.0.1, 1, 1.0.0.2, 2) -> IPFragmenter(100)
     -> IPFilter(drop ip unfrag or ip[6:2] == 0x2000, allow all) -> f :: AggregateIPFlows -> Discard;
     Script(wait 1s, stop)",
    "InfiniteSource(LIMIT 1, LENGTH 500) -> UDPIPEncap(1.0.0.1, 1, 1.0.0.2, 2) -> IPFragmenter(100)
     -> IPFilter(drop ip unfrag or ip[6:2] == 0x2000, allow all) -> f :: AggregateIPFlows -> Discard;
     Script(wait 1s, write f.clear, stop)",
    // Devices that have no room, fail, or get packets that are not theirs.
    "InfiniteSource(LIMIT 3) -> ToDevice(broken0)",
    "InfiniteSource(LIMIT 3) -> Queue -> ToDevice(full0); Script(wait 1s, stop)",
    "InfiniteSource(LIMIT 3) -> ToDevice(eth0); FromDevice(eth1, PROTOCOL 0x86dd) -> Discard",
    "InfiniteSource(LIMIT 3) -> KernelTun(10.9.0.1/24) -> Discard",
    "InfiniteSource(LIMIT 3, LENGTH 5) -> KernelTap(10.9.0.1/24) -> Discard",
    "InfiniteSource(LIMIT 3, LENGTH 5) -> ToHost(fake0); FromHost(fake0, 10.9.0.1/24) -> Discard",
    "InfiniteSource(LIMIT 3) -> Queue -> RawSocket(253); Script(wait 1s, stop)",
    "InfiniteSource(LIMIT 3) -> Queue -> RawSocket(254)",
    "InfiniteSource(LIMIT 3) -> Queue -> Socket(UDP, 127.0.0.1, 253); Script(wait 1s, stop)",
    "InfiniteSource(LIMIT 3) -> Queue -> Socket(UDP, 127.0.0.1, 254)",
    "InfiniteSource(LIMIT 3) -> Queue -> McastSocket(239.0.0.1, 253); Script(wait 1s, stop)",
    "InfiniteSource(LIMIT 3) -> Queue -> McastSocket(239.0.0.1, 254)",
    "deny :: StaticIPLookup(127.0.0.1/32 0); Idle -> deny -> Discard; InfiniteSource(LIMIT 3) -> Socket(UDP, 127.0.0.1, 5000);
     Socket(UDP, 127.0.0.1, 5000, DENY deny) -> Discard",
    // A solicitor forgets a packet for the next one to the same neighbour.
    "InfiniteSource(LIMIT 3) -> s :: IP6NDSolicitor(2001:db8::1, 2:2:2:2:2:2) -> Discard; s[1] -> Discard; Idle -> [1] s;
     Script(wait 1s, stop)",
    // END_CALL decides about a packet, which waits for it.
    // Two queriers with one table: the table holds the packets of both.
    "t :: ARPTable(CAPACITY 3); InfiniteSource(LIMIT 5) -> SetIPAddress(1.0.0.1) -> a :: ARPQuerier(1.0.0.9, 1:1:1:1:1:1, TABLE t);
     InfiniteSource(LIMIT 5) -> SetIPAddress(1.0.0.2) -> b :: ARPQuerier(1.0.0.8, 1:1:1:1:1:2, TABLE t);
     a[0] -> Discard; a[1] -> ARPResponder(1.0.0.1 2:2:2:2:2:2) -> Discard; b -> Discard; Idle -> [1] b; Idle -> [1] a;
     Script(wait 1s, stop)",
    "t :: ARPTable; InfiniteSource(LIMIT 5) -> SetIPAddress(1.0.0.1) -> a :: ARPQuerier(1.0.0.9, 1:1:1:1:1:1, TABLE t)
     -> Discard; Idle -> [1] a; Script(wait 1s, write t.clear, stop)",
];

/// Fates that cannot be seen at the end of a run: `TimeFilter` holds a packet only while a call decides about it.
const UNEXERCISED: [&str; 1] = ["TimeFilter: waiting"];

fn classes() -> impl Iterator<Item = &'static Class> {
    elements::REGISTRY.iter().flat_map(|group| group.iter())
}

/// All examples, the configurations above, and the corpus, each with its name and its environment.
fn configurations() -> Vec<(String, String, Rc<Memory>)> {
    let connected = |name: &str, config: &str| (name.into(), config.into(), Rc::new(Memory::connected()));
    let pages = elements::DOCUMENTATION.iter().copied().flatten();
    let mut all: Vec<_> = pages.map(|page| connected(page.name, page.example)).collect();
    all.extend(MORE.iter().map(|config| connected(config, config)));
    for (name, case) in cases() {
        let (case, memory) = (case.expect("a well-formed case"), Rc::new(Memory::default()));
        case.files.iter().for_each(|(name, content)| memory.put(name, content.as_bytes()));
        if case.error.is_none() {
            all.push((name, case.config, memory));
        }
    }
    all
}

/// Whether packets come into being in elements of a class. These can have any contents.
fn begins(info: &ClassInfo) -> bool {
    [Fate::Received, Fate::Made].iter().any(|fate| info.fates.contains(fate))
}

fn names(fates: impl IntoIterator<Item = Fate>) -> String {
    fates.into_iter().map(Fate::name).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_class_declares_its_fates() {
    let mut failures = Vec::new();
    for Class { info, .. } in classes() {
        let mut report = |text: &str| failures.push(format!("{}: {text}", info.name));
        let declares = |fate: Fate| info.fates.contains(&fate);
        let (inputs, outputs) = info.ports.split_once('/').unwrap_or((info.ports, info.ports));
        if !info.fates.is_sorted() {
            report("fates are not in their order");
        }
        if declares(Fate::Lost) == info.drops.is_empty() {
            report("loses packets without a reason, or has reasons and loses none");
        }
        if inputs == "0" && outputs != "0" && !begins(info) {
            report("sends packets that come from nowhere");
        }
        let ends = [Fate::Delivered, Fate::Discarded, Fate::Consumed].into_iter().any(declares);
        if outputs == "0" && inputs != "0" && !ends {
            report("takes packets that end nowhere");
        }
        if info.storage && !declares(Fate::Waiting) {
            report("stores packets that do not wait");
        }
        if declares(Fate::Merged) && !declares(Fate::Waiting) {
            report("merges packets with none that waits");
        }
        if info.ports == "0/0" && info.fates.iter().any(|fate| !matches!(fate, Fate::Lost | Fate::Waiting)) {
            report("has no ports, but packets");
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn only_declared_fates_occur() {
    let mut occurred: BTreeMap<&str, BTreeSet<Fate>> = BTreeMap::new();
    let mut differences = Vec::new();
    for (name, config, memory) in configurations() {
        match run_with(&config, BATCH, memory) {
            Ok(run) => {
                differences.extend(books::check(&run).into_iter().map(|text| format!("{name}: {text}")));
                for (class, fates) in books::occurred(&run) {
                    occurred.entry(class).or_default().extend(fates);
                }
            }
            Err(error) => differences.push(format!("{name}: {error}")),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let (mut undeclared, mut unexercised) = (Vec::new(), Vec::new());
    for Class { info, .. } in classes() {
        let seen = occurred.remove(info.name).unwrap_or_default();
        let more = names(seen.iter().copied().filter(|fate| !info.fates.contains(fate)));
        let is_missing = |fate: &Fate| !seen.contains(fate) && *fate != Fate::Changed;
        let less = names(info.fates.iter().copied().filter(is_missing));
        if !more.is_empty() {
            undeclared.push(format!("{}: {more}", info.name));
        }
        if !less.is_empty() {
            unexercised.push(format!("{}: {less}", info.name));
        }
    }
    assert!(undeclared.is_empty(), "undeclared:\n{}", undeclared.join("\n"));
    assert_eq!(unexercised, UNEXERCISED, "declared, but in no example and no case");
}

#[test]
fn only_declared_classes_change_contents() {
    let (registry, mut changes, mut undeclared) = (probe::registry(), BTreeSet::new(), Vec::new());
    for (name, config, memory) in configurations() {
        let mut connections = Vec::new();
        let run = run_graph(&config, BATCH, memory, registry, |graph| connections = probe::insert(graph));
        let run = run.unwrap_or_else(|error| panic!("{name} with probes: {error}"));
        if run.router.swaps() > 0 {
            continue;
        }
        for (element, class) in run.router.classes().enumerate() {
            let (came, left) = probe::passed(&connections, element);
            let info = elements::class(class).map(|class| class.info);
            let Some(info) = info.filter(|info| !begins(info) && !left.is_subset(&came)) else { continue };
            changes.insert(info.name);
            if !info.fates.contains(&Fate::Changed) {
                undeclared.push(format!("{class} in {name}"));
            }
        }
    }
    assert!(undeclared.is_empty(), "undeclared:\n{}", undeclared.join("\n"));
    let declared = classes().map(|class| class.info);
    let declared = declared.filter(|info| !begins(info) && info.fates.contains(&Fate::Changed));
    let unexercised: Vec<_> = declared.map(|info| info.name).filter(|name| !changes.contains(name)).collect();
    assert_eq!(unexercised, [""; 0], "declared to change packets, but does not");
}
