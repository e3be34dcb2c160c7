//! Wakes host threads that wait for a reply when their box rings.

use crate::lock::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often a box rang for its host, and the threads that wait for the next ring.
#[derive(Debug, Default)]
pub(crate) struct RingSignal {
    rings: Mutex<Rings>,
    rang: Condvar,
}

#[derive(Debug, Default)]
struct Rings {
    count: u64,
    waiting: usize,
}

impl RingSignal {
    /// Counts a ring and wakes the threads that wait.
    pub(crate) fn notify(&self) {
        let mut rings = lock(&self.rings);
        rings.count = rings.count.wrapping_add(1);
        // A box may ring for each batch of packets, and notifying is a system call even when no thread waits.
        let waiting = rings.waiting > 0;
        drop(rings);
        if waiting {
            self.rang.notify_all();
        }
    }

    /// The number of rings so far, modulo 2^64.
    pub(crate) fn count(&self) -> u64 {
        lock(&self.rings).count
    }

    /// Waits until there were more rings than `seen`, at most for `timeout`.
    pub(crate) fn wait(&self, seen: u64, timeout: Duration) {
        let mut rings = lock(&self.rings);
        rings.waiting += 1;
        let waited = self.rang.wait_timeout_while(rings, timeout, |rings| rings.count == seen);
        waited.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
    }
}
