//! Packet operations, compared with a plain vector of bytes.

use packet::{Batch, MAX_CAPACITY, Packet, PacketType, Pool, annotation};
use random::Random;

/// A packet and what it is expected to hold.
#[derive(Clone)]
struct Model {
    bytes: Vec<u8>,
    /// The offset of the link header, which is set where the packet began.
    mac: Option<isize>,
    paint: u8,
}

struct Pair {
    packet: Packet,
    model: Model,
}

impl Pair {
    fn check(&self) {
        let Model { bytes, mac, paint } = &self.model;
        assert_eq!((self.packet.data(), self.packet.paint()), (&bytes[..], *paint));
        assert_eq!(self.packet.mac_offset(), *mac);
    }
}

fn step(pairs: &mut Vec<Pair>, pool: &Pool, random: &mut Random) {
    let choice = random.below(10);
    if pairs.is_empty() || choice == 0 {
        let bytes: Vec<u8> = (0..random.below(3000)).map(|value| value as u8).collect();
        if let Some(mut packet) = pool.packet(&bytes) {
            let paint = random.below(256) as u8;
            packet.set_mac(0);
            packet.set_paint(paint);
            pairs.push(Pair { packet, model: Model { bytes, mac: Some(0), paint } });
        }
        return;
    }
    let index = random.below(pairs.len() as u32) as usize;
    let amount = random.below(200) as usize;
    let pair = &mut pairs[index];
    match choice {
        1 => drop(pairs.swap_remove(index)),
        2 => {
            if let Some(packet) = pair.packet.duplicate() {
                let model = pair.model.clone();
                pairs.push(Pair { packet, model });
            }
        }
        3 => {
            if let Some(packet) = pair.packet.copy() {
                let model = pair.model.clone();
                pairs.push(Pair { packet, model });
            }
        }
        4 => {
            let count = pair.packet.strip(amount);
            pair.model.bytes.drain(..count);
            pair.model.mac = pair.model.mac.map(|mac| mac - count.cast_signed());
        }
        5 => {
            let count = pair.packet.truncate_by(amount);
            pair.model.bytes.truncate(pair.model.bytes.len() - count);
        }
        6 => {
            pair.packet.prepend(amount).unwrap().fill(7);
            pair.model.bytes.splice(..0, vec![7; amount]);
            pair.model.mac = pair.model.mac.map(|mac| mac + amount.cast_signed());
        }
        7 => {
            pair.packet.append(amount).unwrap().fill(9);
            pair.model.bytes.extend(vec![9; amount]);
        }
        8 => {
            pair.packet.set_headroom(amount).unwrap();
            pair.model.mac = pair.model.mac.filter(|mac| mac + amount.cast_signed() >= 0);
        }
        _ => {
            if let (Some(byte), Some(model)) =
                (pair.packet.data_mut().first_mut(), pair.model.bytes.first_mut())
            {
                *byte = byte.wrapping_add(1);
                *model = *byte;
            }
        }
    }
}

#[test]
fn packets_hold_what_was_written() {
    for seed in 1..30 {
        let pool = Pool::new(40);
        let (mut pairs, mut random) = (Vec::new(), Random::new(seed));
        for _ in 0..2000 {
            step(&mut pairs, &pool, &mut random);
            pairs.iter().for_each(Pair::check);
            assert_eq!(pool.packets(), pairs.len());
        }
        let mut batch: Batch = pairs.drain(..).map(|pair| pair.packet).collect();
        batch.clear();
        assert_eq!((pool.live(), pool.packets()), (0, 0));
    }
}

#[test]
fn packets_of_every_length_are_copies() {
    let pool = Pool::new(1);
    let bytes: Vec<u8> = (0..200).collect();
    for length in 0..=bytes.len() {
        // The slot still holds what was written before.
        let mut packet = pool.packet(&[0xee; 200]).unwrap();
        packet.append(1).unwrap();
        drop(packet);
        let mut packet = pool.packet(&bytes[..length]).unwrap();
        assert_eq!(packet.data(), &bytes[..length]);
        assert_eq!(packet.append(1).map(|added| added.to_vec()), Some(vec![0]));
    }
    assert_eq!((pool.live(), pool.failed_allocations()), (0, 0));
}

