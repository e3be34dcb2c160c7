//! Push or pull ports in drawings: an agnostic port takes the processing of the port that it is connected to.

use click_lang::Graph;

use crate::configuration::registry;

/// The processing of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processing {
    /// The upstream element pushes packets.
    Push,
    /// The downstream element pulls packets.
    Pull,
    /// Either, without any constraint: such ports push.
    Agnostic,
}

/// The ports of an element.
#[derive(Clone, Debug, Default)]
pub(super) struct ElementPorts {
    pub(super) inputs: Vec<Processing>,
    pub(super) outputs: Vec<Processing>,
}

/// The used ports of all elements.
pub(super) fn resolve(graph: &Graph) -> Vec<ElementPorts> {
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
    let mut ports: Vec<ElementPorts> = graph
        .elements
        .iter()
        .zip(counts)
        .map(|(element, (inputs, outputs))| {
            let (first, second) = match processing(&element.class).split_once('/') {
                Some(both) => both,
                None => (processing(&element.class), processing(&element.class)),
            };
            ElementPorts { inputs: processings(first, inputs), outputs: processings(second, outputs) }
        })
        .collect();
    // Each pass resolves at least one port, or is the last.
    while propagate(graph, &mut ports) {}
    ports
}

/// The letters of Click's notation; the last one applies to all further ports.
fn processings(letters: &str, count: usize) -> Vec<Processing> {
    let letters: Vec<char> = letters.chars().filter(char::is_ascii_alphabetic).collect();
    (0..count)
        .map(|port| match letters.get(port).or(letters.last()) {
            Some('h') => Processing::Push,
            Some('l') => Processing::Pull,
            _ => Processing::Agnostic,
        })
        .collect()
}

/// Propagates processing to agnostic ports from their peers and from the other agnostic ports of their element; returns
/// whether any changed.
fn propagate(graph: &Graph, ports: &mut [ElementPorts]) -> bool {
    let mut changed = false;
    for edge in &graph.connections {
        let output =
            ports.get(edge.from.element).and_then(|ports| ports.outputs.get(edge.from.port)).copied();
        let input = ports.get(edge.to.element).and_then(|ports| ports.inputs.get(edge.to.port)).copied();
        let (Some(output), Some(input)) = (output, input) else { continue };
        let (element, known, is_output) = match (output, input) {
            (Processing::Agnostic, Processing::Push | Processing::Pull) => (edge.from.element, input, true),
            (Processing::Push | Processing::Pull, Processing::Agnostic) => (edge.to.element, output, false),
            _ => continue,
        };
        let Some(ports) = ports.get_mut(element) else { continue };
        let port = if is_output {
            ports.outputs.get_mut(edge.from.port)
        } else {
            ports.inputs.get_mut(edge.to.port)
        };
        if let Some(port) = port {
            *port = known;
        }
        for other in ports.inputs.iter_mut().chain(&mut ports.outputs) {
            if *other == Processing::Agnostic {
                *other = known;
            }
        }
        changed = true;
    }
    changed
}
