//! SVG output of a configuration.

use std::fmt::Write;

use super::model::{Element, Model};
use super::picture::{ElementBox, Line, Picture, draw};
use super::ports::Processing;

/// Margin around the picture.
const MARGIN: f64 = 24.0;
/// Height of the legend.
const LEGEND: f64 = 44.0;
/// Half the size of a port symbol.
const PORT: f64 = 4.0;
/// How far a line that leads back swings out, and the height difference below which two points are level.
const TURN: f64 = 22.0;
const LEVEL: f64 = 0.5;
/// Colours of the element groups: border and background of a box. No two are equal.
const COLOURS: &[(&str, &str, &str)] = &[
    ("sources", "#2f855a", "#e9f9ef"),
    (SINKS, "#9b2c2c", "#fff0f0"),
    ("devices", "#1a365d", "#e6edf7"),
    ("trace", "#0987a0", "#e3f8fc"),
    ("changing", "#718096", "#f7fafc"),
    ("counting", "#4a5568", "#edf2f7"),
    ("storing", "#b7791f", "#fffbe6"),
    ("shaping", "#c05621", "#fff3e8"),
    ("scheduling", "#8b5e34", "#f7efe6"),
    ("switching", "#6b46c1", "#f3edff"),
    ("classify", "#9f3fbf", "#faebff"),
    ("lookup", "#3c366b", "#eaeafc"),
    ("ipsec", "#22543d", "#e2f5e9"),
    ("ethernet", "#2b6cb0", "#e6f2fd"),
    ("ip", "#2c7a7b", "#e0f7f5"),
    ("icmp", "#d53f8c", "#ffeaf4"),
    ("transport", "#5a8f00", "#f2fbe0"),
    ("rewriting", "#97266d", "#fbe6f3"),
    ("aggregation", "#7b341e", "#fbe9e3"),
    ("information", "#a0aec0", "#fbfcfe"),
    ("control", "#1a202c", "#f4f4f5"),
    ("testing", "#c9a400", "#fffde0"),
];
/// The group of elements such as `Discard`, which the reference lists beside the sources but where packets end.
const SINKS: &str = "sinks";
/// The colours of other groups.
const OTHER: (&str, &str) = ("#4a5568", "#ffffff");
const STYLE: &str = "\
text { font: 11px 'DejaVu Sans', Verdana, sans-serif; fill: #4a5568; text-anchor: middle }\n\
.name { font-weight: bold; font-size: 12px; fill: #1a202c }\n\
.title { font-weight: bold; text-anchor: start }\n\
.legend { text-anchor: start }\n\
.frame { fill: #edf2f7; fill-opacity: .6; stroke: #a0aec0; stroke-dasharray: 5 3 }\n\
.line { fill: none; stroke: #4a5568; stroke-width: 1.3 }\n\
.pull { stroke-dasharray: 6 3 }\n\
.port { stroke: #2d3748; stroke-width: 1.1 }\n";

/// Draws a configuration.
pub(crate) fn svg(model: &Model) -> String {
    let picture = draw(model);
    let legend = legend(model);
    let legend_width = legend.iter().map(|(name, _)| item_width(name)).sum::<f64>();
    let (width, height) = (picture.width.max(legend_width).ceil() + 2.0 * MARGIN, picture.height.ceil());
    let total = height + 2.0 * MARGIN + LEGEND;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{total}\" \
         viewBox=\"0 0 {width} {total}\">\n<style>\n{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let left = (width - picture.width) / 2.0;
    let _ = writeln!(out, "<g transform=\"translate({left:.1} {MARGIN})\">");
    frames(&picture, &mut out);
    for line in &picture.lines {
        draw_line(line, &mut out);
    }
    for element in &picture.boxes {
        draw_box(model, element, &mut out);
    }
    out += "</g>\n";
    let mut x = MARGIN;
    let y = height + 2.0 * MARGIN + LEGEND / 2.0;
    for (name, mark) in legend {
        let _ = writeln!(
            out,
            "<g transform=\"translate({x:.1} {y:.1})\">{mark}<text class=\"legend\" x=\"14\" y=\"4\">{name}</text></g>"
        );
        x += item_width(&name);
    }
    out + "</svg>\n"
}

fn item_width(name: &str) -> f64 {
    36.0 + 6.6 * name.chars().count() as f64
}

/// The groups and the kinds of ports that occur, with their symbols.
fn legend(model: &Model) -> Vec<(String, String)> {
    let mut groups: Vec<&str> = model.elements.iter().map(group).collect();
    sorting::sort(&mut groups);
    groups.dedup();
    let mark = |(border, ground): (&str, &str)| {
        format!(
            "<rect x=\"-4\" y=\"-5\" width=\"12\" height=\"10\" rx=\"2\" fill=\"{ground}\" stroke=\"{border}\" stroke-width=\"1.5\"/>"
        )
    };
    let has_pull = model.edges.iter().any(|(from, _)| model.processing(*from) == Processing::Pull);
    let mut ports = vec![("push", Processing::Push)];
    if has_pull {
        ports.push(("pull", Processing::Pull));
    }
    let ports = ports.into_iter().map(|(name, processing)| (name.to_string(), output(2.0, 0.0, processing)));
    let groups = groups.into_iter().filter(|group| !group.is_empty());
    groups.map(|group| (group.to_string(), mark(colours(group)))).chain(ports).collect()
}

