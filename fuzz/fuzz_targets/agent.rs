//! Any messages of an agent to its fabric: the fabric answers or closes the connection, and goes on.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::agent::messages(data));
