//! Push and pull: an agnostic port takes the processing of the port that it is connected to.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;

use click_lang::steps::{pause, pause_every};
use click_lang::{Diagnostic, Graph, Location};
use element::Class;

use crate::diagnostics::{error, named};
use crate::ports::{self, FlowCode, PortMode};
use crate::step_sizes::{CONNECTIONS_A_STEP, ELEMENTS_A_STEP};

/// The modes of an element's inputs and outputs.
type PortModes = (Vec<PortMode>, Vec<PortMode>);

/// A constraint: an output and an input whose modes must be equal, by a connection or inside an agnostic element.
#[derive(Clone, Copy)]
struct Link {
    output: (usize, usize),
    input: (usize, usize),
    inside: bool,
    /// The index of the connection.
    connection: usize,
}

/// Resolves all ports. Ports without any constraint push.
pub(crate) async fn resolve(
    graph: &Graph,
    classes: &[&'static Class],
    counts: &[(usize, usize)],
    problems: &mut Vec<Diagnostic>,
) -> Vec<PortModes> {
    let mut spread_out = declared(classes, counts).await;
    let stars = links(graph, classes, &spread_out, true).await;
    let by_port = LinksByPort::new(counts, &stars).await;
    let found = spread(&mut spread_out, &stars, &by_port).await;
    if found.is_empty() {
        return spread_out;
    }
    let mut passed = declared(classes, counts).await;
    let pairs = links(graph, classes, &passed, false).await;
    let (sides, links, conflicts) = match pass(&mut passed, &pairs).await {
        Some(found) => (passed, pairs, found),
        None => (spread_out, stars, found),
    };
    let by_port = LinksByPort::new(counts, &links).await;
    let steps = Cell::new(MAX_EXPLANATION_STEPS);
    let paths = Paths { graph, links: &links, by_port: &by_port, sides: &sides, steps: &steps };
    for (index, from) in conflicts {
        pause().await;
        let Some(link) = links.get(index) else { continue };
        let mut diagnostic = conflict(graph, *link, from);
        paths.explain(&mut diagnostic, *link, from);
        problems.push(diagnostic.bare());
    }
    sides
}

/// The modes that the classes declare.
async fn declared(classes: &[&'static Class], counts: &[(usize, usize)]) -> Vec<PortModes> {
    let mut sides = Vec::with_capacity(classes.len());
    for (index, (class, count)) in classes.iter().zip(counts).enumerate() {
        pause_every(ELEMENTS_A_STEP, index).await;
        sides.push(ports::processing(class.info.processing, *count));
    }
    sides
}

/// The maximum number of links that are followed to explain conflicts. Stops: a search through the whole graph for each
/// of its conflicts.
const MAX_EXPLANATION_STEPS: usize = 1 << 20;

/// The maximum number of links inside an element. All pairs of a thousand inputs and outputs would be a million.
const MAX_PAIRS: usize = 1 << 12;

/// Resolves all ports. Queues a link once for each of its ends, so it is linear in the number of links for any graph.
/// Returns the conflicting links, each with its output's mode.
async fn spread(sides: &mut [PortModes], links: &[Link], by_port: &LinksByPort) -> Vec<(usize, PortMode)> {
    let mut queue: Vec<usize> = (0..links.len()).rev().collect();
    let mut reported = alloc::vec![false; links.len()];
    let mut conflicts = Vec::new();
    for done in 0.. {
        let Some(index) = queue.pop() else { break };
        pause_every(CONNECTIONS_A_STEP, done).await;
        let Some(link) = links.get(index).copied() else { continue };
        match agree(sides, link) {
            Agreement::Now(port) => queue.extend(by_port.of(port)),
            Agreement::Never(from) => {
                if let Some(reported) = reported.get_mut(index)
                    && !core::mem::replace(reported, true)
                {
                    conflicts.push((index, from));
                }
            }
            Agreement::Already => {}
        }
    }
    conflicts
}

/// The maximum number of steps spent to find the conflicts that Click would report. A graph whose links are ordered
/// against the flow takes as many passes as it has links.
const MAX_STEPS: usize = 1 << 24;

/// Like `spread`, but by passes over all links until nothing changes. The modes that conflict are the same, but which
/// links are reported depends on the order; this is Click's order. `None` if it takes too many steps.
async fn pass(sides: &mut [PortModes], links: &[Link]) -> Option<Vec<(usize, PortMode)>> {
    let mut conflicts = Vec::new();
    let mut reported = alloc::vec![false; links.len()];
    let passes = MAX_STEPS / links.len().max(1);
    for _ in 0..passes {
        let mut changed = false;
        for (index, (link, reported)) in links.iter().zip(&mut reported).enumerate() {
            pause_every(CONNECTIONS_A_STEP, index).await;
            if *reported {
                continue;
            }
            match agree(sides, *link) {
                Agreement::Now(_) => changed = true,
                Agreement::Never(from) => {
                    *reported = true;
                    conflicts.push((index, from));
                }
                Agreement::Already => {}
            }
        }
        if !changed {
            return Some(conflicts);
        }
    }
    None
}

/// The result for the two ends of a link.
enum Agreement {
    /// This agnostic end took the mode of the other end.
    Now(Port),
    /// Nothing to do.
    Already,
    /// Conflict; the mode of the output.
    Never(PortMode),
}

/// Gives the agnostic end of a link the mode of the other end.
fn agree(sides: &mut [PortModes], link: Link) -> Agreement {
    match (get(sides, link.output, true), get(sides, link.input, false)) {
        (Some(PortMode::Agnostic), Some(known)) if known != PortMode::Agnostic => {
            set(sides, link.output, true, known);
            Agreement::Now((link.output, true))
        }
        (Some(known), Some(PortMode::Agnostic)) if known != PortMode::Agnostic => {
            set(sides, link.input, false, known);
            Agreement::Now((link.input, false))
        }
        (Some(from), Some(to)) if from != to => Agreement::Never(from),
        _ => Agreement::Already,
    }
}

/// All links. With `star`, an element whose ports must all agree gets a star of links instead of all pairs.
async fn links(graph: &Graph, classes: &[&'static Class], sides: &[PortModes], star: bool) -> Vec<Link> {
    let mut links: Vec<Link> = graph
        .connections
        .iter()
        .enumerate()
        .map(|(connection, edge)| Link {
            output: (edge.from.element, edge.from.port),
            input: (edge.to.element, edge.to.port),
            inside: false,
            connection,
        })
        .collect();
    for (element, (class, (inputs, outputs))) in classes.iter().zip(sides).enumerate() {
        pause_every(ELEMENTS_A_STEP, element).await;
        let agnostic = |side: &[PortMode]| {
            let ports = side.iter().enumerate().filter(|(_, kind)| **kind == PortMode::Agnostic);
            ports.map(|(port, _)| port).collect::<Vec<_>>()
        };
        let (inputs, outputs) = (agnostic(inputs), agnostic(outputs));
        let inside = |input, output| Link {
            output: (element, output),
            input: (element, input),
            inside: true,
            connection: 0,
        };
        let flow = FlowCode::parse(class.info.flow);
        let is_star = match inputs.len().saturating_mul(outputs.len()) > MAX_PAIRS {
            // In a class with so many ports, either no input leads to another output, or all its ports agree.
            true if !flow.is_parallel() => Some(flow.connects(0, outputs.len())),
            _ => (star && class.info.flow == "x/x").then_some(true),
        };
        if let Some(is_star) = is_star {
            let (Some(&input), Some(&output)) = (inputs.first(), outputs.first()) else { continue };
            if is_star {
                links.extend(outputs.iter().map(|output| inside(input, *output)));
                links.extend(inputs.iter().skip(1).map(|input| inside(*input, output)));
            }
            continue;
        }
        if flow.is_parallel() {
            let both = inputs.iter().filter(|input| outputs.binary_search(input).is_ok());
            links.extend(both.map(|port| inside(*port, *port)));
            continue;
        }
        for &input in &inputs {
            let reached = outputs.iter().filter(|output| flow.connects(input, **output));
            links.extend(reached.map(|output| inside(input, *output)));
        }
    }
    links
}

/// The indices of the links at each port, in order.
struct LinksByPort {
    /// The number of the first input of each element, and the number of its inputs. Its outputs follow.
    elements: Vec<(usize, usize)>,
    /// Where the links of each port start.
    starts: Vec<usize>,
    links: Vec<usize>,
}

impl LinksByPort {
    async fn new(counts: &[(usize, usize)], links: &[Link]) -> LinksByPort {
        let mut ports = 0;
        let mut elements = Vec::with_capacity(counts.len());
        for (inputs, outputs) in counts {
            elements.push((ports, *inputs));
            ports += inputs + outputs;
        }
        let mut found = LinksByPort { elements, starts: alloc::vec![0; ports + 1], links: Vec::new() };
        let mut ends = Vec::with_capacity(2 * links.len());
        for (index, link) in links.iter().enumerate() {
            pause_every(CONNECTIONS_A_STEP, index).await;
            for port in [(link.output, true), (link.input, false)] {
                let Some(port) = found.number(port) else { continue };
                ends.push((port, index));
                if let Some(count) = found.starts.get_mut(port + 1) {
                    *count += 1;
                }
            }
        }
        let mut sum = 0;
        for start in &mut found.starts {
            sum += *start;
            *start = sum;
        }
        // The links of a port keep their order.
        let mut next = found.starts.clone();
        found.links.resize(ends.len(), 0);
        for (done, (port, index)) in ends.into_iter().enumerate() {
            pause_every(CONNECTIONS_A_STEP, done).await;
            if let Some(next) = next.get_mut(port)
                && let Some(link) = found.links.get_mut(*next)
            {
                *link = index;
                *next += 1;
            }
        }
        found
    }

    fn number(&self, ((element, port), is_output): Port) -> Option<usize> {
        let (first, inputs) = *self.elements.get(element)?;
        let end = self.elements.get(element + 1).map_or(self.starts.len() - 1, |next| next.0);
        let number = first + port + if is_output { inputs } else { 0 };
        (is_output || port < inputs).then_some(number).filter(|number| *number < end)
    }

    fn of(&self, port: Port) -> &[usize] {
        let range =
            self.number(port).and_then(|port| Some(*self.starts.get(port)?..*self.starts.get(port + 1)?));
        range.and_then(|range| self.links.get(range)).unwrap_or_default()
    }
}

fn get(sides: &[PortModes], (element, port): (usize, usize), output: bool) -> Option<PortMode> {
    let (inputs, outputs) = sides.get(element)?;
    (if output { outputs } else { inputs }).get(port).copied()
}

fn set(sides: &mut [PortModes], (element, port): (usize, usize), output: bool, value: PortMode) {
    if let Some((inputs, outputs)) = sides.get_mut(element)
        && let Some(mode) = (if output { outputs } else { inputs }).get_mut(port)
    {
        *mode = value;
    }
}

fn conflict(graph: &Graph, link: Link, from: PortMode) -> Diagnostic {
    let (one, other) = names(from);
    let (output, input) = (link.output, link.input);
    let location = graph.elements.get(output.0).map(|element| element.location.clone());
    if link.inside {
        let name = named(graph, output.0);
        let (to, from) = (input.1, output.1);
        error(
            location,
            format!("agnostic ‘{name}’ in mixed context: {other} input {to}, {one} output {from}"),
        )
    } else {
        let (from, to) = (named(graph, output.0), named(graph, input.0));
        let ports = (output.1, input.1);
        let message =
            format!("‘{from}’ {one} output {} connected to ‘{to}’ {other} input {}", ports.0, ports.1);
        let connection = graph.connections.get(link.connection).map(|edge| edge.location.clone());
        error(connection.or(location), message)
    }
}

/// The modes of a conflict: the output's and the input's.
fn names(output: PortMode) -> (&'static str, &'static str) {
    if output == PortMode::Push { ("push", "pull") } else { ("pull", "push") }
}

/// A port: element and port number, and whether it is an output.
type Port = ((usize, usize), bool);

/// The paths along which modes propagated.
struct Paths<'a> {
    graph: &'a Graph,
    links: &'a [Link],
    by_port: &'a LinksByPort,
    sides: &'a [PortModes],
    /// The links that may still be followed.
    steps: &'a Cell<usize>,
}

impl Paths<'_> {
    /// Adds to a conflict the origins of both modes.
    fn explain(&self, diagnostic: &mut Diagnostic, link: Link, from: PortMode) {
        let (one, other) = names(from);
        let mut ends = [((link.output, true), one), ((link.input, false), other)];
        if link.inside {
            ends.reverse();
        }
        diagnostic.related.extend(ends.into_iter().filter_map(|(port, kind)| self.origin(port, kind)));
    }

    /// The element whose fixed port determined a port's mode, with the path from it: "push by ...".
    fn origin(&self, port: Port, kind: &str) -> Option<(Location, String)> {
        let wanted = get(self.sides, port.0, port.1)?;
        let mut seen = BTreeSet::from([port]);
        // Each reached port, and the index of its predecessor.
        let mut reached = Vec::from([(port, 0)]);
        let mut at = 0;
        while let Some(&(port, _)) = reached.get(at) {
            let links = self.by_port.of(port);
            self.steps.set(self.steps.get().checked_sub(links.len() + 1)?);
            for next in self.links_at(port).filter_map(|link| other_end(link, port)) {
                if get(self.sides, next.0, next.1) != Some(wanted) || !seen.insert(next) {
                    continue;
                }
                reached.push((next, at));
                if self.is_fixed(next) {
                    return self.describe_path(&reached, kind);
                }
            }
            at += 1;
        }
        None
    }

    /// The path to the port that was reached last, in words; `None` if it is obvious.
    fn describe_path(&self, reached: &[(Port, usize)], kind: &str) -> Option<(Location, String)> {
        let mut at = reached.len() - 1;
        let mut way = Vec::new();
        while let Some(&(((element, _), _), before)) = reached.get(at) {
            if way.last() != Some(&element) {
                way.push(element);
            }
            if at == 0 {
                break;
            }
            at = before;
        }
        if way.len() < 3 {
            return None;
        }
        let fixed = self.graph.elements.get(*way.first()?)?;
        let names = way.iter().rev().filter_map(|element| self.graph.elements.get(*element));
        let names: Vec<&str> = names.map(|element| &*element.name).collect();
        let text = format!("{kind} by ‘{}’, through {}", fixed.name, names.join(" - "));
        Some((fixed.location.clone(), text))
    }

    fn links_at(&self, port: Port) -> impl Iterator<Item = &Link> {
        self.by_port.of(port).iter().filter_map(|index| self.links.get(*index))
    }

    /// Whether a port's mode depends on no other port of its element.
    fn is_fixed(&self, port: Port) -> bool {
        !self.links_at(port).any(|link| link.inside)
    }
}

/// The port at the other end of a link.
fn other_end(link: &Link, (port, is_output): Port) -> Option<Port> {
    match is_output {
        true if link.output == port => Some((link.input, false)),
        false if link.input == port => Some((link.output, true)),
        _ => None,
    }
}
