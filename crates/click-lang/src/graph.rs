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
