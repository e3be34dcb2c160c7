//! Calls of elements that wait until the current call has ended.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

/// A handler write that waits until the current call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferredWrite {
    /// The index of the element that writes.
    pub from: usize,
    /// The handler's path, relative to that element.
    pub path: String,
    /// The value.
    pub value: String,
}

/// The calls that wait: elements to wake, the last one first, and handlers to write, in order.
#[derive(Debug, Default)]
pub struct Deferred {
    woken: RefCell<Vec<usize>>,
    writes: RefCell<VecDeque<DeferredWrite>>,
}

impl Deferred {
    /// Adds an element whose `woken` is to be called.
    pub fn wake(&self, element: usize) {
        self.woken.borrow_mut().push(element);
    }

    /// Takes an element to wake.
    pub fn take_woken(&self) -> Option<usize> {
        self.woken.borrow_mut().pop()
    }

    /// Adds a write.
    pub fn write(&self, write: DeferredWrite) {
        self.writes.borrow_mut().push_back(write);
    }

    /// Whether a write waits.
    #[inline]
    pub fn has_writes(&self) -> bool {
        !self.writes.borrow().is_empty()
    }

    /// Takes the next write.
    pub fn take_write(&self) -> Option<DeferredWrite> {
        self.writes.borrow_mut().pop_front()
    }

    /// Puts back a write that can't be made yet.
    pub fn put_back(&self, write: DeferredWrite) {
        self.writes.borrow_mut().push_front(write);
    }
}
