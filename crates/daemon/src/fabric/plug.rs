//! The port of a switch that a box is at: the box may come and go.

use super::tap::Taps;
use sandbox::Area;
use std::io::{Error, ErrorKind};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use switch::driver::{BoxPort, Received, Sent};
use switch::{Batch, Driver, DriverError};

/// The host's end of a box's port, and what wakes the box.
pub(crate) type Port = BoxPort<Arc<Area>>;

/// A place for a box's port. All clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plug(Arc<Mutex<Option<Port>>>);

impl Plug {
    fn lock(&self) -> MutexGuard<'_, Option<Port>> {
        // Only the fabric's thread comes here: the lock is never waited for.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a port in, or takes it out; what was there.
    pub(crate) fn set(&self, port: Option<Port>) -> Option<Port> {
        std::mem::replace(&mut *self.lock(), port)
    }
}

impl Driver for Plug {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.lock().as_mut().map_or(Ok(Received::default()), |port| port.receive(batch))
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.lock().as_mut().ok_or_else(gone)?.send(batch, frames)
    }

    fn send_parts(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.lock().as_mut().ok_or_else(gone)?.send_parts(batch, frames)
    }

    fn receive_parts(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.lock().as_mut().map_or(Ok(Received::default()), |port| port.receive_parts(batch))
    }

    fn received(&mut self, batch: &Batch) {
        if let Some(port) = self.lock().as_mut() {
            port.received(batch);
        }
    }

    fn takes_parts(&self) -> bool {
        self.lock().as_ref().is_none_or(Driver::takes_parts)
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
pub(crate) struct Tapped<D> {
    /// The driver.
    pub(crate) driver: D,
    /// The captures.
    pub(crate) taps: Taps,
}

impl<D: Driver> Driver for Tapped<D> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let before = batch.len();
        let received = self.driver.receive(batch)?;
        if self.taps.is_active() {
            self.taps.see(batch, before..batch.len());
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let sent = self.driver.send(batch, frames)?;
        if self.taps.is_active() {
            let there = usize::try_from(sent.frames).unwrap_or(usize::MAX);
            self.taps.see(batch, frames.iter().take(there).map(|number| *number as usize));
        }
        Ok(sent)
    }

    fn send_parts(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.driver.send_parts(batch, frames)
    }

    /// While somebody captures, frames are taken and given whole.
    fn receive_parts(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        if self.taps.is_active() { self.receive(batch) } else { self.driver.receive_parts(batch) }
    }

    fn received(&mut self, batch: &Batch) {
        self.driver.received(batch);
    }

    fn takes_parts(&self) -> bool {
        !self.taps.is_active() && self.driver.takes_parts()
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
