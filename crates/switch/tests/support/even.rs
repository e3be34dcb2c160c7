//! A driver that skips frames.

use super::Batch;
use super::driver::{Driver, DriverError, Received, Sent};

/// Sends two frames of an even length, and skips those of an odd one.
#[derive(Default)]
pub(crate) struct Even(Vec<u32>);

impl Driver for Even {
    fn receive(&mut self, _: &mut Batch) -> Result<Received, DriverError> {
        Ok(Received::default())
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let length = |number: &u32| batch.frame(*number as usize).unwrap().len() as u64;
        let (even, odd): (Vec<u32>, _) = frames.iter().partition(|number| length(number) % 2 == 0);
        self.0 = odd;
        Ok(Sent { frames: 2, bytes: even.iter().take(2).map(length).sum(), ..Sent::default() })
    }

    fn skipped(&self) -> Vec<u32> {
        self.0.clone()
    }
}
