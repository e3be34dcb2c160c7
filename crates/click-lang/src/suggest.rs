//! The nearest name to a misspelt one.

use alloc::vec::Vec;

/// Longer names are not compared, because the comparison is quadratic in the length.
const MAX_LENGTH: usize = 40;

/// The maximum number of candidates compared. Stops: many misspelt names among a million elements.
const MAX_CANDIDATES: usize = 5_000;

/// The candidate nearest to a misspelt `name`, if it is close enough; case is ignored.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    if name.is_empty() || name.len() > MAX_LENGTH {
        return None;
    }
    let allowed = (name.len() / 3).clamp(1, 3);
    let lower = name.to_ascii_lowercase();
    candidates
        .take(MAX_CANDIDATES)
        .filter(|candidate| candidate.len() <= MAX_LENGTH && candidate.len().abs_diff(name.len()) <= allowed)
        .filter(|candidate| *candidate != name)
        .map(|candidate| (distance(&lower, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The edit distance: bytes inserted, removed, changed or swapped with their neighbour to turn `right` into `left`.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = alloc::vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let changed = last[j] + usize::from(a != b);
            let mut best = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = core::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["Discard", "Idle", "Queue", "Counter", "ToDevice", "a"];
        let check = |name: &str, expected| assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        check("Disard", Some("Discard"));
        check("Quene", Some("Queue"));
        check("conuter", Some("Counter"));
        check("toDevice", Some("ToDevice"));
        check("IPFilter", None);
        check("", None);
        check("b", Some("a"));
    }
}
