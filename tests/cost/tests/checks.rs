//! The check of a configuration takes work and memory in proportion to its text and to the ports that it uses.

#[path = "../../../fuzz/src/repetition.rs"]
mod repetition;
#[path = "../../../crates/elements/tests/support/mod.rs"]
mod support;

use cost::{Cost, measure};
use repetition::Repetition;
use router::Registry;
use std::path::Path;
use std::rc::Rc;
use support::Memory;

/// Bytes of the longer text of each pair.
const TEXT: usize = 1 << 16;

/// The highest port number that the language has.
const PORT: usize = 65_535;

/// The highest port where the test would take too long with all ports.
const MANY_PORTS: usize = 4_095;

/// How much costs may grow when the input doubles: by two, by the logarithm of the size that trees add, and for memory by the
/// capacity that vectors keep, which may double at a size between the two.
const MAX_GROWTH: Growth = Growth { blocks: 2.3, bytes: 3.5 };

struct Growth {
    blocks: f64,
    bytes: f64,
}

/// Costs of an empty text, whose growth says nothing.
const FIXED: Cost = Cost { blocks: 20_000, bytes: 20_000 };

/// The highest cost of a byte of text: of `->`, which joins 100 ports of a compound to the 100 of the next.
const OF_BYTE: Cost = Cost { blocks: 15_000, bytes: 3_000 };

/// The highest cost of a port.
const OF_PORT: Cost = Cost { blocks: 3_000, bytes: 1_000 };

fn is_class(name: &str) -> bool {
    elements::class(name).is_some()
}

/// The cost of a check.
fn check(text: &str) -> Cost {
    let (cost, _) = measure(|| {
        let compiled = click_lang::compile(text, &click_lang::Options::new("config", &is_class));
        router::check(compiled, Registry::new(elements::REGISTRY), Rc::new(Memory::connected()))
    });
    cost
}

/// Errors if the cost grows by more than the size, which doubles, or if it exceeds `of_each` for each of `size`.
fn compare(what: &str, [one, two]: [Cost; 2], size: usize, of_each: Cost) -> Vec<String> {
    let numbers = |one: u64, two: u64| format!("{one}, then {two} ({:.2} times)", two as f64 / one as f64);
    let mut errors = Vec::new();
    for (unit, growth, one, two, fixed, of_each) in [
        ("blocks", MAX_GROWTH.blocks, one.blocks, two.blocks, FIXED.blocks, of_each.blocks),
        ("bytes", MAX_GROWTH.bytes, one.bytes, two.bytes, FIXED.bytes, of_each.bytes),
    ] {
        if two as f64 > growth * one as f64 + fixed as f64 {
            errors.push(format!("{what}: more than linear: {} {unit}", numbers(one, two)));
        }
        if two > fixed + of_each * size as u64 {
            errors.push(format!("{what}: too much: {two} {unit} for {size}"));
        }
    }
    if std::env::var_os("SHOW_COST").is_some() {
        println!(
            "{what}: {} blocks, {} bytes",
            numbers(one.blocks, two.blocks),
            numbers(one.bytes, two.bytes)
        );
    }
    errors
}

#[test]
fn the_same_check_costs_the_same() {
    let text = "Idle -> f :: IPFilter(allow src port 1 or 2, deny all) -> Discard;";
    let first = check(text);
    assert!(first.blocks > 1000 && first.bytes > 1000, "{first:?}: the callbacks are not called");
    assert_eq!(first, check(text));
}

/// The texts that the fuzz target `cost` starts with.
#[test]
fn repeated_parts_cost_in_proportion() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/cost");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("the seeds").flatten().collect();
    files.sort_by_key(|file| file.file_name());
    assert!(files.len() > 100);
    let mut errors = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.path()).expect("a text");
        let repetition = Repetition::new(&text);
        let count = repetition.count(TEXT / 2);
        let (one, two) = (repetition.text(count), repetition.text(2 * count));
        let name = file.file_name().to_string_lossy().into_owned();
        errors.extend(compare(&name, [check(&one), check(&two)], two.len(), OF_BYTE));
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// The arguments of a class in its own example.
fn example_arguments(page: &element::ClassDocumentation) -> String {
    let graph = click_lang::compile(page.example, &click_lang::Options::new("example", &is_class)).graph;
    let named = |element: &click_lang::Element| elements::class(&element.class).map(|class| class.info.name);
    let found = graph.elements.into_iter().find(|element| named(element) == Some(page.name));
    found.map(|element| element.config).unwrap_or_default()
}

