//! Click's notations for ports: port counts, processing (push or pull) and flow codes.

use alloc::vec::Vec;

/// How a port moves packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortMode {
    Push,
    Pull,
    Agnostic,
}

/// The port counts of a class whose element has the given numbers of connected ports: `1/1-2`, `-/=`.
pub(crate) fn port_counts(notation: &str, used: (usize, usize)) -> (usize, usize) {
    let (inputs, outputs) = notation.split_once('/').unwrap_or((notation, notation));
    let count = range(inputs, used.0);
    let outputs = match outputs.strip_prefix('=') {
        Some(more) => count + more.bytes().filter(|byte| *byte == b'+').count(),
        None => range(outputs, used.1),
    };
    // The number of inputs equals the number of outputs.
    let inputs = if inputs.starts_with('=') { outputs } else { count };
    (inputs, outputs)
}

fn range(notation: &str, used: usize) -> usize {
    let (low, high) = match notation.split_once('-') {
        None => (notation, notation),
        Some(("", "")) => ("0", ""),
        Some(pair) => pair,
    };
    let low = low.parse().unwrap_or(0);
    let high = if high.is_empty() { usize::MAX } else { high.parse().unwrap_or(low) };
    used.clamp(low, high.max(low))
}

/// The processing of each input and output: `a/ah`. The last letter of a side applies to all further ports.
pub(crate) fn processing(notation: &str, ports: (usize, usize)) -> (Vec<PortMode>, Vec<PortMode>) {
    let (inputs, outputs) = notation.split_once('/').unwrap_or((notation, notation));
    let side = |letters: &str, count: usize| {
        let mut last = PortMode::Agnostic;
        let mut letters = letters.bytes();
        let each = |_| {
            last = match letters.next() {
                Some(b'h') => PortMode::Push,
                Some(b'l') => PortMode::Pull,
                Some(b'a') => PortMode::Agnostic,
                _ => last,
            };
            last
        };
        (0..count).map(each).collect()
    };
    (side(inputs, ports.0), side(outputs, ports.1))
}

/// A flow code: at which outputs the packets of an input may leave, as in `x/x`, `xy/[xy]x`, `#/#`, `#/[^#]`.
pub(crate) struct FlowCode<'n> {
    inputs: Vec<PortCode<'n>>,
    outputs: Vec<PortCode<'n>>,
}

/// The letters of a port, and whether they mean the set or its complement.
#[derive(Clone, Copy)]
struct PortCode<'n> {
    is_complement: bool,
    letters: &'n str,
}

impl<'n> FlowCode<'n> {
    /// Parses a flow code.
    pub(crate) fn parse(notation: &'n str) -> FlowCode<'n> {
        let (inputs, outputs) = notation.split_once('/').unwrap_or((notation, notation));
        FlowCode { inputs: port_codes(inputs), outputs: port_codes(outputs) }
    }

    /// Whether packets from `input` may leave at `output`.
    pub(crate) fn connects(&self, input: usize, output: usize) -> bool {
        // The last code of a side applies to all further ports.
        let at = |codes: &[PortCode<'n>], port: usize| codes.get(port).or(codes.last()).copied();
        let (Some(from), Some(to)) = (at(&self.inputs, input), at(&self.outputs, output)) else {
            return false;
        };
        let found = from.letters.bytes().any(|letter| {
            let same = to.letters.contains(char::from(letter));
            if letter == b'#' && same { input == output } else { same }
        });
        (found != to.is_complement) != from.is_complement
    }

    /// Whether each input leads only to the output of the same number: `#/#`.
    pub(crate) fn is_parallel(&self) -> bool {
        let is_number =
            |codes: &[PortCode<'n>]| matches!(codes, [PortCode { is_complement: false, letters: "#" }]);
        is_number(&self.inputs) && is_number(&self.outputs)
    }
}

/// The codes of one side, up to the first truncated one.
fn port_codes(side: &str) -> Vec<PortCode<'_>> {
    let mut codes = Vec::new();
    let mut rest = side;
    while !rest.is_empty() {
        let end = match rest.starts_with('[') {
            true => rest.find(']').map(|end| end + 1),
            false => Some(1),
        };
        let Some((code, behind)) = end.and_then(|end| rest.split_at_checked(end)) else { break };
        let letters = code.trim_start_matches('[').trim_end_matches(']');
        codes.push(match letters.strip_prefix('^') {
            Some(letters) => PortCode { is_complement: true, letters },
            None => PortCode { is_complement: false, letters },
        });
        rest = behind;
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_ports() {
        let check =
            |notation, used, expected| assert_eq!(port_counts(notation, used), expected, "{notation}");
        check("1/1", (0, 3), (1, 1));
        check("1/1-2", (1, 2), (1, 2));
        check("1/1-2", (1, 5), (1, 2));
        check("-/=", (3, 1), (3, 3));
        check("-/-", (3, 1), (3, 1));
        check("1-/=+", (2, 9), (2, 3));
        check("0/0-", (0, 4), (0, 4));
        check("1/0", (1, 0), (1, 0));
    }

    #[test]
    fn follows_flow_codes() {
        let flows = |notation, input, output| FlowCode::parse(notation).connects(input, output);
        assert!(FlowCode::parse("#/#").is_parallel() && !FlowCode::parse("#/[^#]").is_parallel());
        assert!(flows("x/x", 0, 5) && flows("x/x", 3, 0));
        assert!(!flows("x/y", 0, 0));
        assert!(flows("#/#", 2, 2) && !flows("#/#", 1, 2));
        assert!(!flows("#/[^#]", 2, 2) && flows("#/[^#]", 1, 2));
        assert!(flows("xy/[xy]x", 1, 0) && flows("xy/[xy]x", 0, 0));
        assert!(flows("xy/[xy]x", 0, 1) && !flows("xy/[xy]x", 1, 1));
    }
}
