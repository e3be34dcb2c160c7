//! Limits the number of concurrent checks.

use std::sync::{Condvar, Mutex, PoisonError};

/// A semaphore for concurrent checks.
#[derive(Debug)]
pub(super) struct CheckSlots {
    free: Mutex<usize>,
    one_left: Condvar,
}

/// A permit for one check.
#[derive(Debug)]
pub(super) struct CheckSlot<'a>(&'a CheckSlots);

impl CheckSlots {
    pub(super) fn new(most: usize) -> Self {
        Self { free: Mutex::new(most), one_left: Condvar::new() }
    }

    pub(super) fn enter(&self) -> CheckSlot<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.one_left.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        CheckSlot(self)
    }
}

impl Drop for CheckSlot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.one_left.notify_one();
    }
}
