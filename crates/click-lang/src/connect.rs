//! The ports that a connector joins.

use crate::tree::Ports;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// An element on one side of a connector, with its explicit ports.
#[derive(Clone, Debug)]
pub(crate) struct ConnectorSide {
    /// Index of the part.
    pub(crate) part: usize,
    /// The input ports written before it.
    pub(crate) inputs: Ports,
    /// The output ports written after it.
    pub(crate) outputs: Ports,
}

/// The result of a connector.
#[derive(Debug, Default)]
pub(crate) struct ConnectorLinks {
    /// Pairs of part and output port with part and input port.
    pub(crate) links: Vec<((usize, usize), (usize, usize))>,
    /// Errors in the connector.
    pub(crate) errors: Vec<String>,
}

/// One side's ports, in order.
struct ConnectorPorts<'s> {
    ports: Vec<(usize, &'s Ports)>,
    /// The number of explicit ports; an element without any counts as one.
    written: usize,
    /// Whether further ports are added as needed.
    open: bool,
}

impl<'s> ConnectorPorts<'s> {
    fn new(ports: Vec<(usize, &'s Ports)>) -> (Self, usize) {
        let written = ports.iter().map(|(_, ports)| ports.numbers.len().max(1)).sum();
        let open = ports.iter().filter(|(_, ports)| ports.open).count();
        (Self { ports, written, open: open > 0 }, open)
    }

    /// Whether no port is explicit, so that `=>` may use as many as the other side has.
    fn is_unwritten(&self) -> bool {
        self.written == 1 && self.ports.first().is_some_and(|(_, ports)| ports.numbers.is_empty())
    }

    /// Calls `each` with the ports in order, `extra` of them after the explicit ones, until it returns false.
    fn visit(&self, mut extra: usize, mut each: impl FnMut(usize, usize) -> bool) {
        for (part, ports) in &self.ports {
            let mut next = 0;
            if ports.numbers.is_empty() {
                if !each(*part, 0) {
                    return;
                }
                next = 1;
            }
            for &number in &ports.numbers {
                if !each(*part, number as usize) {
                    return;
                }
                next = number as usize + 1;
            }
            if self.open && (ports.open || (ports.numbers.is_empty() && self.written == 1)) {
                for port in next..next + core::mem::take(&mut extra) {
                    if !each(*part, port) {
                        return;
                    }
                }
            }
        }
    }
}

/// Joins the outputs of `from` to the inputs of `to`, with at most `room` links. `double` means `=>`.
pub(crate) fn connect(
    from: &[ConnectorSide],
    to: &[ConnectorSide],
    double: bool,
    room: usize,
) -> ConnectorLinks {
    let mut made = ConnectorLinks::default();
    let (mut outputs, open_outputs) =
        ConnectorPorts::new(from.iter().map(|side| (side.part, &side.outputs)).collect());
    let (mut inputs, open_inputs) =
        ConnectorPorts::new(to.iter().map(|side| (side.part, &side.inputs)).collect());
    if open_outputs + open_inputs > 1 {
        made.errors.push("at most one expandable port allowed per connection".into());
        if inputs.written < outputs.written {
            outputs.open = false;
        } else {
            inputs.open = false;
        }
    }
    if double {
        let (many_outputs, many_inputs) = (outputs.written > 1, inputs.written > 1);
        outputs.open |= outputs.is_unwritten() && many_inputs;
        inputs.open |= inputs.is_unwritten() && many_outputs;
    }
    let extra_outputs = if outputs.open { inputs.written.saturating_sub(outputs.written) } else { 0 };
    let extra_inputs = if inputs.open { outputs.written.saturating_sub(inputs.written) } else { 0 };
    let many_outputs = outputs.written > 1 || outputs.open;
    let many_inputs = inputs.written > 1 || inputs.open;
    if many_outputs && many_inputs {
        check_counts(&outputs, &inputs, double, &mut made.errors);
    }
    let total_outputs = outputs.written + extra_outputs;
    let total_inputs = inputs.written + extra_inputs;
    let wanted = match (many_outputs, many_inputs) {
        (true, true) => total_outputs.min(total_inputs),
        (true, false) => total_outputs,
        (false, true) => total_inputs,
        (false, false) => 1,
    };
    if wanted > room {
        made.errors.push("too many connections".into());
    }
    let count = wanted.min(room);
    let left = list(&outputs, extra_outputs, if many_outputs { count } else { 1 });
    let right = list(&inputs, extra_inputs, if many_inputs { count } else { 1 });
    for index in 0..count {
        let output = if many_outputs { left.get(index) } else { left.first() };
        let input = if many_inputs { right.get(index) } else { right.first() };
        if let (Some(output), Some(input)) = (output, input) {
            made.links.push((*output, *input));
        }
    }
    made
}

fn list(row: &ConnectorPorts<'_>, extra: usize, count: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    if count > 0 {
        row.visit(extra, |part, port| {
            found.push((part, port));
            found.len() < count
        });
    }
    found
}

