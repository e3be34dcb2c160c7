//! Divides a long computation into short steps, so that a router can process packets in between.
//!
//! The computation is an `async` function that calls [`Pace::spend`] in its loops. It needs no executor and no waker:
//! the owner polls its future, and each poll is one step.

use alloc::vec::Vec;
use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

/// Work of one step, in units of about ten nanoseconds.
const STEP: u32 = 2_000;

/// Numbers that are sorted by insertion. Longer runs are merged.
const SORTED_BY_INSERTION: usize = 16;
/// The work of freeing an item with a few allocations.
pub(crate) const FREED: usize = 20;

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

impl Pace {
    /// Sorts numbers by merging.
    pub(crate) async fn sort(&self, numbers: &mut Vec<u128>) {
        for chunk in numbers.chunks_mut(SORTED_BY_INSERTION) {
            self.spend(4 * SORTED_BY_INSERTION).await;
            sort_few(chunk, |one, other| one < other);
        }
        let mut merged = Vec::with_capacity(numbers.len());
        let mut length = SORTED_BY_INSERTION;
        while length < numbers.len() {
            for pair in numbers.chunks(2 * length) {
                let (mut one, mut other) = pair.split_at(length.min(pair.len()));
                while let ([first, one_rest @ ..], [second, other_rest @ ..]) = (one, other) {
                    self.spend(1).await;
                    merged.push(*first.min(second));
                    (one, other) = if first <= second { (one_rest, other) } else { (one, other_rest) };
                }
                merged.extend_from_slice(one);
                merged.extend_from_slice(other);
            }
            core::mem::swap(numbers, &mut merged);
            merged.clear();
            length *= 2;
        }
    }

    /// Frees what is in a list, and the list.
    pub(crate) async fn free<T>(&self, mut list: Vec<T>) {
        while let Some(item) = list.pop() {
            drop(item);
            self.spend(FREED).await;
        }
    }
}

/// Sorts a short list by insertion; equal items keep their order. The library's sorts would be several times the code.
pub(crate) fn sort_few<T>(items: &mut [T], is_before: impl Fn(&T, &T) -> bool) {
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && is_before(&items[at], &items[at - 1]) {
            items.swap(at, at - 1);
            at -= 1;
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
