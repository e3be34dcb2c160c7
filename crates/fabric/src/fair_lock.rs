//! A lock whose callers wait in order of arrival, and no longer than they want.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value that one thread uses at a time. The standard library's mutex has no time limit and no order.
#[derive(Debug, Default)]
pub(crate) struct FairLock<T> {
    value: Mutex<T>,
    tickets: Mutex<Tickets>,
    /// Notified when the first ticket changes.
    next: Condvar,
}

#[derive(Debug, Default)]
struct Tickets {
    last: u64,
    /// The holder's ticket, then those of the threads that wait.
    queue: VecDeque<u64>,
}

/// The lock was not free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockTimeout;

impl fmt::Display for LockTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock was not free in time")
    }
}

impl Error for LockTimeout {}

/// The value, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct FairGuard<'a, T> {
    /// Dropped before the turn, which lets the next thread have it.
    value: MutexGuard<'a, T>,
    _turn: Turn<'a>,
}

impl<T> FairLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), tickets: Mutex::default(), next: Condvar::new() }
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> FairGuard<'_, T> {
        let turn = self.enter();
        let first = |tickets: &mut Tickets| tickets.queue.front() != Some(&turn.ticket);
        drop(self.next.wait_while(self.tickets(), first).unwrap_or_else(PoisonError::into_inner));
        self.guard(turn)
    }

    /// Waits for the lock, at most for `timeout`.
    pub(crate) fn lock_within(&self, timeout: Duration) -> Result<FairGuard<'_, T>, LockTimeout> {
        let turn = self.enter();
        let first = |tickets: &mut Tickets| tickets.queue.front() != Some(&turn.ticket);
        let waited = self.next.wait_timeout_while(self.tickets(), timeout, first);
        let (tickets, result) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(tickets);
        // Dropping the turn takes its ticket out of the queue.
        if result.timed_out() { Err(LockTimeout) } else { Ok(self.guard(turn)) }
    }

    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> Turn<'_> {
        let mut tickets = self.tickets();
        tickets.last += 1;
        let ticket = tickets.last;
        tickets.queue.push_back(ticket);
        Turn { tickets: &self.tickets, next: &self.next, ticket }
    }

    /// The value for the thread whose turn it is: the mutex is free, or about to be.
    fn guard<'a>(&'a self, turn: Turn<'a>) -> FairGuard<'a, T> {
        FairGuard { value: self.value.lock().unwrap_or_else(PoisonError::into_inner), _turn: turn }
    }
}

impl<T> Deref for FairGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for FairGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// A ticket in the queue, taken out when dropped.
#[derive(Debug)]
struct Turn<'a> {
    tickets: &'a Mutex<Tickets>,
    next: &'a Condvar,
    ticket: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.queue.retain(|ticket| *ticket != self.ticket);
        let has_waiting = !tickets.queue.is_empty();
        drop(tickets);
        // All of them: which one is first, each knows only by looking. A notification costs a system call even if no thread waits.
        if has_waiting {
            self.next.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn waiters_are_served_in_order_or_time_out() {
        let lock = FairLock::new(Vec::new());
        let held = lock.lock();
        assert_eq!(lock.lock_within(Duration::from_millis(1)).err(), Some(LockTimeout));
        std::thread::scope(|scope| {
            let (done, finished) = mpsc::channel();
            for number in 0..4usize {
                // Each is in the queue before the next one comes.
                let (lock, done) = (&lock, done.clone());
                scope.spawn(move || {
                    lock.lock_within(Duration::from_secs(60)).unwrap().push(number);
                    done.send(()).unwrap();
                });
                while lock.tickets().queue.len() < number + 2 {
                    std::thread::yield_now();
                }
            }
            drop(held);
            (0..4).for_each(|_| finished.recv().unwrap());
        });
        assert_eq!(*lock.lock(), [0, 1, 2, 3]);
        assert!(lock.tickets().queue.is_empty());
    }

    #[test]
    fn a_panic_of_the_holder_frees_the_lock() {
        let lock = FairLock::new(7);
        let panicked = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _held = lock.lock();
                    panic!("on purpose");
                })
                .join()
        });
        assert!(panicked.is_err());
        assert_eq!(lock.lock_within(Duration::from_secs(60)).map(|value| *value), Ok(7));
    }
}
