//! A configuration as a tree: elements, and compounds with their contents.

use std::collections::BTreeMap;

use click_lang::{Graph, Port};

use super::ports::{self, ElementPorts, Processing};
use crate::configuration::registry;

/// A configuration to draw.
pub(crate) struct Model {
    pub(super) elements: Vec<Element>,
    pub(super) edges: Vec<(Port, Port)>,
    pub(super) root: Scope,
}

/// An element.
pub(super) struct Element {
    /// Its name in its compound; `None` if it is anonymous.
    pub(super) name: Option<String>,
    pub(super) class: String,
    pub(super) config: String,
    pub(super) group: &'static str,
    pub(super) ports: ElementPorts,
    /// The names of the enclosing compounds, outermost first.
    pub(super) path: Vec<String>,
}

/// A compound, or the whole configuration.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) elements: Vec<usize>,
    pub(super) scopes: BTreeMap<String, Scope>,
}

impl Model {
    /// From a flat graph.
    pub(crate) fn new(graph: &Graph) -> Model {
        let mut root = Scope::default();
        let mut elements = Vec::new();
        for (index, (element, ports)) in graph.elements.iter().zip(ports::resolve(graph)).enumerate() {
            let mut path: Vec<String> = element.name.split('/').map(String::from).collect();
            let name = path.pop().unwrap_or_default();
            let mut scope = &mut root;
            for part in &path {
                scope = scope.scopes.entry(part.clone()).or_default();
            }
            scope.elements.push(index);
            elements.push(Element {
                name: (!name.contains('@')).then_some(name),
                class: element.class.clone(),
                config: element.config.split_whitespace().collect::<Vec<_>>().join(" "),
                group: registry().find(&element.class).map_or("", |class| class.info.group),
                ports,
                path,
            });
        }
        let edges = graph.connections.iter().map(|edge| (edge.from, edge.to)).collect();
        Model { elements, edges, root }
    }

    /// The flow of a connection, which its output port determines.
    pub(super) fn processing(&self, from: Port) -> Processing {
        let ports = self.elements.get(from.element).map(|element| &element.ports);
        ports.and_then(|ports| ports.outputs.get(from.port)).copied().unwrap_or(Processing::Agnostic)
    }
}
