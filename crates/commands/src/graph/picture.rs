//! The positions of all boxes, ports and lines of a configuration.

use click_lang::Port;

use super::layers::{Edge, End, Node, compute_layout};
use super::model::{Model, Scope};
use super::ports::Processing;

/// Width of a character in the bold and in the small font.
const LETTER: f64 = 7.6;
const SMALL_LETTER: f64 = 6.7;
/// Maximum number of characters of a configuration that are shown.
const MAX_CONFIG_LENGTH: usize = 32;
/// Padding around the text of a box, and around the contents of a compound.
const BOX_PADDING: f64 = 14.0;
const FRAME_PADDING: f64 = 16.0;
/// Height of a compound's title.
const TITLE: f64 = 22.0;
/// Minimum distance between ports.
const PORT_GAP: f64 = 16.0;

/// All shapes, with the origin in the upper left corner.
#[derive(Default)]
pub(super) struct Picture {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) frames: Vec<Frame>,
    pub(super) boxes: Vec<ElementBox>,
    pub(super) lines: Vec<Line>,
    /// The points on the upper and lower border where lines continue outside.
    entries: Vec<(Port, f64)>,
    exits: Vec<(Port, f64)>,
}

/// A compound's border.
pub(super) struct Frame {
    pub(super) at: (f64, f64),
    pub(super) size: (f64, f64),
    pub(super) name: String,
}

/// An element's box.
pub(super) struct ElementBox {
    pub(super) element: usize,
    pub(super) at: (f64, f64),
    pub(super) size: (f64, f64),
    /// The lines of its text; the first is bold.
    pub(super) text: Vec<String>,
    pub(super) inputs: Vec<f64>,
    pub(super) outputs: Vec<f64>,
}

/// A connection, or its part in one compound.
pub(super) struct Line {
    pub(super) points: Vec<(f64, f64)>,
    pub(super) processing: Processing,
    /// Whether it ends at an element rather than at a compound's border.
    pub(super) ends: bool,
}

/// The object that a node of a scope represents.
enum ScopeNode<'m> {
    Element(usize),
    Scope(&'m str, Picture),
    Entry(Port),
    Exit(Port),
}

/// Draws a configuration.
pub(super) fn draw(model: &Model) -> Picture {
    scope(model, &model.root, &[])
}

/// Draws the scope at `path`.
fn scope(model: &Model, current: &Scope, path: &[&str]) -> Picture {
    let mut scope_nodes = Vec::new();
    let mut nodes = Vec::new();
    for &element in &current.elements {
        nodes.push(element_node(model, element));
        scope_nodes.push(ScopeNode::Element(element));
    }
    for (name, inner) in &current.scopes {
        let mut inner_path = path.to_vec();
        inner_path.push(name);
        let picture = scope(model, inner, &inner_path);
        nodes.push(Node {
            width: (picture.width + 2.0 * FRAME_PADDING)
                .max(name.chars().count() as f64 * LETTER + 2.0 * BOX_PADDING),
            height: picture.height + 2.0 * FRAME_PADDING + TITLE,
            inputs: picture.entries.iter().map(|entry| entry.1 + FRAME_PADDING).collect(),
            outputs: picture.exits.iter().map(|exit| exit.1 + FRAME_PADDING).collect(),
            end: None,
        });
        scope_nodes.push(ScopeNode::Scope(name, picture));
    }
    let (edges, processings) = edges(model, path, &mut scope_nodes, &mut nodes);
    let layout = compute_layout(&nodes, &edges);
    let mut picture = Picture { width: layout.width, height: layout.height, ..Picture::default() };
    for ((scope_node, node), at) in scope_nodes.into_iter().zip(nodes).zip(layout.corners) {
        match scope_node {
            ScopeNode::Element(element) => picture.boxes.push(ElementBox {
                element,
                at,
                size: (node.width, node.height),
                text: text(model, element),
                inputs: node.inputs,
                outputs: node.outputs,
            }),
            ScopeNode::Scope(name, inner) => {
                let size = (node.width, node.height);
                picture.frames.push(Frame { at, size, name: name.to_string() });
                picture.take_in(inner, at, size);
            }
            ScopeNode::Entry(port) => picture.entries.push((port, at.0)),
            ScopeNode::Exit(port) => picture.exits.push((port, at.0)),
        }
    }
    for ((points, edge), processing) in layout.lines.into_iter().zip(&edges).zip(processings) {
        let ends = picture.boxes.len() > edge.to.0 && edge.to.0 < current.elements.len();
        picture.lines.push(Line { points, processing, ends });
    }
    picture
}

/// The connections within a scope. A connection that crosses the border gets a point on it.
fn edges(
    model: &Model,
    path: &[&str],
    scope_nodes: &mut Vec<ScopeNode>,
    nodes: &mut Vec<Node>,
) -> (Vec<Edge>, Vec<Processing>) {
    let mut edges = Vec::new();
    let mut processings = Vec::new();
    for &(from, to) in &model.edges {
        let (inner_from, inner_to) = (is_within(model, from, path), is_within(model, to, path));
        if !inner_from && !inner_to {
            continue;
        }
        let start = if inner_from {
            find(model, from, path, scope_nodes, false)
        } else {
            Some((border(scope_nodes, nodes, to, End::Top), 0))
        };
        let end = if inner_to {
            find(model, to, path, scope_nodes, true)
        } else {
            Some((border(scope_nodes, nodes, from, End::Bottom), 0))
        };
        let (Some(start), Some(end)) = (start, end) else { continue };
        // A connection inside one compound is drawn there.
        if start.0 == end.0
            && matches!(scope_nodes.get(start.0), Some(ScopeNode::Scope(..)))
            && !leaves(model, from, to, path)
        {
            continue;
        }
        if !edges.iter().any(|edge: &Edge| edge.from == start && edge.to == end) {
            edges.push(Edge { from: start, to: end });
            processings.push(model.processing(from));
        }
    }
    (edges, processings)
}

