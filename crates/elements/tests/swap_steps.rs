//! A long configuration replaces another in steps between batches: the old one runs until the new one takes over whole.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use click_lang::compile;
use element::{Descriptor, Environment, HandlerError, Io, IoError, Stream, WriteEffect};
use packet::Timestamp;
use router::{BegunWrite, LongWrite, Options, Registry, Router, Written};

/// An environment whose time advances by a number of microseconds whenever it is read, so that a write in steps ends its
/// step after some of the short ones; with 0, it never ends it before the work is done.
struct Ticking {
    time: Cell<i64>,
    tick: i64,
    console: RefCell<String>,
    /// Streams of signals that are open, and that have ever been.
    open: Rc<Cell<u32>>,
    opened: Cell<u32>,
}

/// A stream of signals, which never come.
struct Quiet(Rc<Cell<u32>>);

impl Stream for Quiet {
    fn read(&mut self, _: &mut [u8]) -> Result<Io, IoError> {
        Ok(Io::Wait)
    }

    fn write(&mut self, _: &[u8]) -> Result<Io, IoError> {
        Ok(Io::Closed)
    }

    fn descriptor(&self) -> Descriptor {
        Descriptor(1)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Environment for Ticking {
    fn now(&self) -> Timestamp {
        self.steady()
    }

    fn steady(&self) -> Timestamp {
        self.time.set(self.time.get() + self.tick);
        Timestamp::from_micros(self.time.get())
    }

    fn seed(&self) -> u64 {
        1
    }

    fn console(&self, text: &str) {
        self.console.borrow_mut().push_str(text);
    }

    /// All but SIGHUP can be caught.
    fn signal(&self, number: i32) -> Result<Box<dyn Stream>, IoError> {
        if number == 1 {
            return Err(IoError::Unsupported("catching SIGHUP"));
        }
        self.open.set(self.open.get() + 1);
        self.opened.set(self.opened.get() + 1);
        Ok(Box::new(Quiet(self.open.clone())))
    }

    fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        Vec::new()
    }
}

/// Microseconds a look at the clock: about one short step, seven, or all in one.
const TICKS: [i64; 3] = [60, 14, 0];

fn start_with(text: &str, tick: i64) -> (Router, Rc<Ticking>) {
    let registry = Registry::new(elements::REGISTRY);
    let compiled = compile(text, &click_lang::Options::new("config", &|name| registry.contains(name)));
    assert!(!compiled.has_errors(), "{:?}", compiled.diagnostics);
    let (time, console) = (Cell::new(0), RefCell::default());
    let environment = Rc::new(Ticking { time, tick, console, open: Rc::default(), opened: Cell::default() });
    match Router::new(compiled.graph, registry, environment.clone(), Options::default()) {
        Ok(router) => (router, environment),
        Err(problems) => panic!("{problems:?}"),
    }
}

fn start(text: &str) -> Router {
    start_with(text, TICKS[0]).0
}

/// A firewall with many rules of which none matches the traffic, and a last one.
fn firewall(count: u32, last: &str) -> String {
    let rule = |number| {
        format!("deny tcp and dst host 10.{}.{}.1 and dst port {number},\n", number % 7, number % 250)
    };
    let rules = (0..count).map(rule).collect::<String>() + last;
    format!(
        "s :: InfiniteSource(LENGTH 50, LIMIT 200000) -> UDPIPEncap(10.1.2.3, 1234, 10.9.9.9, 53)
            -> c :: Counter -> f :: IPFilter({rules}) -> passed :: Counter -> end :: Discard;"
    )
}

fn begin(router: &mut Router, path: &str, value: &str) -> LongWrite {
    match router.begin_write(path, value.into()) {
        Ok(BegunWrite::Long(write)) => write,
        other => panic!("{other:?}"),
    }
}

fn number(router: &Router, path: &str) -> u64 {
    router.read(path, "").expect(path).trim().parse().expect(path)
}

/// The packets that the filter denied.
fn denied(router: &Router) -> u64 {
    let losses = router.read("f.losses", "").expect("losses");
    losses.trim().strip_prefix("denied ").map_or(0, |count| count.parse().expect("a count"))
}

/// Continues a write, with a turn before each step. Calls `check` after each turn. Returns the result and the steps.
fn finish(
    router: &mut Router,
    write: &LongWrite,
    mut check: impl FnMut(&Router),
) -> (Result<Written, HandlerError>, u32) {
    for steps in 1..100_000 {
        router.turn();
        check(router);
        if let Some(result) = router.continue_write(write) {
            return (result, steps);
        }
    }
    panic!("the write does not end");
}

const REPLACED: Result<Written, HandlerError> =
    Ok(Written { effect: WriteEffect::Setting, in_config: false });

/// Swaps that follow each other without a turn free what the ones before have left, so that they don't use more and more.
#[test]
fn swaps_in_a_row_leave_one_configuration_to_free() {
    let turns_after = |swaps: u64| {
        let mut router = start("Idle -> Discard;");
        for _ in 0..swaps {
            router.write("hotconfig", &text_of_counters(150)).expect("a swap");
            router.turn();
        }
        assert_eq!(router.swaps(), swaps);
        turns_of_removal(&mut router)
    };
    let turns = turns_after(2);
    assert!(turns > 10, "{turns} turns");
    assert_eq!(turns_after(20), turns);
}

/// Packets are freed at the swap, so that the new configuration can use their buffers; the rest is freed in steps.
#[test]
fn packets_are_freed_at_once_and_elements_in_steps() {
    for count in [50, 200] {
        let holding = "s :: InfiniteSource(LIMIT 300, LENGTH 60) -> q :: Queue(500) -> Unqueue(ACTIVE false) -> Discard; ";
        let mut router = start(&(text_of_counters(count) + holding));
        router.run(None);
        assert_eq!(number(&router, "q.length"), 300);
        assert!(router.pool().packets() >= 300);
        router.write("hotconfig", "Idle -> Discard;").expect("a swap");
        assert_eq!(router.pool().packets(), 0);
        assert_eq!(router.read("account", ""), Ok("made 300\nlost removed 300\n".into()));
        let turns = turns_of_removal(&mut router);
        // Elements, their declarations and connections, and their names: sixteen a turn.
        assert!(turns >= 3 * 3 * count as usize / 16, "{count}: {turns} turns");
    }
}

/// The turns in which a configuration is freed that was replaced.
fn turns_of_removal(router: &mut Router) -> usize {
    (0..100_000).take_while(|_| router.turn().worked).count()
}

/// So are those in a cache that other elements, which are freed later, have access to.
#[test]
fn packets_that_wait_for_an_address_are_freed_at_once() {
    let holding = "t :: ARPTable; s :: InfiniteSource(LIMIT 300) -> SetIPAddress(1.0.0.1)
        -> a :: ARPQuerier(1.0.0.9, 1:1:1:1:1:1, TABLE t) -> Discard; Idle -> [1] a;";
    let mut router = start(&(text_of_counters(50) + holding));
    for _ in 0..100 {
        router.turn();
    }
    assert_eq!(number(&router, "t.length"), 300);
    router.write("hotconfig", "Idle -> Discard;").expect("a swap");
    assert_eq!(router.pool().packets(), 0);
    assert_eq!(router.read("account", ""), Ok("made 301\ndiscarded 1\nlost removed 300\n".into()));
}

/// A configuration with a script that handles these signals.
fn signalled(names: &str) -> String {
    "Idle -> Counter -> Discard; ".repeat(200) + &format!("Script(TYPE SIGNAL {names});")
}

#[test]
fn a_configuration_that_was_replaced_takes_no_signals() {
    let (mut router, environment) = start_with(&signalled("USR1"), TICKS[0]);
    assert_eq!(environment.open.get(), 1);
    router.write("hotconfig", "Idle -> Discard;").expect("a swap");
    assert_eq!(environment.open.get(), 0);
    assert!(turns_of_removal(&mut router) > 20);
}

#[test]
fn a_configuration_that_is_refused_is_closed_at_once() {
    let (mut router, environment) = start_with("Idle -> Discard;", TICKS[0]);
    let text = signalled("USR1") + "Script(TYPE SIGNAL HUP);";
    let write = begin(&mut router, "hotconfig", &text);
    let mut steps_after = 0;
    let result = finish(&mut router, &write, |_| {
        assert_eq!(environment.open.get(), 0);
        steps_after += environment.opened.get();
    });
    let error = result.0.expect_err("an error").to_string();
    assert!(error.contains("catching SIGHUP"), "{error}");
    assert!(steps_after > 20, "{steps_after} steps");
    assert_eq!((environment.open.get(), environment.opened.get()), (0, 1));
}

/// Configurations that were to replace one are freed with it, in steps, when another one takes over.
#[test]
fn what_was_to_take_over_is_freed_in_steps() {
    // It is initialised, and waits for the next turn.
    let text = format!("Script(write hotconfig {});", signalled("USR1"));
    let (mut router, environment) = start_with(&text, TICKS[0]);
    for _ in 0..100 {
        if environment.open.get() == 0 {
            router.turn();
        }
    }
    assert_eq!((environment.open.get(), router.swaps()), (1, 0), "{}", environment.console.borrow());
    let other = router.prepare("Idle -> Discard;").unwrap_or_else(|error| panic!("{error}"));
    router.switch(other);
    assert_eq!(environment.open.get(), 0);
    let turns = turns_of_removal(&mut router);
    assert!(turns > 600 / 16 + 20, "{turns} turns");
    // It is being prepared: its rules are being compiled, which ends.
    let mut router = start("Idle -> Discard;");
    let long = text_of_counters(100) + &firewall(1_000, "allow all");
    let write = begin(&mut router, "hotconfig", &long);
    let calls = finish(&mut router, &write, |_| ()).1 as usize;
    let mut router = start("Idle -> Discard;");
    let write = begin(&mut router, "hotconfig", &long);
    let left = calls / 3;
    for _ in left..calls {
        assert_eq!(router.continue_write(&write), None);
    }
    router.write("hotconfig", "Idle -> Discard;").expect("a swap");
    let turns = turns_of_removal(&mut router);
    // A call performs two steps.
    assert!((30..left).contains(&turns), "{turns} turns, {left} of {calls} calls left");
}

/// Long ways between a split and the element where they meet are followed in steps.
#[test]
fn long_ways_of_a_split_are_followed_in_steps() {
    let steps_with = |meeting: &str| {
        let way = "-> Null ".repeat(800);
        let text = format!(
            "Idle -> h :: HashSwitch(26, 8); h[0] {way} -> m :: {meeting}; h[1] {way} -> m; m -> Discard;"
        );
        let mut router = start("Idle -> Discard;");
        let write = begin(&mut router, "hotconfig", &text);
        let (result, steps) = finish(&mut router, &write, |_| ());
        assert_eq!(result, REPLACED);
        steps
    };
    // Only before an element that depends on order are the ways followed back, and then once more to let their ends gather packets:
    // sixteen elements a step, of which there are two in a call.
    let (with, without) = (steps_with("RoundRobinSwitch"), steps_with("Null"));
    assert!(with >= without + 3 * 1_600 / 16 / 4, "{with} and {without} calls");
}

/// Signals are searched for in one step through chains, of which some are loops.
#[test]
fn signals_behind_long_chains_are_found() {
    let chain = "-> Null ".repeat(100);
    let text = format!(
        "s :: InfiniteSource(LIMIT 100) {chain} -> q :: FullNoteQueue(10) {chain} -> u :: Unqueue(ACTIVE false) -> Discard;
         InfiniteSource(ACTIVE false) -> a :: Null -> b :: Null -> a;"
    );
    let mut router = start(&text);
    let is_idle = |router: &mut Router| (0..1_000).any(|_| !router.turn().worked);
    // The source sleeps while the queue is full, and the other task while it is empty.
    assert!(is_idle(&mut router));
    assert_eq!(["q.length", "q.drops"].map(|path| number(&router, path)), [10, 0]);
    router.write("u.active", "true").expect("a write");
    assert!(is_idle(&mut router));
    assert_eq!(["u.count", "q.length", "q.drops"].map(|path| number(&router, path)), [100, 0, 0]);
}

/// A successor takes over from the configuration that runs when it does, even if that is not the one for which it was prepared.
#[test]
fn a_successor_finds_the_elements_of_a_configuration_that_came_between() {
    let text = |before: &str| {
        format!("{before} s :: InfiniteSource(LIMIT 300) -> c :: Counter -> d :: AverageCounter -> Discard;")
    };
    for between in ["", "Idle -> c0 :: Counter -> Idle;", "Idle -> c0 :: Counter -> Counter -> Discard;"] {
        let mut router = start(&text(""));
        let successor = router.prepare(&text("c1 :: Idle;")).unwrap_or_else(|error| panic!("{error}"));
        if !between.is_empty() {
            router.write("hotconfig", &text(between)).expect("a swap");
        }
        router.run(None);
        let counted = number(&router, "c.count");
        assert_eq!(counted, 300);
        router.switch(successor);
        assert_eq!(number(&router, "c.count"), counted, "{between}");
        router.run(None);
        assert_eq!(number(&router, "c.count"), counted + 300, "{between}");
    }
}

/// The replacement has a call of its own, in which nothing is prepared.
#[test]
fn a_long_preparation_ends_before_the_replacement() {
    let (mut router, environment) = start_with("Idle -> Discard;", TICKS[1]);
    let write = begin(&mut router, "hotconfig", &text_of_counters(200));
    let looks = |router: &mut Router| {
        let before = environment.time.get();
        let result = router.continue_write(&write);
        (result, (environment.time.get() - before) / TICKS[1])
    };
    let mut most = 0;
    let (result, last) = loop {
        match looks(&mut router) {
            (Some(result), count) => break (result, count),
            (None, count) => most = most.max(count),
        }
    };
    assert_eq!(result, REPLACED);
    // Each step of a preparation looks at the clock.
    assert!(most >= 8 && last <= 2, "{most} and {last} looks at the clock");
}

#[test]
fn the_old_configuration_runs_until_the_new_one_takes_over() {
    let mut router = start(&firewall(400, "allow all"));
    let new = firewall(400, "deny udp");
    let write = begin(&mut router, "hotconfig", &new);
    let mut last = 0;
    let (result, steps) = finish(&mut router, &write, |router| {
        let passed = number(router, "passed.count");
        assert!(passed > last && denied(router) == 0 && router.swaps() == 0, "the old rules decide");
        last = passed;
    });
    assert_eq!(result, REPLACED);
    assert!(steps > 20, "{steps} steps");
    // The first step after the reply is the new one's, which has the state of the old one.
    assert_eq!((number(&router, "passed.count"), router.swaps()), (last, 1));
    assert_eq!(router.read("config", ""), Ok(new));
    router.turn();
    let (all, denied) = (number(&router, "c.count"), denied(&router));
    assert!(denied > 0);
    // Counters go on; source and Discard count from the swap on.
    assert_eq!((number(&router, "passed.count"), number(&router, "end.count")), (last, 0));
    assert_eq!((all, number(&router, "s.count")), (last + denied, denied));
    assert!(router.read("f.form", "").expect("a form").starts_with("fast form: tables, "));
}

#[test]
fn steps_of_any_size_give_the_same_result() {
    // An IPFilter, an IPClassifier and a Classifier, with warnings about outputs that get no packet.
    let patterns = |of: &dyn Fn(u32) -> String| (0..150).map(of).collect::<Vec<_>>().join(", ");
    let ports = patterns(&|port| format!("udp dst port {}", port % 149));
    let bytes = patterns(&|port| format!("22/{:04x}", port % 149));
    let ends = |name: &str| (0..150).map(|port| format!("{name}[{port}] -> Discard; ")).collect::<String>();
    let new = firewall(300, "allow all")
        + "Idle -> i :: IPClassifier("
        + &ports
        + "); "
        + &ends("i")
        + "Idle -> b :: Classifier("
        + &bytes
        + ", MEMORY 100000); "
        + &ends("b");
    let facts = |router: &Router| {
        let read = |path: &&str| router.read(path, "").unwrap_or_else(|error| error.to_string());
        let paths = [
            "config",
            "flatconfig",
            "f.program",
            "f.form",
            "i.program",
            "i.form",
            "b.program",
            "b.form",
            "i.config",
        ];
        paths.iter().map(read).collect::<Vec<String>>()
    };
    let mut at_once = start(&firewall(2, "deny all"));
    let expected = at_once.write("hotconfig", &new).expect_err("warnings");
    assert!(expected.to_string().contains("output 149 matches no packets"), "{expected}");
    for (tick, least) in [(TICKS[0], 100), (TICKS[1], 20), (TICKS[2], 1)] {
        let (mut router, _) = start_with(&firewall(2, "deny all"), tick);
        let write = begin(&mut router, "hotconfig", &new);
        let (result, steps) = finish(&mut router, &write, |_| ());
        assert_eq!(result, Err(expected.clone()));
        assert!(steps >= least && (tick > 0 || steps == 1), "{steps} steps");
        assert_eq!(facts(&router), facts(&at_once), "{tick}");
        let before = number(&router, "c.count");
        router.run(None);
        let counts = ["s.count", "c.count", "passed.count", "end.count"].map(|path| number(&router, path));
        assert_eq!(counts, [200_000, before + 200_000, 200_000, 200_000]);
        let account = router.read("account", "").expect("an account");
        let made = before + 200_000;
        let lost = if before > 0 { format!("lost denied {before}\n") } else { String::new() };
        assert_eq!(account, format!("made {made}\ndiscarded 200000\n{lost}"));
    }
}

#[test]
fn an_invalid_configuration_leaves_the_old_one_running() {
    let ok = firewall(300, "allow all");
    for (bad, message) in [
        (firewall(300, "allow nonsense"), "pattern 300: empty term near ‘nonsense’"),
        (firewall(300, "1 all"), "out of range"),
        (firewall(300, "allow all, MEMORY -1"), "MEMORY"),
        (format!("{ok} Idle -> Nothing;"), "undeclared element ‘Nothing’"),
        (format!("{ok} Idle -> Counter(5) -> Discard;"), "too many arguments"),
        (format!("{ok} FromDump(nowhere.pcap) -> Discard;"), "nowhere.pcap"),
        (format!("{ok} Idle ->"), "syntax error"),
        (format!("{ok} Idle -> Counter;"), "output 0 unused"),
        (format!("{ok} Idle -> IPClassifier({});", "tcp, ".repeat(200)), "need 0 arguments"),
        (format!("{ok} Idle -> Classifier({}) -> Discard;", "0/zz ".repeat(200)), "pattern 0: "),
    ] {
        let mut router = start(&firewall(10, "allow all"));
        let before = router.read("flatconfig", "");
        let at_once = router.write("hotconfig", &bad).expect_err("an error");
        assert!(at_once.to_string().contains(message), "{message}: {at_once}");
        let write = begin(&mut router, "hotconfig", &bad);
        assert_eq!(finish(&mut router, &write, |_| ()).0, Err(at_once));
        assert_eq!((router.read("flatconfig", ""), router.swaps()), (before, 0));
        router.run(None);
        let counts = ["s.count", "c.count", "passed.count", "end.count"].map(|path| number(&router, path));
        assert_eq!((counts, denied(&router)), ([200_000; 4], 0));
    }
}

#[test]
fn a_swap_during_a_swap_is_refused() {
    let mut router = start(&firewall(2, "deny all"));
    let (one, other) = (firewall(300, "allow all"), firewall(400, "deny all"));
    let write = begin(&mut router, "hotconfig", &one);
    assert_eq!(router.continue_write(&write), None);
    for text in [&other, "Idle -> Discard"] {
        let error = router.begin_write("hotconfig", text.into()).expect_err("an error").to_string();
        assert_eq!(error, "another configuration is being prepared: write this one after the reply to that");
    }
    assert_eq!(finish(&mut router, &write, |_| ()).0, REPLACED);
    assert_eq!((router.read("config", ""), router.swaps()), (Ok(one), 1));
    let write = begin(&mut router, "hotconfig", &other);
    assert_eq!(finish(&mut router, &write, |_| ()).0, REPLACED);
    assert_eq!((router.read("config", ""), router.swaps()), (Ok(other), 2));
}

#[test]
fn a_swap_at_once_ends_one_in_steps() {
    let mut router = start(&firewall(2, "deny all"));
    let write = begin(&mut router, "hotconfig", &firewall(300, "allow all"));
    assert_eq!(router.continue_write(&write), None);
    // As an element of the configuration does.
    let short = firewall(3, "allow all");
    router.write("hotconfig", &short).expect("it is accepted");
    let error = router.continue_write(&write).expect("a result").expect_err("an error").to_string();
    assert_eq!(error, "the configuration was replaced before the write was done: write it again");
    assert_eq!((router.read("config", ""), router.swaps()), (Ok(short), 1));
    router.turn();
    assert_eq!((number(&router, "passed.count") > 0, denied(&router)), (true, 0));
}

/// Writes a handler of a classifier at once and in steps, and compares what follows.
fn check_write(text: &str, path: &str, value: &str, is_right: bool) {
    let facts = |router: &Router, environment: &Ticking| {
        let read = |path: &&str| router.read(path, "").unwrap_or_else(|error| error.to_string());
        let facts: Vec<String> = ["i.config", "i.program", "i.form", "i.pattern7"].iter().map(read).collect();
        (facts, environment.console.borrow().clone())
    };
    for tick in TICKS {
        let (mut at_once, its) = start_with(text, tick);
        let expected = at_once.write(path, value);
        assert_eq!(expected.is_ok(), is_right, "{expected:?}");
        let (mut router, own) = start_with(text, tick);
        let write = begin(&mut router, path, value);
        let (result, steps) = finish(&mut router, &write, |_| ());
        assert_eq!(result.map(drop), expected, "{path}");
        assert!(tick == 0 || steps > 5, "{steps} steps");
        assert_eq!(facts(&router, &own), facts(&at_once, &its), "{path}");
    }
}

#[test]
fn patterns_are_replaced_in_steps() {
    let ends: String = (0..200).map(|port| format!("i[{port}] -> Discard; ")).collect();
    let patterns = |of: &dyn Fn(u32) -> String| (0..200).map(of).collect::<Vec<String>>().join(", ");
    let ports = patterns(&|port| format!("udp dst port {port}"));
    let text = format!("Idle -> i :: IPClassifier({ports}, MEMORY 2000000); {ends}");
    let others = patterns(&|port| format!("tcp src port {} and tcp syn", port % 199));
    check_write(&text, "i.config", &others, true);
    check_write(&text, "i.pattern7", "icmp type 8 and ip ttl 7", true);
    check_write(&text, "i.pattern199", "nonsense", false);
    check_write(&text, "i.config", &format!("{others}, tcp"), false);
    check_write(&text, "i.config", &format!("{others}, MEMORY x"), false);
    let bytes = patterns(&|port| format!("22/{port:04x}"));
    let text = format!("Idle -> i :: Classifier({bytes}); {ends}");
    check_write(&text, "i.config", &patterns(&|port| format!("20/{:04x}%0fff", port % 198)), true);
    check_write(&text, "i.config", &patterns(&|port| format!("20/{port:03x}")), false);
}

#[test]
fn a_pattern_that_is_written_meanwhile_is_kept() {
    let ports: Vec<String> = (0..200).map(|port| format!("udp dst port {port}")).collect();
    let ends: String = (0..200).map(|port| format!("i[{port}] -> Discard; ")).collect();
    let mut router = start(&format!("Idle -> i :: IPClassifier({}); {ends}", ports.join(", ")));
    let write = begin(&mut router, "i.pattern3", "tcp dst port 3");
    for _ in 0..20 {
        assert_eq!(router.continue_write(&write), None);
    }
    // Another write of this element is not begun in steps, but executed at once.
    assert!(matches!(router.begin_write("i.pattern2", "tcp dst port 2".into()), Ok(BegunWrite::Done(_))));
    assert_eq!(finish(&mut router, &write, |_| ()).0.map(drop), Ok(()));
    let patterns = ["i.pattern1", "i.pattern2", "i.pattern3"].map(|path| router.read(path, "").expect(path));
    assert_eq!(patterns, ["udp dst port 1", "tcp dst port 2", "tcp dst port 3"]);
    let program = router.read("i.program", "").expect("a program");
    let mut texts = ports;
    (texts[2], texts[3]) = ("tcp dst port 2".into(), "tcp dst port 3".into());
    assert_eq!(router.read("i.config", ""), Ok(texts.join(", ")));
    let other = start(&format!("Idle -> i :: IPClassifier({}); {ends}", texts.join(", ")));
    assert_eq!(other.read("i.program", ""), Ok(program));
}

#[test]
fn route_tables_and_large_graphs_are_prepared_in_steps() {
    let ip6 = |last: &str| {
        (0..400).map(|number| format!("2001:{number:x}::/48 {}, ", number % 2)).collect::<String>() + last
    };
    let ip4 = |last: &str| {
        (0..400).map(|number| format!("10.{}.{}.0/24 1, ", number / 250, number % 250)).collect::<String>()
            + last
    };
    let ends = "[0] -> Discard; ";
    let text = |ip6: &str, ip4: &str, more: &str| {
        let elements: String =
            (0..200).map(|number| format!("Idle -> e{number} :: Counter -> Discard; ")).collect();
        format!(
            "{elements} Idle -> x :: LookupIP6Route({ip6}); x{ends} x[1] -> Discard;
            Idle -> m :: LookupIPRouteMP({ip4}); m{ends} m[1] -> Discard;
            Idle -> r :: RadixIPLookup({ip4}); r{ends} r[1] -> Discard; {more}"
        )
    };
    let (ok6, ok4) = (ip6("::/0 fd00::1 1"), ip4("0/0 1.2.3.4 0"));
    for (text, is_right) in [
        (text(&ok6, &ok4, ""), true),
        (text(&ip6("::/0 2"), &ok4, ""), false),
        (text(&ip6("nonsense, ::/0 0, fd00::/8"), &ok4, ""), false),
        (text(&ok6, &ip4("10.0.0.0/8 9"), ""), false),
        (text(&ok6, &ip4("10.0.0.0/33 0"), ""), false),
        (text(&ok6, &ok4, "e1 -> Discard;"), false),
        (text(&ok6, &ok4, "InfiniteSource -> Unqueue -> Queue -> Queue -> Discard;"), false),
        (text(&ok6, &ok4, "e1[5] -> Discard;"), false),
    ] {
        let mut at_once = start("Idle -> Discard;");
        let expected = at_once.write("hotconfig", &text);
        assert_eq!(expected.is_ok(), is_right, "{expected:?}");
        for tick in TICKS {
            // It replaces a graph that is freed in steps, or stays.
            let (mut router, _) = start_with(&text_of_counters(150), tick);
            let write = begin(&mut router, "hotconfig", &text);
            let (result, steps) = finish(&mut router, &write, |_| ());
            assert_eq!(result.map(drop), expected);
            assert!(tick == 0 || steps > 20, "{steps} steps");
            assert_eq!(router.swaps(), u64::from(is_right));
            for _ in 0..50 {
                router.turn();
            }
            if is_right {
                for path in ["flatconfig", "x.table", "x.config", "r.table", "account"] {
                    assert_eq!(router.read(path, ""), at_once.read(path, ""), "{path}");
                }
            } else {
                assert_eq!(router.elements().count(), 3 * 150);
            }
            // The box ends while the old configuration is freed.
            let write = begin(&mut router, "hotconfig", &text_of_counters(160));
            assert_eq!(finish(&mut router, &write, |_| ()).0, REPLACED);
        }
    }
}

/// A configuration of many elements.
fn text_of_counters(count: u32) -> String {
    (0..count).map(|number| format!("Idle -> Counter -> Discard; // number {number}\n")).collect()
}
