//! Push or pull ports in drawings: an agnostic port takes the processing of the port that it is connected to.

use click_lang::Graph;

use crate::configuration::registry;

/// The processing of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The upstream element pushes packets.
    Push,
    /// The downstream element pulls packets.
    Pull,
    /// Either, without any constraint: such ports push.
    Agnostic,
}

/// The ports of an element.
#[derive(Clone, Debug, Default)]
pub(super) struct Sides {
    pub(super) inputs: Vec<Flow>,
    pub(super) outputs: Vec<Flow>,
}

/// The used ports of all elements.
pub(super) fn resolve(graph: &Graph) -> Vec<Sides> {
    let mut counts = vec![(0usize, 0usize); graph.elements.len()];
    for edge in &graph.connections {
        if let Some(count) = counts.get_mut(edge.from.element) {
            count.1 = count.1.max(edge.from.port + 1);
        }
        if let Some(count) = counts.get_mut(edge.to.element) {
            count.0 = count.0.max(edge.to.port + 1);
        }
    }
    let processing = |class: &str| registry().find(class).map_or("a/a", |class| class.info.processing);
    let mut sides: Vec<Sides> = graph
        .elements
        .iter()
        .zip(counts)
        .map(|(element, (inputs, outputs))| {
            let (first, second) = match processing(&element.class).split_once('/') {
                Some(both) => both,
                None => (processing(&element.class), processing(&element.class)),
            };
            Sides { inputs: flows(first, inputs), outputs: flows(second, outputs) }
        })
        .collect();
    // Each pass resolves at least one port, or is the last.
    while spread(graph, &mut sides) {}
    sides
}

/// The letters of Click's notation; the last one applies to all further ports.
fn flows(letters: &str, count: usize) -> Vec<Flow> {
    let letters: Vec<char> = letters.chars().filter(char::is_ascii_alphabetic).collect();
    (0..count)
        .map(|port| match letters.get(port).or(letters.last()) {
            Some('h') => Flow::Push,
            Some('l') => Flow::Pull,
            _ => Flow::Agnostic,
        })
        .collect()
}

/// Propagates processing to agnostic ports from their peers and from the other agnostic ports of their element; returns
/// whether any changed.
fn spread(graph: &Graph, sides: &mut [Sides]) -> bool {
    let mut changed = false;
    for edge in &graph.connections {
        let output =
            sides.get(edge.from.element).and_then(|sides| sides.outputs.get(edge.from.port)).copied();
        let input = sides.get(edge.to.element).and_then(|sides| sides.inputs.get(edge.to.port)).copied();
        let (Some(output), Some(input)) = (output, input) else { continue };
        let (element, known, is_output) = match (output, input) {
            (Flow::Agnostic, Flow::Push | Flow::Pull) => (edge.from.element, input, true),
            (Flow::Push | Flow::Pull, Flow::Agnostic) => (edge.to.element, output, false),
            _ => continue,
        };
        let Some(sides) = sides.get_mut(element) else { continue };
        let port = if is_output {
            sides.outputs.get_mut(edge.from.port)
        } else {
            sides.inputs.get_mut(edge.to.port)
        };
        if let Some(port) = port {
            *port = known;
        }
        for other in sides.inputs.iter_mut().chain(&mut sides.outputs) {
            if *other == Flow::Agnostic {
                *other = known;
            }
        }
        changed = true;
    }
    changed
}
