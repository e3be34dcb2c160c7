//! A function that writes fuzz input to its region and rings the doorbell.

use crate::memory::Input;
use boundary::Slots;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use switch::driver::{FunctionEnds, FunctionPort};
use switch::{Batch, Driver, DriverError, MAX_FRAME};

/// The two ports of a function, which has its descriptors but is no correct one.
pub fn region(bytes: &[u8]) {
    let input = Input::new(bytes);
    let (mut ports, ends) = FunctionPort::create(2, Slots::new(64).unwrap()).unwrap();
    let FunctionEnds { memory, doorbell, layout } = ends;
    let (memory, mut doorbell) = (File::from(memory), Some(UnixStream::from(doorbell)));
    let rings: Vec<u64> = layout
        .ports
        .iter()
        .flat_map(|port| [port.receive, port.transmit])
        .map(|place| place as u64)
        .collect();
    let mut batch = Batch::new(64);
    while batch.push(&[batch.len() as u8; 60]) {}
    let frames: Vec<u32> = (0..64).collect();
    let mut got = Batch::new(64);
    let mut is_down = false;
    while !input.is_empty() && !is_down {
        let (operation, choice) = (input.byte() % 10, input.word());
        let (ring, port) = (rings[choice as usize % 4], &mut ports[choice as usize / 4 % 2]);
        match operation {
            0 | 1 => memory.write_all_at(&input.word().to_ne_bytes(), ring + choice / 8 % 4 * 64).unwrap(),
            2 => memory.write_all_at(&input.word().to_ne_bytes(), ring + 256 + choice / 8 % 64 * 8).unwrap(),
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
                    Err(DriverError::Box(_)) => is_down = true,
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
                    Err(DriverError::Box(_)) => is_down = true,
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {
                is_down = port.prepare_sleep().is_err();
                port.end_sleep();
            }
        }
    }
    // What is lost with a port is bounded, and lost once.
    for mut port in ports {
        assert!(port.abandon() <= 128 && port.abandon() == 0 && port.rings().is_none());
    }
    // The function could not change the length of the memory.
    assert!(memory.set_len(0).is_err());
}
