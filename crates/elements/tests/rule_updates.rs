//! Many rules are replaced in steps between batches: the old ones decide until the new ones replace them whole.

use std::cell::Cell;
use std::rc::Rc;

use click_lang::compile;
use element::{Descriptor, Environment, HandlerError, WriteEffect};
use packet::Timestamp;
use router::{BegunWrite, LongWrite, Options, Registry, Router, Written};

/// An environment whose time advances by these microseconds whenever it is read, so that a write in steps ends its step soon.
struct Ticking {
    time: Cell<i64>,
    tick: i64,
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

    fn console(&self, _: &str) {}

    fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        Vec::new()
    }
}

const FIREWALL: &str = "InfiniteSource(LENGTH 50) -> UDPIPEncap(10.1.2.3, 1234, 10.9.9.9, 53)
    -> f :: IPFilter(allow udp, deny all) -> c :: Counter -> Discard;";

fn graph(text: &str) -> click_lang::Graph {
    let registry = Registry::new(elements::REGISTRY);
    let compiled = compile(text, &click_lang::Options::new("config", &|name| registry.contains(name)));
    assert!(!compiled.has_errors(), "{:?}", compiled.diagnostics);
    compiled.graph
}

fn start(text: &str) -> Router {
    start_with(text, 60, None)
}

fn start_with(text: &str, tick: i64, simulated: Option<Timestamp>) -> Router {
    let (registry, options) =
        (Registry::new(elements::REGISTRY), Options { simulated, ..Options::default() });
    match Router::new(graph(text), registry, Rc::new(Ticking { time: Cell::default(), tick }), options) {
        Ok(router) => router,
        Err(problems) => panic!("{problems:?}"),
    }
}

/// Rules of which none matches the traffic, and a last one.
fn rules(count: u32, last: &str) -> String {
    let rule = |number| {
        format!("deny tcp and dst host 10.{}.{}.1 and dst port {number},\n", number % 7, number % 250)
    };
    (0..count).map(rule).collect::<String>() + last
}

fn begin(router: &mut Router, path: &str, value: &str) -> LongWrite {
    match router.begin_write(path, value.into()) {
        Ok(BegunWrite::Long(write)) => write,
        other => panic!("{other:?}"),
    }
}

fn passed(router: &Router) -> u64 {
    router.read("c.count", "").expect("a count").parse().expect("a number")
}

/// Continues a write between turns, in each of which packets pass. Returns its result and the number of turns.
fn finish(router: &mut Router, write: &LongWrite) -> (Result<Written, HandlerError>, u32) {
    for turns in 0.. {
        let before = passed(router);
        router.turn();
        assert!(passed(router) > before, "the old rules decide, turn {turns}");
        if let Some(result) = router.continue_write(write) {
            return (result, turns);
        }
        assert!(turns < 100_000, "the write does not end");
    }
    unreachable!("the loop returns")
}

#[test]
fn old_rules_decide_until_the_new_ones_replace_them() {
    for handler in ["f.rules", "f.config"] {
        let mut router = start(FIREWALL);
        let new = rules(400, "deny udp,\nallow all");
        let write = begin(&mut router, handler, &new);
        let (result, turns) = finish(&mut router, &write);
        assert_eq!(result, Ok(Written { effect: WriteEffect::Setting, in_config: true }));
        assert!(turns > 20, "{turns} turns");
        let count = passed(&router);
        assert_eq!(router.read("f.losses", ""), Ok(String::new()));
        router.turn();
        let denied = router.read("f.losses", "").expect("losses");
        assert!(denied.starts_with("denied ") && passed(&router) == count, "{denied}");
        assert_eq!(router.read(handler, ""), Ok(new));
        assert!(router.read("f.form", "").expect("a form").starts_with("fast form: tables, "));
    }
}

