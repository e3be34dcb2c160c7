//! `null`: discards all frames and receives none.

use super::contract::{Driver, DriverError, Received, Sent};
use crate::batch::Batch;

/// A port that is connected to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Driver for Null {
    fn receive(&mut self, _batch: &mut Batch) -> Result<Received, DriverError> {
        Ok(Received::default())
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let bytes =
            frames.iter().filter_map(|number| batch.frame(*number as usize)).map(|frame| frame.len() as u64);
        Ok(Sent { frames: frames.len() as u64, bytes: bytes.sum(), ..Sent::default() })
    }
}