fn element_path(model: &Model, port: Port) -> &[String] {
    model.elements.get(port.element).map_or(&[], |element| &element.path)
}

fn is_within(model: &Model, port: Port, path: &[&str]) -> bool {
    let of = element_path(model, port);
    of.len() >= path.len() && of.iter().zip(path).all(|(one, other)| one == other)
}

/// Whether two ports are in different nodes of the scope.
fn leaves(model: &Model, from: Port, to: Port, path: &[&str]) -> bool {
    element_path(model, from).get(path.len()) != element_path(model, to).get(path.len())
}

/// The node and port in a scope that represents, or contains, a port of an element.
fn find(
    model: &Model,
    port: Port,
    path: &[&str],
    scope_nodes: &[ScopeNode],
    is_input: bool,
) -> Option<(usize, usize)> {
    let inner = element_path(model, port).get(path.len());
    let index = scope_nodes.iter().position(|scope_node| match (scope_node, inner) {
        (ScopeNode::Element(element), None) => *element == port.element,
        (ScopeNode::Scope(name, _), Some(inner)) => name == inner,
        _ => false,
    })?;
    match scope_nodes.get(index) {
        Some(ScopeNode::Scope(_, picture)) => {
            let points = if is_input { &picture.entries } else { &picture.exits };
            Some((index, points.iter().position(|(known, _)| *known == port).unwrap_or(0)))
        }
        _ => Some((index, port.port)),
    }
}

/// The border point for lines from or to a port in the scope.
fn border(scope_nodes: &mut Vec<ScopeNode>, nodes: &mut Vec<Node>, port: Port, end: End) -> usize {
    let known = scope_nodes.iter().position(|scope_node| match (scope_node, end) {
        (ScopeNode::Entry(known), End::Top) | (ScopeNode::Exit(known), End::Bottom) => *known == port,
        _ => false,
    });
    known.unwrap_or_else(|| {
        scope_nodes.push(if end == End::Top { ScopeNode::Entry(port) } else { ScopeNode::Exit(port) });
        nodes.push(Node { end: Some(end), inputs: vec![0.0], outputs: vec![0.0], ..Node::default() });
        nodes.len() - 1
    })
}

/// The lines of an element's text: its name and class, and the start of its configuration.
fn text(model: &Model, element: usize) -> Vec<String> {
    let Some(element) = model.elements.get(element) else { return Vec::new() };
    let mut lines = match &element.name {
        Some(name) => vec![name.clone(), element.class.clone()],
        None => vec![element.class.clone()],
    };
    if !element.config.is_empty() {
        lines.push(crate::columns::shorten(&element.config, MAX_CONFIG_LENGTH));
    }
    lines
}

fn element_node(model: &Model, index: usize) -> Node {
    let lines = text(model, index);
    let ports = model.elements.get(index).map(|element| &element.ports);
    let counts = ports.map_or((0, 0), |ports| (ports.inputs.len(), ports.outputs.len()));
    let letters = |(row, line): (usize, &String)| {
        line.chars().count() as f64 * if row == 0 { LETTER } else { SMALL_LETTER }
    };
    let text_width = lines.iter().enumerate().map(letters).fold(0.0, f64::max) + 2.0 * BOX_PADDING;
    let width = text_width.max(counts.0.max(counts.1) as f64 * PORT_GAP + BOX_PADDING).max(70.0);
    let ports = |count: usize| -> Vec<f64> {
        (0..count).map(|port| width * (port as f64 + 0.5) / count as f64).collect()
    };
    let height = 20.0 + 15.0 * lines.len() as f64;
    Node { width, height, inputs: ports(counts.0), outputs: ports(counts.1), end: None }
}

impl Picture {
    /// Adds the contents of a compound, and extends the lines to its border.
    fn take_in(&mut self, inner: Picture, at: (f64, f64), size: (f64, f64)) {
        let (x, y) = (at.0 + FRAME_PADDING, at.1 + FRAME_PADDING + TITLE);
        let bottom = at.1 + size.1;
        let moved = |point: (f64, f64)| (point.0 + x, point.1 + y);
        for frame in inner.frames {
            self.frames.push(Frame { at: moved(frame.at), ..frame });
        }
        for element in inner.boxes {
            self.boxes.push(ElementBox { at: moved(element.at), ..element });
        }
        for line in inner.lines {
            let points: Vec<_> = line.points.into_iter().map(moved).collect();
            self.lines.push(Line { points, ..line });
        }
        let stub = |points: Vec<(f64, f64)>| Line { points, processing: Processing::Push, ends: false };
        for (_, entry) in inner.entries {
            self.lines.push(stub(vec![(x + entry, at.1), (x + entry, y)]));
        }
        for (_, exit) in inner.exits {
            self.lines.push(stub(vec![(x + exit, bottom - FRAME_PADDING), (x + exit, bottom)]));
        }
    }
}
