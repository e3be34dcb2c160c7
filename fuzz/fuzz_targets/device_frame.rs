//! Frames of any bytes from a TAP device, from the ring of a packet socket and from an XDP socket: each is passed on whole, cut into
//! frames that fit, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| switch::fuzzing::device_frame(data));
