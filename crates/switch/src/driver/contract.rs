//! The contract of a port driver.

use crate::batch::Batch;
use crate::books::LinkBooks;
use crate::shards::Spread;
use crate::silence::Progress;
use boundary::DirectBatch;
use reason::Reason;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Why a driver cannot continue. Its port is then down.
#[derive(Debug)]
pub enum DriverError {
    /// The operating system reported an error.
    System(std::io::Error),
    /// The box behind the port violated the ring protocol.
    Box(boundary::PortFault),
    /// The other side of the link violated the ring protocol.
    Link(boundary::CorruptIndex),
    /// The capture file is damaged.
    Capture(capture::CaptureError),
}

/// The connection of a port to its other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The driver waits: for which peer, and why the last connection ended, or for a device that is down.
    Waiting(String),
    /// A peer is connected. No frames pass yet.
    Connected,
    /// A peer is connected. No frames pass, and why.
    Blocked(String),
    /// Frames pass.
    Up,
    /// Frames pass, but not as expected: why this driver is used instead of another one, or which frames do not pass.
    Limited(String),
    /// There is no connection, and why. The driver needs another descriptor.
    Gone(String),
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Box(_) => f.write_str("the box violated the ring protocol"),
            Self::Link(_) => f.write_str("the other side of the link violated the ring protocol"),
            Self::Capture(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DriverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::System(error) => error.source(),
            Self::Capture(error) => error.source(),
            Self::Box(fault) => Some(fault),
            Self::Link(index) => Some(index),
        }
    }
}

impl From<std::io::Error> for DriverError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error)
    }
}

/// Received frames that were not added to the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Frames that were too long.
    pub long: u64,
    /// Invalid descriptors.
    pub faulty: u64,
    /// Frames that the driver refused for reasons of its own.
    pub refused: Refused,
}

/// Reasons for which drivers refuse received frames, beside those that have a field in [`Received`].
const REFUSALS: [Reason; 5] = [
    Reason::BAD_CHECKSUM,
    Reason::BAD_TUNNEL_HEADER,
    Reason::CRITICAL_OPTION,
    Reason::TUNNEL_CONTROL,
    Reason::CONGESTION_MARK,
];

/// Numbers of refused frames by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused([u64; REFUSALS.len()]);

impl Refused {
    /// Counts a frame.
    pub fn count(&mut self, reason: Reason) {
        let index = REFUSALS.iter().position(|known| *known == reason);
        debug_assert!(index.is_some(), "no driver refuses frames as {}", reason.name());
        if let Some(count) = index.and_then(|index| self.0.get_mut(index)) {
            *count += 1;
        }
    }

    /// The frames of all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The numbers that are not 0.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        REFUSALS.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

/// The frames that a driver sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The number of frames sent: the first of the given frames, without those that the driver
    /// [skipped](Driver::skipped). For the rest there was no room, or the device is down.
    pub frames: u64,
    /// Frames that were dropped because they are longer than the MTU of the device or the path.
    pub too_big: u64,
    /// Bytes of the sent frames.
    pub bytes: u64,
    /// The device is down and accepts nothing until it is brought up again.
    pub down: bool,
    /// The other end has little room left: less than a quarter of what it can have.
    pub is_crowded: bool,
}

impl std::ops::AddAssign for Sent {
    fn add_assign(&mut self, more: Self) {
        self.frames += more.frames;
        self.too_big += more.too_big;
        self.bytes += more.bytes;
        self.down |= more.down;
        self.is_crowded |= more.is_crowded;
    }
}

/// The frames of the last [`send`](Driver::send) that a driver sent, of which it said `sent`, and those that it did not send.
pub(crate) fn part_sent(driver: &dyn Driver, frames: &[u32], sent: u64) -> (Vec<u32>, Vec<u32>) {
    let mut skipped = driver.skipped();
    skipped.sort_unstable();
    let mut left = sent;
    frames.iter().partition(|number| {
        let is_sent = left > 0 && skipped.binary_search(number).is_err();
        left -= u64::from(is_sent);
        is_sent
    })
}

/// The other end of a port. A driver never blocks, and is used by one thread at a time.
pub trait Driver: Send {
    /// Adds received frames to a batch, until none is left or the batch is full.
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError>;

    /// Sends the frames of a batch with these indices, in order, as far as there is room.
    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError>;