fn pages() -> impl Iterator<Item = &'static element::ClassDocumentation> {
    elements::DOCUMENTATION.iter().copied().flatten().copied()
}

/// The errors of a text that uses ports up to a number, for half of `ports` and for all.
fn compare_ports(ports: usize, text: impl Fn(usize) -> String) -> Vec<String> {
    let (one, two) = (text(ports / 2), text(ports));
    // The text has four lists of ports at most.
    compare(&two, [check(&one), check(&two)], 4 * ports, OF_PORT)
}

#[test]
fn every_class_costs_the_same_at_its_highest_port() {
    let mut errors = Vec::new();
    for page in pages() {
        let declared = format!("x :: {}({})", page.name, example_arguments(page));
        errors.extend(compare_ports(PORT, |port| {
            format!(
                "Idle -> {declared} -> Discard; Idle -> [{port}] x [{port}] -> Discard; Idle -> [{port}] x"
            )
        }));
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn classes_with_any_number_of_ports_cost_in_proportion() {
    let mut errors = Vec::new();
    let mut count = 0;
    for page in pages() {
        let Some(class) = elements::class(page.name) else { continue };
        let (inputs, outputs) = class.info.ports.split_once('/').unwrap_or((class.info.ports, ""));
        let is_open = |side: &str| side.ends_with('-') || side.starts_with('=');
        let declared = format!("x :: {}({})", page.name, example_arguments(page));
        if is_open(inputs) {
            errors.extend(compare_ports(PORT, |port| format!("Idle -> [0-{port}] {declared} -> Discard")));
            count += 1;
        }
        if is_open(outputs) {
            errors.extend(compare_ports(PORT, |port| format!("Idle -> {declared} [0-{port}] -> Discard")));
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn ports_of_every_class_cost_in_proportion() {
    let mut errors = Vec::new();
    for page in pages() {
        let declared = format!("x :: {}({})", page.name, example_arguments(page));
        errors.extend(compare_ports(MANY_PORTS, |port| {
            format!(
                "Idle [0-{port}] => [0-{port}] {{ input [0-{port}] => [0-{port}] {declared} \
                 [0-{port}] => [0-{port}] output }} [0-{port}] => [0-{port}] Discard"
            )
        }));
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// Each number in the arguments of an example, replaced by a large one.
fn with_large_numbers(arguments: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut start = None;
    for (at, letter) in arguments.char_indices().chain([(arguments.len(), ' ')]) {
        match start {
            None if letter.is_ascii_digit() => start = Some(at),
            Some(first) if !letter.is_ascii_digit() => {
                for number in LARGE {
                    texts.push([&arguments[..first], number, &arguments[at..]].concat());
                }
                start = None;
            }
            _ => {}
        }
    }
    texts
}

/// Numbers that a list of as many parts, or memory of as many bytes, would make expensive.
const LARGE: &[&str] = &["1000", "65535", "1000000", "2147483647", "4294967295"];

/// The highest cost of one element whose arguments are numbers: `Clipboard` has a buffer of 65,535 bytes.
const OF_ELEMENT: Cost = Cost { blocks: 30_000, bytes: 80_000 };

#[test]
fn numbers_cost_little() {
    let mut errors = Vec::new();
    for page in pages() {
        for arguments in with_large_numbers(&example_arguments(page)) {
            let text = format!("{}({arguments})", page.name);
            let cost = check(&text);
            if cost.blocks > OF_ELEMENT.blocks || cost.bytes > OF_ELEMENT.bytes {
                errors.push(format!("{cost:?}: {text}"));
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
