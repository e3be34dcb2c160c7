//! What the owner of a cache notes of its keys.

use std::collections::BTreeSet;
use std::time::Duration;

use flow_table::{
    Arrival, BATCH, CacheCapacity, Change, Command, FlowCache, Ingress, Instructions, Key, Limits, Match,
    Output, Pipeline, Seed,
};
use random::Random;

/// A UDP packet over IPv4, or over IPv6: its key takes more words.
fn packet(flow: u16, is_ip6: bool) -> Arrival {
    let [high, low] = flow.to_be_bytes();
    let mut frame = vec![2; 12];
    if is_ip6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
        frame.extend([7; 32]);
    } else {
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([7; 8]);
    }
    frame.extend([high, low, 0, 53, 0, 8, 0, 0]);
    Arrival { key: Key::extract(&frame, &Ingress::default()).0, length: 60 }
}

/// A note is that of its key or none, whatever the cache forgets and however entries change. A key that stays in the cache keeps its
/// note.
#[test]
fn a_note_belongs_to_its_key() {
    let mut pipeline = Pipeline::new(Limits::default(), Seed::new(1, 2));
    let mut random = Random::new(8);
    for capacity in [16, 4096] {
        let mut cache = FlowCache::new(CacheCapacity { ip4: capacity, other: capacity }, Seed::new(3, 4));
        // Flows of which something was noted, or might have been.
        let mut noted = BTreeSet::new();
        let (mut found, mut missing) = (0, 0);
        for round in 0..4000u32 {
            let now = Duration::from_secs(u64::from(round / 100));
            let flows: Vec<_> =
                (0..BATCH).map(|_| (random.below(200) as u16, random.below(4) == 0)).collect();
            let batch: Vec<_> = flows.iter().map(|(flow, is_ip6)| packet(*flow, *is_ip6)).collect();
            cache.look_up(&mut pipeline, &batch, now);
            assert_eq!(cache.paths(BATCH).len(), BATCH);
            let notes = *cache.notes();
            for (lane, ((flow, is_ip6), note)) in flows.iter().zip(notes).enumerate() {
                let is_noted = !is_ip6 && noted.contains(flow);
                if note == 0 {
                    missing += u32::from(is_noted);
                } else {
                    assert_eq!((note as u16, is_noted), (*flow, true), "round {round}");
                    found += 1;
                }
                // Also of lanes whose slot has got another key since, and of keys that take no note.
                if random.below(3) == 0 {
                    cache.set_note(lane, &batch[lane].key, random.next() << 16 | 1 << 63 | u64::from(*flow));
                    if !is_ip6 {
                        noted.insert(*flow);
                    }
                }
            }
            if round % 500 == 499 {
                cache.clear();
                noted.clear();
            }
            if round % 50 == 0 {
                let instructions = Instructions::output(Output::Port(round));
                let change = Change::new(Command::Add, Match::any(), (round % 7) as u16);
                pipeline.apply(&Change { instructions, ..change }, now).unwrap();
            }
        }
        if capacity == 16 {
            assert!(cache.counters().evicted > 1000 && missing > 1000, "{missing}");
        } else {
            assert!(found > 50 * missing, "{found} found, {missing} missing");
        }
    }
}

/// A packet beyond the batch has none, and a note of it changes nothing.
#[test]
fn only_packets_of_the_batch_are_noted() {
    let mut pipeline = Pipeline::new(Limits::default(), Seed::new(1, 2));
    let mut cache = FlowCache::new(CacheCapacity { ip4: 64, other: 64 }, Seed::new(3, 4));
    let one = packet(1, false);
    for _ in 0..2 {
        cache.look_up(&mut pipeline, &[one], Duration::ZERO);
    }
    cache.set_note(BATCH, &one.key, 5);
    cache.set_note(0, &packet(2, false).key, 6);
    cache.look_up(&mut pipeline, &[one], Duration::ZERO);
    assert_eq!(cache.notes()[0], 0);
    cache.set_note(0, &one.key, 7);
    cache.look_up(&mut pipeline, &[one], Duration::ZERO);
    assert_eq!((cache.notes()[0], cache.paths(1).len(), cache.paths(BATCH + 1).len()), (7, 1, 0));
}
