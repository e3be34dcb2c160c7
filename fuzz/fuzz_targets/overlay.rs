//! Packets of any bytes from the remote end of a VXLAN or GENEVE tunnel: each is refused under a declared reason, or brings
//! frames that are neither too short nor too long.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::overlay::packet(data));
