//! Any bytes as an ELF program: what is not a box image is refused, and the memory map of what is read makes sense.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sandbox::fuzzing::image(data));
