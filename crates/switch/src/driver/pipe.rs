//! `pipe`: connects two ports, of one switch or of two.

use super::contract::{Driver, DriverError, Received, Sent};
use crate::batch::Batch;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum frames that wait in one direction.
const CAPACITY: usize = 2048;

/// One end of a pipe.
#[derive(Debug)]
pub struct Pipe {
    incoming: Arc<Mutex<VecDeque<Vec<u8>>>>,
    outgoing: Arc<Mutex<VecDeque<Vec<u8>>>>,
    /// A byte in it wakes the sleeping side: frames have arrived.
    doorbell: UnixStream,
}

fn lock(queue: &Mutex<VecDeque<Vec<u8>>>) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipe {
    /// Creates a pipe and returns its two ends.
    pub fn pair() -> Result<(Self, Self), std::io::Error> {
        let (left, right) = UnixStream::pair()?;
        left.set_nonblocking(true)?;
        right.set_nonblocking(true)?;
        let (there, back) = <(Arc<Mutex<VecDeque<_>>>, Arc<Mutex<VecDeque<_>>>)>::default();
        let first = Self { incoming: back.clone(), outgoing: there.clone(), doorbell: left };
        Ok((first, Self { incoming: there, outgoing: back, doorbell: right }))
    }
}

impl Driver for Pipe {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut queue = lock(&self.incoming);
        while batch.room() > 0
            && let Some(frame) = queue.pop_front()
        {
            batch.push(&frame);
        }
        Ok(Received::default())
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut queue = lock(&self.outgoing);
        let was_empty = queue.is_empty();
        let room = CAPACITY.saturating_sub(queue.len());
        let mut sent = Sent::default();
        for frame in frames.iter().filter_map(|number| batch.frame(*number as usize)).take(room) {
            queue.push_back(frame.to_vec());
            sent.frames += 1;
            sent.bytes += frame.len() as u64;
        }
        drop(queue);
        if was_empty && sent.frames > 0 {
            // If the socket is full, the doorbell was rung before; if its other end is closed, there is no one to wake.
            let _ = self.doorbell.write(&[1]);
        }
        Ok(sent)
    }

    fn waiting(&self) -> u64 {
        lock(&self.incoming).len() as u64
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        let mut rung = [0; 64];
        while matches!(self.doorbell.read(&mut rung), Ok(1..)) {}
        Ok(lock(&self.incoming).is_empty())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.doorbell.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_cross_a_pipe_in_order_until_it_is_full() {
        let (mut left, mut right) = Pipe::pair().unwrap();
        let mut batch = Batch::new(256);
        while batch.push(&[batch.len() as u8; 60]) {}
        let numbers: Vec<u32> = (0..256).collect();
        assert!(right.prepare_sleep().unwrap());
        for round in 1..=9 {
            let sent = left.send(&batch, &numbers).unwrap();
            assert_eq!(sent.frames, if round <= 8 { 256 } else { 0 });
        }
        assert!(!right.prepare_sleep().unwrap());
        let mut got = Batch::new(300);
        right.receive(&mut got).unwrap();
        assert_eq!((got.len(), got.frame(255)), (300, batch.frame(255)));
        assert!(left.prepare_sleep().unwrap());
    }
}
