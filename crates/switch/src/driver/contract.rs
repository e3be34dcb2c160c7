//! What a driver is.

use crate::batch::Batch;
use std::fmt;
use std::os::fd::BorrowedFd;

/// Why a driver can't go on: its port is down.
#[derive(Debug)]
pub enum DriverError {
    /// The operating system reported an error.
    System(std::io::Error),
    /// The box behind the port broke the protocol of the rings.
    Box(boundary::PortFault),
    /// The capture file is damaged.
    Capture(capture::CaptureError),
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Box(fault) => write!(f, "the box broke the ring's protocol: {fault}"),
            Self::Capture(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DriverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its message is the cause's own, so the chain goes on behind it.
            Self::System(error) => error.source(),
            Self::Box(_) | Self::Capture(_) => None,
        }
    }
}

impl From<std::io::Error> for DriverError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error)
    }
}

/// Frames that came, and didn't become part of the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Longer than a frame may be.
    pub long: u64,
    /// Impossible descriptors.
    pub faulty: u64,
}

/// Frames that went out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How many: the first of those that were given. The rest found no room, or the device is down.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The device is down, and takes nothing until somebody brings it up.
    pub down: bool,
}

/// A port's other side. A driver never waits, and is used by one thread at a time.
pub trait Driver: Send {
    /// Adds frames that came in to a batch, until none is left or the batch is full.
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError>;

    /// Sends the frames of a batch that are named by number, in order, as far as there is room.
    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError>;

    /// As [`send`](Self::send), for frames that nobody else gets: they may go on with the memory in which they lie, which
    /// the batch then says to the driver that they came from.
    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.send(batch, frames)
    }

    /// As [`receive`](Self::receive), where frames may be added of which only the head is copied. What was
    /// not copied stays as it is until [`release`](Self::release).
    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.receive(batch)
    }

    /// Frames of the last [`receive_split`](Self::receive_split) are of no more use to the switch.
    fn release(&mut self, _: &Batch) {}

    /// Whether frames are taken of which only the head is in the batch.
    fn accepts_split(&self) -> bool {
        false
    }

    /// Announces that nobody looks here before the descriptor or a bell tells. False: there are frames,
    /// don't sleep.
    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        Ok(true)
    }

    /// Takes the announcement back.
    fn end_sleep(&mut self) {}

    /// What becomes readable when frames come, if it is not a bell that tells.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Frames that came since the last call, and were lost in front of the driver because nobody took frames in time.
    fn take_missed(&mut self) -> u64 {
        0
    }
}

impl<D: Driver + ?Sized> Driver for Box<D> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        (**self).receive(batch)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        (**self).send(batch, frames)
    }

    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        (**self).send_split(batch, frames)
    }

    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        (**self).receive_split(batch)
    }

    fn release(&mut self, batch: &Batch) {
        (**self).release(batch);
    }

    fn accepts_split(&self) -> bool {
        (**self).accepts_split()
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        (**self).prepare_sleep()
    }

    fn end_sleep(&mut self) {
        (**self).end_sleep();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }

    fn take_missed(&mut self) -> u64 {
        (**self).take_missed()
    }
}
