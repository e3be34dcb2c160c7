//! Hostile peers: every function here must survive every input. The fuzz targets call the same functions; inputs that
//! once failed are named tests below.

#![allow(unreachable_pub, reason = "the fuzz targets use these modules too")]

mod mailbox;
mod memory;
mod pages;
mod ring;

use random::Random;

/// Inputs of different lengths from a seeded generator.
fn inputs(count: u64) -> impl Iterator<Item = Vec<u8>> {
    (1..=count).map(|seed| {
        let mut random = Random::new(seed);
        (0..seed % 700).map(|_| random.below(256) as u8).collect()
    })
}

fn check(count: u64, survive: impl Fn(&[u8])) {
    inputs(count).for_each(|input| survive(&input));
}

#[test]
fn rings_survive_any_words() {
    check(20_000, ring::sides);
}

#[test]
fn ports_survive_boxes_that_write_anything() {
    check(2_000, ring::ports);
}

#[test]
fn channels_survive_any_words() {
    check(20_000, mailbox::channel);
}

#[test]
fn messages_of_any_bytes_are_read_or_refused() {
    check(20_000, mailbox::message);
}

#[test]
fn messages_arrive_whole_and_in_order() {
    check(200, mailbox::delivery);
}

#[test]
fn pages_and_notes_of_any_bytes_are_read_or_refused() {
    check(5_000, pages::boot);
    check(5_000, pages::crash);
    check(5_000, pages::note);
}
