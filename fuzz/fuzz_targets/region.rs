//! A function that writes any words to its region and rings its doorbell: every operation ends, and the port goes on or is
//! down.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::function_region::region(data));
