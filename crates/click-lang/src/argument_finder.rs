//! Finds the arguments of an element in its configuration, to locate messages about them.

use crate::lines::Lines;
use crate::steps::complete;
use crate::{Element, Location};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// Maximum number of comparisons for each byte of the configuration, on average. Beyond, arguments are not found. Stops: ten
/// thousand wrong rules that consist of the same few words.
const MAX_TRIES: usize = 32;

/// Finds arguments of one element. The time for all arguments is linear in the length of the configuration.
pub struct ArgumentFinder<'a> {
    element: &'a Element,
    /// Built at the first search: most elements have no messages.
    index: Option<ConfigIndex<'a>>,
}

impl<'a> ArgumentFinder<'a> {
    /// A finder for the arguments of `element`.
    #[must_use]
    pub fn new(element: &'a Element) -> Self {
        Self { element, index: None }
    }

    /// The location of the first argument, or part of one, that is written as `text`. `None` if it is not found, for
    /// example because it is the value of a variable.
    pub fn find(&mut self, text: &str) -> Option<Location> {
        let place = self.element.config_location.as_ref()?;
        if text.is_empty() || !self.element.is_verbatim {
            return None;
        }
        let config = self.element.config.as_str();
        let index = self.index.get_or_insert_with(|| ConfigIndex::new(config));
        let start = index.find(config, text)?;
        let position = index.lines.position(config, start);
        let first = if position.line == 0 { place.column } else { 1 };
        Some(Location {
            file: place.file.clone(),
            line: place.line + position.line,
            column: first + position.column,
            span: place.span.start + start..place.span.start + start + text.len(),
        })
    }
}

/// The words of a configuration.
struct ConfigIndex<'a> {
    /// The places of each word.
    words: BTreeMap<&'a str, Vec<usize>>,
    lines: Lines,
    /// The texts that were looked for, and their places.
    known: BTreeMap<String, Option<usize>>,
    /// The number of comparisons that are left.
    tries: usize,
}

impl<'a> ConfigIndex<'a> {
    fn new(config: &'a str) -> Self {
        let mut index = Self {
            words: BTreeMap::new(),
            lines: complete(Lines::new(config)),
            known: BTreeMap::new(),
            tries: MAX_TRIES * config.len(),
        };
        for (start, word) in words(config) {
            index.words.entry(word).or_default().push(start);
        }
        index
    }

    /// The first place of `text`.
    fn find(&mut self, config: &str, text: &str) -> Option<usize> {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let found = self.search(config, text);
        self.known.insert(text.into(), found);
        found
    }

    fn search(&mut self, config: &str, text: &str) -> Option<usize> {
        // A word of the text is a whole word of the configuration as well. The rarest one has the fewest places.
        let mut rarest: Option<(usize, &[usize])> = None;
        for (offset, word) in words(text) {
            let places = self.words.get(word)?.as_slice();
            if rarest.is_none_or(|(_, fewest)| places.len() < fewest.len()) {
                rarest = Some((offset, places));
            }
        }
        let Some((offset, places)) = rarest else {
            self.tries = self.tries.checked_sub(config.len())?;
            return config.find(text);
        };
        for place in places {
            self.tries = self.tries.checked_sub(1 + text.len() / 64)?;
            if let Some(start) = place.checked_sub(offset)
                && config.get(start..).is_some_and(|rest| rest.starts_with(text))
                && is_whole(config, start, text)
            {
                return Some(start);
            }
        }
        None
    }
}

/// Whether a letter is part of a word.
fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || "_-./:".contains(letter)
}

/// The words of a text, with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split(|letter| !is_part(letter)).filter_map(move |word| {
        let start = at;
        at += word.len();
        at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

/// Whether the text at `start` does not begin or end inside a word.
fn is_whole(config: &str, start: usize, text: &str) -> bool {
    let (left, right) = (config.get(..start), config.get(start + text.len()..));
    let goes_on_before = text.starts_with(is_part) && left.is_some_and(|left| left.ends_with(is_part));
    let goes_on_after = text.ends_with(is_part) && right.is_some_and(|right| right.starts_with(is_part));
    !goes_on_before && !goes_on_after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, compile};
    use alloc::format;
    use alloc::string::String;

    #[test]
    fn arguments_are_found_where_they_are_written() {
        let check = |text: &str, argument: &str, expected: Option<(u32, u32, usize)>| {
            let compiled = compile(text, &Options::new("f", &|name| name == "A"));
            let last = compiled.graph.elements.last();
            let found = last.and_then(|element| ArgumentFinder::new(element).find(argument));
            let found = found.map(|found| (found.line, found.column, found.span.start));
            assert_eq!(found, expected, "{text}: {argument}");
        };
        check("A(x.pcap)", "x.pcap", Some((1, 3, 2)));
        check("A(x.pcap)", "x", None);
        check("a, b :: A(\n  N 1,\n  F \"x)y\", G z)", "z", Some((3, 14, 31)));
        check("A(xx, x)", "x", Some((1, 7, 6)));
        check("define($F x); A($F)", "x", None);
        check("A(allow 10.0.0.0/33, deny)", "10.0.0.0/33", Some((1, 9, 8)));
        check("elementclass C { A(\n# 7 \"g\"\nx) } C", "x", None);
        check("elementclass C { A(x) } C", "x", Some((1, 20, 19)));
        check("A(a, \"\", b, a b)", "a b", Some((1, 13, 12)));
        check("A(a, \"\", b, a b)", "\"\"", Some((1, 6, 5)));
        check("A", "", None);
    }

    /// The first place where an argument is written, by a search that is not linear.
    fn first_place(config: &str, text: &str) -> Option<usize> {
        let mut places = config.match_indices(text).map(|(start, _)| start);
        places.find(|start| is_whole(config, *start, text))
    }

    #[test]
    fn each_argument_is_found_at_its_first_place() {
        let words = ["a", "ab", "b", " ", " ", ",", "é", "."];
        let mut state = 1_u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize
        };
        for _ in 0..2000 {
            let config: String = (0..random() % 20).map(|_| words[random() % words.len()]).collect();
            let compiled = compile(&format!("A({config})"), &Options::new("f", &|name| name == "A"));
            let Some(element) = compiled.graph.elements.last() else { continue };
            let mut finder = ArgumentFinder::new(element);
            for _ in 0..10 {
                let text: String = (0..1 + random() % 4).map(|_| words[random() % words.len()]).collect();
                let found = finder.find(&text).map(|location| location.span.start);
                let start = element.config_location.as_ref().map_or(0, |place| place.span.start);
                let expected = first_place(&element.config, &text).map(|place| start + place);
                assert_eq!(found, expected, "{text:?} in {config:?}");
            }
        }
    }
}
