//! Connections: checks that ports exist and are connected as often as allowed, and builds the tables for delivery.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::steps::{free_many, pause_every};
use click_lang::{Diagnostic, Graph};
use element::{Class, UNKNOWN_CLASS};

use crate::diagnostics::{error, named};
use crate::ports::{self, PortMode};
use crate::processing;
use crate::registry::Registry;
use crate::step_sizes::{CONNECTIONS_A_STEP, ELEMENTS_A_STEP};

/// An element's index and a port number.
pub(crate) type PortRef = (usize, usize);

/// A checked graph: classes, ports and connections.
pub(crate) struct Hookup {
    pub(crate) classes: Vec<&'static Class>,
    /// The inputs of each element.
    pub(crate) inputs: Vec<Vec<PortLinks>>,
    /// The outputs of each element.
    pub(crate) outputs: Vec<Vec<PortLinks>>,
}

/// The connections of one port.
#[derive(Clone, Debug)]
pub(crate) struct PortLinks {
    pub(crate) push: bool,
    /// The connected ports; exactly one for a push output and for a pull input.
    pub(crate) peers: Vec<PortRef>,
}

/// Checks the graph step by step and resolves its ports. Stops with `None` after the first step with an error, to avoid
/// follow-up errors.
pub(crate) async fn hook_up(
    graph: &Graph,
    registry: &Registry,
    problems: &mut Vec<Diagnostic>,
) -> Option<Hookup> {
    check_requirements(graph, problems);
    let classes = find_classes(graph, registry, problems).await;
    if !problems.is_empty() {
        return None;
    }
    let counts = count_ports(graph, &classes, problems).await;
    if !problems.is_empty() {
        return None;
    }
    let hookup = resolve(graph, classes, &counts, problems).await;
    if problems.is_empty() {
        check_use(graph, &hookup, problems).await;
    }
    if problems.is_empty() {
        return Some(hookup);
    }
    free_many(hookup.inputs, ELEMENTS_A_STEP).await;
    free_many(hookup.outputs, ELEMENTS_A_STEP).await;
    None
}

/// Checks the whole graph despite errors. Surplus connections are omitted; elements of unknown classes get the class
/// [`UNKNOWN_CLASS`].
pub(crate) async fn hook_up_all(
    graph: &Graph,
    registry: &Registry,
    problems: &mut Vec<Diagnostic>,
) -> Hookup {
    check_requirements(graph, problems);
    let classes = find_classes(graph, registry, problems).await;
    let counts = count_ports(graph, &classes, problems).await;
    let hookup = resolve(graph, classes, &counts, problems).await;
    check_use(graph, &hookup, problems).await;
    hookup
}

/// All classes are linked in and packages can't be loaded, as in a Click built without packages.
fn check_requirements(graph: &Graph, problems: &mut Vec<Diagnostic>) {
    for requirement in graph.requirements.iter().filter(|requirement| requirement.kind == "package") {
        let message = format!("requirement ‘{}’ not available", requirement.value);
        let hint = "there are no packages, and all classes are at hand: leave the requirement out";
        let diagnostic = Diagnostic::error(requirement.location.clone(), message);
        problems.push(diagnostic.bare().with_hint(Some(hint.into())));
    }
}

async fn find_classes(
    graph: &Graph,
    registry: &Registry,
    problems: &mut Vec<Diagnostic>,
) -> Vec<&'static Class> {
    let mut find = |element: &click_lang::Element| {
        registry.find(&element.class).unwrap_or_else(|| {
            let message = format!("unknown element class ‘{}’", element.class);
            problems.push(Diagnostic::error(element.location.clone(), message));
            &UNKNOWN_CLASS
        })
    };
    let mut classes = Vec::with_capacity(graph.elements.len());
    for (index, element) in graph.elements.iter().enumerate() {
        pause_every(ELEMENTS_A_STEP, index).await;
        classes.push(find(element));
    }
    classes
}

async fn resolve(
    graph: &Graph,
    classes: Vec<&'static Class>,
    counts: &[(usize, usize)],
    problems: &mut Vec<Diagnostic>,
) -> Hookup {
    let processing = processing::resolve(graph, &classes, counts, problems).await;
    let mut hookup = Hookup { classes, inputs: Vec::new(), outputs: Vec::new() };
    for (index, (pair, count)) in processing.iter().zip(counts).enumerate() {
        pause_every(ELEMENTS_A_STEP, index).await;
        hookup.inputs.push(ends(&pair.0, count.0).await);
        hookup.outputs.push(ends(&pair.1, count.1).await);
    }
    free_many(processing, ELEMENTS_A_STEP).await;
    connect(graph, &mut hookup).await;
    hookup
}

/// So many ports of a side, without connections.
async fn ends(side: &[PortMode], count: usize) -> Vec<PortLinks> {
    let mut ends = Vec::with_capacity(count);
    for port in 0..count {
        pause_every(CONNECTIONS_A_STEP, port).await;
        ends.push(PortLinks { push: side.get(port) != Some(&PortMode::Pull), peers: Vec::new() });
    }
    ends
}

