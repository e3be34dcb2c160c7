//! Click's notations for ports: how many, push or pull, and which input reaches which output.

use alloc::vec::Vec;

/// How a port moves packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortMode {
    Push,
    Pull,
    Agnostic,
}

/// The numbers of ports that an element of a class has when so many are connected: `1/1-2`, `-/=`.
pub(crate) fn port_counts(notation: &str, used: (usize, usize)) -> (usize, usize) {
    let (inputs, outputs) = notation.split_once('/').unwrap_or((notation, notation));
    let count = range(inputs, used.0);
    let outputs = match outputs.strip_prefix('=') {
        Some(more) => count + more.bytes().filter(|byte| *byte == b'+').count(),
        None => range(outputs, used.1),
    };
    // A class whose inputs follow its outputs.
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

/// The processing of each input and output: `a/ah`; the last letter of a side stands for all further ports.
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

/// Whether packets that come in by `input` may go out by `output`: `x/x`, `xy/[xy]x`, `#/#`, `#/[^#]`.
pub(crate) fn flows(notation: &str, input: usize, output: usize) -> bool {
    let (inputs, outputs) = notation.split_once('/').unwrap_or((notation, notation));
    let (Some(from), Some(to)) = (port_code(inputs, input), port_code(outputs, output)) else {
        return false;
    };
    let (positive, letters) = to;
    let (from_positive, from_letters) = from;
    let found = from_letters.bytes().any(|letter| {
        let same = letters.contains(char::from(letter));
        if letter == b'#' && same { input == output } else { same }
    });
    (found == positive) == from_positive
}

/// The set of letters that port `port` has, and whether it is the set itself or its complement.
fn port_code(side: &str, port: usize) -> Option<(bool, &str)> {
    let mut rest = side;
    let mut last = None;
    for _ in 0..=port {
        if rest.is_empty() {
            break;
        }
        let end = if rest.starts_with('[') { rest.find(']')? + 1 } else { 1 };
        let code = rest.get(..end)?;
        let letters = code.trim_start_matches('[').trim_end_matches(']');
        last = Some(match letters.strip_prefix('^') {
            Some(letters) => (false, letters),
            None => (true, letters),
        });
        rest = rest.get(end..)?;
    }
    last
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
        assert!(flows("x/x", 0, 5) && flows("x/x", 3, 0));
        assert!(!flows("x/y", 0, 0));
        assert!(flows("#/#", 2, 2) && !flows("#/#", 1, 2));
        assert!(!flows("#/[^#]", 2, 2) && flows("#/[^#]", 1, 2));
        assert!(flows("xy/[xy]x", 1, 0) && flows("xy/[xy]x", 0, 0));
        assert!(flows("xy/[xy]x", 0, 1) && !flows("xy/[xy]x", 1, 1));
    }
}
