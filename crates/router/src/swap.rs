//! Hot swap: atomic replacement of the running configuration.
//!
//! The new configuration is compiled and its elements are created while the old one runs, at once or in steps between
//! batches. Creating them has no effect outside: devices are opened when they are initialised. That, the hand-over of state
//! and the replacement itself follow at once, between two batches.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use click_lang::{Compiled, Diagnostic};
use element::HandlerError;

use crate::build::Built;
use crate::diagnostics::error;
use crate::hooks::Hook;
use crate::options::Options;
use crate::parts::Parts;
use crate::predecessors::{ElementsBefore, Predecessor, Predecessors};
use crate::preparation::{GivenUp, Preparation};
use crate::removal::{continue_removal, free_graph};
use crate::router::{Router, clean_up};
use crate::state::{Created, RouterState};
use click_lang::steps::{Computation, complete};

impl RouterState {
    /// What a second router is made with, so that it can take over: the same packet pool. `source` is its configuration text.
    fn successor_parts(&self, source: String) -> Parts {
        let Options { batch, packets, seed, threads, shard, .. } = self.options;
        let Options { allow_reconfigure, stop_when_idle, report_writes, .. } = self.options;
        let (added, simulated) = (self.options.added.clone(), self.resources.clock.simulated());
        let options = Options {
            batch,
            packets,
            simulated,
            seed,
            threads,
            shard,
            allow_reconfigure,
            source,
            added,
            stop_when_idle,
            report_writes,
        };
        Parts {
            registry: self.registry,
            environment: self.resources.environment.clone(),
            options,
            pool: Some(self.resources.pool.clone()),
            before: Some(self.elements_before()),
        }
    }

    /// What a successor needs to know of the elements.
    fn elements_before(&self) -> ElementsBefore {
        ElementsBefore { names: self.by_name.clone(), hooks: self.hooks.clone() }
    }

    /// Compiles, builds and initialises a successor, which takes over between two turns.
    pub(crate) fn prepare(&self, text: &str) -> Result<(), HandlerError> {
        let created = complete(compile_and_create(self.successor_parts(text.to_string()), None))?;
        let (successor, warnings) = created.initialize().map_err(|(_, error)| error)?;
        self.let_take_over(successor, warnings)
    }

    /// Begins to prepare a successor in steps.
    pub(crate) fn begin_to_prepare(&self, text: String) {
        let parts = self.successor_parts(text);
        *self.preparation.borrow_mut() =
            Some(Preparation::new(|given_up| compile_and_create(parts, Some(given_up))));
    }

    /// Continues the preparation for at most [`WRITE_STEP`](element::WRITE_STEP) until the new elements are created. After the
    /// last step, the successor takes over between two turns.
    pub(crate) fn continue_to_prepare(&self) -> Option<Result<(), HandlerError>> {
        // It is taken out meanwhile, because the last step calls elements.
        let mut preparation = self.preparation.take()?;
        let rest = match preparation.go_on(|steps| self.for_a_step(|| steps.step())) {
            None => preparation,
            Some(Err(error)) => return Some(Err(error)),
            Some(Ok(created)) => match created.initialize() {
                Ok((successor, warnings)) => return Some(self.let_take_over(successor, warnings)),
                Err((refused, error)) => Preparation::new(|_| async {
                    refused.free().await;
                    Err(error)
                }),
            },
        };
        *self.preparation.borrow_mut() = Some(rest);
        None
    }

    /// Lets an initialised successor take over between two turns.
    fn let_take_over(&self, successor: Box<RouterState>, warnings: String) -> Result<(), HandlerError> {
        *self.successor.borrow_mut() = Some(successor);
        if warnings.is_empty() { Ok(()) } else { Err(HandlerError::WrittenWithWarnings(warnings)) }
    }

    /// Takes over the state of the elements of `old`.
    fn inherit(&self, old: &RouterState) {
        self.resources.driver.set_count(old.resources.driver.count().max(1));
        // Others, among the elements of a configuration that is gone, are freed with this one.
        let found = self.predecessors.borrow_mut().take_if(|found| found.are_in(&old.by_name));
        let found = found.unwrap_or_else(|| {
            let before = old.elements_before();
            complete(Predecessors::find(&self.nodes, &self.hooks, &self.order, before))
        });
        let mut outputs = self.take_outputs();
        for Predecessor { element: index, before, is_same_class, has_packets } in found.pairs {
            if is_same_class && !self.hooks.needs(index, Hook::Inherit) {
                continue;
            }
            let (Some(node), Some(before)) = (self.nodes.get(index), old.nodes.get(before)) else { continue };
            let held = if has_packets { old.packets_waiting_at(before) } else { 0 };
            if let Some(object_before) = before.object.borrow_mut().as_mut() {
                self.call_hook(Hook::Inherit, &mut outputs, index, |object, cx| {
                    object.inherit(object_before.as_mut(), cx);
                });
            }
            if held > 0 {
                node.element.taken_over.set(held.saturating_sub(old.packets_waiting_at(before)));
            }
        }
        self.outputs.borrow_mut().push(outputs);
        self.run_deferred();
    }
}

