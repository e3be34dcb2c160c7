//! Prints how long packets wait at most while long configurations are installed, written and removed.
//!
//! `cargo run --release -p elements --example step_lengths`
//!
//! A configuration replaces a small one, then itself, and the small one replaces it. Each row shows the longest step between two turns in
//! microseconds of processor time: of the preparation, at the replacement, and in the turns after it, which free the old
//! configuration. Of several runs the shortest time counts, because interrupts and other processes lengthen some steps.
//!
//! `clickbox run` sets the C library's allocator so that it keeps freed memory; here the environment does:
//! `GLIBC_TUNABLES=glibc.malloc.mxfast=0:glibc.malloc.trim_threshold=2147483647:glibc.malloc.mmap_threshold=33554432`.

use std::rc::Rc;
use std::time::{Duration, Instant};

use click_lang::compile;
use element::{Descriptor, Environment, HandlerError};
use packet::Timestamp;
use router::{BegunWrite, Options, Registry, Router};
use rustix::time::{ClockId, clock_gettime};

/// Runs of each row.
const RUNS: usize = 7;
/// Turns after a replacement, in which the old configuration is freed.
const TURNS: usize = 2_000;

const SMALL: &str = "Idle -> Discard;";

/// The real clock.
struct Clock(Instant);

impl Environment for Clock {
    fn now(&self) -> Timestamp {
        self.steady()
    }

    fn steady(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.elapsed().as_nanos() as i64)
    }

    fn seed(&self) -> u64 {
        1
    }

    fn console(&self, _: &str) {}

    fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        Vec::new()
    }
}

fn start(text: &str) -> Router {
    let registry = Registry::new(elements::REGISTRY);
    let compiled = compile(text, &click_lang::Options::new("config", &|name| registry.contains(name)));
    match Router::new(compiled.graph, registry, Rc::new(Clock(Instant::now())), Options::default()) {
        Ok(router) => router,
        Err(problems) => panic!("{problems:?}"),
    }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The longest steps of a write: before the last, the last, and afterwards.
fn write(router: &mut Router, path: &str, value: &str) -> [Duration; 3] {
    let [mut longest, mut after] = [Duration::ZERO; 2];
    let start = processor_time();
    let begun = router.begin_write(path, value.into());
    let mut last = processor_time().saturating_sub(start);
    if let BegunWrite::Long(write) = begun.expect("a valid write") {
        loop {
            longest = longest.max(last);
            router.turn();
            let start = processor_time();
            let result = router.continue_write(&write);
            last = processor_time().saturating_sub(start);
            match result {
                Some(Ok(_) | Err(HandlerError::WrittenWithWarnings(_))) => break,
                Some(Err(error)) => panic!("{error}"),
                None => {}
            }
        }
    }
    for _ in 0..TURNS {
        let start = processor_time();
        router.turn();
        after = after.max(processor_time().saturating_sub(start));
    }
    [longest, last, after]
}

fn show(name: &str, text: &str, change: Option<(&str, String)>) {
    let small = format!("{SMALL} // {}", " ".repeat(4096));
    let again = format!("{text} //");
    let mut rows = ["install", "write", "replace", "remove"].map(|what| (what, [Duration::MAX; 3]));
    for _ in 0..RUNS {
        let mut router = start(SMALL);
        let installed = write(&mut router, "hotconfig", text);
        let written = change.as_ref().map(|(path, value)| write(&mut router, path, value));
        let replaced = write(&mut router, "hotconfig", &again);
        let removed = write(&mut router, "hotconfig", &small);
        let runs = [Some(installed), written, Some(replaced), Some(removed)];
        for (row, times) in rows.iter_mut().zip(runs) {
            for (least, time) in row.1.iter_mut().zip(times.into_iter().flatten()) {
                *least = time.min(*least);
            }
        }
    }
    for (what, times) in rows.into_iter().filter(|(_, times)| times[0] < Duration::MAX) {
        let [longest, last, after] = times.map(|time| time.as_nanos() as f64 / 1e3);
        println!("{name:<28} {what:<8} {longest:>9.0} {last:>9.0} {after:>9.0}");
    }
}

fn main() {
    println!("{:<28} {:<8} {:>9} {:>9} {:>9}", "configuration", "", "steps", "last", "after");
    let repeated = |count: usize, route: &dyn Fn(usize) -> String, separator: &str| {
        (0..count).map(route).collect::<Vec<_>>().join(separator)
    };
    let ip4 = |number: usize| {
        let scattered = (number as u32).wrapping_mul(2_654_435_761);
        format!("{}.{}.{}.0/24 {}", scattered >> 24, scattered >> 16 & 255, scattered >> 8 & 255, number % 2)
    };
    let ip6 = |number: usize| {
        let scattered = (number as u32).wrapping_mul(2_654_435_761);
        format!("2001:{:x}:{:x}::/48 {}", scattered >> 16, scattered & 0xffff, number % 2)
    };
    for count in [1_000, 10_000] {
        for (class, route) in [
            ("RadixIPLookup", &ip4 as &dyn Fn(usize) -> String),
            ("LinearIPLookup", &ip4),
            ("LookupIPRouteMP", &ip4),
            ("LookupIP6Route", &ip6),
        ] {
            let text = format!(
                "Idle -> r :: {class}({}); r[0] -> Discard; r[1] -> Discard;",
                repeated(count, route, ", ")
            );
            let commands = repeated(count, &|number| format!("set {}", route(number + count)), "\n");
            let change = class.ends_with("IPLookup").then_some(("r.ctrl", commands));
            show(&format!("{class}, {count} routes"), &text, change);
        }
    }
    for count in [1_000, 5_000] {
        let tens = count / 10;
        let ten = |ten: usize| format!("c{ten} {} -> c{} :: Counter;", "-> Counter ".repeat(9), ten + 1);
        let chain = format!("Idle -> c0 :: Counter; {} c{tens} -> Discard;", repeated(tens, &ten, "\n"));
        show(&format!("{count} elements in a chain"), &chain, None);
        let counters = "-> Counter ".repeat(count);
        let statement = format!("InfiniteSource(ACTIVE false) {counters} -> Discard;");
        show(&format!("{count} in a statement"), &statement, None);
        let class = format!("elementclass X {{ input {counters} -> output }} Idle -> X -> Discard;");
        show(&format!("{count} in a class"), &class, None);
        let list = repeated(count, &|number| format!("idle{number}"), ", ") + " :: Idle;";
        show(&format!("{count} in a list"), &list, None);
        let ports = repeated(count, &|port| format!("udp dst port {port}"), ", ");
        let ends = repeated(count, &|port| format!("i[{port}] -> Discard;"), " ");
        show(
            &format!("IPClassifier, {count} outputs"),
            &format!("Idle -> i :: IPClassifier({ports}); {ends}"),
            None,
        );
    }
}
