//! Rings over plain memory and with a hostile peer.

use super::*;
use crate::limits::{BUFFER_SIZE, MAX_SLOTS};
use crate::memory::hostile::{Hostile, edge};
use crate::memory::{Mapped, SharedMemory};
use alloc::vec;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;
use random::Random;

const SLOTS: Slots = match Slots::new(64) {
    Ok(slots) => slots,
    Err(_) => panic!("64 slots are allowed"),
};

/// Zeroed memory for a ring of 64 slots, owned by `words`.
fn region(words: &mut Vec<u64>) -> Mapped {
    words.resize(SLOTS.bytes() / 8, 0);
    // SAFETY: the vector outlives the test's rings and is not touched while they exist.
    unsafe { Mapped::new(NonNull::new(words.as_mut_ptr().cast()).unwrap(), words.len() * 8) }
}

#[test]
fn what_goes_in_comes_out_in_order_across_the_wrap() {
    for start in [0, u32::MAX - 100, u32::MAX] {
        let mut words = Vec::new();
        let memory = region(&mut words);
        let mut producer = Producer::at(memory, SLOTS, start).unwrap();
        let mut consumer = Consumer::at(memory, SLOTS, start).unwrap();
        // The indices of a resumed ring are already in shared memory.
        memory.store_u32(0, start, Relaxed);
        memory.store_u32(64, start, Relaxed);
        let mut random = Random::new(u64::from(start) + 7);
        let (mut sent, mut got) = (0u32, 0u32);
        for _ in 0..2_000 {
            let burst = random.next() as u32 % 70;
            let free = producer.free(burst).unwrap();
            for _ in 0..free.min(burst) {
                let descriptor = Descriptor { buffer: sent, offset: 1, length: 2, meta: 3 };
                assert!(producer.push(descriptor));
                sent = (sent + 1) % (1 << 20);
            }
            producer.publish();
            for _ in 0..consumer.available(1).unwrap().min(random.next() as u32 % 70) {
                assert_eq!(consumer.pop().unwrap().buffer, got);
                got = (got + 1) % (1 << 20);
            }
            consumer.release();
        }
        assert!(sent != got || consumer.available(1) == Ok(0));
    }
}

#[test]
fn a_full_ring_takes_no_more_and_buffers_are_exchanged() {
    let mut words = Vec::new();
    let memory = region(&mut words);
    let (mut producer, mut consumer) =
        (Producer::new(memory, SLOTS).unwrap(), Consumer::new(memory, SLOTS).unwrap());
    producer.fill(1000);
    for slot in 0..64 {
        let spare = producer.spare().unwrap();
        assert_eq!(spare.buffer, 1000 + slot);
        assert!(producer.push(Descriptor { length: 60, ..spare }));
    }
    assert!(producer.spare().is_none() && !producer.push(Descriptor::default()));
    assert_eq!(producer.free(1), Ok(0));
    assert!(!producer.publish());
    assert_eq!(consumer.available(64), Ok(64));
    assert_eq!(consumer.exchange(7).unwrap().buffer, 1000);
    assert_eq!(consumer.pop().unwrap().buffer, 1001);
    consumer.release();
    assert_eq!(producer.free(2), Ok(2));
    assert_eq!(producer.spare().unwrap(), Descriptor { buffer: 7, ..Descriptor::default() });
    assert!(producer.push(Descriptor::default()));
    assert_eq!(producer.spare().unwrap().buffer, 1001);
}

