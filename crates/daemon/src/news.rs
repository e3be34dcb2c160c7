//! Wakes the monitor when there are new events, here or in the fabric.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Whether there are new events, in the journal or in the fabric.
#[derive(Debug, Default)]
pub(crate) struct News {
    fresh: Mutex<bool>,
    changed: Condvar,
}

impl News {
    pub(crate) fn announce(&self) {
        *self.fresh.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for news, at most until `until`, and then for those that follow within `gather`.
    pub(crate) fn wait(&self, until: Instant, gather: Duration) {
        let mut fresh = self.fresh.lock();
        if !*fresh {
            self.changed.wait_until(&mut fresh, until);
        }
        if *fresh {
            parking_lot::MutexGuard::unlocked(&mut fresh, || std::thread::sleep(gather));
        }
        *fresh = false;
    }
}
