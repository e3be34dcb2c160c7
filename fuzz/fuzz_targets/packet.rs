//! Any bytes as a packet, through each element that needs no arguments, with and without header marks.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// The elements that take one packet and give one, by their own defaults.
fn classes() -> &'static [&'static str] {
    static CLASSES: OnceLock<Vec<&'static str>> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let all = elements::REGISTRY.iter().flat_map(|group| group.iter()).map(|class| class.info);
        let takes_one = |info: &&element::ClassInfo| {
            info.ports.starts_with("1/1") && info.arguments().all(|argument| !argument.required)
        };
        all.filter(takes_one).map(|info| info.name).collect()
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((head, bytes)) = data.split_first_chunk::<4>() else { return };
    let mut chain = String::new();
    for choice in &head[..3] {
        let mark = ["", "MarkIPHeader(0) -> ", "MarkIPHeader(14) -> ", "MarkMACHeader -> "]
            [usize::from(*choice >> 6)];
        let class = classes()[usize::from(*choice) % classes().len()];
        chain.push_str(&format!("{mark}{class} -> "));
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let config =
        format!("InfiniteSource(DATA \\<{hex}>, LIMIT 3, STOP true) -> {chain}Queue -> Unqueue -> Discard;");
    fuzz::run(&config, head[3], &[]);
});