#[test]
fn a_link_header_is_written_and_marked() {
    let pool = Pool::new(4);
    let mut packet = pool.packet(b"payload").unwrap();
    let shared = packet.duplicate().unwrap();
    // There is headroom for some of them.
    for count in 1..10 {
        packet.prepend_link_header(b"fourteen bytes").unwrap();
        assert_eq!((packet.mac_offset(), packet.network_offset()), (Some(0), Some(14)));
        assert_eq!(packet.data(), [&b"fourteen bytes".repeat(count)[..], b"payload"].concat());
    }
    assert_eq!((shared.data(), shared.mac_offset()), (&b"payload"[..], None));
    drop((packet, shared));
    assert_eq!((pool.live(), pool.packets()), (0, 0));
}

#[test]
fn an_exhausted_pool_refuses_and_recovers() {
    let pool = Pool::new(3);
    let held: Vec<_> = (0..3).map(|_| pool.allocate(60).unwrap()).collect();
    assert!(pool.allocate(60).is_none());
    assert!(held[0].duplicate().is_none());
    assert_eq!((pool.live(), pool.failed_allocations()), (3, 2));
    drop(held);
    assert_eq!(pool.allocate(60).map(|packet| (packet.len(), pool.live())), Some((60, 1)));
    assert_eq!((pool.live(), pool.failed_allocations()), (0, 2));
}

#[test]
fn packets_outlive_the_handle_of_their_pool() {
    let pool = Pool::new(2);
    let first = pool.packet(b"first").unwrap();
    let second = first.duplicate().unwrap();
    drop(pool);
    drop(first);
    assert_eq!(second.data(), b"first");
}

#[test]
fn headers_stay_where_they_are() {
    let pool = Pool::new(4);
    let mut packet = pool.packet(&[0; 60]).unwrap();
    packet.set_mac(0);
    packet.set_network(14, 20);
    packet.strip(14);
    assert_eq!((packet.mac_offset(), packet.network_offset()), (Some(-14), Some(0)));
    assert_eq!((packet.mac().len(), packet.transport().len()), (60, 26));
    packet.prepend(500).unwrap();
    assert_eq!((packet.network_offset(), packet.network_header_length()), (Some(500), 20));
    packet.set_network(5000, 20);
    assert!(!packet.has_network() && packet.network().is_empty() && packet.transport().is_empty());
}

#[test]
fn absurd_sizes_are_refused() {
    let pool = Pool::new(4);
    assert!(pool.allocate(usize::MAX).is_none());
    assert!(pool.allocate(MAX_CAPACITY + 1).is_none());
    let mut packet = pool.packet(b"x").unwrap();
    assert!(packet.prepend(usize::MAX / 2).is_none());
    assert!(packet.append(MAX_CAPACITY).is_none());
    assert!(!packet.unstrip(100));
    assert_eq!((packet.data(), pool.live(), pool.failed_allocations()), (&b"x"[..], 1, 1));
}

#[test]
fn batches_filter_in_place() {
    let pool = Pool::new(10);
    let mut batch: Batch = (0..8u8).map(|value| pool.packet(&[value]).unwrap()).collect();
    batch.filter_map(|packet| (packet.data()[0] % 2 == 1).then_some(packet));
    assert_eq!(batch.iter().map(|packet| packet.data()[0]).collect::<Vec<_>>(), [1, 3, 5, 7]);
    assert_eq!(pool.live(), 4);
    let template = batch.pop().unwrap();
    assert_eq!(batch.push_copies(&template, 20), 6);
}

#[test]
fn copies_of_a_template_are_packets_of_their_own() {
    for (length, limit) in
        [(0, 50), (1, 50), (64, 50), (150, 50), (191, 50), (1500, 50), (2048, 20), (5000, 50)]
    {
        let pool = Pool::new(limit);
        let bytes: Vec<u8> = (0..length).map(|value| value as u8).collect();
        let mut template = pool.packet(&bytes).unwrap();
        template.set_mac(0);
        template.set_network(4, 0);
        template.set_paint(7);
        let mut batch = Batch::new();
        assert_eq!(batch.push_copies(&template, 30), 30.min(limit - 1), "{length}");
        for packet in batch.iter_mut() {
            assert_eq!((packet.data(), packet.paint()), (bytes.as_slice(), 7));
            assert_eq!(packet.mac_offset(), Some(0));
            if let Some(byte) = packet.data_mut().first_mut() {
                *byte = 99;
            }
        }
        assert_eq!(template.data(), bytes);
        let kept = batch.pop();
        drop(template);
        drop(batch);
        assert_eq!(pool.live(), 1);
        drop(pool);
        drop(kept);
    }
}

