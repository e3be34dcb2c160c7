//! The order in which elements are created and initialised: by phase, and within a phase in Click's order.
//!
//! Click sorts elements by phase with the quicksort of Bentley and McIlroy (Engineering a Sort Function, Software:
//! Practice and Experience 23(11), 1993), which is not stable. The order is visible in messages and in which task runs
//! first, so the same sort is used here.

use alloc::vec::Vec;

use element::Phase;

/// Slices up to this length use insertion sort.
const MAX_INSERTION_SORT: usize = 6;
/// From this length on, the pivot is the median of nine instead of three.
const MIN_MEDIAN_OF_NINE: usize = 41;

/// The indices of elements with these phases, in order.
pub(crate) fn order(phases: &[Phase]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..phases.len()).collect();
    let phase = |element: &usize| phases.get(*element).copied().unwrap_or(Phase::Normal);
    let whole = 0..order.len();
    let mut parts = Vec::from_iter([whole]);
    while let Some(range) = parts.pop() {
        let Some(part) = order.get_mut(range.clone()) else { continue };
        if part.len() <= MAX_INSERTION_SORT {
            // Insertion sort is stable.
            sorting::sort_by_key(part, phase);
            continue;
        }
        let (below, above) = partition(part, &phase);
        parts.push(range.start..range.start + below);
        parts.push(range.end - above..range.end);
    }
    order
}

/// Moves elements below the pivot to the front and those above it to the end; returns the number of each.
fn partition(part: &mut [usize], phase: &impl Fn(&usize) -> Phase) -> (usize, usize) {
    let count = part.len();
    let at = |part: &[usize], index: usize| part.get(index).map_or(Phase::Normal, phase);
    let pivot = pivot(count, |index| at(part, index));
    part.swap(0, pivot);
    let pivot = at(part, 0);
    // Elements equal to the pivot are gathered at both ends: before `low_equal` and after `high_equal`.
    let (mut low_equal, mut low) = (1, 1);
    let (mut high, mut high_equal) = (count - 1, count - 1);
    loop {
        while low <= high && at(part, low) <= pivot {
            if at(part, low) == pivot {
                part.swap(low_equal, low);
                low_equal += 1;
            }
            low += 1;
        }
        while high >= low && at(part, high) >= pivot {
            if at(part, high) == pivot {
                part.swap(high, high_equal);
                high_equal -= 1;
            }
            high -= 1;
        }
        if low > high {
            break;
        }
        part.swap(low, high);
        low += 1;
        high -= 1;
    }
    let (below, above) = (low - low_equal, high_equal - high);
    for index in 0..low_equal.min(below) {
        part.swap(index, low - low_equal.min(below) + index);
    }
    let moved = above.min(count - high_equal - 1);
    for index in 0..moved {
        part.swap(low + index, count - moved + index);
    }
    (below, above)
}

/// The index of the pivot among `count` elements: the middle, or the median of three or nine.
fn pivot(count: usize, at: impl Fn(usize) -> Phase) -> usize {
    let median = |a: usize, b: usize, c: usize| {
        let (first, second, third) = (at(a), at(b), at(c));
        if first < second {
            if second < third {
                b
            } else if first < third {
                c
            } else {
                a
            }
        } else if second > third {
            b
        } else if first > third {
            c
        } else {
            a
        }
    };
    let (first, middle, last) = (0, count / 2, count - 1);
    if count <= MAX_INSERTION_SORT + 1 {
        return middle;
    }
    if count < MIN_MEDIAN_OF_NINE {
        return median(first, middle, last);
    }
    let step = count / 8;
    let first = median(first, first + step, first + 2 * step);
    let middle = median(middle - step, middle, middle + step);
    let last = median(last - 2 * step, last - step, last);
    median(first, middle, last)
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;

    #[test]
    fn any_phases_are_sorted() {
        let mut random = Random::new(1);
        for count in 0..120 {
            for kinds in 1..5 {
                let mut phase = || {
                    [Phase::Normal, Phase::Late, Phase::Names, Phase::Information]
                        [random.below(kinds) as usize]
                };
                let phases: Vec<Phase> = (0..count).map(|_| phase()).collect();
                let order = order(&phases);
                assert!(order.is_sorted_by_key(|element| phases[*element]), "{phases:?}");
                let mut all = order.clone();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..count), "{phases:?}");
            }
        }
    }

    /// The order in which Click configures two dozen elements whose sixth defines addresses, taken from its messages.
    #[test]
    fn equal_phases_are_in_the_order_of_click() {
        let mut phases = [Phase::Normal; 24];
        phases[5] = Phase::Names;
        assert_eq!(order(&phases)[..3], [5, 1, 2]);
    }
}
