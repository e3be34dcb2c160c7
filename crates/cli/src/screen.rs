//! The part of the terminal that is drawn again and again.
//!
//! Lines that are printed meanwhile come to stand above it. Where standard error is no terminal nothing is drawn.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

/// The size of a terminal that does not say.
const USUAL: (usize, usize) = (80, 24);

thread_local! {
    /// How many lines are drawn.
    static DRAWN: Cell<usize> = const { Cell::new(0) };
}

/// Whether there is a terminal to draw on.
pub(crate) fn is_there() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// Columns and lines of the terminal.
pub(crate) fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL,
    }
}

/// Draws lines in place of those that were drawn before; they must be shorter than the terminal is wide.
pub(crate) fn draw(lines: &[String]) {
    let mut out = up();
    for line in lines {
        let _ = write!(out, "\r{line}\x1b[K\n");
    }
    out += "\x1b[J";
    put(&out);
    DRAWN.set(lines.len());
}

/// Takes away what is drawn.
pub(crate) fn clear() {
    if DRAWN.get() > 0 {
        put(&(up() + "\r\x1b[J"));
        DRAWN.set(0);
    }
}

/// Prints a line to standard error, above what is drawn.
pub(crate) fn print(text: &str) {
    clear();
    put(&format!("{text}\n"));
}

/// What moves the cursor to the first line that is drawn.
fn up() -> String {
    match DRAWN.get() {
        0 => String::new(),
        lines => format!("\x1b[{lines}A"),
    }
}

fn put(text: &str) {
    // A terminal that has gone is nobody's loss.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
