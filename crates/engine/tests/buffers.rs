//! Packet buffers: they move through the box with their packets, and none is lost.

mod support;

use boundary::SharedMemory;
use boundary::limits::BUFFER_SIZE;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, Release};
use support::{TestBox, frames};

/// The buffer of the next packet from a port.
fn buffer_of_next(test_box: &mut TestBox, port: usize) -> usize {
    let port = &mut test_box.ports[port];
    assert_eq!(port.available(1).unwrap(), 1);
    let range = port.take().unwrap().unwrap().range;
    port.release();
    range.start / BUFFER_SIZE
}

#[test]
fn a_packet_leaves_in_the_buffer_it_arrived_in() {
    for (configuration, kept) in [
        ("FromDevice(0) -> ToDevice(1);", true),
        ("FromDevice(0) -> Strip(14) -> EtherEncap(0x800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> ToDevice(1);", true),
        ("FromDevice(0) -> Queue -> ToDevice(1);", true),
        ("FromDevice(0) -> t :: Tee -> ToDevice(1); t[1] -> Queue -> Idle;", false),
        ("FromDevice(0) -> UDPIPEncap(1.0.0.1, 1, 1.0.0.2, 2) -> ToDevice(1);", true),
        ("FromDevice(0) -> Pad(2050) -> Truncate(1000) -> ToDevice(1);", false),
    ] {
        let mut test_box = TestBox::new(2, 64);
        test_box.install("", configuration).unwrap();
        test_box.send(0, &frames(1, 60));
        test_box.settle();
        // The ring that it arrived on started with the buffers from 0 on.
        assert_eq!(buffer_of_next(&mut test_box, 1) == 0, kept, "{configuration}");
    }
}

/// Removes the first of `expected` that equals `packet`, and those before it, which were dropped.
fn find(expected: &mut VecDeque<Vec<u8>>, packet: &[u8]) {
    while let Some(next) = expected.pop_front() {
        if next == packet {
            return;
        }
    }
    panic!("a packet of {} bytes that was not sent", packet.len());
}

/// Packets of all lengths stay unchanged while some wait in the box, some are copied, and some come from outside the
/// ports.
#[test]
fn packets_stay_intact_while_others_are_queued() {
    for slots in [64, 256] {
        let mut test_box = TestBox::new(2, slots);
        let configuration = "FromDevice(0) -> rr :: RoundRobinSwitch;
            rr[0] -> Queue(1000) -> ToDevice(1);
            rr[1] -> Queue(50) -> RatedUnqueue(20000) -> Queue(1000) -> Idle;
            rr[2] -> Queue(7) -> Idle;
            FromDevice(1) -> Tee(1) -> Strip(14) -> Unstrip(14) -> ToDevice(0);";
        test_box.install("", configuration).unwrap();
        let (mut there, mut back, mut arrived) = (VecDeque::new(), VecDeque::new(), [0, 0]);
        for round in 0..600 {
            let packets = frames(1 + round * 7 % slots as usize, [60, 64, 1518, 1990, 2048][round % 5]);
            let count = test_box.send(0, &packets);
            there.extend(packets.into_iter().take(count));
            let packets = frames(round % 20, 100);
            let count = test_box.send(1, &packets);
            back.extend(packets.into_iter().take(count));
            test_box.engine.round().unwrap();
            if round % 4 == 3 {
                for (port, expected) in [(1, &mut there), (0, &mut back)] {
                    for packet in test_box.receive(port) {
                        find(expected, &packet);
                        arrived[port] += 1;
                    }
                }
            }
        }
        assert!(arrived[0] > 300 && arrived[1] > 300, "{slots}: {arrived:?}");
    }
}

/// A configuration that keeps every packet does not keep others from sending.
#[test]
fn a_configuration_that_keeps_packets_does_not_block_others() {
    let mut test_box = TestBox::new(2, 64);
    test_box
        .install("", "FromDevice(0) -> Queue(10000) -> Idle; FromDevice(1) -> Tee(1) -> ToDevice(1);")
        .unwrap();
    for _ in 0..100 {
        assert_eq!(test_box.send(0, &frames(64, 60)), 64);
        test_box.settle();
    }
    test_box.install("other", "InfiniteSource(LENGTH 64, LIMIT 500, BURST 5) -> q :: Queue(500) -> c :: Counter -> ToDevice(0);").unwrap();
    let (mut made, mut passed) = (0, 0);
    for _ in 0..100_000 {
        passed += test_box.send(1, &frames(5, 60));
        test_box.engine.round().unwrap();
        made += test_box.receive(0).len();
        passed -= test_box.receive(1).len();
        if made == 500 {
            break;
        }
    }
    assert_eq!((made, passed), (500, 0));
    // The kept packets are freed with their configuration, and their buffers are used again.
    test_box.install("", "FromDevice(0) -> ToDevice(1); FromDevice(1) -> Discard;").unwrap();
    for _ in 0..100 {
        assert_eq!(test_box.send(0, &frames(64, 60)), 64);
        test_box.settle();
        assert_eq!(test_box.receive(1), frames(64, 60));
    }
}

/// A host that names a buffer twice, or one that does not exist, causes no damage.
#[test]
fn invalid_descriptors_are_harmless() {
    let mut test_box = TestBox::new(2, 64);
    test_box.install("", "FromDevice(0) -> q :: Queue(30) -> ToDevice(1);").unwrap();
    let receive = test_box.info.ports[0].receive as usize;
    for round in 0..3_000u64 {
        // The box finds one more packet, with an arbitrary descriptor.
        test_box.region_memory.store_u32(receive, (round + 1) as u32, Release);
        let descriptor = round.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(round as u32);
        let descriptor = if round % 2 == 0 { descriptor } else { descriptor & 0x0000_007f_003f_00ff };
        test_box.region_memory.store_u64(receive + 256 + (round % 64) as usize * 8, descriptor, Relaxed);
        test_box.engine.round().unwrap();
        if round % 3 == 0 {
            test_box.ports[1].available(64).unwrap();
            while !matches!(test_box.ports[1].take(), Ok(None)) {}
            test_box.ports[1].release();
        }
    }
    assert!(test_box.stats().ports[1].sent_packets > 0);
}
