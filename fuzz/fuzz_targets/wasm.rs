//! Any bytes as a module of WebAssembly, or as the code of its function `process`: the element refuses it, or counts each packet.
#![no_main]

use std::sync::OnceLock;

use element::Class;
use function::Simulation;
use libfuzzer_sys::fuzz_target;

/// Packets of a run.
const PACKETS: u64 = 5;

fn registry() -> &'static [&'static [Class]] {
    static REGISTRY: OnceLock<&'static [&'static [Class]]> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        Box::leak([elements::REGISTRY, &[&wasm_elements::CLASSES[..]]].concat().into_boxed_slice())
    })
}

/// An unsigned number in LEB128.
fn number(mut value: usize, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn section(kind: u8, contents: &[u8], into: &mut Vec<u8>) {
    into.push(kind);
    number(contents.len(), into);
    into.extend(contents);
}

/// A module with the interface of a function, and this code for `process`. It has four locals of each type, and may call `resize`
/// (0), `count` (1), `now` (2) and itself (4).
fn module(code: &[u8]) -> Vec<u8> {
    let mut made = b"\0asm\x01\0\0\0".to_vec();
    section(1, b"\x03\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7e\0\x60\0\x01\x7e", &mut made);
    let mut imports = vec![3];
    for (name, kind) in [("resize", 0u8), ("count", 1), ("now", 2)] {
        for text in ["clickbox", name] {
            number(text.len(), &mut imports);
            imports.extend(text.as_bytes());
        }
        imports.extend([0, kind]);
    }
    section(2, &imports, &mut made);
    section(3, b"\x02\0\0", &mut made);
    section(4, b"\x01\x70\0\x04", &mut made);
    section(5, b"\x01\0\x01", &mut made);
    section(7, b"\x03\x06memory\x02\0\x06buffer\0\x03\x07process\0\x04", &mut made);
    let mut process = b"\x04\x04\x7f\x04\x7e\x04\x7d\x04\x7c".to_vec();
    process.extend(code);
    process.push(0x0b);
    let mut bodies = b"\x02\x05\0\x41\x80\x08\x0b".to_vec();
    number(process.len(), &mut bodies);
    bodies.extend(process);
    section(10, &bodies, &mut made);
    made
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let bytes = if choice % 4 == 0 { bytes.to_vec() } else { module(bytes) };
    let simulation = Simulation::new(registry()).file("f.wasm", &bytes);
    let config = format!(
        "InfiniteSource(LENGTH 60, LIMIT {PACKETS}, STOP true) -> w :: Wasm(f.wasm, FUEL 20000, START_FUEL 20000, MEMORY 128);
         w[0] -> a :: Counter -> Discard; w[1] -> b :: Counter -> Discard;"
    );
    let Ok(done) = simulation.run(&config) else { return };
    let read = |handler: &str| done.read(handler).expect("a handler");
    let count = |text: &str| text.trim().parse::<u64>().expect("a number");
    let losses = read("w.losses");
    let lost: u64 =
        losses.lines().filter_map(|line| line.rsplit_once(' ')).map(|(_, lost)| count(lost)).sum();
    assert_eq!(count(&read("a.count")) + count(&read("b.count")) + lost, PACKETS, "{losses}");
});
