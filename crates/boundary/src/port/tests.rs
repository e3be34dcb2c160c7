//! Tests of the host's end of a port.

use super::*;
use crate::answer::Answer;
use crate::layout::RegionLayout;
use crate::memory::hostile::edge;
use crate::ring::Slots;
use alloc::vec;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;
use random::Random;

/// Runs `body` with a new region that has one port of 64 slots.
fn with_region(body: impl FnOnce(Mapped, PortLayout)) {
    let layout = RegionLayout::new(&[Slots::new(64).unwrap()]).unwrap();
    let mut words = vec![0u64; layout.size / 8];
    // SAFETY: the vector outlives `body` and is not touched meanwhile.
    let region = unsafe { Mapped::new(NonNull::new(words.as_mut_ptr().cast()).unwrap(), layout.size) };
    body(region, layout.ports[0]);
}

/// The box's side of the same port.
fn box_side(region: &Mapped, layout: &PortLayout) -> (Consumer<Mapped>, Producer<Mapped>) {
    let ring = |offset| region.part(offset, layout.slots.bytes()).unwrap();
    let receive = Consumer::new(ring(layout.receive), layout.slots).unwrap();
    (receive, Producer::new(ring(layout.transmit), layout.slots).unwrap())
}

#[test]
fn packets_pass_from_box_to_box() {
    with_region(|left_region, layout| {
        with_region(|right_region, _| {
            let mut left = HostPort::new(&left_region, &layout, ()).unwrap();
            let mut right = HostPort::new(&right_region, &layout, ()).unwrap();
            let (_, mut sends) = box_side(&left_region, &layout);
            let (mut receives, _) = box_side(&right_region, &layout);
            for number in 0..64u16 {
                let spare = sends.spare().unwrap();
                let at = left.pool.buffer(spare.buffer).unwrap();
                left.buffers.write(at + 2, &number.to_le_bytes());
                assert!(sends.push(Descriptor { offset: 2, length: 60, ..spare }));
            }
            sends.publish();
            assert_eq!(receives.prepare_sleep(), Ok(true));
            let passed = left.pass(&mut right, 1000).unwrap();
            assert_eq!((passed.packets, passed.bytes, passed.wake_receiver), (64, 64 * 60, true));
            assert_eq!(receives.available(64), Ok(64));
            for number in 0..64u16 {
                let range = right.pool.range(receives.pop().unwrap()).unwrap();
                let mut bytes = [0; 2];
                right.buffers.read(range.start, &mut bytes);
                assert_eq!((u16::from_le_bytes(bytes), range.len()), (number, 60));
            }
        });
    });
}

/// Random words in rings and descriptors result in an error, a packet or nothing. No byte outside the region is
/// written.
#[test]
fn a_box_that_scribbles_is_harmless() {
    const GUARD: u64 = 0x5eed_5eed_5eed_5eed;
    /// Words on each side of the region.
    const GUARDS: usize = 512;
    /// Bytes at a ring's start that hold its indices.
    const INDICES: usize = crate::ring::HEADER;
    let layout = RegionLayout::new(&[Slots::new(64).unwrap()]).unwrap();
    let (size, words) = (layout.size, layout.size / 8);
    let layout = layout.ports[0];
    let mut memory = vec![GUARD; GUARDS + words + GUARDS];
    memory[GUARDS..GUARDS + words].fill(0);
    let base = NonNull::new(memory.as_mut_ptr()).unwrap();
    // SAFETY: the vector outlives the region and is not touched before its last use.
    let region = unsafe { Mapped::new(base.add(GUARDS).cast(), size) };
    let mut random = Random::new(3);
    let mut buffer = [0; BUFFER_SIZE];
    let (mut sent, mut received, mut refused) = (0, 0, 0);
    for _ in 0..300 {
        let mut port = HostPort::new(&region, &layout, ()).unwrap();
        for _ in 0..40 {
            // Every other word goes to the indices of a ring, where it does most harm.
            let (start, size) = match random.next() % 4 {
                0 => (layout.receive, INDICES),
                1 => (layout.transmit, INDICES),
                _ => (layout.receive, layout.buffers - layout.receive),
            };
            let offset = start + random.next() as usize % size;
            region.store_u32(offset & !3, edge(&mut random) as u32, Relaxed);
            match port.room(64).and_then(|_| port.send(&[1; 60])) {
                Ok(done) => sent += usize::from(done),
                Err(_) => refused += 1,
            }
            port.publish();
            match port.available(64).and_then(|_| port.receive(&mut buffer)) {
                Ok(packet) => received += usize::from(packet.is_some()),
                Err(_) => refused += 1,
            }
            port.release();
        }
        for ring in [layout.receive, layout.transmit] {
            region.write(ring, &[0; INDICES]);
        }
    }
    assert!(sent > 0 && received > 0 && refused > 0, "{sent} sent, {received} received, {refused} refused");
    let (before, after) = (&memory[..GUARDS], &memory[GUARDS + words..]);
    assert!(before.iter().chain(after).all(|word| *word == GUARD));
}