fn check_counts(
    outputs: &ConnectorPorts<'_>,
    inputs: &ConnectorPorts<'_>,
    double: bool,
    errors: &mut Vec<String>,
) {
    if !double {
        errors.push("syntax error: many-to-many connections require ‘=>’".into());
    }
    let (n, m) = (outputs.written, inputs.written);
    if !outputs.open && !inputs.open && n != m {
        errors.push(format!("connection mismatch: {n} outputs connected to {m} inputs"));
    } else if !inputs.open && m < n {
        errors.push(format!("connection mismatch: {n} or more outputs connected to {m} inputs"));
    } else if !outputs.open && n < m {
        errors.push(format!("connection mismatch: {n} outputs connected to {m} or more inputs"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// `0:1,2 3:` means part 0 with ports 1 and 2, and part 3 without explicit ports; `+` after the ports leaves them
    /// open.
    fn side(text: &str) -> Vec<ConnectorSide> {
        let mut sides = Vec::new();
        for word in text.split(' ') {
            let (part, ports) = word.split_once(':').expect("part:ports");
            let open = ports.ends_with('+');
            let numbers = ports.trim_end_matches('+').split(',').filter_map(|n| n.parse().ok()).collect();
            let ports = Ports { numbers, open };
            let part = part.parse().expect("part");
            sides.push(ConnectorSide { part, inputs: ports.clone(), outputs: ports });
        }
        sides
    }

    #[test]
    fn ports_are_joined() {
        let check = |from: &str, double, to: &str, expected: &str, error: Option<&str>| {
            let made = connect(&side(from), &side(to), double, 100);
            let links: Vec<String> = made
                .links
                .iter()
                .map(|(from, to)| format!("{}.{}-{}.{}", from.0, from.1, to.0, to.1))
                .collect();
            assert_eq!(links.join(" "), expected, "{from} to {to}");
            assert_eq!(made.errors.first().map(|e| e.as_str()), error, "{from} to {to}");
        };
        check("0:", false, "1:", "0.0-1.0", None);
        check("0:2", false, "1:3", "0.2-1.3", None);
        check("0:", false, "1: 2:", "0.0-1.0 0.0-2.0", None);
        check("0: 0:1", false, "1:", "0.0-1.0 0.1-1.0", None);
        check("0:", true, "1: 2: 0:0,1", "0.0-1.0 0.1-2.0 0.2-0.0 0.3-0.1", None);
        check("0:0,1", true, "1:", "0.0-1.0 0.1-1.1", None);
        check("0:0,1", false, "1:", "0.0-1.0 0.1-1.0", None);
        check("0:0+", true, "1:0,1,2", "0.0-1.0 0.1-1.1 0.2-1.2", None);
        check("0:5+", true, "1: 2:", "0.5-1.0 0.6-2.0", None);
        check(
            "0:0,1",
            true,
            "1:0,1,2",
            "0.0-1.0 0.1-1.1",
            Some("connection mismatch: 2 outputs connected to 3 inputs"),
        );
        check("0:0+", true, "1:0+", "0.0-1.0", Some("at most one expandable port allowed per connection"));
        check(
            "0:0,1",
            false,
            "1:0,1",
            "0.0-1.0 0.1-1.1",
            Some("syntax error: many-to-many connections require ‘=>’"),
        );
        check(
            "0:0,1,2+",
            true,
            "1:0,1",
            "0.0-1.0 0.1-1.1",
            Some("connection mismatch: 3 or more outputs connected to 2 inputs"),
        );
    }

    #[test]
    fn a_flood_is_cut() {
        let made = connect(&side("0:"), &side("1:0,1,2,3"), true, 2);
        assert_eq!((made.links.len(), made.errors), (2, alloc::vec!["too many connections".to_string()]));
    }
}
