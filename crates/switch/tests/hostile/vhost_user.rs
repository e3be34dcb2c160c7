//! A front end of vhost-user that sends fuzz input as messages, and writes it to its memory and to the rings in it.

use crate::front_end::{
    FROM_GUEST, FrontEnd, GUEST, HEADER, INDIRECT, MEMORY, MERGEABLE, SIZE, TABLES, TO_GUEST, USUAL, places,
    table,
};
use crate::memory::Input;
use packet::checksum::{self, Sum};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use switch::driver::{LinkState, VhostUser};
use switch::{Batch, Driver, MAX_FRAME};

/// A connection to a front end that has the descriptors, but is no correct one.
pub fn front_end(bytes: &[u8]) {
    let input = Input::new(bytes);
    let (near, far) = UnixStream::pair().unwrap();
    let mut port = VhostUser::client(near.into()).unwrap();
    let choices = input.byte();
    let [from_guest, to_guest, unmerged, tables] =
        [(1, FROM_GUEST), (2, TO_GUEST), (4, MERGEABLE), (16, TABLES)]
            .map(|(bit, features)| if choices & bit == 0 { 0 } else { features });
    let mut end = FrontEnd::new(far, (USUAL | from_guest | to_guest | tables) & !unmerged);
    // Most inputs get behind the handshake.
    let steps = match input.byte() {
        steps @ 0..64 => usize::from(steps % 19),
        _ => usize::MAX,
    };
    for message in end.handshake().iter().take(steps) {
        end.send(message);
        assert!(port.prepare_sleep().is_ok());
    }
    port.end_sleep();
    // Frames that are joined for some peers are as long as those that are not.
    let length = if choices & 8 == 0 { 60 } else { 300 };
    let mut batch = Batch::new(64);
    while batch.push(&segment(batch.len() as u16, length)) {}
    let frames: Vec<u32> = (0..64).collect();
    let mut got = Batch::new(64);
    let mut is_down = false;
    while !input.is_empty() && !is_down {
        let (operation, choice) = (input.byte() % 14, input.word());
        let queue = (choice & 1) as usize;
        let number = (choice >> 8) as u16;
        match operation {
            0 => end.put(places(queue)[(choice >> 1 & 1) as usize + 1], &input.word().to_ne_bytes()),
            1 => {
                let [address, rest] = [input.word(), input.word()];
                // Some are right, or almost.
                let address = if choice & 2 == 0 { GUEST + address % MEMORY } else { address };
                let length = if choice & 4 == 0 { rest as u32 % 4096 } else { rest as u32 };
                let flags = (rest >> 32) as u16 & if choice & 8 == 0 { 3 } else { 0xffff };
                end.describe(queue, number % SIZE, address, length, flags, (rest >> 48) as u16 % (SIZE + 1));
            }
            2 => (0..choice >> 1 & 7).for_each(|_| end.make_available(queue, number % (SIZE + 1))),
            3 => end.transmit(input.bytes(64)),
            12 => {
                // An offload header that is almost right, and a part of a packet.
                let [l0, l1, s0, s1, ..] = input.word().to_ne_bytes();
                let kind = [0, 1, 4, 5, 0x81, 0x84, l1, l1][usize::from(l0 & 7)];
                let header = [u8::from(choice & 2 == 0), kind, 0, 0, s0, s1 & 3, 34, 0, 16, 0, 0, 0];
                let mut frame = segment(number, 300 + (choice >> 24) as usize % 20_000);
                for (byte, by) in frame.iter_mut().zip(input.bytes(64)) {
                    *byte ^= by;
                }
                let first = if choice & 4 == 0 { 4096 } else { HEADER / 2 + usize::from(s1 >> 4) };
                end.transmit_chain(number % SIZE, &header, &frame, first);
            }
            13 => {
                // A table that is almost right: of descriptors that are, as a table in a table, or a chain that ends in one.
                let table = table(queue, number % SIZE);
                let count = 1 + (choice >> 16) as u16 % 24;
                for at in 0..count {
                    let rest = input.word();
                    let length = rest as u32 % if choice & 2 == 0 { 64 } else { 4096 };
                    let flags = (rest >> 32) as u16 & 7;
                    // Most chains go on, and few refer to a table.
                    let flags = if flags < 6 { flags & 2 | u16::from(at + 1 < count) } else { flags };
                    let address = GUEST + (rest >> 40) % (MEMORY - 4096);
                    end.describe_in(table, at, address, length, flags, at + 1);
                }
                let (length, next) = (u32::from(count) * 16 + choice as u32 / 4 % 2, (number + 1) % SIZE);
                let flags = INDIRECT | u16::from(choice & 8 != 0);
                end.describe(queue, number % SIZE, GUEST + table, length, flags, next);
                end.make_available(queue, number % SIZE);
            }
            4 => end.add_buffer(choice as u32 >> 1 & 0xfff),
            5 => {
                let words: Vec<u64> = (0..choice >> 8 & 7).map(|_| input.word()).collect();
                let descriptors = vec![end.memory.as_fd(); (choice >> 11 & 3) as usize];
                end.send_flags(choice as u32 % 40, 1 | (choice >> 13) as u32 & 8, &words, &descriptors);
            }
            6 => end.send_bytes(input.bytes(16), &[end.kicks[0].as_fd()][..queue]),
            7 if choice & 0xff == 0 => end.memory.set_len(choice >> 8 & 0xf_ffff).unwrap(),
            7 => {
                let message = end.handshake().swap_remove(choice as usize % 18);
                end.send(&message);
            }
            8 => {
                let some = &frames[..choice as usize % frames.len()];
                match port.send(&batch, some) {
                    Ok(sent) => assert!(
                        sent.frames as usize <= some.len() && sent.bytes == length as u64 * sent.frames
                    ),
                    Err(error) => panic!("{error}"),
                }
            }
            9 | 10 => {
                got.clear();
                match port.receive(&mut got) {
                    Ok(received) => {
                        assert!(got.frames().all(|frame| frame.len() <= MAX_FRAME));
                        // One more than there is room for, if it ended the connection.
                        assert!(received.faulty + received.long + received.refused.total() <= 65);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {
                port.prepare_sleep().unwrap();
                port.end_sleep();
            }
        }
        is_down = matches!(port.link_state(), Some(LinkState::Gone(_)));
    }
    // What was cut is passed on within a bounded number of visits.
    for _ in 0..=port.waiting() / 64 {
        got.clear();
        assert!(port.receive(&mut got).is_ok());
    }
}

/// A segment of TCP that follows the one with the number before it, with correct checksums. Its length is that of the frame.
fn segment(number: u16, length: usize) -> Vec<u8> {
    let [t0, t1] = ((length - 14) as u16).to_be_bytes();
    let [n0, n1] = number.to_be_bytes();
    let [q0, q1, q2, q3] = (u32::from(number) * (length as u32 - 54)).to_be_bytes();
    let mut ip = [0x45, 0, t0, t1, n0, n1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let mut tcp = vec![0, 80, 0, 81, q0, q1, q2, q3, 0, 0, 0, 1, 0x50, 0x10, 1, 1, 0, 0, 0, 0];
    tcp.resize(length - 34, number as u8);
    let [source, destination] = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last));
    let sum = checksum::internet(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let pseudo = Sum::ZERO.pseudo4(source, destination, 6, tcp.len() as u16);
    let sum = pseudo.bytes(&tcp).finish();
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    [&[2; 12][..], &[8, 0], &ip, &tcp].concat()
}
