//! The guarantees of the rings and the status page under every interleaving of the two sides' memory accesses.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p boundary --test loom`

#![allow(unsafe_code, reason = "it shares memory as box and host do")]
#![cfg(loom)]

use boundary::{Consumer, Descriptor, Producer, SharedMemory, Slots, StatusPage};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;

const HEADER_WORDS: usize = 4;
const HEADER_BYTES: usize = 256;

/// Lines of a status page that hold a word.
const STATUS_WORDS: usize = 12;

/// A ring's memory in loom: the four index lines and the first slots. Or a status page, which has no slots.
struct Model {
    header: Vec<AtomicU32>,
    slots: Vec<AtomicU64>,
}

#[derive(Clone)]
struct Shared(Arc<Model>);

impl Shared {
    fn new(slots: usize, position: u32) -> Self {
        let header: [u32; HEADER_WORDS] = [position, position, 0, 0];
        let header = header.into_iter().map(AtomicU32::new).collect();
        Self(Arc::new(Model { header, slots: (0..slots).map(|_| AtomicU64::new(0)).collect() }))
    }

    fn status() -> StatusPage<Self> {
        let header = (0..STATUS_WORDS).map(|_| AtomicU32::new(0)).collect();
        StatusPage(Self(Arc::new(Model { header, slots: Vec::new() })))
    }

    fn header(&self, offset: usize) -> &AtomicU32 {
        assert_eq!(offset % 64, 0);
        &self.0.header[offset / 64]
    }

    fn slot(&self, offset: usize) -> &AtomicU64 {
        &self.0.slots[(offset - HEADER_BYTES) / 8 % self.0.slots.len()]
    }
}

// SAFETY: all words are loom's atomics; byte ranges are not used by rings of descriptors.
unsafe impl SharedMemory for Shared {
    fn size(&self) -> usize {
        usize::MAX
    }

    fn load_u32(&self, offset: usize, order: Ordering) -> u32 {
        self.header(offset).load(order)
    }

    fn store_u32(&self, offset: usize, value: u32, order: Ordering) {
        self.header(offset).store(value, order);
    }

    fn load_u64(&self, offset: usize, order: Ordering) -> u64 {
        self.slot(offset).load(order)
    }

    fn store_u64(&self, offset: usize, value: u64, order: Ordering) {
        self.slot(offset).store(value, order);
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn read(&self, _: usize, _: &mut [u8]) {
        unreachable!("rings hold words");
    }

    fn write(&self, _: usize, _: &[u8]) {
        unreachable!("rings hold words");
    }
}

fn pair(position: u32) -> (Producer<Shared>, Consumer<Shared>) {
    let slots = Slots::new(64).unwrap();
    let memory = Shared::new(4, position);
    (Producer::at(memory.clone(), slots, position).unwrap(), Consumer::at(memory, slots, position).unwrap())
}

fn descriptor(buffer: u32) -> Descriptor {
    Descriptor { buffer, offset: 1, length: buffer + 1, meta: 2 }
}

/// Published descriptors are seen complete and in order.
#[test]
fn descriptors_arrive_whole_and_in_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(u32::MAX - 1);
        let sender = thread::spawn(move || {
            for buffer in 0..3 {
                assert!(producer.push(descriptor(buffer)));
                if buffer != 1 {
                    producer.publish();
                }
            }
        });
        let mut expected = 0;
        for _ in 0..3 {
            for _ in 0..consumer.available(1).unwrap() {
                assert_eq!(consumer.pop(), Some(descriptor(expected)));
                expected += 1;
            }
            consumer.release();
        }
        sender.join().unwrap();
        while expected < 3 {
            assert!(consumer.available(1).unwrap() > 0);
            assert_eq!(consumer.pop(), Some(descriptor(expected)));
            expected += 1;
        }
    });
}

/// A consumer that goes to sleep while a packet is published is woken, or does not sleep.
#[test]
fn no_wake_up_of_the_consumer_is_lost() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(0);
        let sender = thread::spawn(move || {
            producer.push(descriptor(1));
            producer.publish()
        });
        let sleeps = consumer.prepare_sleep().unwrap();
        let rung = sender.join().unwrap();
        assert!(!sleeps || rung, "asleep beside a packet, without a ring");
    });
}

