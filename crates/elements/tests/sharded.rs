//! The corpus and traces in two shards, turn by turn in one thread: sums, and the sequence of packets of each flow, are those of
//! one shard.

#[path = "support/case.rs"]
mod case;
mod support;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use capture::{LinkType, Parser, PcapEncoder};
use case::{Case, cases};
use element::{Descriptor, DividedRange, Environment, IoError, MemoryFile, Reader, Shard, ShardMode, Writer};
use packet::Timestamp;
use router::{Destination, Options, Registry, Router, Steering};
use support::Memory;

/// Turns after which a configuration counts as one that never rests.
const MAX_TURNS: u32 = 100_000;

/// An environment in memory for one shard: captures have its packets only.
struct Part {
    memory: Memory,
    shard: Shard,
    steering: RefCell<Steering>,
}

impl Environment for Part {
    fn now(&self) -> Timestamp {
        self.memory.now()
    }

    fn steady(&self) -> Timestamp {
        self.memory.steady()
    }

    fn seed(&self) -> u64 {
        1
    }

    fn console(&self, _: &str) {}

    fn open(&self, path: &str) -> Result<Box<dyn Reader>, IoError> {
        let mut whole = self.memory.open(path)?;
        let mut bytes = vec![0; usize::try_from(whole.size().unwrap_or_default()).unwrap_or_default()];
        whole.read(&mut bytes)?;
        Ok(Box::new(MemoryFile::new(self.part(&bytes).into())))
    }

    fn create(&self, path: &str, append: bool) -> Result<Box<dyn Writer>, IoError> {
        self.memory.create(path, append)
    }

    fn divide(&self, range: DividedRange) -> Result<(), IoError> {
        let is_new = self.steering.borrow_mut().divide(range);
        if is_new { Ok(()) } else { Err(IoError::Unsupported("an overlap")) }
    }

    fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        Vec::new()
    }
}

impl Part {
    fn part(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut parser, mut unread) = (Parser::new(), bytes);
        let Ok(Some(link)) = parser.link_type(&mut unread) else { return bytes.to_vec() };
        let encoder = PcapEncoder::new(link);
        let mut part = encoder.file_header().to_vec();
        while let Ok(Some(record)) = parser.record(&mut unread) {
            let steering = self.steering.borrow();
            let destination = match link {
                LinkType::ETHERNET => steering.of_frame(record.bytes),
                _ => steering.of_ip(record.bytes),
            };
            if destination == Destination::All || destination == Destination::Shard(self.shard.index) {
                encoder.record(record.time_ns, record.original_length, record.bytes, &mut part);
            }
        }
        part
    }
}

/// The engines of a run.
struct Shards {
    routers: Vec<Router>,
    parts: Vec<Rc<Part>>,
}

impl Shards {
    /// Builds and runs a configuration. Returns the errors if it is refused.
    fn run(config: &str, count: u32, files: &[(String, String)]) -> Result<Shards, String> {
        let registry = Registry::new(elements::REGISTRY);
        let is_class = |name: &str| registry.contains(name);
        let compiled = click_lang::compile(config, &click_lang::Options::new("test", &is_class));
        let (mut routers, mut parts) = (Vec::new(), Vec::new());
        for index in 0..count {
            let shard = Shard { index, count };
            let steering = RefCell::new(Steering::new(count));
            let part = Rc::new(Part { memory: Memory::default(), shard, steering });
            files.iter().for_each(|(name, content)| part.memory.put(name, content.as_bytes()));
            let options = Options { shard, seed: Some(1), ..Options::default() };
            let router = Router::new(compiled.graph.clone(), registry, part.clone(), options);
            routers.push(router.map_err(|problems| format!("{problems:?}"))?);
            parts.push(part);
        }
        for _ in 0..MAX_TURNS {
            let turns = routers.iter_mut().map(|router| router.turn().worked);
            if !turns.fold(false, |any, worked| any | worked) {
                return Ok(Shards { routers, parts });
            }
        }
        Err("it never rests".into())
    }

    fn read(&self, path: &str) -> Result<String, String> {
        let merge = self.routers[0].merge(path).map_err(|error| error.to_string())?;
        let answers: Result<Vec<String>, _> =
            self.routers.iter().map(|router| router.read(path, "")).collect();
        Ok(merge.answer(&answers.map_err(|error| error.to_string())?))
    }

    /// The packets of a capture that was written, by addresses, in order.
    fn flows(&self, path: &str, offset: usize) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let mut flows: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for part in &self.parts {
            let bytes = part.memory.file(path).expect("a capture");
            let (mut parser, mut unread) = (Parser::new(), &bytes[..]);
            while let Ok(Some(record)) = parser.record(&mut unread) {
                let addresses = record.bytes.get(offset + 12..offset + 20).unwrap_or_default();
                flows.entry(addresses.to_vec()).or_default().push(record.bytes.to_vec());
            }
        }
        flows
    }
}

