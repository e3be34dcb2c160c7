//! Divides a long computation into short steps, so that a router can process packets in between.
//!
//! The computation is an `async` function that calls [`Pace::spend`] in its loops. It needs no executor and no waker:
//! the owner polls its future, and each poll is one step.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

/// Work of one step, in units of about ten nanoseconds.
const STEP: u32 = 2_000;

/// Counts the work of a computation, and interrupts it after each step.
pub(crate) struct Pace {
    left: Cell<u32>,
}

impl Pace {
    /// The pace of a computation that begins with a full step.
    pub(crate) fn new() -> Self {
        Self { left: Cell::new(STEP) }
    }

    /// Counts work of `units`, about ten nanoseconds each. Waits for the next poll if the step is over.
    #[inline]
    pub(crate) async fn spend(&self, units: usize) {
        match self.left.get().checked_sub(units as u32) {
            Some(left) => self.left.set(left),
            None => {
                self.left.set(STEP);
                pause().await;
            }
        }
    }
}

/// Ends the current poll.
async fn pause() {
    let mut is_resumed = false;
    poll_fn(|_| match core::mem::replace(&mut is_resumed, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Executes a computation at once, without interruptions.
pub(crate) fn complete<T>(computation: impl Future<Output = T>) -> T {
    let mut computation = pin!(computation);
    loop {
        if let Poll::Ready(result) = computation.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
    }
}
