//! Which elements of a router count packets.

use alloc::boxed::Box;
use core::cell::Cell;

/// The elements of a router that have counted packets by fate, or by the reason for which they dropped them: a bit for each.
///
/// In a long configuration these are few. It takes less time to look here than at each element.
#[derive(Debug)]
pub struct CountingElements(Box<[Cell<u64>]>);

impl CountingElements {
    /// None of so many elements.
    pub fn none(elements: usize) -> CountingElements {
        CountingElements((0..elements.div_ceil(64)).map(|_| Cell::new(0)).collect())
    }

    /// Adds an element.
    pub fn add(&self, element: usize) {
        if let Some(word) = self.0.get(element / 64) {
            word.set(word.get() | 1 << (element % 64));
        }
    }

    /// The indices of the elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(place, word)| {
            let bits = word.get();
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| place * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn counting_elements_are_in_order() {
        let counting = CountingElements::none(130);
        [129, 63, 0, 64, 63, 1_000].into_iter().for_each(|element| counting.add(element));
        assert_eq!(counting.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert_eq!(CountingElements::none(0).iter().count(), 0);
    }
}
