//! A memif server whose client sends fuzz input, and writes it to the memory that it shares.

use crate::memif_peer::{
    BUFFERS, Client, Peer, REGION, RINGS, SIZE, SLOTS, add_region, add_ring, connect_message, init, listen,
    memory,
};
use crate::memory::Input;
use rustix::fs::SealFlags;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use switch::driver::{LinkState, MemifPort, MemifSettings};
use switch::{Batch, Driver, MAX_FRAME};

/// Offsets of the words by which a peer can do the most harm: flags, indices, and the first descriptors.
const WORDS: [u64; 4] = [0, 4, 64, 128];

/// A path for the socket of one test.
fn path() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("memif-fuzz-{}-{number}.sock", std::process::id()))
}

/// A server, whose client has its region connected at first, but is no correct one.
pub fn client(bytes: &[u8]) {
    let (input, path) = (Input::new(bytes), path());
    let mut port = MemifPort::server(listen(&path), MemifSettings::default()).unwrap();
    let mut client = Client::new(&path, 0, b"");
    let mut batch = Batch::new(64);
    while batch.push(&[batch.len() as u8; 60]) {}
    let frames: Vec<u32> = (0..64).collect();
    let mut got = Batch::new(64);
    if input.byte() % 8 > 0 {
        client.peer.send(&connect_message(), &[]);
    }
    for _ in 0..2 {
        port.prepare_sleep().unwrap();
        port.end_sleep();
    }
    while !input.is_empty() {
        let (operation, choice) = (input.byte() % 12, input.word());
        let ring = (choice % 2) as usize;
        match operation {
            0 => client.set_head(ring, input.word() as u16),
            1 => client.set(RINGS[ring] + WORDS[(choice / 2) as usize % 4], &input.word().to_ne_bytes()),
            2 => {
                let (length, offset) = (input.word() as u32, input.word() % (2 * REGION));
                client.describe(ring, choice, choice as u16 >> 2, (choice >> 20) as u16 % 3, length, offset);
            }
            3 => client.describe(
                ring,
                choice,
                (choice >> 4) as u16 & 1,
                0,
                choice as u32 >> 8 & 0xfff,
                BUFFERS[ring],
            ),
            4 => client.set(choice % (REGION - 64), input.bytes(64)),
            5 => {
                let some = &frames[..choice as usize % frames.len()];
                let sent = port.send(&batch, some).unwrap();
                assert!(sent.frames as usize <= some.len() && sent.bytes == 60 * sent.frames);
            }
            6 | 7 => {
                got.clear();
                if port.is_ready() {
                    let received = port.receive(&mut got).unwrap();
                    assert!(got.frames().all(|frame| frame.len() <= MAX_FRAME));
                    assert!(got.len() as u64 + received.faulty + received.long <= SLOTS);
                }
            }
            8 => {
                let kind = (choice % 10).to_ne_bytes();
                let message = [&kind[..2], input.bytes(SIZE - 2)].concat();
                let whole = [message.as_slice(), &[0; SIZE]].concat();
                let length = if choice & 0x100 == 0 { SIZE } else { message.len() };
                let file = memory(choice >> 8 & 0xffff, SealFlags::SHRINK);
                let all = [file.as_fd(), client.events[0].as_fd(), client.memory.as_fd()];
                client.peer.send(&whole[..length], &all[..choice as usize >> 4 & 3]);
            }
            9 => {
                // Another client, which follows the protocol for some steps.
                client.peer = Peer::connect(&path);
                let (memory, event) = (client.memory.as_fd(), client.events[0].as_fd());
                let offset = if choice & 1 == 0 { RINGS[1] } else { choice };
                for step in [
                    (init(0x200, 0, 0, b""), None),
                    (add_region(0, REGION), Some(memory)),
                    (add_ring(true, 0, 0, 4, 0), Some(event)),
                    (add_ring(false, 0, offset as u32, 4, 0), Some(event)),
                    (connect_message(), None),
                ]
                .iter()
                .take(choice as usize >> 1 & 7)
                {
                    client.peer.send(&step.0, step.1.as_slice());
                }
            }
            _ => {
                port.prepare_sleep().unwrap();
                port.end_sleep();
            }
        }
    }
    // It can still be used by the next one.
    drop(client);
    for _ in 0..=SLOTS {
        port.prepare_sleep().unwrap();
        port.end_sleep();
        got.clear();
        port.receive(&mut got).unwrap();
    }
    // Another thread may still close a descriptor.
    for attempt in 0.. {
        let next = Client::new(&path, 0, b"");
        next.peer.send(&connect_message(), &[]);
        for _ in 0..3 {
            port.prepare_sleep().unwrap();
            port.end_sleep();
        }
        if port.link_state() == Some(LinkState::Up) {
            break;
        }
        assert!(attempt < 1_000_000, "{:?}", port.link_state());
    }
    std::fs::remove_file(&path).unwrap();
}
