//! Rings and ports whose peer writes any words: every operation ends, stays inside its memory, and in a shared pool each
//! box keeps as many buffers as it has.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    match choice % 2 {
        0 => fuzz::ring::sides(rest),
        _ => fuzz::ring::ports(rest),
    }
});
