//! The limits of a check: a configuration that exceeds its time or memory is refused, and harms nothing else.

mod support;

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;
use support::{Daemon, TIMEOUT};

/// A configuration whose check takes seconds and more than a hundred megabytes.
fn large() -> String {
    let rule = |number: u32| {
        let [_, high, middle, low] = number.to_be_bytes();
        format!("allow src 10.{high}.{middle}.{low} and dst port {}", number % 65_536)
    };
    let rules: Vec<String> = (0..100_000).map(rule).collect();
    format!("Idle -> IPFilter({}) -> Discard;\n", rules.join(",\n"))
}

/// The parent of a process and its command.
fn process(number: u32) -> Option<(u32, String)> {
    let status = fs::read_to_string(format!("/proc/{number}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    Some((parent, fs::read_to_string(format!("/proc/{number}/cmdline")).ok()?))
}

/// The sandboxed processes below a daemon.
fn boxes(daemon: &Daemon) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("processes");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_ours = |number: &u32| {
        let ancestors = std::iter::successors(Some(*number), |number| Some(process(*number)?.0));
        process(*number).is_some_and(|(_, command)| command.trim_end_matches('\0') == "box")
            && ancestors.take_while(|number| *number > 1).any(|number| number == daemon.child.id())
    };
    numbers.filter(is_ours).collect()
}

/// The body of the answer to `POST /v1/check`.
fn check(daemon: &Daemon, configuration: &str) -> String {
    let body = serde_json::json!({ "configuration": configuration }).to_string();
    let mut stream = UnixStream::connect(daemon.socket()).expect("the daemon listens");
    let head = "POST /v1/check HTTP/1.1\r\nHost: clickbox\r\nConnection: close\r\nContent-Type: application/json\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// What must be the same before and after a check: the box and its process.
fn state(daemon: &Daemon) -> (Value, Value, Value, bool) {
    let shown = daemon.json(&["show", "fw"]);
    let is_there = boxes(daemon).iter().any(|process| shown["pid"] == *process);
    (shown["pid"].clone(), shown["restarts"].clone(), shown["crash"].clone(), is_there)
}

fn is_refused(name: &str, options: &[&str], message: &str, option: &str) {
    let daemon = Daemon::start_with(name, &[&["--no-store"], options].concat());
    let small = daemon.file("fw.click", "TimedSource(0.001) -> c :: Counter -> Discard;\n");
    let large_text = large();
    let large = daemon.file("large.click", &large_text);
    daemon.check(&["create", "fw", &small, "--sandbox", "process"], 0, &[]);
    let before = state(&daemon);
    assert!(before.3, "{before:?}");
    let packets = || daemon.check(&["read", "fw/c.count"], 0, &[]).trim().parse::<u64>().expect("a number");

    // A new box, a new configuration of a running box, a stack, and a request that only checks.
    let texts = [message, option, "make the configuration or its files smaller"];
    daemon.check(&["create", "large", &large, "--sandbox", "process"], 5, &texts);
    daemon.check(&["show", "large"], 4, &["large"]);
    daemon.check(&["install", "fw", &format!("main={large}")], 5, &texts);
    let stack = "[boxes.large]\nconfiguration = \"large.click\"\nsandbox = \"process\"\n";
    daemon.check(&["up", &daemon.file("edge.toml", stack)], 5, &[message, option]);
    daemon.check(&["show", "large"], 4, &["large"]);
    let answer = check(&daemon, &large_text);
    assert!(answer.contains("200 OK") && texts.iter().all(|text| answer.contains(text)), "{answer}");

    // The checks have ended, and nothing else has. There may be a spare sandbox.
    let begin = Instant::now();
    while boxes(&daemon).len() > 2 {
        assert!(begin.elapsed() < TIMEOUT, "{:?}", boxes(&daemon));
    }
    assert_eq!(state(&daemon), before);
    let count = packets();
    while packets() == count {
        assert!(begin.elapsed() < TIMEOUT, "the box has stopped");
    }
    daemon.check(&["create", "second", &small, "--sandbox", "process"], 0, &[]);
    assert!(check(&daemon, "TimedSource(1) -> Discard;").contains(r#"{"diagnostics":[]}"#));
}

#[test]
fn a_check_that_takes_too_long_is_ended() {
    is_refused("check-time", &["--check-time", "1"], "took longer than 1 s", "--check-time");
}

#[test]
fn a_check_that_needs_too_much_memory_is_ended() {
    // The second box can't even receive the text.
    for memory in ["32M", "6M"] {
        let message = format!("needed more than {memory} of memory");
        is_refused("check-memory", &["--check-memory", memory], &message, "--check-memory");
    }
}

#[test]
fn limits_of_checks_have_bounds() {
    for (option, value) in [("--check-time", "0"), ("--check-time", "601"), ("--check-memory", "5G")] {
        let program = env!("CARGO_BIN_EXE_clickbox");
        let output = std::process::Command::new(program).args(["daemon", option, value]).output();
        let output = output.expect("the program ends");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(option), "{text}");
    }
}
