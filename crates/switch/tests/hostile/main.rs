//! Hostile peers: every function here must survive every input. The fuzz targets call the same functions; inputs that
//! once failed are named tests below.

#![allow(unreachable_pub, reason = "the fuzz targets use these modules too")]

#[allow(dead_code, reason = "it is hostile, not complete")]
#[path = "../vhost_user/front_end.rs"]
mod front_end;
mod function;
mod link;
mod memif;
#[allow(dead_code, reason = "other tests use the rest")]
mod memif_peer;
#[allow(dead_code, reason = "links have real memory")]
#[path = "../../../boundary/tests/hostile/memory.rs"]
mod memory;
mod overlay;
mod source_guard;
mod vhost_user;

use random::Random;

/// Inputs of different lengths from a seeded generator.
fn check(count: u64, survive: impl Fn(&[u8])) {
    for seed in 1..=count {
        let mut random = Random::new(seed);
        let input: Vec<u8> = (0..seed % 700).map(|_| random.below(256) as u8).collect();
        survive(&input);
    }
}

#[test]
fn a_link_survives_a_peer_that_writes_anything() {
    check(2_000, link::peer);
}

#[test]
fn a_memif_server_survives_a_client_that_sends_and_writes_anything() {
    check(2_000, memif::client);
}

#[test]
fn ports_survive_a_function_that_writes_anything() {
    check(2_000, function::region);
}

/// Random bytes, and such with a TCP packet in the tunnel.
#[test]
fn packets_of_any_bytes_bring_frames_or_are_refused() {
    check(20_000, |input| {
        overlay::packet(input);
        for choice in 0..8 {
            let types: [&[u8]; 2] =
                [&[8, 0, 0x45, 0, 1, 0, 0, 0, 0, 0, 64, 6], &[0x86, 0xdd, 0x60, 0, 0, 0, 1, 0, 6]];
            for start in types {
                let headers = if choice & 2 == 0 { 36 } else { 16 };
                let packet = [
                    &[4 | choice, choice, 0, 100][..],
                    &[0; 36][..headers],
                    &[2; 12],
                    start,
                    input,
                    &[0; 300],
                ];
                overlay::packet(&packet.concat());
            }
        }
    });
}

#[test]
fn a_port_survives_a_front_end_that_writes_anything() {
    check(2_000, vhost_user::front_end);
}

/// Random bytes, which start as a frame of one of the types that are examined.
#[test]
fn frames_of_any_bytes_have_a_bound_source_or_are_dropped() {
    check(20_000, |input| {
        source_guard::frame(input);
        let types: [&[u8]; 3] = [&[8, 0, 0x45], &[8, 6, 0, 1, 8, 0, 6, 4], &[0x86, 0xdd, 0x60]];
        for start in types {
            source_guard::frame(&[&[2; 12], start, input].concat());
        }
    });
}