/// The same with two publications: the last one to find the consumer asleep rings.
#[test]
fn no_wake_up_is_lost_between_two_publications() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(0);
        let sender = thread::spawn(move || {
            producer.push(descriptor(1));
            let first = producer.publish();
            producer.push(descriptor(2));
            first | producer.publish()
        });
        let mut asleep = consumer.prepare_sleep().unwrap();
        if !asleep {
            while consumer.available(1).unwrap() > 0 && consumer.pop().is_some() {}
            consumer.release();
            asleep = consumer.prepare_sleep().unwrap();
        }
        let rung = sender.join().unwrap();
        assert!(!asleep || rung || consumer.available(1) == Ok(0), "asleep beside a packet, without a ring");
    });
}

/// A producer that waits for a slot is woken, or does not sleep.
#[test]
fn no_wake_up_of_the_producer_is_lost() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(0);
        while producer.push(descriptor(1)) {}
        producer.publish();
        let receiver = thread::spawn(move || {
            while consumer.available(1).unwrap() > 0 && consumer.pop().is_some() {}
            consumer.release()
        });
        let sleeps = producer.prepare_sleep().unwrap();
        let rung = receiver.join().unwrap();
        assert!(!sleeps || rung, "asleep beside free slots, without a ring");
    });
}

/// If a consumer keeps a buffer and leaves another, the producer finds the replacement.
#[test]
fn the_buffer_left_in_a_slot_is_seen_with_the_free_slot() {
    loom::model(|| {
        let (mut producer, mut consumer) = pair(0);
        while producer.push(descriptor(1)) {}
        producer.publish();
        let receiver = thread::spawn(move || {
            consumer.available(64).unwrap();
            assert_eq!(consumer.exchange(77), Some(descriptor(1)));
            consumer.release();
        });
        if producer.free(1).unwrap() > 0 {
            assert_eq!(producer.spare().map(|spare| spare.buffer), Some(77));
        }
        receiver.join().unwrap();
    });
}

/// A host that waits until a box is idle is rung for, or finds the box idle.
#[test]
fn no_idle_box_is_missed() {
    loom::model(|| {
        let host = Shared::status();
        let memory = host.0.clone();
        // The steps of the image, which takes them in assembly.
        let image = thread::spawn(move || {
            memory.store_u32(StatusPage::<Shared>::idle_offset(), 1, Ordering::Relaxed);
            memory.fence();
            memory.load_u32(StatusPage::<Shared>::idle_watched_offset(), Ordering::Relaxed) != 0
        });
        host.set_idle_watched(true);
        let idle = host.is_idle();
        let rung = image.join().unwrap();
        assert!(idle || rung, "the box is idle, and its host waits");
    });
}

/// Two threads of a switch that send each other frames, through one ring in each direction, and then go to sleep: what is
/// written into the buffer of a slot is seen whole, and neither sleeps beside a frame without a ring of its bell.
#[test]
fn two_switch_threads_exchange_frames_and_sleep() {
    loom::model(|| {
        let [(mut there, mut here), (mut back, mut far)] = [pair(0), pair(0)];
        let buffers = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let shared = buffers.clone();
        // Writes a frame into the buffer beside the slot, and sends it.
        let send = |producer: &mut Producer<Shared>, buffer: &AtomicU64, frame: u64| {
            assert!(producer.free(1).unwrap() > 0);
            buffer.store(frame, Ordering::Relaxed);
            assert!(producer.push(descriptor(0)));
            producer.publish()
        };
        // Takes what is there, and prepares for sleep.
        let end = |consumer: &mut Consumer<Shared>, buffer: &AtomicU64, frame: u64| {
            if consumer.available(1).unwrap() > 0 && consumer.pop().is_some() {
                assert_eq!(buffer.load(Ordering::Relaxed), frame);
                consumer.release();
            }
            consumer.prepare_sleep().unwrap()
        };
        let other = thread::spawn(move || {
            let rung = send(&mut back, &shared[1], 8);
            let sleeps = end(&mut here, &shared[0], 7);
            (rung, sleeps, here)
        });
        let rings = send(&mut there, &buffers[0], 7);
        let sleeps = end(&mut far, &buffers[1], 8);
        let (rung, other_sleeps, mut here) = other.join().unwrap();
        assert!(!sleeps || rung || far.available(1) == Ok(0), "asleep beside a frame, without a ring");
        assert!(
            !other_sleeps || rings || here.available(1) == Ok(0),
            "asleep beside a frame, without a ring"
        );
    });
}
