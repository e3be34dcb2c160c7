//! The order in which elements are made and initialised: by phases, and within a phase as Click has it.
//!
//! Click sorts elements by phase with the quicksort of Bentley and McIlroy (Engineering a Sort Function, Software:
//! Practice and Experience 23(11), 1993), which does not keep the order of equals. That order shows: in messages, and
//! in whose task runs first. So it is that sort here too.

use alloc::vec::Vec;

use element::Phase;

/// Up to so many are sorted by insertion.
const FEW: usize = 6;
/// From so many on the middle of nine is the pivot, rather than that of three.
const MANY: usize = 41;

/// The numbers of elements with these phases, in order.
pub(crate) fn order(phases: &[Phase]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..phases.len()).collect();
    let phase = |element: &usize| phases.get(*element).copied().unwrap_or(Phase::Normal);
    let whole = 0..order.len();
    let mut parts = Vec::from_iter([whole]);
    while let Some(range) = parts.pop() {
        let Some(part) = order.get_mut(range.clone()) else { continue };
        if part.len() <= FEW {
            // Insertion keeps the order of equals.
            part.sort_by_key(phase);
            continue;
        }
        let (below, above) = partition(part, &phase);
        parts.push(range.start..range.start + below);
        parts.push(range.end - above..range.end);
    }
    order
}

/// Moves what is less than a pivot to the front and what is greater to the end; returns how many those are.
fn partition(part: &mut [usize], phase: &impl Fn(&usize) -> Phase) -> (usize, usize) {
    let count = part.len();
    let at = |part: &[usize], place: usize| part.get(place).map_or(Phase::Normal, phase);
    let pivot = pivot(count, |place| at(part, place));
    part.swap(0, pivot);
    let pivot = at(part, 0);
    // Equals are gathered at both ends: before `low_equal`, and behind `high_equal`.
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
    for place in 0..low_equal.min(below) {
        part.swap(place, low - low_equal.min(below) + place);
    }
    let moved = above.min(count - high_equal - 1);
    for place in 0..moved {
        part.swap(low + place, count - moved + place);
    }
    (below, above)
}

/// The place of the pivot among `count`: the middle, or that of three or nine by their phases.
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
    if count <= FEW + 1 {
        return middle;
    }
    if count < MANY {
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
    use super::*;

    #[test]
    fn phases_are_in_order_whatever_they_are() {
        let mut state = 1u32;
        for count in 0..120 {
            for kinds in 1..5 {
                let phases: Vec<Phase> = (0..count)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        [Phase::Normal, Phase::Late, Phase::Names, Phase::Information]
                            [(state >> 16) as usize % kinds]
                    })
                    .collect();
                let order = order(&phases);
                assert!(order.is_sorted_by_key(|element| phases[*element]), "{phases:?}");
                let mut all = order.clone();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..count), "{phases:?}");
            }
        }
    }

    /// As Click configures two dozen elements of which the sixth names addresses, found by their messages.
    #[test]
    fn equals_are_in_the_order_of_click() {
        let mut phases = [Phase::Normal; 24];
        phases[5] = Phase::Names;
        assert_eq!(order(&phases)[..3], [5, 1, 2]);
    }
}
