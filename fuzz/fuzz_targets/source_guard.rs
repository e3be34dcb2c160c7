//! Frames of any bytes at a port with bound addresses: each is permitted or dropped, and what is permitted has a bound source.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::source_guard::frame(data));
