//! The number of packets in an element, for elements that watch it.

use alloc::rc::Rc;
use core::cell::Cell;

use element::prelude::*;

/// Number of packets in an element that stores them, exported for early droppers and monitors.
#[derive(Clone, Debug, Default)]
pub struct Length(Rc<Cell<usize>>);

impl Length {
    /// Packets stored now.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.get()
    }

    /// Updates the number.
    #[inline]
    pub fn set(&self, length: usize) {
        self.0.set(length);
    }

    /// The length of element number `element`, if it stores packets.
    pub fn of(cx: &Context, element: usize) -> Option<Length> {
        let export = cx.runtime().export(element)?;
        export.downcast_ref::<Length>().cloned()
    }
}
