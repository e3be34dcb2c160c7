//! A link whose other side writes fuzz input to the memory and rings the doorbell.

use crate::memory::Input;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use switch::driver::LinkPort;
use switch::{Batch, Driver, DriverError, MAX_FRAME};

/// Offsets of the words by which a peer can do the most harm: indices, sleep flags, and the first descriptors.
const RINGS: [u64; 2] = [0, 12_288 + 1024 * MAX_FRAME as u64];

/// The first side of a link, whose peer has its descriptors but is no correct one.
pub fn peer(bytes: &[u8]) {
    let input = Input::new(bytes);
    let (mut port, [memory, doorbell]) = LinkPort::create().unwrap();
    let (memory, mut doorbell) = (File::from(memory), Some(UnixStream::from(doorbell)));
    let mut batch = Batch::new(64);
    while batch.push(&[batch.len() as u8; 60]) {}
    let frames: Vec<u32> = (0..64).collect();
    let mut got = Batch::new(64);
    let mut is_down = false;
    while !input.is_empty() && !is_down {
        let (operation, choice) = (input.byte() % 10, input.word());
        match operation {
            0 | 1 => {
                let start = RINGS[usize::from(operation)];
                memory.write_all_at(&input.word().to_ne_bytes(), start + choice % 4 * 64).unwrap();
            }
            2 => {
                let start = RINGS[(choice & 1) as usize] + 256;
                memory.write_all_at(&input.word().to_ne_bytes(), start + choice % 64 * 8).unwrap();
            }
            3 => {
                let length = memory.metadata().unwrap().len();
                memory.write_all_at(input.bytes(64), choice % (length - 64)).unwrap();
            }
            4 => {
                if let Some(bell) = &mut doorbell {
                    bell.set_nonblocking(true).unwrap();
                    let _ = bell.write(&vec![1; choice as usize % 65_536]);
                }
            }
            5 if choice % 64 == 0 => doorbell = None,
            5 | 6 => {
                let some = &frames[..choice as usize % frames.len()];
                match port.send(&batch, some) {
                    Ok(sent) => assert!(sent.frames as usize <= some.len() && sent.bytes == 60 * sent.frames),
                    Err(DriverError::Link(_)) => is_down = true,
                    Err(error) => panic!("{error}"),
                }
            }
            7 | 8 => {
                got.clear();
                match port.receive(&mut got) {
                    Ok(received) => {
                        assert!(got.frames().all(|frame| frame.len() <= MAX_FRAME));
                        assert!(got.len() as u64 + received.faulty <= 64 && received.long == 0);
                    }
                    Err(DriverError::Link(_)) => is_down = true,
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {
                is_down = port.prepare_sleep().is_err();
                port.end_sleep();
            }
        }
    }
    // The peer could not change the length of the memory.
    let file = OwnedFd::from(memory);
    assert!(File::from(file).set_len(0).is_err());
}
