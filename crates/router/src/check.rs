//! Checking a configuration without running it.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use click_lang::{Compiled, Diagnostic, Element, Graph, Location, Severity, in_parts, limited};
use element::{Environment, Message, Shard};

use crate::diagnostics::named;
use crate::hookup::{Hookup, hook_up_all};
use crate::options::Options;
use crate::parts::Parts;
use crate::registry::Registry;
use crate::sharding;
use crate::state::RouterState;
use click_lang::steps::complete;

/// Checks a configuration: returns the compiler's diagnostics and all problems of the resulting graph, even if the text
/// has errors: classes, ports, push and pull, arguments, unreachable elements. Compiler errors are not repeated.
/// Elements are created but not initialised, so no file or device is opened. If errors
/// kept parts of the text out of the graph, the problems of its ports and connections are marked as consequences.
pub fn check(compiled: Compiled, registry: Registry, environment: Rc<dyn Environment>) -> Vec<Diagnostic> {
    check_for_shard(compiled, registry, environment, Shard::ONLY)
}

/// Checks a configuration like [`check`], for one of several shards: also finds the elements that can't run in them.
pub fn check_for_shard(
    compiled: Compiled,
    registry: Registry,
    environment: Rc<dyn Environment>,
    shard: Shard,
) -> Vec<Diagnostic> {
    let known = CompilerErrors {
        is_partial: compiled.is_partial,
        probably_meant: sorting::collect(compiled.probably_meant.iter().map(key)),
        misread: compiled.misread,
    };
    let mut found = in_parts(compiled.diagnostics);
    let position = |problem: &Diagnostic| problem.location.as_ref().map(key);
    let errors = found.iter().filter(|known| known.severity == Severity::Error);
    let error_positions: BTreeSet<_> = sorting::collect(errors.filter_map(position));
    let mut messages: BTreeSet<String> = sorting::collect(found.iter().map(|known| known.message.clone()));
    // An undeclared name becomes an element of an unknown class.
    let undeclared = found.iter().filter_map(|known| known.message.strip_prefix("undeclared element "));
    messages.extend(undeclared.map(|name| format!("unknown element class {name}")));
    let mut seen = BTreeSet::new();
    for mut problem in in_parts(check_graph(compiled.graph, &known, registry, (environment, shard))) {
        problem.is_consequence |=
            problem.location.as_ref().is_some_and(|location| known.is_misread(location));
        let is_reported = position(&problem).is_some_and(|position| error_positions.contains(&position));
        let is_repeated = messages.contains(&problem.message)
            || !seen.insert((position(&problem), problem.message.clone()));
        if !is_reported && !is_repeated {
            found.push(problem);
        }
    }
    sorting::sort_by_key(&mut found, |diagnostic| diagnostic.is_consequence);
    limited(found, MAX_DIAGNOSTICS)
}

/// The maximum number of diagnostics of a check. Stops: a hundred thousand elements with the same error.
const MAX_DIAGNOSTICS: usize = 1000;

/// A location that can be compared.
type Key = (Arc<str>, usize, usize);

fn key(location: &Location) -> Key {
    (location.file.clone(), location.span.start, location.span.end)
}

/// What the compiler's errors say about other errors.
pub(crate) struct CompilerErrors {
    /// Whether parts of the text are not in the graph.
    is_partial: bool,
    /// The declarations of elements that an undeclared name probably means.
    probably_meant: BTreeSet<Key>,
    /// The rests of texts in which nothing is read as it was meant.
    misread: Vec<Location>,
}

impl CompilerErrors {
    fn is_misread(&self, location: &Location) -> bool {
        let contains =
            |rest: &Location| rest.file == location.file && rest.span.contains(&location.span.start);
        self.misread.iter().any(contains)
    }