#[test]
fn packets_have_as_much_time_as_a_write() {
    let turns_of = |text: &str, simulated| {
        let mut router = start_with(text, 10, simulated);
        let write = begin(&mut router, "f.rules", &rules(300, "allow all"));
        let continued = (1..100_000).find(|_| {
            router.turn();
            router.continue_write(&write).is_some()
        });
        continued.expect("the write ends")
    };
    // Without packets, the write has all the time. With simulated time, no result depends on how fast it is.
    let idle = FIREWALL.replace("InfiniteSource(LENGTH 50)", "Idle");
    let (alone, simulated) = (turns_of(&idle, None), turns_of(FIREWALL, Some(Timestamp::from_micros(1))));
    assert_eq!(alone, simulated);
    // A step reads the time ten times, and a turn three or four times.
    let shared = turns_of(FIREWALL, None);
    assert!(
        alone > 5 && (2 * alone..=5 * alone).contains(&shared),
        "{shared} turns, {alone} without packets"
    );
    // A caller that lets no packets move goes on.
    let mut router = start_with(FIREWALL, 10, None);
    let write = begin(&mut router, "f.rules", &rules(300, "allow all"));
    router.turn();
    assert!((1..100_000).any(|_| router.continue_write(&write).is_some()), "the write ends");
}

#[test]
fn an_invalid_rule_changes_nothing() {
    let mut router = start(FIREWALL);
    let write = begin(&mut router, "f.rules", &rules(300, "allow nonsense"));
    let (result, _) = finish(&mut router, &write);
    let at_once = router.write("f.rules", &rules(300, "allow nonsense"));
    let error = result.expect_err("an error").to_string();
    assert_eq!(error, at_once.expect_err("an error").to_string());
    assert!(error.starts_with("pattern 300: empty term near ‘nonsense’"), "{error}");
    assert_eq!(router.read("f.rules", "").as_deref(), Ok("allow udp, deny all"));
    router.turn();
    assert_eq!(router.read("f.losses", "").as_deref(), Ok(""));
}

#[test]
fn short_writes_and_those_of_elements_are_executed_at_once() {
    let mut router = start(FIREWALL);
    assert!(matches!(router.begin_write("f.rules", "deny udp".into()), Ok(BegunWrite::Done(_))));
    assert_eq!(router.read("f.rules", "").as_deref(), Ok("deny udp"));
    // A write that comes while another goes on in steps does not wait for it; the one that ends last decides.
    let new = rules(100, "allow all");
    let write = begin(&mut router, "f.rules", &new);
    assert_eq!(router.continue_write(&write), None);
    let other = rules(100, "allow udp");
    assert!(matches!(router.begin_write("f.rules", other.clone()), Ok(BegunWrite::Done(_))));
    assert_eq!(router.read("f.rules", ""), Ok(other));
    assert!(finish(&mut router, &write).0.is_ok());
    assert_eq!(router.read("f.rules", ""), Ok(new.clone()));
    let text = format!("{FIREWALL} s :: Script(TYPE PASSIVE, write f.rules $args, return $(f.rules));");
    let router = start(&text);
    assert_eq!(router.read("s.run", &new).map(|rules| rules.trim_matches('"').len()), Ok(new.len()));
}

#[test]
fn a_swap_ends_a_write() {
    let mut router = start(FIREWALL);
    let write = begin(&mut router, "f.rules", &rules(300, "deny all"));
    assert_eq!(router.continue_write(&write), None);
    router.write("hotconfig", FIREWALL).expect("a swap");
    let error = router.continue_write(&write).expect("a result").expect_err("an error");
    assert_eq!(error.to_string(), "the configuration was replaced before the write was done: write it again");
    router.turn();
    assert!(passed(&router) > 0);
    assert_eq!(router.read("f.losses", "").as_deref(), Ok(""));
}

#[test]
fn the_argument_memory_chooses_the_form() {
    let text = |memory: &str| {
        FIREWALL.replace("allow udp, deny all", &format!("{memory}{}", rules(200, "allow all")))
    };
    let form = |router: &Router| router.read("f.form", "").expect("a form");
    assert!(form(&start(&text(""))).starts_with("fast form: tables, "));
    let mut router = start(&text("MEMORY 20000, "));
    assert!(form(&router).starts_with("compact form: bit rows, "), "{}", form(&router));
    // Rules that are written replace the argument too.
    let write = begin(&mut router, "f.rules", &rules(200, "allow all,\nMEMORY 10000000"));
    finish(&mut router, &write).0.expect("a write");
    assert!(form(&router).starts_with("fast form: tables, "), "{}", form(&router));
}

/// Counts of a table's outputs, to which packets to 10.9.9.9 go.
fn outputs(router: &Router) -> [u64; 3] {
    ["c.count", "d.count", "e.count"].map(|path| router.read(path, "").expect(path).parse().expect(path))
}

