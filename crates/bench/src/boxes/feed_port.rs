//! The host's end of a box's port, with the doorbell that wakes the box.

use crate::boxes::test_bed::REPLY_TIMEOUT;
use crate::error::MeasureError;
use boundary::limits::BUFFER_SIZE;
use sandbox::{Doorbell, HostPort, Sandbox};
use std::time::Instant;

/// The host's end of a port of a box.
#[derive(Debug)]
pub(crate) struct FeedPort {
    port: HostPort,
    doorbell: Doorbell,
    buffer: Box<[u8; BUFFER_SIZE]>,
}

impl FeedPort {
    /// Takes a free port.
    pub(crate) fn take(sandbox: &mut Sandbox, index: usize) -> Result<Self, MeasureError> {
        let port = sandbox.take_port(index).ok_or(MeasureError::NoPort(index))?;
        Ok(Self { port, doorbell: sandbox.doorbell(), buffer: Box::new([0; BUFFER_SIZE]) })
    }

    /// Sends a packet as often as there is room; returns the number sent.
    pub(crate) fn fill(&mut self, packet: &[u8]) -> Result<u64, MeasureError> {
        let room = self.port.room(u32::MAX)?;
        let mut sent = 0;
        while sent < room && self.port.send(packet)? {
            sent += 1;
        }
        if self.port.publish() {
            self.doorbell.ring();
        }
        Ok(sent.into())
    }

    /// Receives all waiting packets; returns their number.
    pub(crate) fn drain(&mut self) -> Result<u64, MeasureError> {
        let mut received = 0;
        for _ in 0..self.port.available(u32::MAX)? {
            received += u64::from(self.port.receive(&mut self.buffer)?.is_some());
        }
        if self.port.release() {
            self.doorbell.ring();
        }
        Ok(received)
    }

    /// Sends one packet and waits for one. The caller measures the time.
    pub(crate) fn exchange(&mut self, packet: &[u8]) -> Result<(), MeasureError> {
        self.port.room(1)?;
        self.port.send(packet)?;
        if self.port.publish() {
            self.doorbell.ring();
        }
        let mut polls = 0u32;
        let mut since = None;
        while self.port.available(1)? == 0 {
            std::hint::spin_loop();
            polls += 1;
            // Reading the clock is expensive, and the reply usually arrives soon.
            if polls.is_multiple_of(4096) && since.get_or_insert_with(Instant::now).elapsed() > REPLY_TIMEOUT
            {
                return Err(MeasureError::Late { what: "the box's reply" });
            }
        }
        self.port.receive(&mut self.buffer)?;
        self.port.release();
        Ok(())
    }
}
