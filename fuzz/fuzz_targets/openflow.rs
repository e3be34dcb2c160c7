//! Any bytes as an OpenFlow controller's: what decodes is encoded and decoded to the same, and the session survives.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::openflow_session::any_bytes(data));
