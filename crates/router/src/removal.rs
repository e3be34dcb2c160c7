//! The end of a configuration, which may have so much memory that packets should not wait until it is free: it is freed in
//! steps.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;

use click_lang::Graph;
use click_lang::steps::{Steps, free_many, free_map, pause, pause_every};
use element::{DynElement, Waiting};

use crate::hooks::Hook;
use crate::state::RouterState;
use crate::step_sizes::{CONNECTIONS_A_STEP, ELEMENTS_A_STEP};

impl RouterState {
    /// Ends a configuration that no packet reaches any more. Frees at once the elements that hold packets, for which there is
    /// room then, and closes what a configuration that was to replace it has opened. Returns the steps in which the rest is
    /// freed, if it is not small.
    pub(crate) fn end(mut self: Box<Self>) -> Option<Steps<()>> {
        for node in self.hooks.holders.iter().filter_map(|holder| self.nodes.get(*holder)) {
            drop(node.object.borrow_mut().take_if(|object| holds_packets(object.as_ref())));
        }
        if let Some(successor) = self.successor.get_mut() {
            successor.close(&successor.to_initialize);
        }
        let mut removal = Steps::new(self.free_the_rest());
        removal.step().is_none().then_some(removal)
    }

    /// Closes the sockets and files of elements that were initialised and will not run: frees these elements, but for those whose
    /// class is known to do nothing when it is initialised, and those that are freed in steps.
    pub(crate) fn close(&self, elements: &[usize]) {
        for &index in elements {
            if self.hooks.needs(index, Hook::Initialize)
                && let Some(node) = self.nodes.get(index)
            {
                drop(node.object.borrow_mut().take_if(|object| object.long_work().is_none()));
            }
        }
    }

    /// Ends a configuration that was refused, and frees it in steps.
    pub(crate) async fn free(self: Box<Self>) {
        let mut removal = self.end();
        while !continue_removal(&mut removal) {
            pause().await;
        }
    }

    async fn free_the_rest(self: Box<Self>) {
        let RouterState { nodes, graph, by_name, predecessors, successor, preparation, .. } = *self;
        for (done, node) in nodes.into_iter().enumerate() {
            pause_every(ELEMENTS_A_STEP, done).await;
            if let Some(element) = node.object.into_inner() {
                free_element(element).await;
            }
            free_many(node.details.inputs, CONNECTIONS_A_STEP).await;
            free_many(node.details.outputs, CONNECTIONS_A_STEP).await;
        }
        free_graph(graph).await;
        free_names(by_name).await;
        if let Some(predecessors) = predecessors.into_inner() {
            free_names(predecessors.before.names).await;
        }
        // Configurations that were to replace this one, when another did.
        if let Some(successor) = successor.into_inner() {
            successor.free().await;
        }
        if let Some(preparation) = preparation.into_inner()
            && let Ok(created) = preparation.end().await
        {
            created.state.free().await;
        }
    }
}

/// Frees the names of a configuration, unless one that is being prepared still needs them.
pub(crate) async fn free_names(names: Rc<BTreeMap<String, usize>>) {
    if let Some(names) = Rc::into_inner(names) {
        free_map(names, ELEMENTS_A_STEP).await;
    }
}

fn holds_packets(element: &dyn DynElement) -> bool {
    let mut waiting = Waiting::default();
    element.waiting(&mut waiting);
    waiting.packets > 0 || waiting.templates > 0
}

/// Frees an element, in steps if it has much memory.
pub(crate) async fn free_element(mut element: Box<dyn DynElement>) {
    let Some(work) = element.long_work() else { return };
    if work.begin_removal() {
        while !work.continue_removal() {
            pause().await;
        }
    }
}

/// Frees a graph in steps.
pub(crate) async fn free_graph(graph: Graph) {
    free_many(graph.elements, ELEMENTS_A_STEP).await;
    free_many(graph.connections, ELEMENTS_A_STEP).await;
}

/// Performs a step of the removal of a configuration. Returns whether it is gone.
pub(crate) fn continue_removal(removed: &mut Option<Steps<()>>) -> bool {
    if removed.as_mut().is_some_and(|removed| removed.step().is_some()) {
        *removed = None;
    }
    removed.is_none()
}
