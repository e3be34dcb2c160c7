//! The driver at one side of a link.
//!
//! The two sides belong to different owners. The other side is hostile: it may write anything to the memory at any time, ring
//! without end, stop reading, or vanish. Therefore this side
//! - keeps its own indices in private memory, and checks those of the other side;
//! - takes from a descriptor nothing but the length, and checks it;
//! - copies a frame before it looks at it;
//! - never waits: without room a frame is lost, and a doorbell that cannot be rung was rung before;
//! - reads at most one buffer of a doorbell at a time.
//!
//! The doorbell is a pair of sockets and not an eventfd. All holders of an eventfd share one set of flags: the other side
//! could make it blocking, fill it up, and so stop this side. Calls on a socket say themselves that they don't wait. A
//! socket also tells that its other end is closed.

use super::error::LinkError;
use super::memory::{self, LinkMemory, Receive, SLOTS, Side, Transmit};
use crate::batch::{Batch, MAX_FRAME};
use crate::books::LinkBooks;
use crate::driver::contract::{Driver, DriverError, Received, Sent};
use crate::driver::kernel::{check, not_now};
use boundary::{CorruptIndex, Descriptor, SharedMemory};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Bytes that one sleep reads from a doorbell.
const RINGS: usize = 256;

/// A port that is connected to a port in another process.
#[derive(Debug)]
pub struct LinkPort {
    transmit: Transmit,
    receive: Receive,
    /// A byte in it wakes the sleeping side: frames have arrived.
    doorbell: UnixStream,
    /// The other side has closed its doorbell: it is gone.
    closed: bool,
    /// Frames that this side put into the link and took out of it, since the link was made.
    sent: u64,
    received: u64,
    memory: LinkMemory,
}

impl LinkPort {
    /// Creates a link: this side's port, and the descriptors for [`join`](Self::join) in the other process.
    pub fn create() -> Result<(Self, [OwnedFd; 2]), LinkError> {
        let file = memory::create()?;
        let (near, far) = UnixStream::pair()?;
        let port = Self::open(&file, near, Side::First)?;
        Ok((port, [file, far.into()]))
    }

    /// Joins a link that another process has created: takes over its descriptors, in the order of [`create`](Self::create).
    ///
    /// # Errors
    ///
    /// The first descriptor is not the sealed memory file of a link, or the second one is no socket.
    pub fn join([file, doorbell]: [OwnedFd; 2]) -> Result<Self, LinkError> {
        let doorbell = UnixStream::from(doorbell);
        // Other descriptors have no address.
        doorbell.local_addr()?;
        Self::open(&file, doorbell, Side::Second)
    }

    fn open(file: &OwnedFd, doorbell: UnixStream, side: Side) -> Result<Self, LinkError> {
        let memory = LinkMemory::map(file)?;
        let (transmit, receive) = memory.ends(side).ok_or(LinkError::Length(0))?;
        Ok(Self { transmit, receive, doorbell, closed: false, sent: 0, received: 0, memory })
    }

    /// Wakes the other side.
    fn ring(&mut self) {
        let (byte, flags) = ([1u8], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        // SAFETY: the kernel reads one byte of a live array.
        let sent = unsafe { libc::send(self.doorbell.as_raw_fd(), byte.as_ptr().cast(), 1, flags) };
        match check(sent) {
            Ok(_) => {}
            // If the socket is full, the doorbell was rung before.
            Err(error) if not_now(&error) => {}
            Err(_) => self.closed = true,
        }
    }

    /// Reads what the other side has rung.
    fn hear(&mut self) {
        if self.closed {
            return;
        }
        let (mut bytes, socket) = ([0u8; RINGS], self.doorbell.as_raw_fd());
        // SAFETY: the kernel writes to a live array of this length.
        let heard = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), RINGS, libc::MSG_DONTWAIT) };
        match check(heard) {
            Ok(1..) => {}
            Err(error) if not_now(&error) => {}
            Ok(0) | Err(_) => self.closed = true,
        }
    }

    /// Whether the other side has closed its doorbell, also if rings of it were not read yet.
    fn is_gone(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.doorbell.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: the kernel writes to a live list of one entry.
        let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
        self.closed || (ready > 0 && poll.revents & (libc::POLLRDHUP | libc::POLLHUP) != 0)
    }
}

