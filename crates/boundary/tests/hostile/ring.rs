//! Rings and ports with a peer that writes fuzz input.

use crate::memory::{Input, InputMemory, with_mapped};
use boundary::limits::BUFFER_SIZE;
use boundary::{
    BufferOwners, BufferTags, Consumer, Descriptor, DirectBatch, HostPort, Mapped, PoolLayout, PoolMember,
    Producer, RegionLayout, SharedMemory, Slots, TakenPacket,
};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const SLOTS: Slots = match Slots::new(64) {
    Ok(slots) => slots,
    Err(_) => panic!("64 slots are allowed"),
};

/// Buffers of the pool that two ports share: more than they start with.
const POOL_BUFFERS: usize = 300;

/// Both sides of a ring, whose loads return fuzz input.
pub fn sides(bytes: &[u8]) {
    let input = Input::new(bytes);
    let memory = InputMemory::new(SLOTS.bytes(), &input);
    let position = input.word() as u32;
    let mut producer = Producer::at(&memory, SLOTS, position).unwrap();
    let mut consumer = Consumer::at(&memory, SLOTS, position).unwrap();
    let pool = PoolLayout::in_bytes(128 * BUFFER_SIZE);
    while !input.is_empty() {
        let (operation, choice) = (input.byte() % 16, input.word());
        let found = memory.once(|| match operation {
            0 => {
                assert!(producer.free(choice as u32).unwrap_or(0) <= 64);
                None
            }
            1 => {
                producer.push(Descriptor::from_bits(choice));
                None
            }
            2 => {
                producer.publish();
                None
            }
            3 => {
                let _ = producer.prepare_sleep_for(choice as u32);
                None
            }
            4 => producer.spare(),
            5 => producer.borrow(),
            6 => producer.peek_ahead(choice as u32),
            7 => {
                assert!(consumer.available(choice as u32).unwrap_or(0) <= 64);
                None
            }
            8 => consumer.pop(),
            9 => consumer.exchange(choice as u32),
            10 => consumer.exchange_if(|_| (choice & 1 == 0).then_some(choice as u32)),
            11 => consumer.peek_ahead(choice as u32),
            12 => {
                consumer.replace_buffer(choice as u32, 3);
                None
            }
            13 => {
                consumer.release();
                None
            }
            14 => {
                let _ = consumer.prepare_sleep();
                None
            }
            _ => {
                producer.end_sleep();
                consumer.end_sleep();
                None
            }
        });
        if let Some(range) = found.and_then(|descriptor| pool.range(descriptor).ok()) {
            assert!(range.end <= 128 * BUFFER_SIZE && range.len() <= BUFFER_SIZE);
        }
        assert!(producer.borrowed() <= 64);
    }
}

/// The host's ends of two ports whose boxes write words of the input anywhere outside the buffers.
pub fn ports(bytes: &[u8]) {
    let input = Input::new(bytes);
    if input.byte() & 1 == 0 {
        let layout = RegionLayout::new(&[SLOTS]).unwrap();
        with_mapped(2 * layout.size, |memory| {
            let regions = [0, layout.size].map(|start| memory.part(start, layout.size).unwrap());
            let ports = regions.map(|region| HostPort::new(&region, &layout.ports[0], ()).unwrap());
            drive(&input, regions, layout.ports[0].buffers, ports);
        });
        return;
    }
    let pool = POOL_BUFFERS * BUFFER_SIZE;
    let layout = RegionLayout::pooled(&[SLOTS], 1, pool).unwrap();
    with_mapped(2 * layout.size + pool, |memory| {
        let regions = [0, layout.size].map(|start| memory.part(start, layout.size).unwrap());
        let buffers = memory.part(2 * layout.size, pool).unwrap();
        let owners = Arc::new(BufferOwners::new(pool));
        let members = [1, 2].map(|number| PoolMember::new(number).unwrap());
        let ports = [0, 1].map(|side| {
            let own = owners.take(members[side], layout.buffers()).unwrap();
            let member = (owners.clone(), members[side]);
            let mut port =
                HostPort::pooled(&regions[side], &layout.ports[0], buffers, member, &own, ()).unwrap();
            port.note_tags(&Arc::new(BufferTags::new(port.buffer_count())));
            port
        });
        drive(&input, regions, layout.size, ports);
        // Whatever the boxes wrote, each owns as many buffers as it started with.
        assert_eq!(members.map(|member| owners.give_back(member)), [128; 2]);
    });
}

/// Operations on two ports in any order. The boxes can write to the first `writable` bytes of their regions.
fn drive(input: &Input, regions: [Mapped; 2], writable: usize, mut ports: [HostPort<()>; 2]) {
    let mut buffer = [0; BUFFER_SIZE];
    let [left, right] = &mut ports;
    while !input.is_empty() {
        let operation = input.byte();
        let (port, other, region) = match operation & 1 {
            0 => (&mut *left, &mut *right, &regions[0]),
            _ => (&mut *right, &mut *left, &regions[1]),
        };
        match (operation >> 1) % 13 {
            0 | 1 => {
                let rings = boundary::control::SIZE;
                let offset = rings + input.word() as usize % (writable - rings);
                region.store_u32(offset & !3, input.word() as u32, Relaxed);
            }
            2 => {
                let offset =
                    boundary::control::SIZE + input.word() as usize % (writable - boundary::control::SIZE);
                region.store_u64(offset & !7, input.word(), Relaxed);
            }
            3 => drop(port.room(input.word() as u32)),
            4 => drop(port.send_parts(&buffer[..input.word() as usize % BUFFER_SIZE], None, 7)),
            5 => drop(port.publish()),
            6 => drop(port.available(input.word() as u32)),
            7 => drop(port.receive(&mut buffer).map(|packet| packet.map(<[u8]>::len))),
            8 => drop(port.pass(other, input.word() as u32)),
            9 => switch(port, other, input.word() as usize),
            10 => drop(port.release()),
            11 => pass_direct(port, other),
            _ => {
                port.waiting();
                let _ = (port.prepare_sleep(), port.prepare_room_sleep());
                port.end_sleep();
            }
        }
    }
}

/// Passes packets on like a switch: inspects a packet's head, and either copies the tail, or moves the buffer if the
/// boxes share a pool.
fn switch(from: &mut HostPort<()>, to: &mut HostPort<()>, head: usize) {
    let source = from.source_region();
    let peer = to.pool_peer(&source);
    let Ok(waiting) = from.available(64) else { return };
    let _ = to.room(64);
    let mut replaced = Vec::new();
    for _ in 0..waiting.min(64) {
        let Ok(Some(TakenPacket { range, slot, .. })) = from.take() else { continue };
        let head = head.min(range.len());
        let mut bytes = vec![0; head];
        source.read(range.start, &mut bytes);
        let tail = source.tail(range.start + head..range.end);
        match peer.and_then(|peer| to.take_ownership(peer, head, tail, 0)) {
            Some(spare) => replaced.push((slot, spare)),
            None => drop(to.send_parts(&bytes, Some(tail), 0)),
        }
    }
    to.publish();
    for (slot, spare) in replaced {
        from.replace_buffer(slot, spare);
    }
    from.release();
}

/// Moves packets that are passed on unread.
fn pass_direct(from: &mut HostPort<()>, to: &mut HostPort<()>) {
    let mut batch = DirectBatch::default();
    if from.list_direct(&mut batch).is_ok() {
        assert!(
            batch.packets().iter().all(|packet| packet.tag == 7 && packet.length() <= BUFFER_SIZE as u32)
        );
        let _ = to.send_direct(&mut batch);
        to.publish();
        from.release_direct(&batch);
    }
}
