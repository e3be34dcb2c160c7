//! The rule that spreads frames, as a program of classic BPF: with it, Linux gives each queue the frames of its thread.

use super::spread::{SUM_MIX, Spread, WORD_MIX};
use packet::protocol;
use packet::socket_filter::operation::{
    ADD, ADD_X, AND, BYTE, HALF, HALF_AT, IF_EQUAL, IF_GREATER, IF_NOT_LESS, IF_NOT_LESS_THAN_X, LOAD_LENGTH,
    LOAD_MEMORY, LOAD_X_MEMORY, MULTIPLY, RETURN, RETURN_VALUE, SHIFT_LEFT, SHIFT_RIGHT, STORE, TO_X, WORD,
    WORD_AT, XOR, XOR_X,
};
use packet::socket_filter::{ETHERNET, ETHERTYPE, FilterInstruction, Label, Program};

// Places of the scratch memory.
/// The EtherType behind the tags so far.
const TYPE: u32 = 0;
/// The offset of the IP header.
const IP: u32 = 1;
/// The offset of the IP header of an ICMP error.
const OUTER: u32 = 2;
/// Where the packet ends.
const PACKET_END: u32 = 3;
/// The offset of what follows the IP header.
const BODY: u32 = 4;
const SOURCE_PORT: u32 = 5;
const DESTINATION_PORT: u32 = 6;
const STATE: u32 = 7;
const SUM: u32 = 8;

/// Tags that are looked behind, as in [`flow_table::Key::read`].
const MAX_TAGS: usize = 4;

/// Where the parts of the program lead.
#[derive(Clone, Copy)]
struct Ends {
    /// To the hash of the Ethernet addresses.
    ethernet: Label,
    /// To that of the addresses of an IPv4 packet, and of the ports.
    ip4: Label,
    ip6: Label,
}

impl Spread {
    /// The program that finds the queue of a packet without its Ethernet header. `threads` are those of the queues. Frames of other
    /// threads, and frames that the program does not understand, go to any queue: packets with extension headers of IPv6, and
    /// Ethernet frames with a length.
    pub(crate) fn filter(&self, threads: &[usize]) -> Vec<FilterInstruction> {
        let mut program = Program::default();
        let p = &mut program;
        let [ethernet, ip4, ip6, first, choose] = [(); 5].map(|()| p.label());
        let ends = Ends { ethernet, ip4, ip6 };
        p.add(LOAD_LENGTH, 0);
        p.add(STORE, PACKET_END);
        [IP, OUTER, SOURCE_PORT, DESTINATION_PORT, SUM].iter().for_each(|place| p.store(*place, 0));
        p.add(HALF_AT, ETHERTYPE);
        p.add(STORE, TYPE);
        for _ in 0..MAX_TAGS {
            let [tagged, next] = [(); 2].map(|()| p.label());
            p.add(LOAD_MEMORY, TYPE);
            [0x8100, 0x88a8, 0x9100].iter().for_each(|tag| p.when(IF_EQUAL, *tag, tagged));
            p.jump(next);
            p.place(tagged);
            within(p, IP, 4, ethernet);
            p.load(HALF, IP, 2);
            p.add(STORE, TYPE);
            p.add(LOAD_MEMORY, IP);
            p.add(ADD, 4);
            p.add(STORE, IP);
            p.place(next);
        }
        p.add(LOAD_MEMORY, TYPE);
        p.when(IF_EQUAL, 0x0800, first);
        p.unless(IF_EQUAL, 0x86dd, ethernet);
        let inner = p.label();
        ip6_part(p, ends, Some(inner));
        p.place(inner);
        ip6_part(p, ends, None);
        p.place(first);
        let inner = p.label();
        ip4_part(p, ends, Some(inner));
        p.place(inner);
        ip4_part(p, ends, None);
        p.place(ip4);
        for (at, port) in [(12, SOURCE_PORT), (16, DESTINATION_PORT)] {
            self.add_end(p, &[(IP, at)], port);
        }
        p.jump(choose);
        p.place(ip6);
        for (at, port) in [(8, SOURCE_PORT), (24, DESTINATION_PORT)] {
            self.add_end(p, &[0, 4, 8, 12].map(|word| (IP, at + word)), port);
        }
        p.jump(choose);
        p.place(ethernet);
        for at in [0, 6] {
            p.add(HALF_AT, ETHERNET + at);
            self.add_first(p);
            p.add(WORD_AT, ETHERNET + at + 2);
            add_word(p);
            p.add(LOAD_MEMORY, STATE);
            p.mix(WORD_MIX);
            add_to_sum(p);
        }
        p.place(choose);
        p.add(LOAD_MEMORY, SUM);
        p.add(XOR, self.seed[1]);
        p.mix(SUM_MIX);
        p.add(SHIFT_RIGHT, 16);
        p.add(MULTIPLY, self.count);
        p.add(SHIFT_RIGHT, 16);
        for (queue, thread) in (0..).zip(threads) {
            let next = p.label();
            p.unless(IF_EQUAL, *thread as u32, next);
            p.add(RETURN, queue);
            p.place(next);
        }
        p.add(RETURN_VALUE, 0);
        program.finish()
    }