/// The group of an element in the picture.
fn group(element: &Element) -> &'static str {
    let is_sink = element.ports.outputs.is_empty() && !element.ports.inputs.is_empty();
    if element.group == "sources" && is_sink { SINKS } else { element.group }
}

fn colours(group: &str) -> (&'static str, &'static str) {
    let known = COLOURS.iter().find(|(name, ..)| *name == group);
    known.map_or(OTHER, |(_, border, ground)| (border, ground))
}

fn frames(picture: &Picture, out: &mut String) {
    for frame in &picture.frames {
        let ((x, y), (width, height)) = (frame.at, frame.size);
        let _ = writeln!(
            out,
            "<rect class=\"frame\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"8\"/>\
             <text class=\"title\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 10.0,
            y + 17.0,
            escaped(&frame.name)
        );
    }
}

/// Draws curves that leave and arrive vertically.
fn draw_line(line: &Line, out: &mut String) {
    let Some((first, rest)) = line.points.split_first() else { return };
    let mut path = format!("M{:.1} {:.1}", first.0, first.1);
    let mut before = *first;
    let mut has_risen = false;
    for (number, &point) in rest.iter().enumerate() {
        // The port symbol is the arrowhead: the line ends at its upper edge.
        let end = if number + 1 == rest.len() && line.ends { (point.0, point.1 - PORT) } else { point };
        let down = end.1 - before.1;
        has_risen |= down < -LEVEL;
        if (before.0 - end.0).abs() < LEVEL {
            let _ = write!(path, " L{:.1} {:.1}", end.0, end.1);
        } else {
            // Between points at one height, a line that leads back turns: below, or above once it has risen.
            let (leaves, arrives) = match down {
                down if down.abs() >= LEVEL => (down / 2.0, -down / 2.0),
                _ if has_risen => (-TURN, -TURN),
                _ => (TURN, TURN),
            };
            let (one, other) = (before.1 + leaves, end.1 + arrives);
            let (from, (to, low)) = (before.0, end);
            let _ = write!(path, " C{from:.1} {one:.1} {to:.1} {other:.1} {to:.1} {low:.1}");
        }
        before = point;
    }
    let class = if line.processing == Processing::Pull { "line pull" } else { "line" };
    let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}\"/>");
}

fn draw_box(model: &Model, element: &ElementBox, out: &mut String) {
    let Some(described) = model.elements.get(element.element) else { return };
    let ((x, y), (width, height)) = (element.at, element.size);
    let (border, ground) = colours(group(described));
    let name = described.name.as_deref().unwrap_or("");
    let tip = format!("{name} :: {}({})", described.class, described.config);
    let _ = writeln!(
        out,
        "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"5\" \
         fill=\"{ground}\" stroke=\"{border}\" stroke-width=\"1.5\"/>",
        escaped(tip.trim_start_matches(" :: "))
    );
    for (row, line) in element.text.iter().enumerate() {
        let class = if row == 0 { " class=\"name\"" } else { "" };
        let (middle, base) = (x + width / 2.0, y + 21.0 + 15.0 * row as f64);
        let _ = writeln!(out, "<text{class} x=\"{middle:.1}\" y=\"{base:.1}\">{}</text>", escaped(line));
    }
    for (offset, processing) in element.inputs.iter().zip(&described.ports.inputs) {
        *out += &input(x + offset, y, *processing);
    }
    for (offset, processing) in element.outputs.iter().zip(&described.ports.outputs) {
        *out += &output(x + offset, y + height, *processing);
    }
    *out += "</g>\n";
}

/// Click's symbols: filled ports push, empty ones pull; inputs are triangles, outputs squares.
fn fill(processing: Processing) -> &'static str {
    match processing {
        Processing::Push => "#2d3748",
        Processing::Pull => "#ffffff",
        Processing::Agnostic => "#cbd5e0",
    }
}

fn input(x: f64, y: f64, processing: Processing) -> String {
    let (left, right, top, tip) = (x - PORT - 1.0, x + PORT + 1.0, y - PORT, y + PORT);
    let fill = fill(processing);
    format!(
        "<path class=\"port\" fill=\"{fill}\" d=\"M{left:.1} {top:.1} L{right:.1} {top:.1} L{x:.1} {tip:.1} Z\"/>\n"
    )
}

fn output(x: f64, y: f64, processing: Processing) -> String {
    let (left, top, size, fill) = (x - PORT, y - PORT, 2.0 * PORT, fill(processing));
    format!(
        "<rect class=\"port\" fill=\"{fill}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{size}\" height=\"{size}\"/>\n"
    )
}

/// Escapes text for XML, and removes the control characters that XML forbids.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}')
            }
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::registry;
    use std::collections::BTreeSet;

    #[test]
    fn every_group_has_its_own_colours() {
        let groups: BTreeSet<&str> = registry().classes().map(|class| class.info.group).collect();
        for group in groups {
            assert!(COLOURS.iter().any(|(name, ..)| *name == group), "{group}");
        }
        let borders: BTreeSet<&str> = COLOURS.iter().map(|(_, border, _)| *border).collect();
        let grounds: BTreeSet<&str> = COLOURS.iter().map(|(.., ground)| *ground).collect();
        assert_eq!((borders.len(), grounds.len()), (COLOURS.len(), COLOURS.len()));
    }
}