#[test]
fn batches_are_scattered_in_order() {
    let pool = Pool::new(1000);
    let lengths = |batch: &Batch| batch.iter().map(Packet::len).collect::<Vec<_>>();
    let numbers = [1, 0, 7, 1, u32::MAX];
    let mut batch: Batch = (0..6).map(|length| pool.packet(&vec![0; length]).unwrap()).collect();
    let mut parts = [Batch::single(pool.packet(&[0; 9]).unwrap()), Batch::new(), Batch::new()];
    batch.scatter(&numbers, &mut []);
    assert_eq!(batch.len(), 6);
    batch.scatter(&numbers, &mut parts);
    assert_eq!(parts.each_ref().map(lengths), [vec![9, 1], vec![0, 3], vec![2, 4, 5]]);
    // More than a byte counts.
    let mut batch: Batch = (0..600).map(|length| pool.packet(&vec![0; length]).unwrap()).collect();
    let numbers: Vec<u32> = (0..600).map(|number| u32::from(number < 7)).collect();
    batch.scatter(&numbers, &mut parts);
    assert_eq!(lengths(&parts[0])[2..], (7..600).collect::<Vec<_>>());
    assert_eq!(lengths(&parts[1])[2..], (0..7).collect::<Vec<_>>());
    assert_eq!((batch.len(), parts[2].len(), pool.live()), (0, 3, 606 + 1));
    drop(parts);
    assert_eq!(pool.live(), 0);
}

#[test]
fn a_batch_may_be_the_last_of_its_pool() {
    let pool = Pool::new(8);
    let batch: Batch = (0..4).map(|_| pool.allocate(10).unwrap()).collect();
    let other = Pool::new(8);
    let mut mixed: Batch = (0..4).map(|_| other.allocate(9000).unwrap()).collect();
    mixed.push(pool.allocate(10).unwrap());
    drop((pool, other));
    assert!(batch.iter().all(|packet| packet.len() == 10));
    drop(batch);
    let lengths: Vec<usize> = mixed.iter().map(Packet::len).collect();
    assert_eq!(lengths, [9000, 9000, 9000, 9000, 10]);
    drop(mixed);
}

/// A leaked buffer.
fn buffer(bytes: &[u8]) -> &'static mut [u8] {
    Vec::leak(bytes.to_vec())
}

#[test]
fn a_lent_buffer_holds_the_packet_and_comes_back() {
    let pool = Pool::new(4);
    let lent = buffer(&[7; 200]);
    let address = lent.as_ptr();
    let mut packet = pool.lend(lent, 64..164).unwrap();
    assert_eq!((packet.data(), packet.headroom(), packet.tailroom()), (&[7; 100][..], 64, 36));
    assert_eq!(packet.data().as_ptr(), address.wrapping_add(64));
    packet.strip(10);
    packet.data_mut()[0] = 8;
    packet.set_network(0, 20);
    let (back, range) = packet.into_buffer().unwrap();
    assert_eq!((back.as_ptr(), range.clone(), back[range.start], back.len()), (address, 74..164, 8, 200));
    // The packet is empty and works like any other.
    assert!(packet.is_empty() && packet.into_buffer().is_none() && !packet.has_network());
    packet.append(2000).unwrap();
    assert_eq!((packet.len(), pool.live()), (2000, 1));
    let packet = pool.lend(back, 0..200).unwrap();
    drop(packet);
    assert_eq!(pool.take_returned().unwrap().as_ptr(), address);
    assert!(pool.take_returned().is_none());
}

#[test]
fn a_lent_buffer_stays_while_anybody_shares_it() {
    let pool = Pool::new(8);
    let mut first = pool.lend(buffer(&[1; 100]), 0..100).unwrap();
    let mut second = first.duplicate().unwrap();
    assert!(first.into_buffer().is_none() && second.into_buffer().is_none());
    second.data_mut()[0] = 2;
    assert_eq!((first.data()[0], second.data()[0]), (1, 2));
    // The copy has its own bytes now, so the first no longer shares its bytes.
    let (bytes, _) = first.into_buffer().unwrap();
    let first = pool.lend(bytes, 10..20).unwrap();
    let third = first.duplicate().unwrap();
    drop(first);
    assert!(pool.take_returned().is_none());
    // Beside the second packet and the one without a buffer: a slot that is kept for the third, and the third.
    assert_eq!((pool.live(), pool.packets()), (4, 3));
    assert_eq!(third.data(), [1; 10]);
    drop(third);
    assert_eq!(pool.take_returned().unwrap().len(), 100);
}

