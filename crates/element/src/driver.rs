//! The driver's count, which decides how long a router runs.

use core::cell::Cell;

/// The driver's count, and the element that manages it.
///
/// A router runs while the count is positive. When it reaches zero, the managing element is asked, and may raise it.
#[derive(Debug)]
pub struct Driver {
    count: Cell<i64>,
    manager: Cell<Option<usize>>,
}

impl Default for Driver {
    fn default() -> Driver {
        Driver { count: Cell::new(1), manager: Cell::new(None) }
    }
}

impl Driver {
    /// The count.
    pub fn count(&self) -> i64 {
        self.count.get()
    }

    /// Sets the count.
    pub fn set_count(&self, count: i64) {
        self.count.set(count);
    }

    /// Whether the router runs.
    pub fn is_running(&self) -> bool {
        self.count.get() > 0
    }

    /// Subtracts from the count; at 0 the router stops.
    pub fn stop(&self, count: i64) {
        self.count.set(self.count.get().saturating_sub(count));
    }

    /// Stops the router, whatever the managing element wants.
    pub fn halt(&self) {
        self.count.set(0);
        self.manager.set(None);
    }

    /// The index of the managing element.
    pub fn manager(&self) -> Option<usize> {
        self.manager.get()
    }

    /// Makes `element` the managing element.
    pub fn set_manager(&self, element: usize) {
        self.manager.set(Some(element));
    }
}
