//! The flat graph: what is left of a configuration when compounds, groups and variables are gone.

use crate::Location;
use alloc::string::String;
use alloc::vec::Vec;

/// A flat configuration: elements, connections between them, and what it requires.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The elements in the order in which a router creates and configures them.
    pub elements: Vec<Element>,
    /// The connections, each once, ordered by target element, target port, source element, source port.
    pub connections: Vec<Connection>,
    /// The requirements in the order of the text; libraries are not among them, they were read.
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
    /// Where it was declared; inside a compound, the place in the compound's text.
    pub location: Location,
}

/// A connection from an output port to an input port.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The output port.
    pub from: Port,
    /// The input port.
    pub to: Port,
    /// Where the connection is written: its arrow nearest the source element.
    pub location: Location,
}

/// A port of an element; whether input or output, the use says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Index in [`Graph::elements`].
    pub element: usize,
    /// Port number, from 0.
    pub port: usize,
}

/// What `require(...)` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// `package` or `compact_config`.
    pub kind: String,
    /// The package's name; empty for `compact_config`.
    pub value: String,
    /// Where it is written.
    pub location: Location,
}

impl Graph {
    /// Returns the index of the element called `name`. Takes time in proportion to the number of elements.
    pub fn element(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|element| element.name == name)
    }
}
