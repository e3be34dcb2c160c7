//! A configuration as lists of elements and connections, for programs.

use click_lang::{Graph, Port};
use serde::Serialize;

/// A configuration without compound elements.
#[derive(Serialize)]
pub(crate) struct Listing<'a> {
    elements: Vec<Element<'a>>,
    connections: Vec<Connection<'a>>,
}

#[derive(Serialize)]
struct Element<'a> {
    name: &'a str,
    class: &'a str,
    config: &'a str,
    file: &'a str,
    line: u32,
}

#[derive(Serialize)]
struct Connection<'a> {
    from: PortRef<'a>,
    to: PortRef<'a>,
}

#[derive(Serialize)]
struct PortRef<'a> {
    element: &'a str,
    port: usize,
}

impl<'a> Listing<'a> {
    /// From a flat graph.
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let port_ref = |port: Port| PortRef {
            element: graph.elements.get(port.element).map_or("", |element| &element.name),
            port: port.port,
        };
        let elements = graph.elements.iter().map(|element| Element {
            name: &element.name,
            class: &element.class,
            config: &element.config,
            file: &element.location.file,
            line: element.location.line,
        });
        let connections = graph
            .connections
            .iter()
            .map(|edge| Connection { from: port_ref(edge.from), to: port_ref(edge.to) });
        Self { elements: elements.collect(), connections: connections.collect() }
    }
}
