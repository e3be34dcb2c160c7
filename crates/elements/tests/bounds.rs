//! The check of a configuration takes bounded time and memory, whatever ports the configuration uses.
//!
//! Here every class meets the highest port and the deepest nesting. The tests in `tests/cost`, which the last test here
//! executes, count the work and the memory.

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use click_lang::{Diagnostic, Options};
use element::ClassDocumentation;
use router::Registry;
use support::Memory;

/// The highest port number that the language has.
const PORT: usize = 65_535;

/// The nesting of compounds that the language allows.
const NESTING: usize = 49;

/// The time after which a check is taken for endless. The checks take milliseconds; the test programs of a busy machine
/// wait for each other.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum number of bytes of the messages of a check: a thousand messages.
const MAX_MESSAGE_BYTES: usize = 200_000;

/// The messages of a check.
fn check(text: &str) -> Vec<Diagnostic> {
    let is_class = |name: &str| elements::class(name).is_some();
    let compiled = click_lang::compile(text, &Options::new("config", &is_class));
    router::check(compiled, Registry::new(elements::REGISTRY), Rc::new(Memory::connected()))
}

/// Checks a configuration on a thread of its own. Returns the number of errors.
#[track_caller]
fn check_within(text: String) -> usize {
    let (sender, receiver) = mpsc::channel();
    let shown: String = text.chars().take(200).collect();
    thread::spawn(move || {
        let found = check(&text);
        let bytes: usize = found.iter().map(|diagnostic| diagnostic.to_string().len()).sum();
        let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == click_lang::Severity::Error;
        let errors = found.iter().filter(is_error).count();
        // The receiver has given up if nobody listens.
        let _ = sender.send((errors, bytes));
    });
    let (errors, bytes) = receiver.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("no end: {shown}"));
    assert!(bytes < MAX_MESSAGE_BYTES, "{bytes} bytes of messages: {shown}");
    errors
}

/// The arguments of a class in its own example.
fn example_arguments(page: &ClassDocumentation) -> String {
    let is_class = |name: &str| elements::class(name).is_some();
    let graph = click_lang::compile(page.example, &Options::new("example", &is_class)).graph;
    let named = |element: &click_lang::Element| elements::class(&element.class).map(|class| class.info.name);
    let found = graph.elements.into_iter().find(|element| named(element) == Some(page.name));
    found.map(|element| element.config).unwrap_or_default()
}

fn pages() -> impl Iterator<Item = &'static ClassDocumentation> {
    elements::DOCUMENTATION.iter().copied().flatten().copied()
}

/// `NESTING` compounds around an element `x`, whose port at each side is the highest one.
fn nested(class: &str, arguments: &str) -> String {
    let mut text = format!("{{ input -> [0, {PORT}] x :: {class}({arguments}); x [0, {PORT}] -> output }}");
    for _ in 1..NESTING {
        text =
            format!("{{ input [0, {PORT}] => [0, {PORT}] x :: {text} [0, {PORT}] => [0, {PORT}] output }}");
    }
    format!("Idle [0, {PORT}] => [0, {PORT}] y :: {text} [0, {PORT}] => [0, 1] Discard")
}

#[test]
fn every_class_is_checked_with_its_highest_ports() {
    for page in pages() {
        let (name, arguments) = (page.name, example_arguments(page));
        let at_both = format!(
            "Idle -> x :: {name}({arguments}) -> Discard; Idle -> [{PORT}] x [{PORT}] -> Discard; Idle -> [{PORT}] x"
        );
        // No class takes ports of which all but two are unconnected.
        assert!(check_within(at_both) > 0, "{name}");
        assert!(check_within(format!("Idle -> [{PORT}] x :: {name}({arguments})")) > 0, "{name}");
        assert!(check_within(format!("x :: {name}({arguments}) [{PORT}] -> Discard")) > 0, "{name}");
        check_within(nested(name, &arguments));
    }
}

#[test]
fn classes_with_any_number_of_ports_are_checked_with_all() {
    let mut checked = BTreeSet::new();
    for page in pages() {
        let Some(class) = elements::class(page.name) else { continue };
        let (inputs, outputs) = class.info.ports.split_once('/').unwrap_or((class.info.ports, ""));
        let arguments = example_arguments(page);
        let [many_inputs, many_outputs] =
            [inputs, outputs].map(|side| side.ends_with('-') || side.starts_with('='));
        let declared = format!("x :: {}({arguments})", page.name);
        let to = if many_inputs { format!("[0-{PORT}] ") } else { String::new() };
        let from = if many_outputs { format!(" [0-{PORT}]") } else { String::new() };
        if !many_inputs && !many_outputs {
            continue;
        }
        checked.insert(page.name);
        let before = if inputs.starts_with('0') && !many_inputs { "" } else { "Idle -> " };
        let after = if outputs.starts_with('0') && !many_outputs { "" } else { " -> Discard" };
        // The modes of agnostic ports are in conflict.
        let is_agnostic = class.info.processing.contains('a') && !before.is_empty() && !after.is_empty();
        let (before, after) =
            if is_agnostic { ("InfiniteSource -> ", " -> ToDevice(eth0)") } else { (before, after) };
        check_within(format!("{before}{to}{declared}{from}{after}"));
    }
    assert!(checked.len() > 40, "{checked:?}");
}

#[test]
fn many_elements_with_their_highest_ports_are_one_error() {
    let switch = |number: usize| format!("Idle -> s{number} :: Switch; s{number} [{PORT}] -> Discard;");
    let found = check(&(0..1000).map(switch).collect::<String>());
    let is_limit = |diagnostic: &&Diagnostic| diagnostic.message.contains("too many unused ports");
    assert_eq!(found.iter().filter(is_limit).count(), 1);
}

#[test]
fn unused_ports_are_listed_up_to_a_limit() {
    let found = check("InfiniteSource -> s :: Switch; s [100] -> Discard");
    let messages: Vec<&str> = found.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    assert_eq!(messages.len(), 17, "{messages:?}");
    assert_eq!(messages[15..], ["‘s :: Switch’ output 15 unused", "‘s :: Switch’: 84 more outputs unused"]);
}

/// The tests in `tests/cost` are a workspace of their own, because their code is compiled with counters.
#[test]
fn checks_cost_in_proportion_to_their_input() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cost");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cost");
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--quiet", "--target-dir"]).arg(target).current_dir(folder);
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUST_TEST_THREADS"] {
        command.env_remove(variable);
    }
    let output = command.output().expect("cargo");
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}
