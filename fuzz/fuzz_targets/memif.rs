//! A memif server whose client sends any messages and writes any words to the memory that it shares: every operation ends,
//! and the port serves the next client.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::memif::client(data));