/// The slot at a position of a ring: the number of its buffer, and the offset of that buffer.
fn slot(position: u32) -> (u32, usize) {
    let slot = position & (SLOTS.count() - 1);
    (slot, slot as usize * MAX_FRAME)
}

/// The length of the frame that a descriptor in a slot announces, if it is one that a correct peer could write.
fn length(descriptor: Descriptor, buffer: u32) -> Option<usize> {
    let length = descriptor.length as usize;
    let expected = Descriptor { buffer, length: descriptor.length, ..Descriptor::default() };
    (descriptor == expected && length <= MAX_FRAME).then_some(length)
}

impl Driver for LinkPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        let Receive { ring, buffers } = &mut self.receive;
        let waiting = ring.available(batch.room() as u32)?.min(batch.room() as u32);
        for _ in 0..waiting {
            let (number, start) = slot(ring.position());
            let (Some(descriptor), Some(space)) = (ring.pop(), batch.space()) else { break };
            match length(descriptor, number).and_then(|length| space.get_mut(..length)) {
                Some(space) => {
                    buffers.read(start, space);
                    let length = space.len();
                    batch.commit(length);
                }
                None => received.faulty += 1,
            }
            self.received += 1;
        }
        // A correct peer never sleeps until there is room.
        ring.release();
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent { down: self.closed, ..Sent::default() };
        if self.closed {
            return Ok(sent);
        }
        let Transmit { ring, buffers } = &mut self.transmit;
        ring.free(frames.len() as u32)?;
        for frame in frames.iter().filter_map(|number| batch.frame(*number as usize)) {
            let (buffer, start) = slot(ring.position());
            if ring.free(1)? == 0 {
                break;
            }
            buffers.write(start, frame);
            ring.push(Descriptor { buffer, length: frame.len() as u32, ..Descriptor::default() });
            sent.frames += 1;
            sent.bytes += frame.len() as u64;
        }
        self.sent += sent.frames;
        if ring.publish() {
            self.ring();
        }
        if sent.frames < frames.len() as u64 {
            // Perhaps nobody reads any more.
            self.hear();
        }
        Ok(sent)
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.hear();
        Ok(self.receive.ring.prepare_sleep()?)
    }

    fn end_sleep(&mut self) {
        self.receive.ring.end_sleep();
    }

    fn link_books(&mut self) -> Option<LinkBooks> {
        let slots = SLOTS.count();
        // A ring that the other side has corrupted counts as empty.
        let waiting = self.receive.ring.available(slots).map_or(0, |waiting| waiting.min(slots));
        Some(LinkBooks {
            link: self.memory.number(),
            sent: self.sent,
            received: self.received,
            waiting: u64::from(waiting),
        })
    }

    /// The frames that wait here, and those that the other side did not take before it ended. A side that ends in good order
    /// releases what it loses and counts it itself.
    fn abandon(&mut self) -> u64 {
        let slots = SLOTS.count();
        let Receive { ring, .. } = &mut self.receive;
        let waiting = ring.available(slots).map_or(0, |waiting| waiting.min(slots));
        let mut lost = 0;
        while lost < u64::from(waiting) && ring.pop().is_some() {
            lost += 1;
        }
        ring.release();
        if self.is_gone() {
            lost += self.transmit.ring.free(slots).map_or(0, |free| u64::from(slots.saturating_sub(free)));
        }
        lost
    }

    /// The doorbell, until the other side has closed it: it would be readable without end.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.doorbell.as_fd())
    }
}

impl From<CorruptIndex> for DriverError {
    fn from(index: CorruptIndex) -> Self {
        Self::Link(index)
    }
}
