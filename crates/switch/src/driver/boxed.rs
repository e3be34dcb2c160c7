//! `box`: the host's end of a box's port.

use super::contract::{Driver, DriverError, Received, Sent};
use crate::batch::Batch;
use crate::books::RingBooks;
use crate::silence::Progress;
use boundary::{BufferTags, DirectBatch, HostPort, NEAR_PREFETCH, PortFault, SourceRegion};
use std::sync::Arc;

/// A box's port and the function that wakes the box. The box wakes the switch through the runner's wake event.
pub struct BoxPort<Owner> {
    pub(crate) port: HostPort<Owner>,
    origin: SourceRegion,
    pub(crate) wake: Box<dyn Fn() + Send>,
    /// Frames put into the ring to the box.
    put: u64,
    /// Frames taken out of the ring from the box.
    taken: u64,
}

impl<Owner> std::fmt::Debug for BoxPort<Owner> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoxPort").finish_non_exhaustive()
    }
}

impl<Owner> BoxPort<Owner> {
    /// Creates a driver for a box's port. `wake` notifies the box of work and must not block.
    pub fn new(port: HostPort<Owner>, wake: impl Fn() + Send + 'static) -> Self
    where
        Owner: Clone + Send + Sync + 'static,
    {
        let origin = port.source_region();
        Self { port, origin, wake: Box::new(wake), put: 0, taken: 0 }
    }

    /// Has the ports of one box note what they are told about frames while the box has them.
    pub fn note_tags(ports: &mut [Self]) {
        let buffers = ports.first().map_or(0, |first| first.port.buffer_count());
        let tags = Arc::new(BufferTags::new(buffers));
        ports.iter_mut().for_each(|port| port.port.note_tags(&tags));
    }

    /// What passed the rings since the port was created, and what waits in them.
    pub fn rings(&mut self) -> RingBooks {
        let [waiting_to_box, waiting_from_box] = self.port.waiting().map(u64::from);
        RingBooks { put: self.put, taken: self.taken, waiting_to_box, waiting_from_box }
    }

    /// Counts frames that were put into the ring to the box.
    pub(crate) fn count_put(&mut self, frames: u64) {
        self.put += frames;
    }

    /// Counts frames that were taken out of the ring from the box.
    pub(crate) fn count_taken(&mut self, frames: u64) {
        self.taken += frames;
    }

    /// Publishes sent frames to the box.
    fn publish(&mut self) {
        if self.port.publish() {
            (self.wake)();
        }
    }
}

impl<Owner: Send> Driver for BoxPort<Owner> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        let count = self.port.available(batch.room() as u32)?.min(batch.room() as u32);
        for _ in 0..count {
            let Some(space) = batch.space() else { break };
            match self.port.receive(space) {
                Ok(frame) => {
                    let length = frame.map(<[u8]>::len);
                    self.taken += u64::from(length.is_some());
                    length.into_iter().for_each(|length| batch.commit(length));
                }
                Err(PortFault::Descriptor(_)) => {
                    received.faulty += 1;
                    self.taken += 1;
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        self.release(batch);
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        self.port.room(frames.len() as u32)?;
        self.port.prefetch_room(frames.len() as u32);
        for (at, number) in frames.iter().enumerate() {
            let Some(frame) = batch.split_frame(*number as usize) else { continue };
            let tag = batch.tag(*number as usize);
            if frame.tail.is_some()
                && let Some(coming) = frames.get(at + NEAR_PREFETCH as usize)
                && let Some(rest) = batch.split_frame(*coming as usize).and_then(|coming| coming.tail)
            {
                rest.prefetch();
            }
            if !self.port.send_parts(frame.head, frame.tail, tag)? {
                break;
            }
            self.put += 1;
            sent.frames += 1;
            sent.bytes += frame.length() as u64;
        }
        sent.is_crowded = self.is_crowded();
        self.publish();
        Ok(sent)
    }

    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let Some(peer) = batch.source().and_then(|source| self.port.pool_peer(source)) else {
            return self.send(batch, frames);
        };
        let mut sent = Sent::default();
        self.port.room(frames.len() as u32)?;
        self.port.prefetch_room(frames.len() as u32);
        for number in frames.iter().map(|number| *number as usize) {
            let Some(frame) = batch.split_frame(number) else { continue };
            let (length, tag) = (frame.length() as u64, batch.tag(number));
            let moved =
                frame.tail.and_then(|rest| self.port.take_ownership(peer, frame.head.len(), rest, tag));
            match moved {
                Some(spare) => batch.replace_buffer(number, spare),
                None if self.port.send_parts(frame.head, frame.tail, tag)? => {}
                None => break,
            }
            self.put += 1;
            sent.frames += 1;
            sent.bytes += length;
        }
        sent.is_crowded = self.is_crowded();
        self.publish();
        Ok(sent)
    }

    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        let count = self.port.available(batch.room() as u32)?.min(batch.room() as u32);
        if count > 0 {
            self.port.prefetch_sent(count);
            batch.set_source(&self.origin);
        }
        for _ in 0..count {
            match self.port.take() {
                Ok(Some(taken)) => {
                    self.taken += 1;
                    batch.push_split(&self.origin, taken);
                }
                Ok(None) => break,
                Err(PortFault::Descriptor(_)) => {
                    self.taken += 1;
                    received.faulty += 1;
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(received)
    }

    fn release(&mut self, batch: &Batch) {
        for (slot, spare) in batch.replaced_buffers() {
            self.port.replace_buffer(*slot, *spare);
        }
        if self.port.release() {
            (self.wake)();
        }
    }

    // A fault is reported when frames are received or sent.
    fn list_direct(&mut self, batch: &mut DirectBatch) {
        if self.port.list_direct(batch).is_err() {
            batch.clear();
        }
    }

    fn send_direct(&mut self, batch: &mut DirectBatch) -> bool {
        let _ = self.port.send_direct(batch);
        let (packets, _) = batch.moved();
        self.put += packets;
        self.publish();
        self.is_crowded()
    }

    fn release_direct(&mut self, batch: &DirectBatch) {
        let (packets, _) = batch.moved();
        self.taken += packets;
        if self.port.release_direct(batch) {
            (self.wake)();
        }
    }

    fn accepts_split(&self) -> bool {
        true
    }

    #[inline]
    fn is_ready(&mut self) -> bool {
        // A fault is reported when frames are received.
        !matches!(self.port.available(1), Ok(0))
    }

    /// Whether the ring to the box is more than three quarters full.
    fn is_crowded(&mut self) -> bool {
        let mark = self.port.slots() / 4;
        self.port.room(mark).is_ok_and(|room| room < mark)
    }

    fn progress(&mut self) -> Option<Progress> {
        let RingBooks { put, waiting_to_box: waiting, .. } = self.rings();
        Some(Progress { waiting, taken: put.saturating_sub(waiting) })
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        Ok(self.port.prepare_sleep()?)
    }

    fn end_sleep(&mut self) {
        self.port.end_sleep();
    }
}

impl From<PortFault> for DriverError {
    fn from(fault: PortFault) -> Self {
        Self::Box(fault)
    }
}