async fn count_ports(
    graph: &Graph,
    classes: &[&'static Class],
    problems: &mut Vec<Diagnostic>,
) -> Vec<(usize, usize)> {
    let mut used = alloc::vec![(0, 0); classes.len()];
    for connection in &graph.connections {
        if let Some(used) = used.get_mut(connection.from.element) {
            used.1 = used.1.max(connection.from.port + 1);
        }
        if let Some(used) = used.get_mut(connection.to.element) {
            used.0 = used.0.max(connection.to.port + 1);
        }
    }
    let mut counts = Vec::with_capacity(classes.len());
    for (index, (class, used)) in classes.iter().zip(&used).enumerate() {
        pause_every(ELEMENTS_A_STEP, index).await;
        counts.push(ports::port_counts(class.info.ports, *used));
    }
    for (index, connection) in graph.connections.iter().enumerate() {
        pause_every(CONNECTIONS_A_STEP, index).await;
        let has = |element: usize| counts.get(element).copied().unwrap_or_default();
        let sides = [
            ("input", connection.to, has(connection.to.element).0),
            ("output", connection.from, has(connection.from.element).1),
        ];
        for (kind, end, count) in sides {
            if end.port >= count
                && let Some(declared) = graph.elements.get(end.element)
            {
                let message = format!("‘{}’ has no {kind} {}", named(graph, end.element), end.port);
                problems.push(Diagnostic::error(declared.location.clone(), message));
            }
        }
    }
    limit_ports(graph, counts, problems)
}

/// The maximum number of ports of a router, apart from two for each connection, which suffice if every port is connected,
/// and some for each element. Stops: a thousand elements of which only the port 65535 is connected.
const MAX_UNUSED_PORTS: usize = 1 << 18;

/// The ports of an element that count as its own, connected or not.
const PORTS_PER_ELEMENT: usize = 4;

/// Reports the first element with which the router has too many ports. It and those after it lose their ports if these
/// are too many.
fn limit_ports(
    graph: &Graph,
    mut counts: Vec<(usize, usize)>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<(usize, usize)> {
    let mut left = MAX_UNUSED_PORTS + 2 * graph.connections.len() + PORTS_PER_ELEMENT * counts.len();
    let mut is_reported = false;
    for (element, count) in counts.iter_mut().enumerate() {
        if let Some(rest) = left.checked_sub(count.0.saturating_add(count.1)) {
            left = rest;
            continue;
        }
        *count = (0, 0);
        if !is_reported {
            is_reported = true;
            let location = graph.elements.get(element).map(|declared| declared.location.clone());
            problems.push(error(location, format!("‘{}’ has too many unused ports", named(graph, element))));
        }
    }
    counts
}

async fn connect(graph: &Graph, hookup: &mut Hookup) {
    let mut seen = BTreeSet::new();
    for (index, connection) in graph.connections.iter().enumerate() {
        pause_every(CONNECTIONS_A_STEP, index).await;
        let from = (connection.from.element, connection.from.port);
        let to = (connection.to.element, connection.to.port);
        if !seen.insert((from, to)) {
            continue;
        }
        if let Some(end) = hookup.outputs.get_mut(from.0).and_then(|ends| ends.get_mut(from.1)) {
            add(&mut end.peers, to);
        }
        if let Some(end) = hookup.inputs.get_mut(to.0).and_then(|ends| ends.get_mut(to.1)) {
            add(&mut end.peers, from);
        }
    }
}

/// Adds a peer. Most ports have one, so the first takes no spare room.
fn add(peers: &mut Vec<PortRef>, peer: PortRef) {
    if peers.is_empty() {
        peers.reserve_exact(1);
    }
    peers.push(peer);
}

async fn check_use(graph: &Graph, hookup: &Hookup, problems: &mut Vec<Diagnostic>) {
    let mut complain = |element: usize, message: String| {
        let is_known = hookup.classes.get(element).is_some_and(|class| !class.is_unknown());
        if let Some(declared) = graph.elements.get(element).filter(|_| is_known) {
            problems.push(Diagnostic::error(declared.location.clone(), message));
        }
    };
    let sides =
        [("input", "pull input", &hookup.inputs, false), ("output", "push output", &hookup.outputs, true)];
    for (_, active_kind, sides, active) in &sides {
        for (element, ends) in sides.iter().enumerate() {
            pause_every(CONNECTIONS_A_STEP, element).await;
            for (port, end) in ends.iter().enumerate() {
                // One error for each connection after the first.
                for _ in end.peers.iter().skip(1).filter(|_| end.push == *active) {
                    complain(
                        element,
                        format!("illegal reuse of ‘{}’ {active_kind} {port}", named(graph, element)),
                    );
                }
            }
        }
    }
    for (kind, _, sides, _) in &sides {
        for (element, ends) in sides.iter().enumerate() {
            pause_every(CONNECTIONS_A_STEP, element).await;
            let mut unused = ends.iter().enumerate().filter(|(_, end)| end.peers.is_empty());
            for (port, _) in unused.by_ref().take(MAX_UNUSED_LISTED) {
                complain(element, format!("‘{}’ {kind} {port} unused", named(graph, element)));
            }
            let more = unused.count();
            if more > 0 {
                complain(element, format!("‘{}’: {more} more {kind}s unused", named(graph, element)));
            }
        }
    }
}

/// The maximum number of unused inputs, and of unused outputs, that are reported one by one.
const MAX_UNUSED_LISTED: usize = 16;
