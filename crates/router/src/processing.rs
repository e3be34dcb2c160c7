//! Push or pull: agnostic ports take after what they are connected to.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::{Diagnostic, Graph, Location};
use element::Class;

use crate::hookup::{error, named};
use crate::ports::{self, Processing};

/// Processing of an element's inputs and outputs.
type Sides = (Vec<Processing>, Vec<Processing>);

/// A constraint: an output and an input that must agree, by a connection or inside an agnostic element.
#[derive(Clone, Copy)]
struct Link {
    output: (usize, usize),
    input: (usize, usize),
    inside: bool,
    /// Which connection.
    connection: usize,
}

/// Resolves all ports. Ports that nothing decides push.
pub(crate) fn resolve(
    graph: &Graph,
    classes: &[&'static Class],
    counts: &[(usize, usize)],
    problems: &mut Vec<Diagnostic>,
) -> Vec<Sides> {
    let mut sides: Vec<Sides> = classes
        .iter()
        .zip(counts)
        .map(|(class, count)| ports::processing(class.info.processing, *count))
        .collect();
    let links = links(graph, classes, &sides);
    let by_element = index(&links, classes.len());
    // Each port is decided once and then looked at once: linear in the links, whatever the graph.
    let mut queue: Vec<usize> = (0..links.len()).collect();
    queue.reverse();
    let mut reported = alloc::vec![false; links.len()];
    while let Some(place) = queue.pop() {
        let Some(link) = links.get(place).copied() else { continue };
        match (get(&sides, link.output, true), get(&sides, link.input, false)) {
            (Some(Processing::Agnostic), Some(known)) if known != Processing::Agnostic => {
                set(&mut sides, link.output, true, known);
                queue.extend(by_element.get(link.output.0).into_iter().flatten());
            }
            (Some(known), Some(Processing::Agnostic)) if known != Processing::Agnostic => {
                set(&mut sides, link.input, false, known);
                queue.extend(by_element.get(link.input.0).into_iter().flatten());
            }
            (Some(from), Some(to)) if from != to => {
                if let Some(reported) = reported.get_mut(place)
                    && !core::mem::replace(reported, true)
                {
                    problems.push(conflict(graph, &links, &sides, link, from));
                }
            }
            _ => {}
        }
    }
    sides
}

fn links(graph: &Graph, classes: &[&'static Class], sides: &[Sides]) -> Vec<Link> {
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
        let agnostic = |side: &[Processing]| {
            let ports = side.iter().enumerate().filter(|(_, kind)| **kind == Processing::Agnostic);
            ports.map(|(port, _)| port).collect::<Vec<_>>()
        };
        let (inputs, outputs) = (agnostic(inputs), agnostic(outputs));
        let inside = |input, output| Link {
            output: (element, output),
            input: (element, input),
            inside: true,
            connection: 0,
        };
        if class.info.flow == "x/x" {
            // All ports agree: a star says so with fewer links than all pairs.
            let (Some(&input), Some(&output)) = (inputs.first(), outputs.first()) else { continue };
            links.extend(outputs.iter().map(|output| inside(input, *output)));
            links.extend(inputs.iter().skip(1).map(|input| inside(*input, output)));
            continue;
        }
        for &input in &inputs {
            let reached = outputs.iter().filter(|output| ports::flows(class.info.flow, input, **output));
            links.extend(reached.map(|output| inside(input, *output)));
        }
    }
    links
}

fn index(links: &[Link], elements: usize) -> Vec<Vec<usize>> {
    let mut by_element = alloc::vec![Vec::new(); elements];
    for (place, link) in links.iter().enumerate() {
        for element in [link.output.0, link.input.0] {
            if let Some(list) = by_element.get_mut(element)
                && list.last() != Some(&place)
            {
                list.push(place);
            }
        }
    }
    by_element
}

fn get(sides: &[Sides], (element, port): (usize, usize), output: bool) -> Option<Processing> {
    let (inputs, outputs) = sides.get(element)?;
    (if output { outputs } else { inputs }).get(port).copied()
}

fn set(sides: &mut [Sides], (element, port): (usize, usize), output: bool, value: Processing) {
    if let Some((inputs, outputs)) = sides.get_mut(element)
        && let Some(place) = (if output { outputs } else { inputs }).get_mut(port)
    {
        *place = value;
    }
}

fn conflict(graph: &Graph, links: &[Link], sides: &[Sides], link: Link, from: Processing) -> Diagnostic {
    let (one, other) = if from == Processing::Push { ("push", "pull") } else { ("pull", "push") };
    let (output, input) = (link.output, link.input);
    let location = |element: usize| graph.elements.get(element).map(|element| element.location.clone());
    if link.inside {
        let message = format!(
            "agnostic ‘{}’ in mixed context: {other} input {}, {one} output {}",
            named(graph, output.0),
            input.1,
            output.1
        );
        let mut diagnostic = error(location(output.0), message);
        for (place, is_output, kind) in [(input, false, other), (output, true, one)] {
            diagnostic.related.extend(origin(graph, links, sides, place, is_output, kind));
        }
        return diagnostic;
    }
    let message = format!(
        "‘{}’ {one} output {} connected to ‘{}’ {other} input {}",
        named(graph, output.0),
        output.1,
        named(graph, input.0),
        input.1
    );
    let at = graph.connections.get(link.connection).map(|edge| edge.location.clone());
    let mut diagnostic = error(at.or_else(|| location(output.0)), message);
    for (place, is_output, kind) in [(output, true, one), (input, false, other)] {
        diagnostic.related.extend(origin(graph, links, sides, place, is_output, kind));
    }
    diagnostic
}

/// The element whose fixed port made the port at `place` push or pull, by the way from it: "push because of ...".
fn origin(
    graph: &Graph,
    links: &[Link],
    sides: &[Sides],
    place: (usize, usize),
    is_output: bool,
    kind: &str,
) -> Option<(Location, String)> {
    let wanted = get(sides, place, is_output)?;
    let mut seen = alloc::collections::BTreeSet::from([(place, is_output)]);
    let mut queue = alloc::collections::VecDeque::from([(place, is_output, Vec::from([place.0]))]);
    while let Some((place, is_output, way)) = queue.pop_front() {
        for link in links {
            let next = match is_output {
                true if link.output == place => (link.input, false),
                false if link.input == place => (link.output, true),
                _ => continue,
            };
            if get(sides, next.0, next.1) != Some(wanted) || !seen.insert(next) {
                continue;
            }
            let mut way = way.clone();
            if way.last() != Some(&next.0.0) {
                way.push(next.0.0);
            }
            let element = graph.elements.get(next.0.0)?;
            let fixed = !links.iter().any(|link| {
                link.inside && (if next.1 { link.output == next.0 } else { link.input == next.0 })
            });
            if fixed {
                if way.len() < 3 {
                    return None;
                }
                let names: Vec<&str> = way
                    .iter()
                    .filter_map(|element| graph.elements.get(*element))
                    .map(|element| &*element.name)
                    .collect();
                let text = format!("{kind} by ‘{}’, through {}", element.name, names.join(" - "));
                return Some((element.location.clone(), text));
            }
            queue.push_back((next.0, next.1, way));
        }
    }
    None
}
