//! Steering as a program of classic BPF, with which Linux gives each socket of several its packets.

use alloc::vec::Vec;

use element::{DividedRange, Shard};
use packet::socket_filter::operation::{
    ADD, ADD_X, AND, BYTE, HALF, IF_EQUAL, IF_GREATER, IF_NOT_LESS, LOAD_MEMORY, LOAD_X_MEMORY, MULTIPLY,
    RETURN, SHIFT_LEFT, SHIFT_RIGHT, STORE, WORD,
};
use packet::socket_filter::{FilterInstruction, Label, Program};
use packet::steering::{
    ARP, ARP_REPLY, ICMP_ERRORS, ICMP6_ERRORS, IP4, IP6, MAX_TAGS, NEIGHBOUR_ADVERTISEMENT,
    NEIGHBOUR_DISCOVERY, SUM_MIX, Steering, TAGS, WORD_MIX,
};

// Places of the scratch memory.
/// The length of the tags before the EtherType.
const TAG: u32 = 0;
/// The offset of the IP header.
const IP: u32 = 1;
const SOURCE: u32 = 2;
const DESTINATION: u32 = 3;
/// The offset of what follows the IP header.
const BODY: u32 = 4;
const PORT: u32 = 5;
const SUM: u32 = 6;

/// The port of a packet that has none, which no range contains.
const NO_PORT: u32 = u32::MAX;

/// Adds a word of an address to the sum.
fn add_word(p: &mut Program) {
    p.mix(WORD_MIX);
    p.add(LOAD_X_MEMORY, SUM);
    p.add(ADD_X, 0);
    p.add(STORE, SUM);
}

/// Where the parts of the program lead.
#[derive(Clone, Copy)]
struct Ends {
    accept: Label,
    reject: Label,
    /// To the first shard.
    first: Label,
    /// By the sum of the words.
    spread: Label,
}

/// The program that accepts the Ethernet frames of a shard, and those that all get.
pub fn steering_filter(steering: &Steering, shard: u32) -> Vec<FilterInstruction> {
    let mut program = Program::default();
    let p = &mut program;
    let [accept, reject, first, spread] = [(); 4].map(|()| p.label());
    let ends = Ends { accept, reject, first, spread };
    p.store(TAG, 0);
    for _ in 0..MAX_TAGS {
        p.need(TAG, 14, first);
        p.load(HALF, TAG, 12);
        let [tagged, next] = [(); 2].map(|()| p.label());
        TAGS.iter().for_each(|tag| p.when(IF_EQUAL, u32::from(*tag), tagged));
        p.jump(next);
        p.place(tagged);
        p.add(LOAD_MEMORY, TAG);
        p.add(ADD, 4);
        p.add(STORE, TAG);
        p.place(next);
    }
    let [ip, arp, ip4, ip6] = [(); 4].map(|()| p.label());
    p.need(TAG, 14, first);
    p.load(HALF, TAG, 12);
    p.when(IF_EQUAL, u32::from(IP4), ip);
    p.when(IF_EQUAL, u32::from(IP6), ip);
    p.when(IF_EQUAL, u32::from(ARP), arp);
    p.jump(first);
    p.place(arp);
    p.need(TAG, 22, first);
    p.load(HALF, TAG, 20);
    p.when(IF_EQUAL, u32::from(ARP_REPLY), accept);
    p.jump(first);
    p.place(ip);
    p.add(LOAD_MEMORY, TAG);
    p.add(ADD, 14);
    p.add(STORE, IP);
    p.store(SUM, 0);
    p.need(IP, 1, first);
    p.load(BYTE, IP, 0);
    p.add(SHIFT_RIGHT, 4);
    p.when(IF_EQUAL, 4, ip4);
    p.when(IF_EQUAL, 6, ip6);
    p.jump(first);
    p.place(ip4);
    let inner = p.label();
    ip4_part(steering, p, shard, (ends, Some(inner)));
    p.place(inner);
    ip4_part(steering, p, shard, (ends, None));
    p.place(ip6);
    let inner = p.label();
    ip6_part(p, ends, Some(inner));
    p.place(inner);
    ip6_part(p, ends, None);
    p.place(spread);
    p.add(LOAD_MEMORY, SUM);
    p.mix(SUM_MIX);
    p.add(SHIFT_RIGHT, 16);
    p.add(MULTIPLY, steering.shards());
    p.add(SHIFT_RIGHT, 16);
    p.when(IF_EQUAL, shard, accept);
    p.jump(reject);
    p.place(first);
    p.jump(if shard == 0 { accept } else { reject });
    p.place(accept);
    p.add(RETURN, u32::MAX);
    p.place(reject);
    p.add(RETURN, 0);
    program.finish()
}

