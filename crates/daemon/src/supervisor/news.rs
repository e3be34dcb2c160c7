//! Wakes the monitor when the fabric has news.

use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// Whether the fabric has news that were not fetched yet.
#[derive(Debug, Default)]
pub(super) struct News {
    fresh: Mutex<bool>,
    changed: Condvar,
}

impl News {
    pub(super) fn announce(&self) {
        *self.fresh.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for news, at most until `until`.
    pub(super) fn wait(&self, until: Instant) {
        let mut fresh = self.fresh.lock();
        if !*fresh {
            self.changed.wait_until(&mut fresh, until);
        }
        *fresh = false;
    }
}
