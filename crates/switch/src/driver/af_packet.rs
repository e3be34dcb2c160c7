//! `af_packet`: any network device of the kernel, by a packet socket with rings in shared memory.
//!
//! Frames that this host sends out of the device are not seen.

use super::contract::{Driver, DriverError, Received, Sent};
use crate::batch::{Batch, MAX_FRAME};
use crate::device::{Interface, InterfaceSettings};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of memory in which frames wait to be received: some 1,900 frames.
const RECEIVE: usize = 1 << 22;

/// Bytes of memory in which frames wait to be sent: some 650 frames of an Ethernet.
const SEND: usize = 1 << 20;

/// A packet socket bound to a device.
#[derive(Debug)]
pub struct AfPacket(Interface);

impl AfPacket {
    /// Binds to a device, and has it take all frames, whoever they are for.
    pub fn open(device: &str) -> io::Result<Self> {
        Interface::open(
            device,
            InterfaceSettings {
                promiscuous: true,
                outbound: false,
                snap: MAX_FRAME,
                receive: RECEIVE,
                send: SEND,
            },
        )
        .map(Self)
    }
}

impl Driver for AfPacket {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        self.0.receive(batch.room(), |arrival| {
            let fits = arrival.cut == 0 && batch.space().is_some_and(|space| arrival.copy_to(space));
            match fits {
                true => batch.commit(arrival.length()),
                false => received.long += 1,
            }
        });
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        let mut left = frames;
        loop {
            let sending = self.0.send(left.iter().filter_map(|number| batch.frame(*number as usize)));
            let (gone, rest) = left.split_at(sending.frames.min(left.len()));
            count(&mut sent, batch, gone);
            let error = match sending.error {
                Some(error) => error,
                None if gone.is_empty() || rest.is_empty() => return Ok(sent),
                None => {
                    left = rest;
                    continue;
                }
            };
            match error.raw_os_error() {
                // A device that is down takes nothing; it may come up again.
                Some(libc::ENETDOWN | libc::ENXIO) => return Ok(sent),
                // Longer than the device's frames may be, or not a frame of its kind: it alone is lost, as if the device
                // had dropped it.
                Some(libc::EMSGSIZE | libc::EINVAL) => {
                    let (lost, rest) = rest.split_at(rest.len().min(1));
                    count(&mut sent, batch, lost);
                    left = rest;
                }
                _ => return Err(error.into()),
            }
        }
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        // A device that went down says so until it is asked, and the worker could not sleep; it may come up again.
        drop(self.0.take_error());
        Ok(!self.0.has_arrived())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

/// Counts frames as sent.
fn count(sent: &mut Sent, batch: &Batch, frames: &[u32]) {
    sent.frames += frames.len() as u64;
    let bytes = frames.iter().filter_map(|number| batch.frame(*number as usize)).map(<[u8]>::len);
    sent.bytes += bytes.sum::<usize>() as u64;
}
