//! Any bytes as a boot page, a crash page or a version note.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    match choice % 3 {
        0 => fuzz::pages::boot(rest),
        1 => fuzz::pages::crash(rest),
        _ => fuzz::pages::note(rest),
    }
});