/// Compiles the text in the options, checks it and creates the elements: in steps until that is given up, or at once.
async fn compile_and_create(parts: Parts, in_steps: Option<GivenUp>) -> Result<Created, HandlerError> {
    let is_class = |name: &str| parts.registry.contains(name);
    let options = click_lang::Options::new("config", &is_class);
    let compiled = click_lang::compile_in_steps(&parts.options.source, &options).await;
    if compiled.has_errors() {
        free_graph(compiled.graph).await;
        return Err(HandlerError::Rejected(lines(&compiled.diagnostics)));
    }
    let (warnings, mut graph) = (compiled.diagnostics, compiled.graph);
    graph.elements.extend(parts.options.added.iter().cloned());
    let created = RouterState::create_all(graph, parts, in_steps).await;
    let (state, problems) = created.map_err(|problems| not_initialized(&problems))?;
    Ok(Created { state, warnings, problems })
}

impl Created {
    /// Initialises the elements. Returns them with all warnings, one a line, or with the errors.
    fn initialize(self) -> Result<(Box<RouterState>, String), (Box<RouterState>, HandlerError)> {
        let Created { state, mut warnings, problems } = self;
        let started = state.start(problems);
        let (state, problems) = started.map_err(|(state, problems)| (state, not_initialized(&problems)))?;
        warnings.extend(problems);
        Ok((state, lines(&warnings)))
    }
}

fn not_initialized(problems: &[Diagnostic]) -> HandlerError {
    HandlerError::new(format_args!("{}\nRouter could not be initialized!", lines(problems)))
}

fn lines(problems: &[Diagnostic]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<String>>().join("\n")
}

/// A checked and initialised configuration that can replace that of a router.
pub struct Successor(Box<RouterState>);

/// A successor that can take over, with the warnings about its configuration, or all diagnostics if it was refused.
pub type PreparedSuccessor = Result<(Successor, Vec<Diagnostic>), Vec<Diagnostic>>;

/// The replacement of a configuration, which has begun and goes on in steps.
pub struct Swap {
    preparation: Preparation<Built>,
    /// How often the configuration was replaced before.
    swaps: u64,
}

impl Swap {
    /// Frees a configuration in further steps, and then reports the problems.
    fn free(&mut self, refused: Box<RouterState>, problems: Vec<Diagnostic>) {
        self.preparation = Preparation::new(|_| async {
            refused.free().await;
            Err(problems)
        });
    }
}

impl Router {
    /// Begins to replace the configuration by the one that `compile` compiles in steps, whose text is `source`, and to carry
    /// state over. [`continue_swap`](Self::continue_swap) must be called between turns until it returns a result; until then
    /// the old configuration runs. On failure it continues.
    pub fn begin_swap(&self, compile: Computation<'static, Compiled>, source: String) -> Swap {
        let parts = self.state.successor_parts(source);
        let preparation = Preparation::new(|given_up| async move {
            let compiled = compile.await;
            if compiled.has_errors() {
                free_graph(compiled.graph).await;
                return Err(compiled.diagnostics);
            }
            let (mut warnings, graph) = (compiled.diagnostics, compiled.graph);
            let (state, found) = RouterState::create_all(graph, parts, Some(given_up)).await?;
            warnings.extend(found);
            Ok((state, warnings))
        });
        Swap { preparation, swaps: self.swaps }
    }

    /// Continues a swap, for at most [`WRITE_STEP`](element::WRITE_STEP) until the new elements are created. Returns the result when the
    /// new configuration has taken over, or was refused.
    pub fn continue_swap(&mut self, swap: &mut Swap) -> Option<Result<(), Vec<Diagnostic>>> {
        Some(self.continue_to_stage(swap)?.map(|(successor, warnings)| {
            self.warnings = warnings;
            self.switch(successor);
        }))
    }

    /// Like [`continue_swap`](Self::continue_swap), but the new configuration takes over only when [`switch`](Self::switch) says
    /// so. It is returned with its warnings.
    pub fn continue_to_stage(&self, swap: &mut Swap) -> Option<PreparedSuccessor> {
        let is_late = swap.swaps != self.swaps;
        let late = || {
            let gone = "another configuration was installed meanwhile: install this one again";
            Vec::from([error(None, gone.to_string())])
        };
        if is_late {
            swap.preparation.give_up();
        }
        let (state, problems) =
            match swap.preparation.go_on(|steps| self.state.for_a_step(|| steps.step()))? {
                Ok((created, _)) if is_late => {
                    swap.free(created, late());
                    return None;
                }
                Ok(created) => created,
                Err(problems) => return Some(Err(if is_late { late() } else { problems })),
            };
        self.state.resources.clock.refresh();
        match state.start(problems) {
            Ok((successor, warnings)) => Some(Ok((Successor(successor), warnings))),
            Err((refused, problems)) => {
                swap.free(refused, problems);
                None
            }
        }
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
        let created = complete(compile_and_create(self.state.successor_parts(text.to_string()), None))?;
        Ok(Successor(created.initialize().map_err(|(_, error)| error)?.0))
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
        // Swaps that follow each other faster than memory is freed would use more and more.
        while !continue_removal(&mut self.removed) {}
        self.removed = old.end();
        self.swaps += 1;
    }

    /// The number of times the configuration was replaced.
    pub fn swaps(&self) -> u64 {
        self.swaps
    }
}
