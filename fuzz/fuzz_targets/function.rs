//! Any messages of a function to the socket of its service: the fabric answers or closes the connection, and goes on.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::function::messages(data));
