//! Descriptors, indices and chains of a client made by hand.

use super::memif_peer::{BUFFERS, REGION, SLOTS};
use super::{Socket, connected, frame, why};
use std::os::unix::fs::FileExt;
use switch::Reason;

#[test]
fn frames_are_collected_from_chains_and_nothing_outside_is_read() {
    let socket = Socket::new();
    let (mut bench, client) = connected(&socket);
    assert!(client.is_masked(0), "no interrupts while the switch looks at the ring");
    let long: Vec<u8> = [frame(1, 2), vec![7; 2048 - 60]].concat();
    client.set(BUFFERS[0], &long);
    let (mut received, mut head) = (0u16, 0u16);
    let (mut faulty, mut too_long, mut short) = (0, 0, 0);
    let mut step = |descriptors: &[(u16, u16, u32, u64)], outcome: &str| {
        for (flags, region, length, offset) in descriptors {
            client.describe(0, u64::from(head), *flags, *region, *length, *offset);
            head = head.wrapping_add(1);
        }
        client.set_head(0, head);
        let got = bench.received();
        match outcome {
            "faulty" => faulty += 1,
            "long" => too_long += 1,
            "short" => (short, received) = (short + 1, received + 1),
            _ => {
                received += 1;
                let length: u32 = descriptors.iter().map(|(.., length, _)| length).sum();
                assert_eq!(got.len(), 1, "{descriptors:?}");
                assert_eq!(got[0].len(), length as usize);
                assert_eq!(got[0][..60], long[..60]);
            }
        }
        assert_eq!(client.tail(0), head, "all slots were given back");
        let drops = [(Reason::FAULTY, faulty), (Reason::TOO_LONG, too_long), (Reason::TOO_SHORT, short)];
        bench.check(u64::from(received), 0, &drops[..if short > 0 { 3 } else { 2 }]);
    };
    let at = BUFFERS[0];
    for length in [60, 64, 65, 2047, 2048] {
        step(&[(0, 0, length, at)], "received");
    }
    // At the end of the region, where no more than the frame can be read.
    step(&[(0, 0, 60, at)], "received");
    step(&[(1, 0, 30, at), (0, 0, 30, at + 30)], "received");
    step(&[(1, 0, 60, at), (1, 0, 0, at), (1, 0, 1000, at), (0, 0, 988, at)], "received");
    step(&[(1, 0, 60, at), (1, 0, 1000, at), (0, 0, 989, at)], "long");
    step(&[(0, 0, 2049, at)], "long");
    step(&[(0, 0, u32::MAX, at)], "long");
    step(&[(1, 0, u32::MAX, at), (0, 0, u32::MAX, at)], "long");
    step(&[(0, 0, 60, REGION - 59)], "faulty");
    step(&[(0, 0, 60, u64::from(u32::MAX))], "faulty");
    step(&[(0, 1, 60, at)], "faulty");
    step(&[(0, u16::MAX, 60, at)], "faulty");
    step(&[(1, 0, 60, at), (1, 1, 60, at), (0, 0, 60, at)], "faulty");
    step(&[(1, 0, 60, at)], "faulty");
    step(&[(1, 0, 60, at); 16], "faulty");
    step(&[(0xfffe, 0, 60, at)], "received");
    step(&[(0, 0, 60, at)], "received");
    // The whole index range, so that it wraps.
    for _ in 0..5_000 {
        step(&[(0, 0, 60, at); 1], "received");
    }
    client.set(REGION - 60, &long[..60]);
    step(&[(0, 0, 60, REGION - 60)], "received");
    let short_ones = short;
    assert_eq!(short_ones, 0);
    // An index that is ahead of the ring.
    client.set_head(0, head.wrapping_add(17));
    bench.look();
    assert_eq!(why(&bench), "no client is connected: an index of the peer's rings jumped");
    assert_eq!(client.peer.reason().as_deref(), Some("an index of the peer's rings jumped"));
    bench.check(u64::from(received), 0, &[(Reason::FAULTY, faulty), (Reason::TOO_LONG, too_long)]);
}

#[test]
fn frames_are_cut_to_the_buffers_of_a_client_and_nothing_outside_is_written() {
    let socket = Socket::new();
    let (mut bench, client) = connected(&socket);
    // No buffers yet.
    bench.send(2);
    bench.check(0, 0, &[(Reason::FULL, 2)]);
    for slot in 0..SLOTS {
        client.describe(1, slot, 1, 0, 25, BUFFERS[1] + slot * 2048);
    }
    client.set_head(1, 16);
    // Three buffers of 25 bytes for each frame of 60 bytes.
    bench.send(7);
    bench.check(0, 5, &[(Reason::FULL, 4)]);
    assert_eq!(client.tail(1), 15);
    for slot in 0..15 {
        assert_eq!(client.described(1, slot), if slot % 3 == 2 { (0, 10) } else { (1, 25) });
    }
    let mut bytes = [0; 26];
    client.memory.read_exact_at(&mut bytes, BUFFERS[1]).unwrap();
    assert_eq!((&bytes[..25], bytes[25]), (&frame(2, 1)[..25], 0));
    // Its last buffer is empty, and the next one is at the end of the region.
    client.describe(1, 15, 0, 0, 0, BUFFERS[1]);
    client.describe(1, 16, 0, 0, 2048, REGION - 60);
    client.set_head(1, 17);
    bench.send(1);
    assert_eq!((client.described(1, 15), client.described(1, 16)), ((1, 0), (0, 60)));
    bench.check(0, 6, &[(Reason::FULL, 4)]);
    // One byte less: the connection ends. The client had given back one of its 17 slots.
    client.describe(1, 17, 0, 0, 2048, REGION - 59);
    client.set_head(1, 18);
    bench.send(1);
    let reason = "a buffer of the peer is not inside its region";
    assert_eq!(why(&bench), format!("no client is connected: {reason}"));
    assert_eq!(client.peer.reason().as_deref(), Some(reason));
    let mut bytes = [0; 60];
    client.memory.read_exact_at(&mut bytes, REGION - 60).unwrap();
    assert_eq!(bytes, frame(2, 1)[..]);
    bench.check(0, 6, &[(Reason::FULL, 4), (Reason::DOWN, 1 + 15)]);
}

/// Indices that go back, or that run ahead of the ring, in the direction to the client.
#[test]
fn buffers_that_do_not_exist_end_the_connection() {
    for head in [17, 0x8000, u16::MAX] {
        let socket = Socket::new();
        let (mut bench, client) = connected(&socket);
        client.set_head(1, head);
        bench.send(1);
        assert_eq!(why(&bench), "no client is connected: an index of the peer's rings jumped");
        bench.check(0, 0, &[(Reason::DOWN, 1)]);
    }
}
