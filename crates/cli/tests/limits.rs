//! The limits of a box: its memory, and its share of a core beside others. Ratios are of times and packets, with
//! generous bounds, so that other load on the machine does not affect them.

mod support;

use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use std::time::Instant;
use support::{Daemon, TIMEOUT, kilobytes};
use test_support::{Capability, require};

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A box can't use more memory than its limit, whatever its configuration does.
#[test]
fn a_box_uses_at_most_its_memory() {
    let daemon = Daemon::start("memory");
    // A queue that is never emptied, for more packets than fit into the memory.
    let file = daemon.file(
        "hungry.click",
        "i :: InfiniteSource(LENGTH 1400, BURST 32) -> q :: Queue(10000000) -> Idle;\n",
    );
    daemon.check(&["create", "hungry", &file, "--sandbox", "process", "--memory", "6M"], 0, &[]);
    let begin = Instant::now();
    // Either the packet pool is exhausted, and packets without a buffer are counted; or the box has run out of memory
    // and ended.
    loop {
        let shown = daemon.json(&["show", "hungry"]);
        let (_, losses) = daemon.run(&["read", "hungry/i.losses"]);
        if losses.contains("no_buffer") || !shown["crash"].is_null() {
            break;
        }
        assert!(begin.elapsed() < TIMEOUT, "{losses}: {shown}");
    }
    let shown = daemon.json(&["show", "hungry"]);
    assert!(count(&shown["usage"]["heap"]) < 6 << 20, "{shown}");
    if let Some(pid) = shown["pid"].as_u64() {
        // Its memory, its image, which is shared, and its stack.
        let most = (6 + 4 + 1) << 10;
        assert!(kilobytes(pid, "VmHWM:") < most, "{} KB", kilobytes(pid, "VmHWM:"));
    }
}

/// One box's figure divided by the other's: the median of three measurements. Each runs until the sum of both reaches
/// `enough`, so that load on the machine makes it longer but does not change the ratio.
fn ratio(daemon: &Daemon, figure: fn(&str, &Daemon) -> u64, enough: u64) -> f64 {
    let look = || ["less", "more"].map(|name| figure(name, daemon));
    let measure = || {
        let (before, begin) = (look(), Instant::now());
        loop {
            let now = look();
            let [less, more] = [now[0] - before[0], now[1] - before[1]];
            if less + more >= enough {
                return more as f64 / less.max(1) as f64;
            }
            assert!(begin.elapsed() < TIMEOUT, "the boxes got {less} and {more} of {enough}");
        }
    };
    let mut found = [(); 3].map(|()| measure());
    found.sort_by(f64::total_cmp);
    found[1]
}

/// A box with three times the weight gets about three times as much CPU time when both compete.
#[test]
fn weights_divide_contended_cpu_time() {
    // Everything that this thread starts runs on one core, so that it competes.
    let mut one = CpuSet::new();
    one.set(rustix::thread::sched_getcpu());
    sched_setaffinity(None, &one).expect("a processor");
    let start = |name: &str, sandbox: &str| {
        let daemon = Daemon::start_with(name, &["--no-store", "--workers", "1"]);
        let busy = daemon.file("busy.click", "InfiniteSource(LENGTH 64) -> c :: Counter -> Discard;\n");
        for (name, weight) in [("less", "30"), ("more", "90")] {
            let create =
                ["create", name, &busy, "--sandbox", sandbox, "--cpu-weight", weight, "--ring", "1024"];
            daemon.check(&create, 0, &[]);
        }
        daemon
    };
    let daemon = start("weights-process", "process");
    let found =
        ratio(&daemon, |name, daemon| count(&daemon.json(&["show", name])["usage"]["own_ns"]), 500_000_000);
    assert!((2.0..4.5).contains(&found), "processes: {found}");
    drop(daemon);
    if !require(Capability::Kvm) {
        return;
    }
    let daemon = start("weights-machine", "vm");
    let found = ratio(
        &daemon,
        |name, daemon| {
            daemon.check(&["read", &format!("{name}/c.count")], 0, &[]).trim().parse().expect("a number")
        },
        500_000,
    );
    assert!((2.0..4.5).contains(&found), "machines: {found}");
}

/// The usage of a box includes its own time, and the switch's time for what it sends, also through a pipe.
#[test]
fn boxes_are_charged_for_their_pipes() {
    let daemon = Daemon::start("pipes");
    daemon.file("source.click", "InfiniteSource(LENGTH 64) -> ToDevice(0);\n");
    daemon.file("sink.click", "FromDevice(0) -> c :: Counter -> Discard;\n");
    let stack = daemon.file(
        "row.toml",
        "chains = [[\"source\", \"sink\"]]\n[boxes.source]\nconfiguration = \"source.click\"\nsandbox = \"process\"\n\
         [boxes.sink]\nconfiguration = \"sink.click\"\nsandbox = \"process\"\n",
    );
    daemon.check(&["up", &stack], 0, &[]);
    let begin = Instant::now();
    loop {
        let shown = daemon.json(&["show", "source"]);
        if count(&shown["usage"]["switch_ns"]) > 0 && count(&shown["usage"]["own_ns"]) > 0 {
            break;
        }
        assert!(begin.elapsed() < TIMEOUT, "{shown}");
    }
    // The other box sends nothing.
    assert_eq!(daemon.json(&["show", "sink"])["usage"]["switch_ns"], 0);
}