/// Starts a table with many routes, of which those of the packets are the last.
fn routes(class: &str, last: &str) -> Router {
    let routes: String =
        (0..300).map(|number| format!("10.{}.{}.0/24 1, ", number / 250, number % 250)).collect();
    start(&format!(
        "InfiniteSource(LENGTH 50) -> SetIPAddress(10.9.9.9) -> r :: {class}({routes}{last});
            r[0] -> c :: Counter -> Discard; r[1] -> d :: Counter -> Discard; r[2] -> e :: Counter -> Discard;"
    ))
}

const TABLES: [&str; 4] = ["RadixIPLookup", "DirectIPLookup", "RangeIPLookup", "LinearIPLookup"];

#[test]
fn old_routes_decide_until_the_new_ones_replace_them() {
    let masked = ("LinearIPLookup", "10.9.0.0/255.0.255.0 1, 10.0.9.0/255.0.255.0 0");
    for (class, last) in TABLES.map(|class| (class, "10.9/16 1.1.1.1 0")).into_iter().chain([masked]) {
        let prefix = last.split([' ', ',']).next().expect("a prefix");
        // The old hop loses its last route first, and others take its place.
        let change: String = (0..300)
            .map(|number| format!("set 10.{}.7.0/24 2.2.2.{} 1\n", number % 250, number % 200))
            .collect();
        let change = format!("set {prefix} 2\nset 10.9.9.0/24 2\n{change}");
        let mut at_once = routes(class, last);
        at_once.write("r.ctrl", &change).expect("a write");
        let mut router = routes(class, last);
        let write = begin(&mut router, "r.ctrl", &change);
        let (mut before, mut steps) = (outputs(&router), 0);
        let result = loop {
            router.turn();
            let now = outputs(&router);
            // The answer may come some turns after all new routes have replaced the old ones.
            let is_old = now[0] > before[0] && now[1..] == [0, 0];
            let is_new = now[2] > before[2] && now[..2] == before[..2];
            assert!(is_old || is_new, "{class}: one or the other decide, {now:?} after {before:?}");
            before = now;
            steps += 1;
            if let Some(result) = router.continue_write(&write) {
                break result;
            }
            if steps == 5 {
                // A write that comes meanwhile has effect together with the others.
                router.write("r.set", "10.9.9.9/32 2").expect("a write");
                at_once.write("r.set", "10.9.9.9/32 2").expect("a write");
            }
        };
        assert!(result.is_ok() && steps > 10, "{class}: {result:?} after {steps} steps");
        router.turn();
        let now = outputs(&router);
        assert!(now[2] > 0 && now[..2] == before[..2], "{class}: {now:?}");
        let sorted = |router: &Router| {
            let mut lines: Vec<String> =
                router.read("r.table", "").expect("a table").lines().map(String::from).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&router), sorted(&at_once), "{class}");
        assert_eq!(router.read("r.losses", "").as_deref(), Ok(""));
    }
}

#[test]
fn routes_that_are_given_up_change_nothing() {
    for class in TABLES {
        let mut router = routes(class, "10.9/16 1.1.1.1 0");
        let change: String =
            (0..300).map(|number| format!("set 10.9.{}.0/24 3.3.3.3 2\n", number % 250)).collect();
        let change = format!("set 10.9/16 2\n{change}remove 10.200/16\n");
        let expected = routes(class, "10.9/16 1.1.1.1 0").write("r.ctrl", &change).expect_err("an error");
        let write = begin(&mut router, "r.ctrl", &change);
        let (result, _) = finish(&mut router, &write);
        assert_eq!(result, Err(expected));
        router.turn();
        assert_eq!(outputs(&router)[1..], [0, 0]);
        let table = router.read("r.table", "").expect("a table");
        assert!(!table.contains("3.3.3.3") && table.contains("1.1.1.1"), "{class}");
        // The box may end, or take another configuration, in the middle of a write.
        let write = begin(&mut router, "r.ctrl", &change);
        assert_eq!(router.continue_write(&write), None);
        router.write("hotconfig", "Idle -> Discard").expect("a swap");
        assert!(router.continue_write(&write).expect("a result").is_err());
    }
}