/// Operations on many slots leave the memory as those on one slot do, across the wrap too, and return the same.
#[test]
fn many_slots_at_once_are_as_one_after_the_other() {
    let (mut words, mut random) = ([Vec::new(), Vec::new()], Random::new(5));
    let memories = words.each_mut().map(region);
    let start = u32::MAX - 1000;
    memories.iter().for_each(|memory| [0, 64].iter().for_each(|at| memory.store_u32(*at, start, Relaxed)));
    let mut producers = memories.map(|memory| Producer::at(memory, SLOTS, start).unwrap());
    let mut consumers = memories.map(|memory| Consumer::at(memory, SLOTS, start).unwrap());
    producers.iter_mut().for_each(|producer| producer.fill(500));
    let (mut taken, mut next) = (0, 0);
    for _ in 0..5_000 {
        let [one, many] = &mut producers;
        let mut pick = |most| random.below(most);
        let (borrows, puts, takes, replaced) = (pick(4) * pick(20), pick(70), pick(70), pick(4));
        for _ in 0..borrows {
            assert_eq!(one.borrow(), many.borrow());
        }
        let wanted = puts + one.borrowed();
        assert_eq!(one.free(wanted), many.free(wanted));
        many.prefetch_slots(puts);
        let descriptors = Vec::from_iter((0..puts).map(|number| Descriptor {
            buffer: next + number,
            offset: 3,
            length: 9,
            meta: 1,
        }));
        next = (next + puts) % (1 << 19);
        let expected = Vec::from_iter(descriptors.iter().map(|descriptor| {
            let before = one.spare();
            (before, one.push(*descriptor).then_some(before).flatten())
        }));
        let found = many.fill_slots(|slots| {
            Vec::from_iter(descriptors.iter().map(|descriptor| (slots.spare(), slots.put(*descriptor))))
        });
        assert_eq!(found, Some(expected));
        assert_eq!((one.position(), one.borrowed()), (many.position(), many.borrowed()));
        assert_eq!(one.publish(), many.publish());

        let [one, many] = &mut consumers;
        assert_eq!(one.available(takes), many.available(takes));
        let known = one.available(0).unwrap();
        let mut seen = Vec::new();
        many.prefetch_slots(takes);
        many.look_each(takes, |descriptor| {
            seen.push(Some(descriptor));
            seen.len() < 40
        });
        let ahead = |distance: u32| one.peek_ahead(distance).filter(|_| distance < takes.min(known));
        assert_eq!(seen, Vec::from_iter((0..takes.min(known).min(40)).map(ahead)));
        let ahead = Vec::from_iter((0..takes.min(known)).map(|number| ahead(number + 8)));
        let mut ahead = ahead.into_iter();
        many.take_each(takes, 8, |descriptor, coming| {
            let spare = (descriptor.buffer % 4 < replaced).then_some(descriptor.buffer ^ 1);
            let expected = match spare {
                Some(spare) => one.exchange(spare),
                None => one.pop(),
            };
            assert_eq!((Some(descriptor), Some(coming)), (expected, ahead.next()));
            taken += 1;
            spare
        });
        assert_eq!((one.position(), ahead.next()), (many.position(), None));
        let known = one.available(0).unwrap();
        many.exchange_each((0..replaced).map(|number| 900 + number));
        (0..replaced.min(known)).for_each(|number| assert!(one.exchange(900 + number).is_some()));
        assert_eq!(one.position(), many.position());
        assert_eq!(one.release(), many.release());
        assert!((0..SLOTS.bytes()).step_by(8).all(|at| {
            let [one, many] = memories.map(|memory| memory.load_u64(at, Relaxed));
            one == many
        }));
    }
    assert!(taken > 50_000, "{taken}");
}

/// A producer that borrows buffers from free slots still fills every slot, and each buffer is held exactly once.
#[test]
fn borrowed_buffers_are_in_one_place_each() {
    let mut words = Vec::new();
    let memory = region(&mut words);
    let (mut producer, mut consumer) =
        (Producer::new(memory, SLOTS).unwrap(), Consumer::new(memory, SLOTS).unwrap());
    producer.fill(0);
    let (mut held, mut random) = (Vec::new(), Random::new(11));
    for round in 0..4_000 {
        let wanted = random.next() as u32 % 70;
        producer.free(wanted).unwrap();
        for _ in 0..wanted {
            held.extend(producer.borrow().map(|spare| spare.buffer));
        }
        assert!(producer.borrowed() <= 64 && (producer.borrowed() == 0 || producer.spare().is_none()));
        for _ in 0..random.next() % 70 {
            if held.is_empty() {
                break;
            }
            let buffer = held.swap_remove(random.next() as usize % held.len());
            assert!(producer.push(Descriptor { buffer, ..Descriptor::default() }));
        }
        assert_eq!(producer.borrowed() as usize, held.len(), "{round}");
        producer.publish();
        let mut buffers: Vec<u32> = held.clone();
        for slot in 0..64 {
            // A slot whose buffer was borrowed refers to one that is elsewhere.
            let free = (slot + 64 - producer.position() % 64) % 64;
            if free >= producer.borrowed() {
                buffers.push(Descriptor::from_bits(memory.load_u64(256 + slot as usize * 8, Relaxed)).buffer);
            }
        }
        buffers.sort_unstable();
        assert!(buffers.iter().copied().eq(0..64), "{round}: {buffers:?}");
        for _ in 0..consumer.available(1).unwrap().min(random.next() as u32 % 70) {
            consumer.pop().unwrap();
        }
        consumer.release();
    }
}

