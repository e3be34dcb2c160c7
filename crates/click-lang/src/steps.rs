//! Long computations, divided into short steps so that their owner can process packets in between.
//!
//! Such a computation is an `async` function that calls [`pause`] where it can be interrupted. It needs no executor and no
//! waker: its owner polls it, and each poll is a step.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// A computation.
pub type Computation<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A computation in steps.
pub struct Steps<T>(Computation<'static, T>);

impl<T> Steps<T> {
    /// A computation that has not begun.
    pub fn new(computation: impl Future<Output = T> + 'static) -> Self {
        Self(Box::pin(computation))
    }

    /// Performs the next step. Returns the result after the last one; then it must not be called again.
    pub fn step(&mut self) -> Option<T> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

/// Ends the current step.
pub async fn pause() {
    let mut is_resumed = false;
    poll_fn(|_| match core::mem::replace(&mut is_resumed, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Ends the current step after each `interval` of short pieces of work, of which `done` are done.
pub async fn pause_every(interval: usize, done: usize) {
    if done % interval == interval - 1 {
        pause().await;
    }
}

/// Executes a computation at once.
pub fn complete<T>(computation: impl Future<Output = T>) -> T {
    let mut computation = core::pin::pin!(computation);
    loop {
        if let Poll::Ready(result) = computation.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
    }
}

/// Frees what is in a list, in steps.
pub async fn free<T>(list: Vec<T>) {
    free_many(list, 1).await;
}

/// Frees a map, so many entries a step.
pub async fn free_map<K: Ord, V>(mut map: BTreeMap<K, V>, entries: usize) {
    while !map.is_empty() {
        (0..entries).for_each(|_| drop(map.pop_first()));
        pause().await;
    }
}

/// Frees what is in a list, so many entries a step.
pub async fn free_many<T>(mut list: Vec<T>, entries: usize) {
    while list.len() > entries {
        list.truncate(list.len() - entries);
        pause().await;
    }
}
