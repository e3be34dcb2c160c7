//! How many packets an element stores, for those that watch it.

use alloc::rc::Rc;
use core::cell::Cell;

use element::prelude::*;

/// The number of packets that an element stores; what it exports, so that droppers and monitors can look at it.
#[derive(Clone, Debug, Default)]
pub struct Length(Rc<Cell<usize>>);

impl Length {
    /// Packets stored now.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.get()
    }

    /// Says how many are stored now.
    #[inline]
    pub fn set(&self, length: usize) {
        self.0.set(length);
    }

    /// What the element numbered `element` stores, if it stores packets.
    pub fn of(cx: &Context, element: usize) -> Option<Length> {
        let export = cx.runtime().export(element)?;
        export.downcast_ref::<Length>().cloned()
    }
}
