//! The end of a configuration that has so much memory that packets should not wait until it is free: it is freed in steps.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::Graph;
use click_lang::steps::{Steps, free_many, free_map, pause};
use element::DynElement;

use crate::node::Node;
use crate::state::RouterState;
use crate::step_sizes::ELEMENTS_A_STEP;

/// Elements from which on a graph is freed in steps.
const MIN_LONG_GRAPH: usize = 64;

impl RouterState {
    /// Ends a configuration that no packet reaches any more. Frees at once what elements hold, such as packets and devices,
    /// and what is small. Returns the steps in which the rest is freed.
    pub(crate) fn end(self: Box<Self>) -> Vec<Steps<()>> {
        let RouterState { mut nodes, graph, by_name, .. } = *self;
        let mut removal = Vec::new();
        for node in &mut nodes {
            let mut object = node.object.get_mut().take();
            let work = object.as_mut().and_then(|object| object.long_work());
            if work.is_some_and(|work| work.begin_removal()) {
                removal.extend(object.map(|object| Steps::new(free_element(object))));
            }
        }
        if nodes.len() >= MIN_LONG_GRAPH {
            removal.push(Steps::new(free_nodes(nodes, graph, by_name)));
        }
        removal
    }

    /// Ends a configuration that was refused, and frees it in steps.
    pub(crate) async fn free(self: Box<Self>) {
        let mut removal = self.end();
        while !continue_removal(&mut removal) {
            pause().await;
        }
    }
}

async fn free_element(mut element: Box<dyn DynElement>) {
    while element.long_work().is_some_and(|work| !work.continue_removal()) {
        pause().await;
    }
}

async fn free_nodes(nodes: Vec<Node>, graph: Graph, by_name: Rc<BTreeMap<String, usize>>) {
    free_many(nodes, ELEMENTS_A_STEP).await;
    free_graph(graph).await;
    // A configuration that was being prepared, and is given up, may still have it.
    if let Some(by_name) = Rc::into_inner(by_name) {
        free_map(by_name, ELEMENTS_A_STEP).await;
    }
}

/// Frees a graph in steps.
pub(crate) async fn free_graph(graph: Graph) {
    free_many(graph.elements, ELEMENTS_A_STEP).await;
    free_many(graph.connections, ELEMENTS_A_STEP).await;
}

/// Performs a step of the removal of configurations. Returns whether all are gone.
pub(crate) fn continue_removal(removed: &mut Vec<Steps<()>>) -> bool {
    if removed.last_mut().is_some_and(|last| last.step().is_some()) {
        removed.pop();
    }
    removed.is_empty()
}
