//! The flat graph: a configuration after expansion of compounds, groups and variables.

use crate::Location;
use alloc::string::String;
use alloc::vec::Vec;

/// A flat configuration: elements, connections and requirements.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The elements in the order in which a router creates and configures them.
    pub elements: Vec<Element>,
    /// The connections, each once, ordered by target element, target port, source element, source port.
    pub connections: Vec<Connection>,
    /// The requirements in the order of the text, except libraries, which are already read.
    pub requirements: Vec<Requirement>,
    /// The texts of the `provide` statements' arguments, in order.
    pub provisions: Vec<String>,
}

/// One element of a flat graph.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its full name, e.g. `nat/queue` or `Discard@3`; unique in the graph.
    pub name: String,
    /// Its class, as the registry knows it (aliases are resolved).
    pub class: String,
    /// Its configuration text between the parentheses, variables expanded, comments still in it.
    pub config: String,
    /// Its declaration; inside a compound, the location in the compound's text.
    pub location: Location,
    /// Where `config` is written; `None` if it is empty or written nowhere.
    pub config_location: Option<Location>,
    /// Whether `config` is exactly what is written there: without variables and line directives.
    pub is_verbatim: bool,
}

impl Element {
    /// The location of the first argument, or part of one, that is written as `text`. `None` if it is not found, for
    /// example because it is the value of a variable.
    pub fn find_argument(&self, text: &str) -> Option<Location> {
        let place = self.config_location.as_ref()?;
        if text.is_empty() || !self.is_verbatim {
            return None;
        }
        let is_part = |letter: char| letter.is_alphanumeric() || "_-./:".contains(letter);
        let (start, _) = self.config.match_indices(text).find(|(start, _)| {
            let (left, right) = (self.config.get(..*start), self.config.get(start + text.len()..));
            let (begins, ends) = (text.starts_with(is_part), text.ends_with(is_part));
            let goes_on = (begins && left.is_some_and(|left| left.ends_with(is_part)))
                || (ends && right.is_some_and(|right| right.starts_with(is_part)));
            !goes_on
        })?;
        let before = self.config.get(..start)?;
        let lines = u32::try_from(before.matches('\n').count()).ok()?;
        let characters = u32::try_from(before.rsplit('\n').next()?.chars().count()).ok()?;
        let span = place.span.start + start..place.span.start + start + text.len();
        Some(Location {
            file: place.file.clone(),
            line: place.line + lines,
            column: if lines == 0 { place.column + characters } else { 1 + characters },
            span,
        })
    }
}

/// A connection from an output port to an input port.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The output port.
    pub from: Port,
    /// The input port.
    pub to: Port,
    /// The location of the connection: the arrow nearest to the source element.
    pub location: Location,
}

/// A port of an element; the context determines whether it is an input or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Index in [`Graph::elements`].
    pub element: usize,
    /// Port number, from 0.
    pub port: usize,
}

/// An argument of `require(...)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// `package` or `compact_config`.
    pub kind: String,
    /// The package's name; empty for `compact_config`.
    pub value: String,
    /// Its location.
    pub location: Location,
}

impl Graph {
    /// The index of the element called `name`. Linear in the number of elements.
    pub fn element(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|element| element.name == name)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, compile};

    #[test]
    fn arguments_are_found_where_they_are_written() {
        let check = |text: &str, argument: &str, expected: Option<(u32, u32, usize)>| {
            let compiled = compile(text, &Options::new("f", &|name| name == "A"));
            let last = compiled.graph.elements.last();
            let found = last.and_then(|element| element.find_argument(argument));
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
        check("A", "", None);
    }
}
