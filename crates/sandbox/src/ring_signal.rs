//! Wakes the host thread that waits at a box's mailbox.

use crate::lock::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Whether a box rang for its mailbox since the signal was cleared, and the thread that waits for it: the counterpart of
/// an eventfd for boxes whose rings the host itself passes on.
#[derive(Debug, Default)]
pub(crate) struct RingSignal {
    state: Mutex<SignalState>,
    rang: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    rang: bool,
    waiting: usize,
}

impl RingSignal {
    /// Sets the signal and wakes the thread that waits.
    pub(crate) fn notify(&self) {
        let mut state = lock(&self.state);
        state.rang = true;
        // Notifying is a system call even when no thread waits.
        let waiting = state.waiting > 0;
        drop(state);
        if waiting {
            self.rang.notify_all();
        }
    }

    /// Clears the signal.
    pub(crate) fn clear(&self) {
        lock(&self.state).rang = false;
    }

    /// Waits until the signal is set, at most for `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) {
        let mut state = lock(&self.state);
        state.waiting += 1;
        let waited = self.rang.wait_timeout_while(state, timeout, |state| !state.rang);
        waited.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
    }
}