/// Whether a case gives other numbers in shards although it may run in them: parts of queues and rates that generators fill
/// from one shard, and times, which stand still here.
fn depends_on_one(router: &Router) -> bool {
    let modes = || router.classes().filter_map(elements::class).map(|class| class.info.shards.mode);
    let divides = modes().any(|mode| mode == ShardMode::Divide);
    let is_timed =
        |class: &str| class.contains("Timed") || class.contains("Rated") || class.contains("Delay");
    divides || router.classes().any(is_timed)
}

/// The differences between what a case expects and what two shards do; `None` if it needs one.
fn check(case: &Case) -> Option<Vec<String>> {
    let alone = Shards::run(&case.config, 1, &case.files).ok()?;
    let both = Shards::run(&case.config, 2, &case.files).ok()?;
    if depends_on_one(&alone.routers[0]) {
        return None;
    }
    let lines = case.expect.lines().filter_map(|line| line.split_once('='));
    let paths: Vec<&str> =
        lines.map(|(path, _)| path.trim()).filter(|path| !path.starts_with("//")).collect();
    let different = paths.iter().filter_map(|path| {
        let (one, two) = (alone.read(path), both.read(path));
        (one != two).then(|| format!("{path} is {two:?}, not {one:?}"))
    });
    Some(different.collect())
}

#[test]
fn the_corpus_and_the_examples_pass_in_two_shards() {
    let (mut failures, mut run) = (Vec::new(), 0);
    // In the example of ARPQuerier the answer is made in the first shard; answers that are received go to all.
    let pages = elements::DOCUMENTATION.iter().copied().flatten().filter(|page| page.name != "ARPQuerier");
    let pages = pages.map(|page| {
        let (config, expect) = (page.example.to_string(), page.expect.to_string());
        (page.name.to_string(), Ok(Case { config, expect, ..Case::default() }))
    });
    for (name, case) in cases().into_iter().chain(pages) {
        let case = case.unwrap_or_default();
        if let Some(differences) = check(&case).filter(|_| case.error.is_none()) {
            run += 1;
            failures.extend(differences.iter().map(|text| format!("{name}: {text}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(run >= 120, "{run} cases can be spread over shards");
}

#[test]
fn traces_keep_the_sequence_of_each_flow() {
    let chains = [
        (
            "router",
            "CheckIPHeader(VERBOSE false) -> DecIPTTL -> r :: RadixIPLookup(0.0.0.0/0 0, 10.0.0.0/8 0) -> ",
        ),
        (
            "filter",
            "CheckIPHeader(VERBOSE false) -> f :: IPFilter(allow tcp, deny udp src port < 1024, allow all) -> ",
        ),
        ("monitor", "CheckIPHeader(VERBOSE false) -> f :: AggregateIPFlows -> a :: AggregateCounter -> "),
        ("fragments", "CheckIPHeader(VERBOSE false) -> IPFragmenter(600) -> r :: IPReassembler -> "),
        ("queue", "CheckIPHeader(VERBOSE false) -> q :: Queue(10000) -> Unqueue -> "),
    ];
    for (name, chain) in chains {
        let config = format!(
            "FromDump(testdata/mix.pcap) -> Classifier(12/0800) -> Strip(14) -> in :: Counter -> {chain} out :: Counter
                -> ToDump(out, ENCAP IP);"
        );
        let runs = [1, 2].map(|count| Shards::run(&config, count, &[]).expect(name));
        for handler in
            ["in.count", "out.count", "out.byte_count", "in.ocounts", "account", "discards", "list"]
        {
            // A line that only the second shard has comes last.
            let sorted = |text: String| {
                let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
                lines.sort();
                lines
            };
            let [one, two] = [0, 1].map(|run| sorted(runs[run].read(handler).expect(handler)));
            assert_eq!(one, two, "{name}: {handler}");
        }
        if name == "monitor" {
            let [one, two] = [0, 1].map(|run| runs[run].read("a.nagg").expect("a number"));
            assert_eq!(one, two, "as many flows in both");
        }
        let [one, two] = [0, 1].map(|run| runs[run].flows("out", 0));
        assert!(one == two, "{name}: the packets of each flow, in order");
        let both =
            runs[1].routers.iter().all(|router| router.read("out.count", "").is_ok_and(|count| count != "0"));
        assert!(both, "{name}: both shards have packets");
    }
}
