//! The live area of the terminal, which is redrawn.
//!
//! Lines printed in the meantime appear above it. If standard error is not a terminal, nothing is drawn.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The default size of a terminal: columns and lines.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// The number of lines drawn. Shards print from threads of their own.
static DRAWN_LINES: AtomicUsize = AtomicUsize::new(0);

/// Whether there is a terminal to draw on.
pub(crate) fn is_available() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// Columns and lines of the terminal.
pub(crate) fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => DEFAULT_SIZE,
    }
}

/// The width of a stream's terminal in columns.
pub(crate) fn columns(stream: &impl std::os::fd::AsFd) -> usize {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => DEFAULT_SIZE.0,
    }
}

/// Draws lines in place of the previous ones. They must fit the width of the terminal.
pub(crate) fn draw(lines: &[String]) {
    let mut out = move_up();
    for line in lines {
        let _ = write!(out, "\r{line}\x1b[K\n");
    }
    out += "\x1b[J";
    write(&out);
    DRAWN_LINES.store(lines.len(), Ordering::Relaxed);
}

/// Clears the live area.
pub(crate) fn clear() {
    if DRAWN_LINES.load(Ordering::Relaxed) > 0 {
        write(&(move_up() + "\r\x1b[J"));
        DRAWN_LINES.store(0, Ordering::Relaxed);
    }
}

/// Prints a line on standard error, above the live area.
pub(crate) fn print(text: &str) {
    clear();
    write(&format!("{text}\n"));
}

/// The control sequence that moves the cursor to the first line of the live area.
fn move_up() -> String {
    match DRAWN_LINES.load(Ordering::Relaxed) {
        0 => String::new(),
        lines => format!("\x1b[{lines}A"),
    }
}

fn write(text: &str) {
    // If the terminal is gone, the output is not needed.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The terminal's input in raw mode: single keys without echo, until dropped.
pub(crate) struct Keys {
    saved: Option<Termios>,
    is_ended: Arc<AtomicBool>,
}

/// Ctrl-D: the end of the input, or a signal that ends the program.
const END_OF_INPUT: u8 = 4;

impl Keys {
    /// Enables raw mode, if standard input is a terminal.
    pub(crate) fn new() -> Keys {
        let is_ended = Arc::new(AtomicBool::new(false));
        // Without this handler, SIGTERM would end the program with the terminal still in raw mode.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGTERM, is_ended.clone());
        let saved = tcgetattr(std::io::stdin()).ok();
        if let Some(saved) = &saved {
            let mut single = saved.clone();
            // Ctrl-C arrives as a key, so that the terminal can be restored.
            single.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &single);
        }
        Keys { saved, is_ended }
    }

    /// Whether a key closes the view: q, Escape, Ctrl-C, Ctrl-D.
    pub(crate) fn ends(key: u8) -> bool {
        matches!(key, b'q' | 27 | 3 | END_OF_INPUT)
    }

    /// The next key, if one is pressed within `time`.
    pub(crate) fn wait(&self, time: Duration) -> Option<u8> {
        let Ok(limit) = Timespec::try_from(time) else { return None };
        if self.saved.is_none() {
            std::thread::sleep(time);
            return self.is_ended.load(Ordering::Relaxed).then_some(END_OF_INPUT);
        }
        let stdin = std::io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        let ready = poll(&mut polled, Some(&limit));
        if self.is_ended.load(Ordering::Relaxed) {
            return Some(END_OF_INPUT);
        }
        let mut key = [0];
        match ready {
            Ok(1..) => match rustix::io::read(&stdin, &mut key) {
                Ok(1..) => Some(key[0]),
                _ => Some(END_OF_INPUT),
            },
            _ => None,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, saved);
        }
    }
}
