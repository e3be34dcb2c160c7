//! Frames of any bytes: their match fields are those that the header views show, and actions on them do not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::flow_key::frame(data));
