//! Activity signals: whether a pull or a push is likely to succeed.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

/// The neighbours that a signal informs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From upstream: there may be packets to pull (Click's empty notifier).
    Empty,
    /// From downstream: there may be room to push (Click's full notifier).
    Full,
}

/// The state of one notifier, shared with its listeners.
#[derive(Clone, Debug, Default)]
pub struct SignalCell(Rc<Cell<bool>>);

impl SignalCell {
    /// A new cell.
    pub fn new(active: bool) -> SignalCell {
        SignalCell(Rc::new(Cell::new(active)))
    }

    /// Whether the notifier is active.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.0.get()
    }

    /// Sets the state; returns whether it changed to active.
    #[inline]
    pub fn set(&self, active: bool) -> bool {
        !self.0.replace(active) && active
    }
}

/// The signal that a listener watches. It is active while any of its notifiers is, or always if some path has none.
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

    /// Active while any of `cells` is, or always with `busy`.
    pub fn new(cells: Vec<SignalCell>, busy: bool) -> Signal {
        Signal { cells, busy }
    }

    /// Whether to try.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.busy || self.cells.iter().any(SignalCell::is_active)
    }

    /// Whether it is always active because a path has no notifier.
    pub fn is_busy(&self) -> bool {
        self.busy
    }
}
