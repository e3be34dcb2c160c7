//! Names for anonymous elements.

use super::level::Level;
use crate::steps::pause;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::ops::Range;

/// Names the anonymous elements of a compound, in steps.
pub(super) async fn settle_names(level: &mut Level) {
    let mut naming = Naming::default();
    for (index, part) in level.compound.parts.iter_mut().enumerate() {
        pause().await;
        if let Some(name) = part.name.strip_prefix(';') {
            part.name = naming.free_name(name, |name| level.names.contains_key(name));
            level.names.insert(part.name.as_str().into(), index);
        }
    }
}

/// Generates names for anonymous elements.
///
/// Keeps for each class a range of numbers that are taken. Without it, thousands of anonymous elements would each try
/// thousands of used numbers.
#[derive(Default)]
pub(crate) struct Naming {
    taken: BTreeMap<String, Range<u64>>,
}

impl Naming {
    /// Returns `name`, with the number after its last `@` increased until the name is free.
    pub(crate) fn free_name(&mut self, name: &str, is_taken: impl Fn(&str) -> bool) -> String {
        if !is_taken(name) {
            return name.into();
        }
        let (prefix, number) = name.rsplit_once('@').unwrap_or((name, ""));
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let first: u64 = number[..digits].parse().unwrap_or(0);
        let taken = self.taken.entry(prefix.into()).or_insert(0..0);
        let mut number = first;
        let free = loop {
            number = if taken.contains(&number) { taken.end } else { number + 1 };
            let name = format!("{prefix}@{number}");
            if !is_taken(&name) {
                break name;
            }
        };
        let start = if taken.contains(&first) { taken.start } else { first };
        *taken = start..number + 1;
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn free_names_are_found_quickly() {
        let mut names: BTreeSet<String> = (1..100_000).map(|number| format!("X@{number}")).collect();
        let mut naming = Naming::default();
        for number in 1..100_000 {
            let name = naming.free_name(&format!("X@{number}"), |name| names.contains(name));
            assert_eq!(name, format!("X@{}", 99_999 + number));
            names.insert(name);
        }
        assert_eq!(naming.free_name("Y@7", |name| names.contains(name)), "Y@7");
    }
}