    /// Adds the hash of an end to the sum: of these words of its address, and of its port.
    fn add_end(&self, p: &mut Program, address: &[(u32, u32)], port: u32) {
        for (number, (base, at)) in address.iter().enumerate() {
            p.load(WORD, *base, *at);
            match number {
                0 => self.add_first(p),
                _ => add_word(p),
            }
        }
        p.add(LOAD_MEMORY, port);
        add_word(p);
        p.add(LOAD_MEMORY, STATE);
        add_to_sum(p);
    }

    /// Begins the hash of an end with the word in the accumulator.
    fn add_first(&self, p: &mut Program) {
        p.add(XOR, self.seed[0]);
        p.mix(WORD_MIX);
        p.add(STORE, STATE);
    }
}

/// Adds the word in the accumulator to the hash of an end.
fn add_word(p: &mut Program) {
    p.add(LOAD_X_MEMORY, STATE);
    p.add(XOR_X, 0);
    p.mix(WORD_MIX);
    p.add(STORE, STATE);
}

fn add_to_sum(p: &mut Program) {
    p.add(LOAD_X_MEMORY, SUM);
    p.add(ADD_X, 0);
    p.add(STORE, SUM);
}

/// Jumps if the packet ends less than `length` bytes behind an offset in memory.
fn within(p: &mut Program, base: u32, length: u32, label: Label) {
    p.add(LOAD_MEMORY, base);
    p.add(ADD, length);
    p.add(TO_X, 0);
    p.add(LOAD_MEMORY, PACKET_END);
    p.unless(IF_NOT_LESS_THAN_X, 0, label);
}

/// Ends the packet as many bytes after its IP header starts as the accumulator says, unless it ends before.
fn limit(p: &mut Program) {
    let is_longer = p.label();
    p.add(LOAD_X_MEMORY, IP);
    p.add(ADD_X, 0);
    p.add(LOAD_X_MEMORY, PACKET_END);
    p.when(IF_NOT_LESS_THAN_X, 0, is_longer);
    p.add(STORE, PACKET_END);
    p.place(is_longer);
}

/// Reads both ports, and ends at `done`.
fn ports(p: &mut Program, done: Label) {
    within(p, BODY, 4, done);
    for (at, place) in [(0, SOURCE_PORT), (2, DESTINATION_PORT)] {
        p.load(HALF, BODY, at);
        p.add(STORE, place);
    }
    p.jump(done);
}

/// Takes the identifier of an echo message as port, and ends at `done`.
fn identifier(p: &mut Program, done: Label) {
    p.load(HALF, BODY, 4);
    p.add(STORE, SOURCE_PORT);
    p.add(STORE, DESTINATION_PORT);
    p.jump(done);
}

/// Goes on with the packet in an ICMP error.
fn enter(p: &mut Program, inner: Label) {
    p.add(LOAD_MEMORY, IP);
    p.add(STORE, OUTER);
    p.add(LOAD_MEMORY, BODY);
    p.add(ADD, 8);
    p.add(STORE, IP);
    p.jump(inner);
}

/// Goes on with the addresses of an ICMP error, whose packet is no IP.
fn leave(p: &mut Program, done: Label) {
    p.add(LOAD_MEMORY, OUTER);
    p.add(STORE, IP);
    p.jump(done);
}