#[test]
fn a_lent_buffer_that_is_outgrown_comes_back() {
    let pool = Pool::new(8);
    let mut packet = pool.lend(buffer(&[3; 100]), 20..100).unwrap();
    packet.set_mac(0);
    packet.prepend(30).unwrap().fill(4);
    assert_eq!(
        (packet.len(), packet.data()[29], packet.data()[30], packet.mac_offset()),
        (110, 4, 3, Some(30))
    );
    assert!(packet.into_buffer().is_none());
    assert_eq!(pool.take_returned().unwrap().len(), 100);
    let mut batch = Batch::new();
    let template = pool.lend(buffer(&[5; 300]), 0..300).unwrap();
    assert_eq!(batch.push_copies(&template, 2), 2);
    let small = pool.lend(buffer(&[6; 64]), 0..64).unwrap();
    assert_eq!(batch.push_copies(&small, 2), 2);
    batch.push(template);
    batch.push(small);
    batch.clear();
    let mut lengths = [pool.take_returned(), pool.take_returned()].map(|buffer| buffer.unwrap().len());
    lengths.sort_unstable();
    assert_eq!((lengths, pool.take_returned().is_none(), pool.live()), ([64, 300], true, 1));
}

#[test]
fn a_batch_of_duplicates_is_dropped_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let pool = Pool::new(12);
        let mut first: Batch = (0..3).map(|fill| pool.lend(buffer(&[fill; 100]), 0..100).unwrap()).collect();
        first.push(pool.packet(b"own").unwrap());
        first.as_mut_slice()[1].set_annotation_u8(17, 3);
        let [mut second, mut third] = [Batch::new(), Batch::new()];
        first.duplicate_to(&mut second);
        first.duplicate_to(&mut third);
        // There is no room for more.
        assert_eq!((second.len(), third.len(), pool.live(), pool.packets()), (4, 4, 12, 12));
        let mut fourth = Batch::new();
        first.duplicate_to(&mut fourth);
        assert!(fourth.is_empty());
        third.as_mut_slice()[1].strip(40);
        for (one, two) in first.iter().zip(second.iter()) {
            assert_eq!((one.data(), one.annotation_u8(17)), (two.data(), two.annotation_u8(17)));
        }
        assert_eq!(third.as_slice()[1].data(), [1; 60]);
        let mut batches = [first, second, third];
        let mut packets = 12;
        for index in order {
            batches[index].clear();
            packets -= 4;
            // Slots whose bytes others share are kept.
            let kept = if batches[0].is_empty() && packets > 0 { 4 } else { 0 };
            assert_eq!((pool.packets(), pool.live()), (packets, packets + kept), "{order:?}");
        }
        assert_eq!((0..3).filter(|_| pool.take_returned().is_some()).count(), 3, "{order:?}");
        // What is free can be used again, with new bytes.
        let packets: Vec<_> = (0..12).map(|_| pool.packet(b"new").unwrap()).collect();
        assert!(packets.iter().all(|packet| packet.data() == b"new" && packet.annotation_u8(17) == 0));
    }
}

#[test]
fn lent_buffers_are_taken_in_order_up_to_a_packet_without_one() {
    let pool = Pool::new(16);
    let lend = |fill: u8, range| pool.lend(buffer(&[fill; 100]), range).unwrap();
    let shared = lend(4, 0..9);
    let other = shared.duplicate().unwrap();
    let packets = [
        lend(1, 10..20),
        lend(2, 0..100),
        lend(3, 5..5),
        shared,
        lend(5, 1..2),
        pool.packet(b"own").unwrap(),
    ];
    let mut batch: Batch = packets.into_iter().collect();
    batch.as_mut_slice()[1].strip(30);
    let mut taken = Vec::new();
    let mut take = |batch: &mut Batch, most| {
        let count = batch.take_lent(most, |(bytes, range)| taken.push((bytes[0], bytes.len(), range)));
        (count, batch.len())
    };
    assert_eq!([take(&mut batch, 0), take(&mut batch, 2), take(&mut batch, 9)], [(0, 6), (2, 4), (1, 3)]);
    // The bytes of the first packet are shared.
    assert_eq!((take(&mut batch, 9), pool.live()), ((0, 3), 4));
    drop(other);
    assert_eq!([take(&mut batch, 1), take(&mut batch, 9), take(&mut batch, 9)], [(1, 2), (1, 1), (0, 1)]);
    assert_eq!(take(&mut Batch::new(), 1), (0, 0));
    assert_eq!(taken, [(1, 100, 10..20), (2, 100, 30..100), (3, 100, 5..5), (4, 100, 0..9), (5, 100, 1..2)]);
    assert_eq!((batch.as_slice()[0].data(), pool.live(), pool.packets()), (&b"own"[..], 1, 1));
    // Their slots are used again, and nothing comes back a second time.
    let packets: Vec<_> = (0..15).map(|_| pool.packet(&[9; 64]).unwrap()).collect();
    assert!(packets.iter().all(|packet| packet.data() == [9; 64] && packet.tailroom() > 1000));
    assert_eq!((pool.live(), pool.take_returned().is_none()), (16, true));
}

