//! Hot swap: atomic replacement of the running configuration.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use click_lang::{Diagnostic, Graph};
use element::HandlerError;

use crate::options::Options;
use crate::router::{Router, clean_up};
use crate::state::RouterState;

impl RouterState {
    /// Builds a second router that is ready to take over: initialised, with the same packet pool. `source` is its
    /// configuration text. Returns it with its warnings, or all diagnostics if there are errors.
    fn successor(
        &self,
        graph: Graph,
        source: String,
    ) -> Result<(Box<RouterState>, Vec<Diagnostic>), Vec<Diagnostic>> {
        let options = Options { source, simulated: self.resources.clock.simulated(), ..self.options.clone() };
        RouterState::build(
            graph,
            self.registry,
            self.resources.environment.clone(),
            options,
            Some(self.resources.pool.clone()),
        )
    }

    /// Compiles, builds and initialises a successor, which takes over between two turns.
    pub(crate) fn prepare(&self, text: &str) -> Result<(), HandlerError> {
        let (successor, warnings) = self.compile_successor(text)?;
        *self.successor.borrow_mut() = Some(successor);
        if warnings.is_empty() { Ok(()) } else { Err(HandlerError::WrittenWithWarnings(warnings)) }
    }

    /// Compiles, builds and initialises a successor. Returns it with its warnings, one a line.
    fn compile_successor(&self, text: &str) -> Result<(Box<RouterState>, String), HandlerError> {
        let is_class = |name: &str| self.registry.contains(name);
        let compiled = click_lang::compile(text, &click_lang::Options::new("config", &is_class));
        let lines = |problems: &[Diagnostic]| {
            problems.iter().map(ToString::to_string).collect::<Vec<String>>().join("\n")
        };
        if compiled.has_errors() {
            return Err(HandlerError::Rejected(lines(&compiled.diagnostics)));
        }
        let mut warnings = compiled.diagnostics;
        let mut graph = compiled.graph;
        graph.elements.extend(self.options.added.iter().cloned());
        let (successor, more) = self.successor(graph, text.to_string()).map_err(|problems| {
            HandlerError::new(format_args!("{}\nRouter could not be initialized!", lines(&problems)))
        })?;
        warnings.extend(more);
        Ok((successor, lines(&warnings)))
    }

    /// Takes over the state of the elements of `old`.
    fn inherit(&self, old: &RouterState) {
        self.resources.driver.set_count(old.resources.driver.count().max(1));
        for index in self.configure_order() {
            let Some(node) = self.nodes.get(index) else { continue };
            let Some(before) = old.by_name.get(&node.element.name).and_then(|index| old.nodes.get(*index))
            else {
                continue;
            };
            let held = old.packets_waiting_at(before);
            if let Some(object_before) = before.object.borrow_mut().as_mut() {
                self.call(index, |object, cx| object.inherit(object_before.as_mut(), cx));
            }
            node.element.taken_over.set(held.saturating_sub(old.packets_waiting_at(before)));
        }
        self.run_deferred();
    }
}

/// A checked and initialised configuration that can replace that of a router.
pub struct Successor(Box<RouterState>);

impl Router {
    /// Replaces the configuration by `graph`, whose text is `source`, and carries state over; on failure the old one
    /// continues.
    pub fn swap(&mut self, graph: Graph, source: String) -> Result<(), Vec<Diagnostic>> {
        let (successor, warnings) = self.state.successor(graph, source)?;
        self.warnings = warnings;
        self.switch_to(successor);
        Ok(())
    }

    /// Switches to the prepared successor, if there is one.
    pub(crate) fn switch_if_prepared(&mut self) {
        if let Some(successor) = self.state.successor.take() {
            if let Some(others) = self.state.resources.environment.others() {
                others.commit();
            }
            self.switch_to(successor);
        }
    }

    /// Prepares a successor that takes over when its owner says so.
    pub fn prepare(&self, text: &str) -> Result<Successor, HandlerError> {
        Ok(Successor(self.state.compile_successor(text)?.0))
    }

    /// Switches to a successor of this router.
    pub fn switch(&mut self, successor: Successor) {
        self.switch_to(successor.0);
    }

    fn switch_to(&mut self, mut successor: Box<RouterState>) {
        successor.resources.clock.continue_from(&self.state.resources.clock);
        successor.inherit(&self.state);
        successor.continue_account(self.state.account());
        successor.own_writes.continue_from(&self.state.own_writes);
        successor.watch.set(successor.watch_between_calls());
        let old = core::mem::replace(&mut self.state, successor);
        clean_up(&old);
        self.swaps += 1;
    }

    /// The number of times the configuration was replaced.
    pub fn swaps(&self) -> u64 {
        self.swaps
    }
}
