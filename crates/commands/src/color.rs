//! Whether output is styled, and the control sequences for it.
//!
//! The variables `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM` mean the same as to clap, which styles the help.

use std::ffi::OsString;
use std::io::IsTerminal;

/// Whether output to a stream is styled.
pub(crate) fn is_enabled(stream: &impl IsTerminal) -> bool {
    is_enabled_by(|name| std::env::var_os(name), || stream.is_terminal())
}

fn is_enabled_by(variable: impl Fn(&str) -> Option<OsString>, is_terminal: impl Fn() -> bool) -> bool {
    let is = |name, text: &str| variable(name).is_some_and(|value| value == text);
    let is_on = |name| variable(name).is_some_and(|value| !value.is_empty() && value != "0");
    if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return false;
    }
    is_on("CLICOLOR_FORCE") || (!is("CLICOLOR", "0") && !is("TERM", "dumb") && is_terminal())
}

/// The control sequences of styles, empty where output is not styled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) bold: &'static str,
    pub(crate) dim: &'static str,
    pub(crate) red: &'static str,
    pub(crate) green: &'static str,
    pub(crate) yellow: &'static str,
    /// Ends a style.
    pub(crate) plain: &'static str,
}

impl Palette {
    /// The styles of an ANSI terminal.
    pub(crate) const ANSI: Palette = Palette {
        bold: "\x1b[1m",
        dim: "\x1b[2m",
        red: "\x1b[31m",
        green: "\x1b[32m",
        yellow: "\x1b[33m",
        plain: "\x1b[0m",
    };

    /// No styles.
    pub(crate) const NONE: Palette = Palette { bold: "", dim: "", red: "", green: "", yellow: "", plain: "" };

    /// The styles for a stream.
    pub(crate) fn of(stream: &impl IsTerminal) -> Palette {
        if is_enabled(stream) { Palette::ANSI } else { Palette::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_on_colors() {
        let check = |variables: &[(&str, &str)], is_terminal: bool, expected: bool| {
            let value = |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(is_enabled_by(value, || is_terminal), expected, "{variables:?}, {is_terminal}");
        };
        check(&[], true, true);
        check(&[], false, false);
        check(&[("TERM", "xterm-256color")], true, true);
        check(&[("TERM", "dumb")], true, false);
        check(&[("NO_COLOR", "1")], true, false);
        check(&[("NO_COLOR", "0")], true, false);
        check(&[("NO_COLOR", "")], true, true);
        check(&[("CLICOLOR", "0")], true, false);
        check(&[("CLICOLOR", "1")], true, true);
        check(&[("CLICOLOR", "1")], false, false);
        check(&[("CLICOLOR_FORCE", "1")], false, true);
        check(&[("CLICOLOR_FORCE", "0")], false, false);
        check(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], true, false);
    }
}
