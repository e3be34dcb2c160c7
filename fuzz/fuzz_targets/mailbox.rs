//! The mailbox whose peer writes any words, messages of any bytes, and messages between correct sides.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    match choice % 3 {
        0 => fuzz::mailbox::channel(rest),
        1 => fuzz::mailbox::message(rest),
        _ => fuzz::mailbox::delivery(rest),
    }
});
