//! A link between two fabrics whose other side writes any words to its memory and rings its doorbell: every operation ends,
//! and the port goes on or is down.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::link::peer(data));