    /// Like [`send`](Self::send), for frames that go to no other port. A frame may be passed on with its buffer; the
    /// batch then tells the driver that it came from, in [`release`](Self::release).
    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.send(batch, frames)
    }

    /// Like [`receive`](Self::receive), but may copy only the head of a frame. The tail stays unchanged until
    /// [`release`](Self::release).
    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.receive(batch)
    }

    /// Whether receiving may find frames. False where a look at memory shows that there are none.
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Ends the use of the frames of the last [`receive_split`](Self::receive_split).
    fn release(&mut self, _: &Batch) {}

    /// Lists the next packets that a box passes on and that can move to another box with their buffers. They are not received yet:
    /// [`release_direct`](Self::release_direct) takes those that moved.
    fn list_direct(&mut self, _: &mut DirectBatch) {}

    /// Moves packets of another box to this one with their buffers, as far as there is room. Returns whether there is little room
    /// left.
    fn send_direct(&mut self, _: &mut DirectBatch) -> bool {
        false
    }

    /// Takes the packets of the last [`list_direct`](Self::list_direct) that moved.
    fn release_direct(&mut self, _: &DirectBatch) {}

    /// Whether [`send`](Self::send) accepts split frames.
    fn accepts_split(&self) -> bool {
        false
    }

    /// The numbers of frames that the last [`send`](Self::send) did not send, in any order: all those that are before a
    /// frame that it sent.
    fn skipped(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Prepares for sleep: from now on the descriptor or the runner's wake event reports new frames. Returns false if
    /// frames are already waiting; the caller must then not sleep.
    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        Ok(true)
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep).
    fn end_sleep(&mut self) {}

    /// The descriptor that becomes readable when frames arrive, unless the driver uses the runner's wake event.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The descriptor of the device or file that must not be opened twice: a process that has a duplicate keeps the device,
    /// or can continue the file, after this one has ended.
    fn device(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The number of queues that the driver has of a device; 0 if there is no device with queues.
    fn queues(&self) -> u32 {
        0
    }

    /// The time until the next frame, if the clock alone announces it, as in a replay at a fixed rate.
    fn due_in(&self) -> Option<Duration> {
        None
    }

    /// Whether the other end has less than a quarter of the room that it can have.
    fn is_crowded(&mut self) -> bool {
        false
    }

    /// What waits for the other end and what it took, if the driver knows.
    fn progress(&mut self) -> Option<Progress> {
        None
    }

    /// The connection to the other end, if that comes and goes. Makes system calls: it is not for each batch.
    fn link_state(&self) -> Option<LinkState> {
        None
    }

    /// Says what the driver before this one said of its connection, which has ended. Its own [`link_state`](Self::link_state) says
    /// that, too, until it has had a connection itself.
    fn recall(&mut self, _why: String) {}

    /// Says which thread of the switch uses the driver, and how frames are spread over the threads. A driver whose queues get the
    /// frames of their threads saves passing them on.
    fn set_thread(&mut self, _spread: Spread, _thread: usize) {}

    /// Frames that the other end has accepted and that wait to be received here, if the driver holds any itself.
    fn waiting(&self) -> u64 {
        0
    }

    /// Frames lost since the last call because they were not received in time.
    fn take_missed(&mut self) -> u64 {
        0
    }

    /// Frames lost since the last call that were sent, and that the other end had not taken when it ended.
    fn take_lost(&mut self) -> u64 {
        0
    }

    /// What passed this end of a link to another process, if the driver is one.
    fn link_books(&mut self) -> Option<LinkBooks> {
        None
    }

    /// Ends the use of the driver, before it is dropped. Returns the number of frames that are lost with it: they were sent
    /// by one end, and no end will take them.
    fn abandon(&mut self) -> u64 {
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

    fn is_ready(&mut self) -> bool {
        (**self).is_ready()
    }

    fn release(&mut self, batch: &Batch) {
        (**self).release(batch);
    }

    fn list_direct(&mut self, batch: &mut DirectBatch) {
        (**self).list_direct(batch);
    }

    fn send_direct(&mut self, batch: &mut DirectBatch) -> bool {
        (**self).send_direct(batch)
    }

    fn release_direct(&mut self, batch: &DirectBatch) {
        (**self).release_direct(batch);
    }

    fn accepts_split(&self) -> bool {
        (**self).accepts_split()
    }

    fn skipped(&self) -> Vec<u32> {
        (**self).skipped()
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

    fn device(&self) -> Option<BorrowedFd<'_>> {
        (**self).device()
    }

    fn queues(&self) -> u32 {
        (**self).queues()
    }

    fn due_in(&self) -> Option<Duration> {
        (**self).due_in()
    }

    fn is_crowded(&mut self) -> bool {
        (**self).is_crowded()
    }

    fn progress(&mut self) -> Option<Progress> {
        (**self).progress()
    }

    fn link_state(&self) -> Option<LinkState> {
        (**self).link_state()
    }

    fn recall(&mut self, why: String) {
        (**self).recall(why);
    }

    fn set_thread(&mut self, spread: Spread, thread: usize) {
        (**self).set_thread(spread, thread);
    }

    fn waiting(&self) -> u64 {
        (**self).waiting()
    }

    fn take_missed(&mut self) -> u64 {
        (**self).take_missed()
    }

    fn take_lost(&mut self) -> u64 {
        (**self).take_lost()
    }

    fn link_books(&mut self) -> Option<LinkBooks> {
        (**self).link_books()
    }

    fn abandon(&mut self) -> u64 {
        (**self).abandon()
    }
}