/// Two boxes of one pool: the second one's side of a port, and its initial buffers.
fn with_pool(
    body: impl FnOnce([HostPort<()>; 2], [(Consumer<Mapped>, Producer<Mapped>); 2], Mapped, Arc<BufferOwners>),
) {
    let slots = [Slots::new(64).unwrap()];
    let size = 300 * BUFFER_SIZE;
    let layout = RegionLayout::pooled(&slots, 1, size).unwrap();
    let mut words = vec![0u64; (2 * layout.size + size) / 8];
    let all = NonNull::new(words.as_mut_ptr().cast()).unwrap();
    // SAFETY: the vector outlives `body` and is not touched meanwhile.
    let memory = unsafe { Mapped::new(all, words.len() * 8) };
    let regions = [0, layout.size].map(|start| memory.part(start, layout.size).unwrap());
    let buffers = memory.part(2 * layout.size, size).unwrap();
    let holders = Arc::new(BufferOwners::new(size));
    let port = |number: u16| {
        let holder = PoolMember::new(number + 1).unwrap();
        let own = holders.take(holder, layout.buffers()).unwrap();
        let member = (holders.clone(), holder);
        HostPort::pooled(&regions[usize::from(number)], &layout.ports[0], buffers, member, &own, ()).unwrap()
    };
    let ports = [0, 1].map(port);
    body(ports, regions.map(|region| box_side(&region, &layout.ports[0])), buffers, holders.clone());
}

#[test]
fn packets_are_passed_with_their_buffers() {
    with_pool(|[mut left, mut right], [(_, mut sends), (mut receives, _)], buffers, holders| {
        for round in 0..40u16 {
            sends.free(64).unwrap();
            let mut sent = Vec::new();
            for number in 0..50 {
                let spare = sends.spare().unwrap();
                buffers.write(spare.buffer as usize * BUFFER_SIZE + 100, &[round as u8, number]);
                assert!(sends.push(Descriptor { offset: 100, length: 2, ..spare }));
                sent.push(spare.buffer);
            }
            sends.publish();
            let passed = left.pass(&mut right, 1000).unwrap();
            assert_eq!((passed.packets, passed.bytes, passed.faulty), (50, 100, 0));
            assert_eq!(receives.available(64), Ok(50));
            for (number, buffer) in (0u8..).zip(sent) {
                let packet = receives.pop().unwrap();
                let mut bytes = [0; 2];
                buffers.read(right.pool.range(packet).unwrap().start, &mut bytes);
                assert_eq!((packet.buffer, bytes), (buffer, [round as u8, number]));
            }
            receives.release();
        }
        assert_eq!([1, 2].map(|box_| holders.give_back(PoolMember::new(box_).unwrap())), [128; 2]);
    });
}

/// Does what a switch does: inspects each packet's head, and passes it on with its buffer if possible.
fn switch(from: &mut HostPort<()>, to: &mut HostPort<()>) -> u32 {
    let (origin, mut left, mut handed_over) =
        (SourceRegion::new(from.buffers, from.member.clone(), ()), Vec::new(), 0);
    let pool_peer = to.pool_peer(&origin).unwrap();
    let there = from.available(64).unwrap();
    to.room(there).unwrap();
    for _ in 0..there {
        let Ok(Some(TakenPacket { range, slot, .. })) = from.take() else { continue };
        let head = range.len().min(2);
        let mut bytes = [0; 2];
        from.buffers.read(range.start, &mut bytes[..head]);
        let rest = origin.tail(range.start + head..range.end);
        match to.take_ownership(pool_peer, head, rest, 0) {
            Some(spare) => {
                left.push((slot, spare));
                handed_over += 1;
            }
            None => drop(to.send_parts(&bytes[..head], Some(rest), 0).unwrap()),
        }
    }
    to.publish();
    for (slot, spare) in left {
        from.replace_buffer(slot, spare);
    }
    from.release();
    handed_over
}