/// The last packets of a pool without handles may be such.
#[test]
fn a_pool_ends_with_the_last_lent_buffer() {
    let pool = Pool::new(4);
    let mut batch: Batch = (0..3).map(|_| pool.lend(buffer(&[1; 10]), 0..10).unwrap()).collect();
    drop(pool);
    let mut bytes = 0;
    assert_eq!(batch.take_lent(2, |(buffer, _)| bytes += buffer.len()), 2);
    assert_eq!(batch.take_lent(2, |(buffer, _)| bytes += buffer.len()), 1);
    assert_eq!((bytes, batch.len()), (30, 0));
}

/// Whatever a slot was used for, the annotations of a new packet are zero, and those of a copy are the same.
#[test]
fn annotations_do_not_outlive_their_packet() {
    const NOTHING: [u8; annotation::SIZE] = [0; annotation::SIZE];
    let pool = Pool::new(3);
    let marks: [fn(&mut Packet); 7] = [
        |packet| packet.set_destination_ip([1, 2, 3, 4].into()),
        |packet| packet.set_annotation_u16(3, 0x0505),
        |packet| packet.set_annotation_u8(4, 6),
        |packet| packet.set_paint(7),
        |packet| packet.annotations_mut()[annotation::SIZE - 1] = 1,
        |packet| packet.set_annotation_u32(44, 3),
        |packet| packet.set_packet_type(PacketType::Multicast),
    ];
    for mark in marks {
        let plain = pool.packet(b"plain").unwrap();
        let mut marked = pool.packet(b"marked").unwrap();
        mark(&mut marked);
        assert_eq!((plain.annotations(), plain.packet_type()), (&NOTHING, PacketType::Host));
        let mut copy = marked.duplicate().unwrap();
        assert_eq!((copy.annotations(), copy.packet_type()), (marked.annotations(), marked.packet_type()));
        // Annotations that are not set replace those that are.
        mark(&mut copy);
        copy.copy_annotations(&plain);
        assert_eq!((copy.annotations(), copy.packet_type()), (&NOTHING, PacketType::Host));
        mark(&mut copy);
        copy.clear_annotations();
        assert_eq!((copy.annotations(), copy.packet_type()), (&NOTHING, PacketType::Host));
        mark(&mut copy);
        drop((plain, marked, copy));
        let mut batch = Batch::new();
        let template = pool.packet(b"template").unwrap();
        assert_eq!(batch.push_copies(&template, 9), 2);
        for packet in batch.iter().chain([&template]) {
            assert_eq!((packet.annotations(), packet.packet_type()), (&NOTHING, PacketType::Host));
        }
        batch.iter_mut().for_each(mark);
        batch.clear();
        let lent = pool.lend(buffer(&[1; 10]), 0..10).unwrap();
        assert_eq!((lent.annotations(), lent.packet_type()), (&NOTHING, PacketType::Host));
    }
}

#[test]
fn impossible_loans_are_refused() {
    let pool = Pool::new(1);
    #[expect(clippy::reversed_empty_ranges, reason = "it is to be refused")]
    for range in [0..11, 11..11, 5..4, usize::MAX..usize::MAX] {
        assert_eq!(pool.lend(buffer(&[1; 10]), range).unwrap_err(), [1; 10]);
    }
    assert!(pool.lend(&mut [], 0..0).unwrap_err().is_empty());
    assert_eq!((pool.live(), pool.failed_allocations()), (0, 0));
    let _only = pool.lend(buffer(&[0; 10]), 10..10).unwrap();
    assert_eq!(pool.lend(buffer(&[1; 10]), 0..10).unwrap_err(), [1; 10]);
    assert_eq!((pool.live(), pool.failed_allocations()), (1, 1));
}
