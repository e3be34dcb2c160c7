//! Push and pull: an agnostic port takes the processing of the port that it is connected to.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::{Diagnostic, Graph, Location};
use element::Class;

use crate::diagnostics::{error, named};
use crate::ports::{self, FlowCode, PortMode};

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
pub(crate) fn resolve(
    graph: &Graph,
    classes: &[&'static Class],
    counts: &[(usize, usize)],
    problems: &mut Vec<Diagnostic>,
) -> Vec<PortModes> {
    let sides: Vec<PortModes> = classes
        .iter()
        .zip(counts)
        .map(|(class, count)| ports::processing(class.info.processing, *count))
        .collect();
    let stars = links(graph, classes, &sides, true);
    let mut spread_out = sides.clone();
    let found = spread(&mut spread_out, &stars, classes.len());
    if found.is_empty() {
        return spread_out;
    }
    let pairs = links(graph, classes, &sides, false);
    let mut passed = sides;
    let (sides, links, conflicts) = match pass(&mut passed, &pairs) {
        Some(found) => (passed, pairs, found),
        None => (spread_out, stars, found),
    };
    let paths =
        Paths { graph, links: &links, by_element: &links_by_element(&links, classes.len()), sides: &sides };
    for (number, (index, from)) in conflicts.into_iter().enumerate() {
        let Some(link) = links.get(index) else { continue };
        let mut diagnostic = conflict(graph, *link, from);
        if number < MAX_EXPLAINED {
            paths.explain(&mut diagnostic, *link, from);
        }
        problems.push(diagnostic.bare());
    }
    sides
}

/// The maximum number of conflicts that are explained.
const MAX_EXPLAINED: usize = 100;

/// The maximum number of links inside an element. All pairs of a thousand inputs and outputs would be a million.
const MAX_PAIRS: usize = 1 << 12;

/// Resolves all ports. Visits each port once, so it is linear in the number of links for any graph. Returns the
/// conflicting links, each with its output's mode.
fn spread(sides: &mut [PortModes], links: &[Link], elements: usize) -> Vec<(usize, PortMode)> {
    let by_element = links_by_element(links, elements);
    let mut queue: Vec<usize> = (0..links.len()).rev().collect();
    let mut reported = alloc::vec![false; links.len()];
    let mut conflicts = Vec::new();
    while let Some(index) = queue.pop() {
        let Some(link) = links.get(index).copied() else { continue };
        match agree(sides, link) {
            Agreement::Now(element) => queue.extend(by_element.get(element).into_iter().flatten()),
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
fn pass(sides: &mut [PortModes], links: &[Link]) -> Option<Vec<(usize, PortMode)>> {
    let mut conflicts = Vec::new();
    let mut reported = alloc::vec![false; links.len()];
    let passes = MAX_STEPS / links.len().max(1);
    for _ in 0..passes {
        let mut changed = false;
        for (index, (link, reported)) in links.iter().zip(&mut reported).enumerate() {
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
    /// The agnostic end, at this element, took the mode of the other end.
    Now(usize),
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
            Agreement::Now(link.output.0)
        }
        (Some(known), Some(PortMode::Agnostic)) if known != PortMode::Agnostic => {
            set(sides, link.input, false, known);
            Agreement::Now(link.input.0)
        }
        (Some(from), Some(to)) if from != to => Agreement::Never(from),
        _ => Agreement::Already,
    }
}

/// All links. With `star`, an element whose ports must all agree gets a star of links instead of all pairs.
fn links(graph: &Graph, classes: &[&'static Class], sides: &[PortModes], star: bool) -> Vec<Link> {
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
        if class.info.flow == "x/x" && (star || inputs.len() * outputs.len() > MAX_PAIRS) {
            let (Some(&input), Some(&output)) = (inputs.first(), outputs.first()) else { continue };
            links.extend(outputs.iter().map(|output| inside(input, *output)));
            links.extend(inputs.iter().skip(1).map(|input| inside(*input, output)));
            continue;
        }
        let flow = FlowCode::parse(class.info.flow);
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

/// For each element the indices of the links that touch it.
fn links_by_element(links: &[Link], elements: usize) -> Vec<Vec<usize>> {
    let mut by_element = alloc::vec![Vec::new(); elements];
    for (index, link) in links.iter().enumerate() {
        for element in [link.output.0, link.input.0] {
            if let Some(list) = by_element.get_mut(element)
                && list.last() != Some(&index)
            {
                list.push(index);
            }
        }
    }
    by_element
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
    by_element: &'a [Vec<usize>],
    sides: &'a [PortModes],
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
            for next in self.links_of(port.0.0).filter_map(|link| other_end(link, port)) {
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

    fn links_of(&self, element: usize) -> impl Iterator<Item = &Link> {
        let indices = self.by_element.get(element).into_iter().flatten();
        indices.filter_map(|index| self.links.get(*index))
    }

    /// Whether a port's mode depends on no other port of its element.
    fn is_fixed(&self, port: Port) -> bool {
        !self.links_of(port.0.0).any(|link| link.inside && other_end(link, port).is_some())
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
