//! Printing of a graph as a configuration.

use crate::{Connection, Graph, Port, config};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

/// Prints a graph as a configuration that compiles to the same graph.
///
/// The requirements come first, then one declaration per line in the order of the elements, then the connections in
/// chains.
pub fn flatten(graph: &Graph) -> String {
    let mut out = String::new();
    requirements(graph, &mut out);
    for element in &graph.elements {
        out.extend([&element.name, " :: ", &element.class]);
        if !element.config.is_empty() {
            out.extend(["(", &element.config, ")"]);
        }
        out.push_str(";\n");
    }
    if !graph.elements.is_empty() {
        out.push('\n');
    }
    connections(graph, &mut out);
    out
}

fn requirements(graph: &Graph, out: &mut String) {
    if graph.requirements.is_empty() {
        return;
    }
    out.push_str("require(");
    for (index, requirement) in graph.requirements.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        out.push_str(&requirement.kind);
        if !requirement.value.is_empty() {
            out.push(' ');
            out.push_str(&config::quote(requirement.value.as_bytes()));
        }
    }
    out.push_str(");\n\n");
}

fn connections(graph: &Graph, out: &mut String) {
    let connections = &graph.connections;
    let next = followers(connections);
    let mut follows = alloc::vec![false; connections.len()];
    for &follower in next.iter().flatten() {
        follows[follower] = true;
    }
    let mut printed = alloc::vec![false; connections.len()];
    // First chains from their starts; the remaining connections form cycles, which may start anywhere.
    for circles in [false, true] {
        for start in 0..connections.len() {
            if !printed[start] && (circles || !follows[start]) {
                chain(graph, &next, start, &mut printed, out);
            }
        }
    }
}

fn chain(graph: &Graph, next: &[Option<usize>], start: usize, printed: &mut [bool], out: &mut String) {
    let name = |port: Port| graph.elements.get(port.element).map_or("", |element| element.name.as_str());
    let from = graph.connections[start].from;
    out.push_str(name(from));
    if from.port > 0 {
        // Writing to a String can't fail.
        let _ = write!(out, " [{}]", from.port);
    }
    let mut separator = " -> ";
    let mut at = Some(start);
    while let Some(index) = at.filter(|&index| !printed[index]) {
        let to = graph.connections[index].to;
        out.push_str(separator);
        separator = "\n    -> ";
        if to.port > 0 {
            out.extend(["[", &to.port.to_string(), "] "]);
        }
        out.push_str(name(to));
        printed[index] = true;
        at = next[index];
    }
    out.push_str(";\n");
}

/// For each connection to an input 0, a connection that continues from that element's output 0. Connections to an input
/// 0 are preferred, for longer chains.
fn followers(connections: &[Connection]) -> Vec<Option<usize>> {
    let mut leaving: BTreeMap<Port, Vec<usize>> = BTreeMap::new();
    for (index, connection) in connections.iter().enumerate() {
        leaving.entry(connection.from).or_default().push(index);
    }
    let follower = |(index, connection): (usize, &Connection)| {
        let candidates = (connection.to.port == 0).then(|| leaving.get(&connection.to)).flatten()?;
        let others = || candidates.iter().copied().filter(|&candidate| candidate != index);
        others().find(|&candidate| connections[candidate].to.port == 0).or_else(|| others().next_back())
    };
    connections.iter().enumerate().map(follower).collect()
}
