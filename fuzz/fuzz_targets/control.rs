//! Any bytes as the lines of control connections: what is a command is executed on a small router, replacing it
//! included, and all else is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((piece, bytes)) = data.split_first() else { return };
    fuzz::control::serve(usize::from(*piece), bytes);
});
