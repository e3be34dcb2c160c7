//! Numbers in place of names.

use crate::error::{OperationError, PortError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

/// Numbers of names. A name keeps its number also when nothing has the name any more, until all numbers were given and its
/// own is the next one: controllers know ports by their numbers.
#[derive(Debug)]
pub(super) struct Numbers<Name> {
    numbers: BTreeMap<Name, u16>,
    /// The names, each with the change that gave it its number; 0 if the number was set.
    names: BTreeMap<u16, (Name, u64)>,
    /// The number that was given last.
    last: Option<u16>,
    /// The numbers by the change that gave them.
    changes: BTreeMap<u64, u16>,
}

impl<Name> Default for Numbers<Name> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), names: BTreeMap::new(), last: None, changes: BTreeMap::new() }
    }
}

impl<Name: Ord + Clone> Numbers<Name> {
    /// The number of a name.
    pub(super) fn get(&self, name: &Name) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    /// The number of a name. A name without one gets the next after the number that was given last, unless a name that is used
    /// has it. `None` if all are used. `change`: the number of this change, above those of all before.
    pub(super) fn give(
        &mut self,
        name: &Name,
        range: Range<u16>,
        change: u64,
        is_used: impl Fn(&Name) -> bool,
    ) -> Option<u16> {
        if let Some(number) = self.get(name) {
            return Some(number);
        }
        let next = self.last.map_or(range.start, |last| last.saturating_add(1)).min(range.end);
        let mut numbers = (next..range.end).chain(range.start..next);
        let number =
            numbers.find(|number| self.names.get(number).is_none_or(|(there, _)| !is_used(there)))?;
        self.insert(name.clone(), number, change);
        self.changes.insert(change, number);
        Some(number)
    }

    /// The names that got their numbers after a change, each with the change that gave it.
    pub(super) fn since(&self, change: u64) -> impl Iterator<Item = (u64, &Name, u16)> {
        let changes = self.changes.range((Bound::Excluded(change), Bound::Unbounded));
        changes.filter_map(|(change, number)| Some((*change, &self.names.get(number)?.0, *number)))
    }

    /// Gives a name this number. Refused if the name has another one, or another name has it.
    pub(super) fn set(&mut self, name: Name, number: u16) -> Result<(), OperationError> {
        match (self.get(&name), self.names.contains_key(&number)) {
            (None, false) => {
                self.insert(name, number, 0);
                Ok(())
            }
            (Some(there), _) if there == number => Ok(()),
            _ => Err(PortError::Malformed("a name or a number is there twice").into()),
        }
    }

    fn insert(&mut self, name: Name, number: u16, change: u64) {
        if let Some((forgotten, before)) = self.names.insert(number, (name.clone(), change)) {
            self.numbers.remove(&forgotten);
            self.changes.remove(&before);
        }
        self.numbers.insert(name, number);
        self.last = Some(number);
    }
}

/// Gives each name the lowest number that is free: names that are known keep theirs, and those that are not wanted lose them.
pub(super) fn number<Name: Ord + Clone>(
    numbers: &mut BTreeMap<Name, u16>,
    wanted: &BTreeSet<Name>,
    count: u16,
) -> Result<(), OperationError> {
    numbers.retain(|name, _| wanted.contains(name));
    let mut taken: BTreeSet<u16> = sorting::collect(numbers.values().copied());
    for name in wanted {
        if !numbers.contains_key(name) {
            let lowest = (0..count).find(|number| !taken.contains(number));
            let number = lowest.ok_or(PortError::Malformed("there are too many names"))?;
            taken.insert(number);
            numbers.insert(name.clone(), number);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers_until_all_were_given() {
        let mut numbers = Numbers::default();
        let used = |names: &'static [&'static str]| move |name: &&str| names.contains(name);
        for (change, (name, in_use, number)) in (1..).zip([
            ("a", &["a"][..], Some(1)),
            ("b", &["a", "b"], Some(2)),
            ("b", &["b"], Some(2)),
            // The number of a removed port is given to no other one before its turn comes.
            ("c", &["b", "c"], Some(3)),
            ("a", &["a", "b", "c"], Some(1)),
            ("d", &["b", "c", "d"], Some(1)),
            ("a", &["a", "b", "d"], Some(3)),
            ("e", &["a", "b", "d", "e"], None),
            ("e", &["a", "b", "e"], Some(1)),
        ]) {
            assert_eq!(numbers.give(&name, 1..4, change, used(in_use)), number, "{name} {in_use:?}");
        }
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|name| numbers.get(&name)),
            [Some(3), Some(2), None, None, Some(1)]
        );
        assert_eq!(numbers.names.len(), numbers.numbers.len());
        let since =
            |change| numbers.since(change).map(|(_, name, number)| (*name, number)).collect::<Vec<_>>();
        assert_eq!(since(0), [("b", 2), ("a", 3), ("e", 1)], "only those that names still have");
        assert_eq!(since(7), [("e", 1)]);
        assert_eq!(since(9), []);
    }

    #[test]
    fn numbers_that_are_given_again_are_the_same() {
        let mut numbers = Numbers::default();
        for (name, number, is_accepted) in
            [("a", 2, true), ("b", 1, true), ("a", 2, true), ("a", 3, false), ("c", 1, false)]
        {
            assert_eq!(numbers.set(name, number).is_ok(), is_accepted, "{name} {number}");
        }
        // The last one was the first: the next one follows it.
        assert_eq!(numbers.give(&"c", 1..9, 1, |_| true), Some(3));
        assert_eq!(numbers.since(0).collect::<Vec<_>>(), [(1, &"c", 3)], "who set the others knows them");
        assert_eq!(["a", "b", "c"].map(|name| numbers.get(&name)), [Some(2), Some(1), Some(3)]);
    }
}