#[test]
fn a_sleeper_is_woken_once() {
    let mut words = Vec::new();
    let memory = region(&mut words);
    let (mut producer, mut consumer) =
        (Producer::new(memory, SLOTS).unwrap(), Consumer::new(memory, SLOTS).unwrap());
    assert_eq!(consumer.prepare_sleep(), Ok(true));
    assert!(!producer.publish(), "nothing was pushed");
    producer.push(Descriptor::default());
    assert!(producer.publish());
    producer.push(Descriptor::default());
    assert!(!producer.publish(), "the doorbell was already owed");
    assert_eq!(consumer.prepare_sleep(), Ok(false));
    producer.free(64).unwrap();
    while producer.push(Descriptor::default()) {}
    producer.publish();
    assert_eq!(producer.prepare_sleep(), Ok(true));
    assert_eq!(consumer.available(64), Ok(64));
    consumer.pop();
    assert!(consumer.release());
    assert_eq!(producer.prepare_sleep(), Ok(false));
}

#[test]
fn sizes_are_checked() {
    for (slots, valid) in [(0, false), (32, false), (64, true), (96, false), (2048, true), (4096, false)] {
        assert_eq!(Slots::new(slots).is_ok(), valid, "{slots}");
    }
    let mut words = Vec::new();
    let short = region(&mut words).part(0, SLOTS.bytes() - 8).unwrap();
    assert!(matches!(Producer::new(short, SLOTS), Err(RingError::Region { .. })));
    assert!(matches!(Consumer::new(short, SLOTS), Err(RingError::Region { .. })));
    assert_eq!(Slots::new(MAX_SLOTS).unwrap().bytes(), 256 + 2048 * 8);
}

#[test]
fn descriptors_are_checked_against_their_pool() {
    let pool = PoolLayout::in_bytes(10 * BUFFER_SIZE + 5);
    assert_eq!(pool.buffers(), 10);
    let cases = [
        (9, 0, 2048, true),
        (9, 2048, 0, true),
        (9, 2047, 2, false),
        (10, 0, 0, false),
        (0xf_ffff, 4095, 0x1_ffff, false),
    ];
    for (buffer, offset, length, valid) in cases {
        let descriptor = Descriptor { buffer, offset, length, meta: 0x7fff };
        assert_eq!(pool.range(descriptor).is_ok(), valid, "{descriptor:?}");
        assert_eq!(Descriptor::from_bits(descriptor.to_bits()), descriptor);
    }
    assert_eq!(PoolLayout::in_bytes(usize::MAX).buffers(), crate::limits::MAX_BUFFERS);
}

/// Whatever the shared words contain, each operation stays inside the ring, terminates, returns only descriptors that
/// the pool check accepts or rejects, and loads no word twice.
#[test]
fn a_hostile_peer_is_harmless() {
    let pool = PoolLayout::in_bytes(128 * BUFFER_SIZE);
    for seed in 0..4_000 {
        let memory = Hostile::new(SLOTS.bytes(), seed);
        let mut random = Random::new(seed);
        let start = edge(&mut random) as u32;
        let mut producer = Producer::at(&memory, SLOTS, start).unwrap();
        let mut consumer = Consumer::at(&memory, SLOTS, start).unwrap();
        let mut taken = vec![];
        for _ in 0..50 {
            memory.begin();
            match random.next() % 10 {
                0 => drop(producer.free(edge(&mut random) as u32).map(|free| assert!(free <= 64))),
                1 => drop(producer.push(Descriptor::from_bits(random.next()))),
                2 => drop(producer.publish()),
                3 => drop(producer.prepare_sleep()),
                4 => drop(producer.spare().map(|spare| taken.push(spare))),
                5 => drop(consumer.available(edge(&mut random) as u32).map(|there| assert!(there <= 64))),
                6 => drop(consumer.pop().map(|popped| taken.push(popped))),
                7 => drop(consumer.exchange(3).map(|popped| taken.push(popped))),
                8 => drop(consumer.release()),
                _ => drop(consumer.prepare_sleep()),
            }
            assert!(!memory.loaded_twice());
        }
        for descriptor in taken {
            if let Ok(range) = pool.range(descriptor) {
                assert!(range.end <= 128 * BUFFER_SIZE && range.len() <= BUFFER_SIZE);
            }
        }
    }
}
