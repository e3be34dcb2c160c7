//! A vhost-user front end that sends any messages, and writes anything to its memory and its rings: every operation ends, and
//! the port goes on or is down.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::vhost_user::front_end(data));
