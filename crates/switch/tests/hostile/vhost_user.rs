//! A front end of vhost-user that sends fuzz input as messages, and writes it to its memory and to the rings in it.

use crate::front_end::{FrontEnd, GUEST, MEMORY, SIZE, USUAL, places};
use crate::memory::Input;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use switch::driver::{LinkState, VhostUser};
use switch::{Batch, Driver, MAX_FRAME};

/// A connection to a front end that has the descriptors, but is no correct one.
pub fn front_end(bytes: &[u8]) {
    let input = Input::new(bytes);
    let (near, far) = UnixStream::pair().unwrap();
    let mut port = VhostUser::client(near.into()).unwrap();
    let mut end = FrontEnd::new(far, USUAL);
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
    let mut batch = Batch::new(64);
    while batch.push(&[batch.len() as u8; 60]) {}
    let frames: Vec<u32> = (0..64).collect();
    let mut got = Batch::new(64);
    let mut is_down = false;
    while !input.is_empty() && !is_down {
        let (operation, choice) = (input.byte() % 12, input.word());
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
                    Ok(sent) => assert!(sent.frames as usize <= some.len() && sent.bytes == 60 * sent.frames),
                    Err(error) => panic!("{error}"),
                }
            }
            9 | 10 => {
                got.clear();
                match port.receive(&mut got) {
                    Ok(received) => {
                        assert!(got.frames().all(|frame| frame.len() <= MAX_FRAME));
                        // One more than there is room for, if it ended the connection.
                        assert!(got.len() as u64 + received.faulty + received.long <= 65);
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
}