/// The part for IPv4; `inner` is that for the packet in an ICMP error.
fn ip4_part(steering: &Steering, p: &mut Program, shard: u32, (ends, inner): (Ends, Option<Label>)) {
    p.need(IP, 20, ends.first);
    for (at, place) in [(12, SOURCE), (16, DESTINATION)] {
        p.load(WORD, IP, at);
        p.add(STORE, place);
    }
    p.store(PORT, NO_PORT);
    let [ranges, transport] = [(); 2].map(|()| p.label());
    p.load(HALF, IP, 6);
    p.add(AND, 0x1fff);
    p.unless(IF_EQUAL, 0, ranges);
    p.load(BYTE, IP, 0);
    p.add(AND, 0xf);
    p.add(SHIFT_LEFT, 2);
    p.add(LOAD_X_MEMORY, IP);
    p.add(ADD_X, 0);
    p.add(STORE, BODY);
    p.load(BYTE, IP, 9);
    p.when(IF_EQUAL, 6, transport);
    p.when(IF_EQUAL, 17, transport);
    if let Some(inner) = inner {
        p.unless(IF_EQUAL, 1, ranges);
        p.need(BODY, 1, ranges);
        p.load(BYTE, BODY, 0);
        let error = p.label();
        ICMP_ERRORS.iter().for_each(|kind| p.when(IF_EQUAL, u32::from(*kind), error));
        p.jump(ranges);
        p.place(error);
        p.add(LOAD_MEMORY, BODY);
        p.add(ADD, 8);
        p.add(STORE, IP);
        p.jump(inner);
    } else {
        p.jump(ranges);
    }
    // The packet inside went the other way.
    let (receiver, port) = if inner.is_some() { (DESTINATION, 2) } else { (SOURCE, 0) };
    p.place(transport);
    p.need(BODY, port + 2, ranges);
    p.load(HALF, BODY, port);
    p.add(STORE, PORT);
    p.place(ranges);
    for range in steering.ranges() {
        let next = p.label();
        p.add(LOAD_MEMORY, receiver);
        let (first, last) = match *range {
            DividedRange::Ports(address, first, last) => {
                p.unless(IF_EQUAL, address.to_bits(), next);
                p.add(LOAD_MEMORY, PORT);
                (u32::from(first), u32::from(last))
            }
            DividedRange::Addresses(first, last) => (first.to_bits(), last.to_bits()),
        };
        p.unless(IF_NOT_LESS, first, next);
        p.when(IF_GREATER, last, next);
        let part = Shard { index: shard, count: steering.shards() }.part(last - first);
        if let Some((own_first, own_last)) = part {
            p.unless(IF_NOT_LESS, first + own_first, ends.reject);
            p.when(IF_GREATER, first + own_last, ends.reject);
            p.jump(ends.accept);
        } else {
            p.jump(ends.reject);
        }
        p.place(next);
    }
    for place in [SOURCE, DESTINATION] {
        p.add(LOAD_MEMORY, place);
        add_word(p);
    }
    p.jump(ends.spread);
}