/// Passes on what can go straight, as a switch does. Returns the number of packets that moved.
fn pass_direct(from: &mut HostPort<()>, to: &mut HostPort<()>) -> u64 {
    let mut batch = DirectBatch::default();
    from.list_direct(&mut batch).unwrap();
    to.send_direct(&mut batch).unwrap();
    to.publish();
    from.release_direct(&batch);
    batch.moved().0
}

/// Packets with a tag and the answer "next" go straight, those before the first one that differs.
#[test]
fn packets_go_straight_to_another_box() {
    with_pool(|[mut left, mut right], [(mut gets, mut sends), (mut receives, _)], buffers, holders| {
        let tags = holders.tags().clone();
        left.note_tags(&tags);
        right.note_tags(&tags);
        for round in 0..40u64 {
            left.room(64).unwrap();
            assert!((0..50).all(|number| left.send_parts(&[1; 60], None, 1 + round + number).unwrap()));
            left.publish();
            assert_eq!(gets.available(64), Ok(50));
            sends.free(64).unwrap();
            let mut sent = Vec::new();
            for number in 0..50u8 {
                let spare = sends.spare().unwrap();
                let packet = gets.exchange(spare.buffer).unwrap();
                buffers.write(packet.buffer as usize * BUFFER_SIZE + 100, &[round as u8, number, 7]);
                // The first ten go on, and the next one is dropped.
                let answer = if number == 10 { Answer::Drop } else { Answer::Next };
                let meta = answer.to_meta();
                assert!(sends.push(Descriptor { offset: 100, length: 3, meta, ..packet }));
                sent.push(packet.buffer);
            }
            gets.release();
            sends.publish();
            let mut batch = DirectBatch::default();
            left.list_direct(&mut batch).unwrap();
            assert_eq!(batch.len(), 10);
            assert!((0..).zip(batch.packets()).all(|(number, packet)| packet.tag == 1 + round + number));
            batch.packets().iter_mut().for_each(|packet| packet.tag += 100);
            // What is left out stays in the ring.
            batch.truncate(8);
            right.send_direct(&mut batch).unwrap();
            right.publish();
            assert_eq!(batch.moved(), (8, 24));
            left.release_direct(&batch);
            assert_eq!((left.waiting(), right.waiting()), ([0, 42], [8, 0]));
            assert_eq!(receives.available(64), Ok(8));
            for (number, buffer) in (0..8u8).zip(&sent) {
                let packet = receives.pop().unwrap();
                let mut bytes = [0; 3];
                buffers.read(right.pool.range(packet).unwrap().start, &mut bytes);
                assert_eq!((packet.buffer, packet.meta, bytes), (*buffer, 0, [round as u8, number, 7]));
                assert_eq!(tags.take(*buffer), 101 + round + u64::from(number));
            }
            receives.release();
            // The others are received as any packets.
            left.available(64).unwrap();
            for (number, buffer) in (8u64..).zip(&sent[8..]) {
                let packet = left.take().unwrap().unwrap();
                let answer = if number == 10 { Answer::Drop } else { Answer::Next };
                assert_eq!((packet.tag, packet.meta), (1 + round + number, answer.to_meta()));
                assert_eq!(packet.range.start, *buffer as usize * BUFFER_SIZE + 100);
            }
            left.release();
            assert_eq!(pass_direct(&mut left, &mut right), 0);
        }
        assert_eq!([1, 2].map(|box_| holders.give_back(PoolMember::new(box_).unwrap())), [128; 2]);
    });
}

#[test]
fn a_switch_passes_packets_with_their_buffers() {
    with_pool(|[mut left, mut right], [(_, mut sends), (mut receives, _)], buffers, holders| {
        for round in 0..40u16 {
            let mut sent = Vec::new();
            sends.free(64).unwrap();
            for number in 0..50 {
                let spare = sends.spare().unwrap();
                buffers.write(spare.buffer as usize * BUFFER_SIZE + 100, &[round as u8, number, 7]);
                assert!(sends.push(Descriptor { offset: 100, length: 3, ..spare }));
                sent.push(spare.buffer);
            }
            sends.publish();
            assert_eq!(switch(&mut left, &mut right), 50);
            assert_eq!(receives.available(64), Ok(50));
            for (number, buffer) in (0u8..).zip(sent) {
                let packet = receives.pop().unwrap();
                let mut bytes = [0; 3];
                buffers.read(right.pool.range(packet).unwrap().start, &mut bytes);
                assert_eq!((packet.buffer, bytes), (buffer, [round as u8, number, 7]));
            }
            receives.release();
        }
        assert_eq!([1, 2].map(|box_| holders.give_back(PoolMember::new(box_).unwrap())), [128; 2]);
    });
}

