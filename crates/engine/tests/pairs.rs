//! Ports with a ring pair for each thread of the host that switches.

mod support;

use boundary::limits::BUFFER_SIZE;
use support::{TestBox, frames};

/// Slots of each ring.
const SLOTS: usize = 64;
/// Ring pairs of each port.
const PAIRS: usize = 3;

/// Takes the packets that the box sent through a pair, and checks that their buffers belong to this pair.
fn take(test_box: &mut TestBox, port: usize, pair: usize) -> Vec<usize> {
    let rings = &mut test_box.ports[port * PAIRS + pair];
    rings.available(u32::MAX).unwrap();
    let mut lengths = Vec::new();
    while let Some(taken) = rings.take().unwrap() {
        // The buffers of the pairs follow each other in the region.
        assert_eq!(taken.range.start / BUFFER_SIZE / (2 * SLOTS) % PAIRS, pair);
        lengths.push(taken.range.len());
    }
    rings.release();
    lengths
}

/// Packets leave through the pair through which they came, in their order, and buffers never change the pair.
#[test]
fn packets_stay_in_their_pair() {
    for configuration in [
        "FromDevice(0) -> ToDevice(1);",
        "FromDevice(0) -> Queue(10000) -> ToDevice(1);",
        // Some packets are freed, some are copied: their buffers become spare.
        "FromDevice(0) -> t :: Tee(2) -> ToDevice(1); t[1] -> l :: CheckLength(100) -> Discard; l[1] -> Discard;",
    ] {
        let mut test_box = TestBox::paired(2, SLOTS as u32, PAIRS);
        test_box.install("", configuration).unwrap();
        let (mut sent, mut received) = ([0; PAIRS], [0; PAIRS]);
        for round in 0..600 {
            for (pair, sent) in sent.iter_mut().enumerate() {
                let count = (round * 7 + pair * 5) % 40;
                let packets: Vec<Vec<u8>> = (0..count)
                    .map(|number| frames(1, 60 + pair * 200 + (*sent + number) % 100).remove(0))
                    .collect();
                *sent += test_box.send(pair, &packets);
            }
            test_box.engine.round().unwrap();
            for (pair, received) in received.iter_mut().enumerate() {
                for length in take(&mut test_box, 1, pair) {
                    assert_eq!(length, 60 + pair * 200 + *received % 100, "pair {pair} of {configuration}");
                    *received += 1;
                }
            }
        }
        assert!(sent.iter().all(|count| *count > 5_000), "{sent:?}");
        for _ in 0..20 {
            test_box.engine.round().unwrap();
            for (pair, received) in received.iter_mut().enumerate() {
                *received += take(&mut test_box, 1, pair).len();
            }
        }
        assert_eq!(received, sent, "{configuration}");
        let stats = test_box.stats();
        let all = sent.iter().sum::<usize>() as u64;
        assert_eq!(
            (stats.ports.len(), stats.ports[0].received_packets, stats.ports[1].sent_packets),
            (2, all, all)
        );
        assert_eq!((stats.ports[0].sent_packets, stats.ports[1].received_packets), (0, 0));
        assert_eq!(stats.drops, []);
    }
}

/// A pair whose ring is full holds up no other one: its packets are dropped, and counted.
#[test]
fn a_full_pair_holds_up_no_other() {
    let mut test_box = TestBox::paired(2, SLOTS as u32, PAIRS);
    test_box.install("", "FromDevice(0) -> ToDevice(1);").unwrap();
    let mut passed = 0;
    for _ in 0..10 {
        for pair in 0..PAIRS {
            assert_eq!(test_box.send(pair, &frames(20, 60)), 20);
        }
        test_box.settle();
        // Nobody takes what is sent through pair 0.
        passed += take(&mut test_box, 1, 1).len() + take(&mut test_box, 1, 2).len();
    }
    assert_eq!(passed, 400);
    let stats = test_box.stats();
    assert_eq!(stats.drops, [("full".to_string(), 200 - SLOTS as u64)]);
    assert_eq!(take(&mut test_box, 1, 0).len(), SLOTS);
}

/// What a box makes itself leaves through some pair. The box sleeps when no pair has packets, and is woken by each.
#[test]
fn a_box_wakes_for_each_pair() {
    let mut test_box = TestBox::paired(1, SLOTS as u32, PAIRS);
    test_box.install("", "FromDevice(0) -> ToDevice(0);").unwrap();
    for pair in [2, 0, 1, 1] {
        test_box.settle();
        let rings = &mut test_box.ports[pair];
        assert_eq!((rings.room(1).unwrap() > 0, rings.send(&[7; 60]).unwrap()), (true, true));
        assert!(rings.prepare_sleep().unwrap());
        rings.publish();
        test_box.settle();
        assert!(!test_box.ports[pair].prepare_sleep().unwrap(), "the host was not woken");
        assert_eq!(take(&mut test_box, 0, pair), [60]);
    }
    test_box.install("", "RatedSource(LENGTH 60, RATE 1000, LIMIT 5) -> ToDevice(0);").unwrap();
    test_box.pass(100);
    let all: usize = (0..PAIRS).map(|pair| take(&mut test_box, 0, pair).len()).sum();
    assert_eq!(all, 5);
}
