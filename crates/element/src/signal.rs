//! Activity signals: whether it is worth pulling, or pushing.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

/// Which neighbours a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From upstream: there may be packets to pull (Click's empty notifier).
    Empty,
    /// From downstream: there may be room to push (Click's full notifier).
    Full,
}

/// One notifier's state, which its listeners look at.
#[derive(Clone, Debug, Default)]
pub struct SignalCell(Rc<Cell<bool>>);

impl SignalCell {
    /// A new one.
    pub fn new(active: bool) -> SignalCell {
        SignalCell(Rc::new(Cell::new(active)))
    }

    /// Whether it is active.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.0.get()
    }

    /// Changes it; returns whether it became active by that.
    #[inline]
    pub fn set(&self, active: bool) -> bool {
        !self.0.replace(active) && active
    }
}

/// What a listener watches: active while any of the notifiers that it found is, or always if some path had none.
#[derive(Clone, Debug, Default)]
pub struct Signal {
    cells: Vec<SignalCell>,
    busy: bool,
}

impl Signal {
    /// Always active.
    pub const BUSY: Signal = Signal { cells: Vec::new(), busy: true };
    /// Never active.
    pub const IDLE: Signal = Signal { cells: Vec::new(), busy: false };

    /// Active while any of `cells` is, or always.
    pub fn new(cells: Vec<SignalCell>, busy: bool) -> Signal {
        Signal { cells, busy }
    }

    /// Whether it is worth trying.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.busy || self.cells.iter().any(SignalCell::is_active)
    }

    /// Whether it is always active, for want of a notifier.
    pub fn is_busy(&self) -> bool {
        self.busy
    }
}