    /// Marks the errors of an element that depend on connections that are missing, or are in a text that is misread.
    pub(crate) fn mark_consequences(
        &self,
        element: &Element,
        messages: &[Message],
        parts: &mut [Diagnostic],
    ) {
        let is_misread = element.config_location.as_ref().is_some_and(|location| self.is_misread(location));
        for (part, message) in parts.iter_mut().zip(messages) {
            part.is_consequence |= is_misread || (self.is_partial && message.may_follow());
        }
    }
}

fn check_graph(
    mut graph: Graph,
    known: &CompilerErrors,
    registry: Registry,
    (environment, shard): (Rc<dyn Environment>, Shard),
) -> Vec<Diagnostic> {
    let options = Options { shard, ..Options::default() };
    let mut problems = complete(registry.name_classes(&mut graph));
    let named = problems.len();
    let hookup = complete(hook_up_all(&graph, &registry, &mut problems));
    unreachable(&graph, &hookup, &mut problems);
    sharding::check(&graph, &hookup, &options, &mut problems);
    for problem in problems.iter_mut().skip(named) {
        let is_meant =
            problem.location.as_ref().is_some_and(|location| known.probably_meant.contains(&key(location)));
        problem.is_consequence |= known.is_partial || is_meant;
    }
    let parts = Parts { registry, environment, options, pool: None, before: None };
    let mut state = complete(RouterState::assemble(graph, parts, hookup));
    problems.extend(complete(state.create(Some(known), None)).into_iter().map(|(_, problem)| problem));
    problems
}

/// Warns about elements with inputs that no source reaches, of each chain of them about the first.
fn unreachable(graph: &Graph, hookup: &Hookup, problems: &mut Vec<Diagnostic>) {
    let ends = hookup.inputs.iter().zip(&hookup.outputs).zip(&hookup.classes).enumerate();
    // Packet sources: a class without inputs, and a class with a task whose outputs don't depend on its inputs.
    // An unconnected input is an error already: what is behind it may be reachable once that is mended.
    let is_open = |element: usize| {
        let inputs = hookup.inputs.get(element).into_iter().flatten();
        inputs.into_iter().any(|end| end.peers.is_empty())
    };
    let mut reached = alloc::vec![false; hookup.classes.len()];
    let open = (0..hookup.classes.len()).filter(|element| is_open(*element));
    let sources = ends.filter(|(_, ((inputs, outputs), class))| {
        let through = class.info.flow != "x/y";
        !outputs.is_empty() && if through { inputs.is_empty() } else { class.info.task }
    });
    mark_reached(hookup, &mut reached, open.chain(sources.map(|(element, _)| element)).collect());
    let inputs = |element: usize| hookup.inputs.get(element).map_or(&[][..], Vec::as_slice);
    let is_cut_off = |element: usize, reached: &[bool]| {
        !inputs(element).is_empty() && reached.get(element) == Some(&false)
    };
    // The elements behind one that no packet can reach follow from it. A circle has no first one.
    let all_reached = reached.clone();
    let is_first = |element: usize| {
        let mut peers = inputs(element).iter().flat_map(|end| &end.peers);
        !peers.any(|peer| is_cut_off(peer.0, &all_reached))
    };
    for circles in [false, true] {
        for element in 0..hookup.classes.len() {
            if is_cut_off(element, &reached)
                && (circles || is_first(element))
                && let Some(declared) = graph.elements.get(element)
            {
                mark_reached(hookup, &mut reached, Vec::from([element]));
                let message =
                    format!("no packet can reach ‘{}’: no source leads to it", named(graph, element));
                problems.push(Diagnostic::new(Severity::Warning, declared.location.clone(), message));
            }
        }
    }
}

/// Marks elements, and all those to which their outputs lead.
fn mark_reached(hookup: &Hookup, reached: &mut [bool], mut queue: Vec<usize>) {
    while let Some(element) = queue.pop() {
        let Some(reached) = reached.get_mut(element).filter(|reached| !**reached) else { continue };
        *reached = true;
        let outputs = hookup.outputs.get(element).into_iter().flatten();
        queue.extend(outputs.flat_map(|end| end.peers.iter().map(|peer| peer.0)));
    }
}
