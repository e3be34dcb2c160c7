//! Any bytes as a capture or a summary dump.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let reader = if choice & 1 == 0 {
        "FromDump(in, STOP true)"
    } else {
        "FromIPSummaryDump(in, STOP true, CHECKSUM true)"
    };
    let config = format!(
        "{reader} -> ToIPSummaryDump(out, FIELDS timestamp src sport dst dport proto len) -> ToDump(dump);"
    );
    fuzz::run(&config, choice >> 1, &[("in", bytes)]);
});
