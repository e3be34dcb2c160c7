//! Sorting and ordered collections in little code, for what is not done for each packet.
//!
//! The standard library compiles its sort once for each type: 3 to 10 KB of code for each, 0.2 MB of a box's image. These
//! functions share one copy, which sorts numbers. They need 8 bytes of memory for each item, and are a few times slower.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Sorts items. Equal items keep their order.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts items by a key. Items with equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Sorts items by a comparison. Equal items keep their order.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order: Vec<usize> = (0..items.len()).collect();
    sort_numbers(&mut order, &|one, other| compare(&items[one], &items[other]));
    // `order` has the old place of each new one. Each of its cycles is followed once.
    for start in 0..order.len() {
        let mut place = start;
        loop {
            let from = core::mem::replace(&mut order[place], place);
            if from == start {
                break;
            }
            items.swap(place, from);
            place = from;
        }
    }
}

#[inline(never)]
fn sort_numbers(numbers: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    numbers.sort_by(|one, other| compare(*one, *other));
}

/// Collects items into an ordered map or set, one by one. Of equal keys, the last one counts. `collect` would compile a
/// sort for the type.
pub fn collect<C: Default + Extend<T>, T>(items: impl IntoIterator<Item = T>) -> C {
    let mut collection = C::default();
    collection.extend(items);
    collection
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    /// Pseudo-random pairs with many equal first numbers; the second is the pair's place.
    fn pairs(count: usize) -> Vec<(usize, usize)> {
        let mut state = 1usize;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        (0..count).map(|place| (next() % (count / 3 + 1), place)).collect()
    }

    #[test]
    fn equal_items_keep_their_order() {
        for count in (0..70).chain([1_000]) {
            let mut expected = pairs(count);
            expected.sort_by_key(|(key, _)| *key);
            let mut found = pairs(count);
            sort_by_key(&mut found, |(key, _)| *key);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn sorts_in_both_directions() {
        let mut numbers = [3, 1, 2, 0];
        sort(&mut numbers);
        assert_eq!(numbers, [0, 1, 2, 3]);
        sort_by(&mut numbers, |one, other| other.cmp(one));
        assert_eq!(numbers, [3, 2, 1, 0]);
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let map: BTreeMap<_, _> = collect([(2, 'a'), (1, 'b'), (2, 'c')]);
        assert_eq!(map.into_iter().collect::<Vec<_>>(), [(1, 'b'), (2, 'c')]);
    }
}
