//! Limits that elements set to the length of batches while the router runs.

use core::cell::{Cell, RefCell};

use alloc::vec::Vec;

/// The limits that elements have set, at most one each.
#[derive(Debug)]
pub struct BatchLimits {
    by_element: RefCell<Vec<(usize, usize)>>,
    least: Cell<usize>,
}

impl Default for BatchLimits {
    /// No limits.
    fn default() -> BatchLimits {
        BatchLimits { by_element: RefCell::default(), least: Cell::new(usize::MAX) }
    }
}

impl BatchLimits {
    /// Sets the limit of an element, which is at least 1, in place of its previous one.
    pub fn set(&self, element: usize, most: usize) {
        let mut limits = self.by_element.borrow_mut();
        let most = most.max(1);
        match limits.iter_mut().find(|(other, _)| *other == element) {
            Some((_, limit)) => *limit = most,
            None => limits.push((element, most)),
        }
        self.least.set(limits.iter().map(|(_, limit)| *limit).min().unwrap_or(usize::MAX));
    }

    /// The least of the limits.
    #[inline]
    pub fn least(&self) -> usize {
        self.least.get()
    }

    /// Whether an element has ever set a limit.
    pub fn is_any(&self) -> bool {
        !self.by_element.borrow().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_counts() {
        let limits = BatchLimits::default();
        assert!(!limits.is_any() && limits.least() == usize::MAX);
        limits.set(3, 40);
        limits.set(5, 0);
        assert_eq!(limits.least(), 1);
        limits.set(5, 60);
        assert!(limits.is_any() && limits.least() == 40);
    }
}
