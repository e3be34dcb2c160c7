//! Graphviz output of a configuration.

use std::fmt::Write;

use super::model::{Model, Scope};
use super::ports::Processing;
use super::svg::escaped;

/// Draws a configuration.
pub(crate) fn dot(model: &Model) -> String {
    let mut out = String::from(
        "digraph click {\n  node [shape=plain fontname=\"sans-serif\" fontsize=10]\n  edge [arrowsize=0.6]\n",
    );
    let mut clusters = 0;
    scope(model, &model.root, 1, &mut clusters, &mut out);
    for (from, to) in &model.edges {
        let style = if model.processing(*from) == Processing::Pull { " [style=dashed]" } else { "" };
        let (source, output, target, input) = (from.element, from.port, to.element, to.port);
        let _ = writeln!(out, "  e{source}:o{output}:s -> e{target}:i{input}:n{style}");
    }
    out + "}\n"
}

fn scope(model: &Model, here: &Scope, depth: usize, clusters: &mut usize, out: &mut String) {
    let indentation = "  ".repeat(depth);
    for &element in &here.elements {
        if let Some(described) = model.elements.get(element) {
            let name = described.name.as_ref().map(|name| format!("<b>{}</b><br/>", escaped(name)));
            let label = format!("{}{}", name.unwrap_or_default(), escaped(&described.class));
            let (inputs, outputs) = (described.ports.inputs.len(), described.ports.outputs.len());
            let rows = [
                ports('i', inputs),
                format!("<tr><td border=\"1\" colspan=\"{}\">{label}</td></tr>", 1),
                ports('o', outputs),
            ];
            let _ = writeln!(
                out,
                "{indentation}e{element} [label=<<table border=\"0\" cellspacing=\"0\">{}</table>>]",
                rows.concat()
            );
        }
    }
    for (name, inner) in &here.scopes {
        *clusters += 1;
        let label = name.replace('\\', "\\\\").replace('"', "\\\"");
        let _ =
            writeln!(out, "{indentation}subgraph cluster_{clusters} {{\n{indentation}  label=\"{label}\"");
        scope(model, inner, depth + 1, clusters, out);
        let _ = writeln!(out, "{indentation}}}");
    }
}

/// A row of ports: a separate table, so that its columns are independent of the label's.
fn ports(letter: char, count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let cells: String = (0..count).map(|port| format!("<td port=\"{letter}{port}\">{port}</td>")).collect();
    format!(
        "<tr><td><table border=\"0\" cellborder=\"1\" cellspacing=\"0\"><tr>{cells}</tr></table></td></tr>"
    )
}
