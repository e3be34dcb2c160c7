//! The switch port that is reserved for a box. The box may stop and start again.

use super::boxed::BoxPort;
use super::contract::{Driver, DriverError, Received, Sent};
use super::spread::SpreadPort;
use crate::batch::Batch;
use crate::books::RingBooks;
use crate::silence::Progress;
use boundary::DirectBatch;
use packet::steering::Steering;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Holds a box's port, or nothing while the box does not run. An empty slot receives nothing and fails to send, which
/// takes the switch port down until it gets a new driver. Clones refer to the same slot.
#[derive(Debug)]
pub struct PortSlot<Owner>(Arc<Mutex<Option<SpreadPort<Owner>>>>);

impl<Owner> Clone for PortSlot<Owner> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Owner> Default for PortSlot<Owner> {
    /// An empty slot.
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<Owner> PortSlot<Owner> {
    fn lock(&self) -> MutexGuard<'_, Option<SpreadPort<Owner>>> {
        // One thread runs the switch and changes its ports, so the lock is never contended.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts the ports of a box, one for each of its cores, or removes them if there are none; returns the previous ones.
    pub fn set(&self, cores: Vec<BoxPort<Owner>>) -> Vec<BoxPort<Owner>> {
        let new = (!cores.is_empty()).then(|| SpreadPort::new(cores));
        std::mem::replace(&mut *self.lock(), new).map(SpreadPort::into_cores).unwrap_or_default()
    }

    /// Says how packets are spread over the cores. Until then, it is by their addresses alone.
    pub fn steer(&self, steering: Steering) {
        if let Some(port) = self.lock().as_mut() {
            port.steer(steering);
        }
    }
}

impl<Owner: Send> PortSlot<Owner> {
    /// The frames in the rings of the port; `None` while the slot is empty.
    pub fn rings(&self) -> Option<RingBooks> {
        self.lock().as_mut().map(SpreadPort::rings)
    }
}

impl<Owner: Send> Driver for PortSlot<Owner> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.lock().as_mut().map_or(Ok(Received::default()), |port| port.receive(batch))
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.lock().as_mut().ok_or_else(not_running)?.send(batch, frames)
    }

    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.lock().as_mut().ok_or_else(not_running)?.send_split(batch, frames)
    }

    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.lock().as_mut().map_or(Ok(Received::default()), |port| port.receive_split(batch))
    }

    fn is_ready(&mut self) -> bool {
        self.lock().as_mut().is_some_and(Driver::is_ready)
    }

    fn release(&mut self, batch: &Batch) {
        if let Some(port) = self.lock().as_mut() {
            port.release(batch);
        }
    }

    fn list_direct(&mut self, batch: &mut DirectBatch) {
        batch.clear();
        if let Some(port) = self.lock().as_mut() {
            port.list_direct(batch);
        }
    }

    fn send_direct(&mut self, batch: &mut DirectBatch) -> bool {
        self.lock().as_mut().is_some_and(|port| port.send_direct(batch))
    }

    fn release_direct(&mut self, batch: &DirectBatch) {
        if let Some(port) = self.lock().as_mut() {
            port.release_direct(batch);
        }
    }

    fn accepts_split(&self) -> bool {
        self.lock().as_ref().is_none_or(Driver::accepts_split)
    }

    fn skipped(&self) -> Vec<u32> {
        self.lock().as_ref().map_or_else(Vec::new, Driver::skipped)
    }

    fn is_crowded(&mut self) -> bool {
        self.lock().as_mut().is_some_and(Driver::is_crowded)
    }

    fn progress(&mut self) -> Option<Progress> {
        self.lock().as_mut().and_then(Driver::progress)
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.lock().as_mut().map_or(Ok(true), Driver::prepare_sleep)
    }

    fn end_sleep(&mut self) {
        if let Some(port) = self.lock().as_mut() {
            port.end_sleep();
        }
    }
}

fn not_running() -> Error {
    Error::new(ErrorKind::NotConnected, "the box is not running")
}
