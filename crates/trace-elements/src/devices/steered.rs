//! What `ToNext`, `ToService`, `ToPort`, `ToChain` and `ToLookup` share: packets that a function sends to one place.

use element::prelude::*;
use element::{Descriptor, Device, DeviceRequest, Direction, IoError, NextHop};

/// The sending side of a port of a steering switch.
pub(super) struct Steered {
    port: String,
    next: NextHop,
    device: Option<Box<dyn Device>>,
    last_error: Option<IoError>,
}

impl Steered {
    pub(super) fn new(port: u8, next: NextHop) -> Steered {
        Steered { port: port.to_string(), next, device: None, last_error: None }
    }

    /// Opens the port.
    pub(super) fn open(&mut self, cx: &Context) -> Result<(), SetupError> {
        let request = DeviceRequest::Steered { port: self.port.clone(), next: self.next.clone() };
        self.device = Some(super::open(cx, &self.port, &request)?);
        Ok(())
    }

    /// Sends packets as far as there is room, and drops the others.
    pub(super) fn push(&mut self, cx: &mut Context, mut batch: Batch) {
        let Some(device) = &mut self.device else { return };
        let mut reason = Reason::FULL;
        while !batch.is_empty() {
            let before = batch.len();
            let result = device.send(&mut batch);
            let count = before - batch.len();
            let refused = device.take_refused().min(count);
            cx.count(Fate::Delivered, count - refused);
            cx.count_drops(Reason::TOO_LONG, refused as u64);
            if result.is_err() {
                super::report(cx, &self.port, result, &mut self.last_error);
                reason = Reason::NOT_SENT;
                break;
            }
            if count == 0 {
                break;
            }
        }
        if batch.is_empty() {
            return cx.recycle(batch);
        }
        device.count_full(batch.len() as u64);
        let descriptor = device.descriptor();
        cx.drop_batch(batch, reason);
        // Unlimited sources stop until there is room.
        if let Some(descriptor) = descriptor {
            cx.set_signal(Direction::Full, false);
            cx.watch(descriptor, false, true);
        }
    }

    /// There is room again.
    pub(super) fn ready(&self, cx: &mut Context, descriptor: Descriptor) {
        cx.watch(descriptor, false, false);
        cx.set_signal(Direction::Full, true);
    }

    pub(super) fn close(&mut self) {
        self.device = None;
    }
}