/// The part for IPv4; `inner` is that for the packet in an ICMP error.
fn ip4_part(p: &mut Program, ends: Ends, inner: Option<Label>) {
    let [malformed, transport, message, echo] = [(); 4].map(|()| p.label());
    within(p, IP, 20, malformed);
    p.load(BYTE, IP, 0);
    p.unless(IF_NOT_LESS, 0x45, malformed);
    p.when(IF_GREATER, 0x4f, malformed);
    p.add(AND, 0xf);
    p.add(SHIFT_LEFT, 2);
    p.add(LOAD_X_MEMORY, IP);
    p.add(ADD_X, 0);
    p.add(STORE, BODY);
    within(p, BODY, 0, malformed);
    // No fragment.
    p.load(HALF, IP, 6);
    p.add(AND, 0x3fff);
    p.unless(IF_EQUAL, 0, ends.ip4);
    p.load(HALF, IP, 2);
    limit(p);
    p.load(BYTE, IP, 9);
    [protocol::TCP, protocol::UDP, protocol::SCTP]
        .iter()
        .for_each(|number| p.when(IF_EQUAL, u32::from(*number), transport));
    p.when(IF_EQUAL, u32::from(protocol::ICMP), message);
    p.jump(ends.ip4);
    p.place(transport);
    ports(p, ends.ip4);
    p.place(message);
    within(p, BODY, 8, ends.ip4);
    p.load(BYTE, BODY, 0);
    [0, 8].iter().for_each(|kind| p.when(IF_EQUAL, *kind, echo));
    if let Some(inner) = inner {
        let error = p.label();
        [3, 4, 5, 11, 12].iter().for_each(|kind| p.when(IF_EQUAL, *kind, error));
        p.jump(ends.ip4);
        p.place(error);
        enter(p, inner);
    } else {
        p.jump(ends.ip4);
    }
    p.place(echo);
    identifier(p, ends.ip4);
    p.place(malformed);
    match inner {
        Some(_) => p.jump(ends.ethernet),
        None => leave(p, ends.ip4),
    }
}

