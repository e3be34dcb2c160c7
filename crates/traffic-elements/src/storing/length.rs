//! The number of packets in an element, for elements that watch it.

use alloc::rc::Rc;
use core::cell::Cell;

use element::prelude::*;

/// Number of packets in an element that stores them, exported for early droppers and monitors.
#[derive(Clone, Debug, Default)]
pub struct Length(Rc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    stored: Cell<usize>,
    /// The most that a queue stores; 0 in other elements.
    capacity: Cell<usize>,
}

impl Length {
    /// Packets stored now.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.stored.get()
    }

    /// Updates the number.
    #[inline]
    pub fn set(&self, length: usize) {
        self.0.stored.set(length);
    }

    /// The most packets that a queue stores.
    pub fn capacity(&self) -> usize {
        self.0.capacity.get()
    }

    /// Updates the capacity of a queue.
    pub fn set_capacity(&self, capacity: usize) {
        self.0.capacity.set(capacity);
    }

    /// Whether another element watches it.
    pub fn is_watched(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }

    /// The length of element number `element`, if it stores packets.
    pub fn of(cx: &Context, element: usize) -> Option<Length> {
        let export = cx.runtime().export(element)?;
        export.downcast_ref::<Length>().cloned()
    }
}
