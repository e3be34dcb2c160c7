//! Modules in text, and configurations that run them in simulated time.

use std::sync::OnceLock;

use element::Class;
use function::Simulation;

/// The classes of the image.
pub(crate) fn registry() -> &'static [&'static [Class]] {
    static REGISTRY: OnceLock<&'static [&'static [Class]]> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        Box::leak([elements::REGISTRY, &[&wasm_elements::CLASSES[..]]].concat().into_boxed_slice())
    })
}

/// A module from text.
pub(crate) fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A module with these fields besides imports, memory and buffer. The text `user:scrub/odd` is at address 8, `odd` at 19.
pub(crate) fn module(fields: &str) -> Vec<u8> {
    wat(&format!(
        r#"(module
        (import "clickbox" "counter" (func $counter (param i32 i32) (result i32)))
        (import "clickbox" "count" (func $count (param i32 i64)))
        (import "clickbox" "reason" (func $reason (param i32 i32) (result i32)))
        (import "clickbox" "log" (func $log (param i32 i32)))
        (import "clickbox" "resize" (func $resize (param i32) (result i32)))
        (import "clickbox" "now" (func $now (result i64)))
        (import "clickbox" "random" (func $random (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 8) "user:scrub/odd")
        (func (export "buffer") (param i32) (result i32) (i32.const 1024))
        {fields})"#
    ))
}

/// A module whose function `process` has this body; its parameter is the length.
pub(crate) fn process(body: &str) -> Vec<u8> {
    module(&format!(r#"(func (export "process") (param i32) (result i32) {body})"#))
}

/// A simulation with modules as files.
pub(crate) fn simulation(modules: &[(&str, &[u8])]) -> Simulation {
    modules.iter().fold(Simulation::new(registry()), |simulation, (name, bytes)| simulation.file(name, bytes))
}

/// A configuration with the element `w` and its arguments, which sends packets of 60 bytes that begin with their number, 1
/// byte, and counts what leaves by each of two outputs.
pub(crate) fn configuration(arguments: &str, packets: u32) -> String {
    format!(
        "s :: RatedSource(LENGTH 60, RATE 1000, LIMIT {packets}, STOP true)
         -> StoreData(0, \\<00>) -> w :: Wasm({arguments});
         w[0] -> a :: Counter -> tail :: Discard; w[1] -> b :: Counter -> Discard;"
    )
}

/// Checks handlers, given as lines `NAME = VALUE`. Lines within a value are joined by commas.
pub(crate) fn check(read: impl Fn(&str) -> Result<String, String>, expected: &str) {
    let lines: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let found: Vec<String> = lines
        .iter()
        .map(|line| {
            let name = line.split(" =").next().unwrap_or_default();
            let value = read(name).unwrap_or_else(|error| error).trim().replace('\n', ", ");
            format!("{name} = {value}").trim_end().to_string()
        })
        .collect();
    assert_eq!(found, lines);
}