/// The part for IPv6; `inner` is that for the packet in an ICMP error.
fn ip6_part(p: &mut Program, ends: Ends, inner: Option<Label>) {
    let [malformed, transport, message, echo] = [(); 4].map(|()| p.label());
    within(p, IP, 40, malformed);
    p.load(BYTE, IP, 0);
    p.add(SHIFT_RIGHT, 4);
    p.unless(IF_EQUAL, 6, malformed);
    p.load(HALF, IP, 4);
    p.add(ADD, 40);
    limit(p);
    p.add(LOAD_MEMORY, IP);
    p.add(ADD, 40);
    p.add(STORE, BODY);
    p.load(BYTE, IP, 6);
    [protocol::TCP, protocol::UDP, protocol::SCTP]
        .iter()
        .for_each(|number| p.when(IF_EQUAL, u32::from(*number), transport));
    p.when(IF_EQUAL, u32::from(protocol::ICMP6), message);
    p.jump(ends.ip6);
    p.place(transport);
    ports(p, ends.ip6);
    p.place(message);
    within(p, BODY, 8, ends.ip6);
    p.load(BYTE, BODY, 0);
    [128, 129].iter().for_each(|kind| p.when(IF_EQUAL, *kind, echo));
    if let Some(inner) = inner {
        let error = p.label();
        (1..=4).for_each(|kind| p.when(IF_EQUAL, kind, error));
        p.jump(ends.ip6);
        p.place(error);
        enter(p, inner);
    } else {
        p.jump(ends.ip6);
    }
    p.place(echo);
    identifier(p, ends.ip6);
    p.place(malformed);
    match inner {
        Some(_) => p.jump(ends.ethernet),
        None => leave(p, ends.ip6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::socket_filter::run;
    use random::Random;

    /// Extension headers of IPv6 that something follows.
    const EXTENSIONS: [u8; 5] =
        [protocol::HOP_BY_HOP, protocol::ROUTING, protocol::FRAGMENT, protocol::AH, protocol::DESTINATION];

    struct Frames(Random);

    impl Frames {
        fn pick<T: Copy>(&mut self, values: &[T]) -> T {
            values[self.0.below(values.len() as u32) as usize]
        }

        fn bytes(&mut self, count: usize) -> Vec<u8> {
            (0..count).map(|_| self.0.next() as u8).collect()
        }

        /// A packet, often malformed, and whether the program understands it.
        fn packet(&mut self, is_ip4: bool, depth: usize) -> (Vec<u8>, bool) {
            let number = if is_ip4 {
                self.pick(&[6, 17, 132, 1, 1, 1, 58, 47, 0])
            } else {
                self.pick(&[6, 17, 132, 58, 58, 58, 1, 47, 0, 43, 44, 50, 51, 59, 60])
            };
            let mut is_known = is_ip4 || !EXTENSIONS.contains(&number);
            let kind = self.pick(&[0, 8, 3, 4, 5, 11, 12, 13, 128, 129, 1, 2, 3, 4, 135]);
            let mut body = vec![kind];
            body.extend(self.bytes(7));
            if depth > 0 && self.0.below(4) > 0 {
                let is_inner_ip4 = is_ip4 != (self.0.below(8) == 0);
                let (inner, is_inner_known) = self.packet(is_inner_ip4, depth - 1);
                body.extend(inner);
                is_known &= is_inner_known;
            } else {
                let count = self.0.below(9) as usize;
                body.extend(self.bytes(count));
            }
            let stated =
                (body.len() as u64 + self.pick(&[0, 0, 0, 9])).saturating_sub(self.pick(&[0, 0, 0, 5, 30]));
            let mut packet;
            if is_ip4 {
                let first = self.pick(&[0x45, 0x45, 0x45, 0x46, 0x4f, 0x44, 0x35]);
                let options = usize::from(first & 15).saturating_sub(5) * 4;
                packet = vec![first, 0];
                packet.extend((20 + options as u16 + stated as u16).to_be_bytes());
                packet.extend([0, 7]);
                packet.extend(self.pick(&[0u16, 0, 0, 0x4000, 0x2000, 0x00b9, 0x8000]).to_be_bytes());
                packet.extend([64, number, 0, 0]);
                packet.extend(self.bytes(8 + options));
            } else {
                packet = vec![self.pick(&[0x60, 0x60, 0x60, 0x6f, 0x40]), 0, 0, 0];
                packet.extend((stated as u16).to_be_bytes());
                packet.extend([number, 64]);
                packet.extend(self.bytes(32));
            }
            packet.extend(body);
            (packet, is_known)
        }

        /// A frame with this number of tags.
        fn frame(&mut self, tags: usize) -> (Vec<u8>, bool) {
            let mut frame = self.bytes(12);
            for _ in 0..tags {
                frame.extend(self.pick(&[[0x81, 0], [0x88, 0xa8], [0x91, 0]]));
                frame.extend(self.bytes(2));
            }
            let (ethertype, is_ip4) = self.pick(&[
                ([8, 0], true),
                ([8, 0], true),
                ([0x86, 0xdd], false),
                ([8, 6], true),
                ([0x88, 0x47], true),
            ]);
            frame.extend(ethertype);
            let (packet, is_known) = self.packet(is_ip4, 2);
            frame.extend(packet);
            if self.0.below(4) == 0 {
                let length = 14 + self.0.below(frame.len() as u32 - 13) as usize;
                frame.truncate(length);
            }
            (frame, is_known)
        }
    }

    #[test]
    fn the_program_decides_as_the_function() {
        let (mut frames, mut known, mut used) = (Frames(Random::new(5)), 0, [0; 3]);
        for round in 0..150u64 {
            let spread = Spread::new(1 + round as usize % 3, round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let queues: Vec<usize> = (0..spread.count as usize).rev().collect();
            let program = spread.filter(&queues);
            for _ in 0..100 {
                let tags = frames.0.below(4) as usize;
                let (frame, is_known) = frames.frame(tags);
                let thread = spread.thread_of(&frame);
                let run = |frame: &[u8]| run(&program, frame, 14, u16::from_be_bytes([frame[12], frame[13]]));
                let mut found = vec![run(&frame)];
                if tags > 0 && frame.len() >= 18 {
                    // Linux removes the first tag.
                    found.push(run(&[&frame[..12], &frame[16..]].concat()));
                }
                let found: Vec<usize> = found.iter().map(|queue| queues[*queue as usize]).collect();
                let is_same = found.iter().all(|found| *found == thread);
                assert!(is_same || !is_known, "{thread}, {found:?}: {frame:02x?}");
                known += u32::from(is_known);
                used[thread] += 1;
            }
        }
        assert!(known > 8_000 && used.iter().all(|frames| *frames > 1_500), "{known} {used:?}");
        assert!(Spread::new(64, 1).filter(&(0..64).collect::<Vec<_>>()).len() < 4_096, "Linux takes no more");
    }

    #[test]
    fn threads_without_a_queue_have_their_frames_received_by_others() {
        let (spread, mut frames) = (Spread::new(3, 8), Frames(Random::new(6)));
        let program = spread.filter(&[2]);
        for _ in 0..1_000 {
            let (frame, is_known) = frames.frame(0);
            let queue = run(&program, &frame, 14, u16::from_be_bytes([frame[12], frame[13]]));
            let expected = [0, 1, 0][spread.thread_of(&frame)];
            assert!(queue == expected || !is_known, "{frame:02x?}");
        }
    }
}
