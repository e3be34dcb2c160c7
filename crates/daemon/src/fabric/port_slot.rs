//! The port of a switch that a box is at: the box may come and go.

use super::capture::Captures;
use sandbox::SharedRegion;
use std::io::{Error, ErrorKind};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use switch::driver::{BoxPort, Received, Sent};
use switch::{Batch, Driver, DriverError};

/// The host's end of a box's port, and what wakes the box.
pub(crate) type Port = BoxPort<Arc<SharedRegion>>;

/// A place for a box's port. All clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortSlot(Arc<Mutex<Option<Port>>>);

impl PortSlot {
    fn lock(&self) -> MutexGuard<'_, Option<Port>> {
        // Only the fabric's thread comes here: the lock is never waited for.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a port in, or takes it out; what was there.
    pub(crate) fn set(&self, port: Option<Port>) -> Option<Port> {
        std::mem::replace(&mut *self.lock(), port)
    }
}

impl Driver for PortSlot {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.lock().as_mut().map_or(Ok(Received::default()), |port| port.receive(batch))
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.lock().as_mut().ok_or_else(gone)?.send(batch, frames)
    }

    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.lock().as_mut().ok_or_else(gone)?.send_split(batch, frames)
    }

    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.lock().as_mut().map_or(Ok(Received::default()), |port| port.receive_split(batch))
    }

    fn release(&mut self, batch: &Batch) {
        if let Some(port) = self.lock().as_mut() {
            port.release(batch);
        }
    }

    fn accepts_split(&self) -> bool {
        self.lock().as_ref().is_none_or(Driver::accepts_split)
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

fn gone() -> Error {
    Error::new(ErrorKind::NotConnected, "the box does not run")
}

/// A driver that is captured from.
#[derive(Debug)]
pub(crate) struct CapturedDriver<D> {
    /// The driver.
    pub(crate) driver: D,
    /// The captures.
    pub(crate) captures: Captures,
}

impl<D: Driver> Driver for CapturedDriver<D> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let before = batch.len();
        let received = self.driver.receive(batch)?;
        if self.captures.is_active() {
            self.captures.see(batch, before..batch.len());
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let sent = self.driver.send(batch, frames)?;
        if self.captures.is_active() {
            let there = usize::try_from(sent.frames).unwrap_or(usize::MAX);
            self.captures.see(batch, frames.iter().take(there).map(|number| *number as usize));
        }
        Ok(sent)
    }

    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.driver.send_split(batch, frames)
    }

    /// While somebody captures, frames are taken and given whole.
    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        if self.captures.is_active() { self.receive(batch) } else { self.driver.receive_split(batch) }
    }

    fn release(&mut self, batch: &Batch) {
        self.driver.release(batch);
    }

    fn accepts_split(&self) -> bool {
        !self.captures.is_active() && self.driver.accepts_split()
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.driver.prepare_sleep()
    }

    fn end_sleep(&mut self) {
        self.driver.end_sleep();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.driver.descriptor()
    }

    fn take_missed(&mut self) -> u64 {
        self.driver.take_missed()
    }
}