/// The part for IPv6; `inner` is that for the packet in an ICMP error.
fn ip6_part(p: &mut Program, ends: Ends, inner: Option<Label>) {
    let [plain, message] = [(); 2].map(|()| p.label());
    p.need(IP, 40, ends.first);
    p.load(BYTE, IP, 6);
    p.when(IF_EQUAL, 58, message);
    p.jump(plain);
    p.place(message);
    p.need(IP, 41, plain);
    p.load(BYTE, IP, 40);
    p.when(IF_EQUAL, u32::from(NEIGHBOUR_ADVERTISEMENT), ends.accept);
    let past = p.label();
    p.when(IF_GREATER, u32::from(*NEIGHBOUR_DISCOVERY.end()), past);
    p.when(IF_NOT_LESS, u32::from(*NEIGHBOUR_DISCOVERY.start()), ends.first);
    p.place(past);
    if let Some(inner) = inner {
        p.when(IF_GREATER, u32::from(*ICMP6_ERRORS.end()), plain);
        p.unless(IF_NOT_LESS, u32::from(*ICMP6_ERRORS.start()), plain);
        p.add(LOAD_MEMORY, IP);
        p.add(ADD, 48);
        p.add(STORE, IP);
        p.jump(inner);
    }
    p.place(plain);
    for word in 0..8 {
        p.load(WORD, IP, 8 + word * 4);
        add_word(p);
    }
    p.jump(ends.spread);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use element::AdditiveRandom;
    use packet::socket_filter::run;
    use packet::steering::Destination;

    #[test]
    fn the_program_decides_as_the_function() {
        let mut random = AdditiveRandom::new(7);
        let mut draw = move |limit: u32| random.draw() % limit;
        let mut hits = [0; 4];
        for shards in 1..=3 {
            let mut steering = Steering::new(shards);
            assert!(steering.divide(DividedRange::Ports([1, 0, 0, 1].into(), 1024, 65_535)));
            assert!(steering.divide(DividedRange::Addresses([1, 0, 0, 4].into(), [1, 0, 0, 11].into())));
            let programs: Vec<_> = (0..shards).map(|shard| steering_filter(&steering, shard)).collect();
            assert!(programs.iter().all(|program| program.len() < 4_096), "Linux takes no more");
            for _ in 0..20_000 {
                let pick = |values: &[u8], draw: &mut dyn FnMut(u32) -> u32| {
                    values[draw(values.len() as u32) as usize]
                };
                let mut frame: Vec<u8> = vec![2; 12];
                for _ in 0..draw(3) {
                    frame.extend([0x81, 0, 0, 7]);
                }
                let six = draw(3) == 0;
                frame.extend(match (draw(8), six) {
                    (0, _) => [8, 6],
                    (1, _) => [0x88, 0x63],
                    (_, true) => [0x86, 0xdd],
                    _ => [8, 0],
                });
                let header = |draw: &mut dyn FnMut(u32) -> u32| {
                    let mut bytes: Vec<u8> =
                        (0..if six { 40 } else { 20 }).map(|_| pick(&[0, 1, 1, 2, 5], draw)).collect();
                    if six {
                        (bytes[0], bytes[6]) = (0x60, pick(&[58, 58, 17], draw));
                    } else {
                        (bytes[0], bytes[9]) =
                            (pick(&[0x45, 0x45, 0x46, 0x4f], draw), pick(&[1, 6, 17, 47], draw));
                        (bytes[6], bytes[7]) = (pick(&[0, 0, 0x40, 0x20], draw), pick(&[0, 0, 0, 9], draw));
                        for at in [12, 16] {
                            bytes[at..at + 3].copy_from_slice(&[1, 0, 0]);
                            bytes[at + 3] = pick(&[1, 1, 5, 9, 77], draw);
                        }
                    }
                    bytes
                };
                frame.extend(header(&mut draw));
                // An operation of ARP, a kind of message, or a port.
                frame.extend([
                    pick(&[0, 1, 2, 3, 5, 11, 133, 135, 136, 137, 200], &mut draw),
                    2,
                    0,
                    0,
                    9,
                    9,
                    9,
                    9,
                ]);
                frame.extend(header(&mut draw));
                frame.extend((0..8).map(|_| draw(256) as u8));
                frame.truncate(14 + draw(frame.len() as u32 - 13) as usize);
                let destination = steering.of_frame(&frame);
                for (shard, program) in programs.iter().enumerate() {
                    let expected =
                        destination == Destination::All || destination == Destination::Shard(shard as u32);
                    assert_eq!(run(program, &frame, 0, 0) > 0, expected, "{destination:?} {frame:02x?}");
                }
                hits[match destination {
                    Destination::All => 3,
                    Destination::Shard(shard) => shard as usize,
                }] += 1;
            }
        }
        assert!(hits.iter().all(|hits| *hits > 500), "{hits:?}");
    }
}