/// A tag comes back once, with the buffer in which the box got the packet, through whichever port.
#[test]
fn a_tag_belongs_to_the_buffer_in_which_a_packet_was_given() {
    with_region(|region, layout| {
        let mut port = HostPort::new(&region, &layout, ()).unwrap();
        let tags = Arc::new(BufferTags::new(port.buffer_count()));
        port.note_tags(&tags);
        let (mut receives, mut sends) = box_side(&region, &layout);
        assert_eq!(port.room(3), Ok(64));
        for tag in [7, 0, 9] {
            assert_eq!(port.send_parts(&[1; 60], None, tag), Ok(true));
        }
        port.publish();
        receives.available(3).unwrap();
        sends.free(4).unwrap();
        // In the buffer that it came in, in another one, and twice.
        let mut given = Vec::new();
        for _ in 0..3 {
            let spare = sends.borrow().unwrap();
            given.push(receives.exchange(spare.buffer).unwrap());
        }
        let foreign = sends.borrow().unwrap();
        let answer = Answer::Port(5).to_meta();
        sends.push(Descriptor { meta: answer, ..given[2] });
        sends.push(given[1]);
        sends.push(Descriptor { length: 60, ..foreign });
        sends.push(given[2]);
        sends.publish();
        port.available(4).unwrap();
        let mut back = || port.take().unwrap().map(|packet| (packet.tag, packet.meta)).unwrap();
        assert_eq!([back(), back(), back(), back()], [(9, answer), (0, 0), (0, 0), (0, 0)]);
        assert_eq!(tags.take(given[0].buffer), 7);
    });
}

/// Boxes that name buffers of others lose the packet, and own as many buffers as before.
#[test]
fn boxes_that_name_foreign_buffers_keep_their_own() {
    with_pool(|[mut left, mut right], mut sides, buffers, holders| {
        let mut random = Random::new(21);
        let (mut faulty, mut direct) = (0, 0);
        left.note_tags(&Arc::new(BufferTags::new(0)));
        right.note_tags(&Arc::new(BufferTags::new(0)));
        let mut buffer = [0; BUFFER_SIZE];
        for _ in 0..3_000 {
            for (_, sends) in &mut sides {
                for _ in 0..sends.free(64).unwrap().min(random.next() as u32 % 20) {
                    let lie = Descriptor::from_bits(random.next() & 0x0000_0fff_3ff0_01ff);
                    let honest = Descriptor { length: 60, ..sends.spare().unwrap() };
                    sends.push(if random.next().is_multiple_of(3) { lie } else { honest });
                }
                sends.publish();
            }
            faulty += left.pass(&mut right, 1000).unwrap().faulty;
            faulty += right.pass(&mut left, 1000).unwrap().faulty;
            for (_, sends) in &mut sides {
                for _ in 0..sends.free(64).unwrap().min(random.next() as u32 % 9) {
                    sends.push(Descriptor::from_bits(random.next() & 0x0000_0fff_3ff0_01ff));
                }
                sends.publish();
            }
            (0..300).for_each(|buffer| holders.tags().set(buffer, 1 + random.next() % 9));
            direct += pass_direct(&mut right, &mut left);
            direct += pass_direct(&mut left, &mut right);
            switch(&mut left, &mut right);
            switch(&mut right, &mut left);
            for (receives, _) in &mut sides {
                for _ in 0..receives.available(64).unwrap() {
                    let lie = (random.next() % 300) as u32;
                    let _ = if random.next().is_multiple_of(50) {
                        receives.exchange(lie)
                    } else {
                        receives.pop()
                    };
                }
                receives.release();
            }
            // A receiver that copies the packets may find the same invalid descriptors.
            let _ = left.available(64).and_then(|_| left.receive(&mut buffer).map(drop));
            let _ = right.room(64).and_then(|_| right.send(&[1; 60]));
            right.publish();
            left.release();
        }
        assert!(faulty > 100 && direct > 100, "{faulty} faulty, {direct} direct");
        assert_eq!([1, 2].map(|box_| holders.give_back(PoolMember::new(box_).unwrap())), [128; 2]);
        assert_eq!(buffers.size(), 300 * BUFFER_SIZE);
    });
}

#[test]
fn a_port_outside_its_region_is_refused() {
    with_region(|region, layout| {
        let outside = PortLayout { buffers: region.size() - 8, ..layout };
        assert!(HostPort::new(&region, &outside, Vec::<u8>::new()).is_err());
    });
}
