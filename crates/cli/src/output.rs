//! Printing to standard output, where a closed pipe is the end and no failure.
//!
//! What the program prints and what elements write to the file `-` passes through one buffer, so that it comes out in
//! the order in which it was written.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

static BUFFER: LazyLock<Mutex<BufWriter<Stdout>>> =
    LazyLock::new(|| Mutex::new(BufWriter::new(io::stdout())));

fn buffer() -> MutexGuard<'static, BufWriter<Stdout>> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard output as a file among others; what it still holds back goes out when it is dropped.
pub(crate) struct Shared;

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        buffer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        buffer().flush()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A reader that has gone away wants nothing more.
        let _ = buffer().flush();
    }
}

/// Prints text.
pub(crate) fn text(text: &str) {
    bytes(text.as_bytes());
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = buffer();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints a value as one line of JSON, for programs that read as it comes.
pub(crate) fn json_line(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(out) => text(&(out + "\n")),
        Err(error) => eprintln!("clickbox: {error}"),
    }
}

/// Prints a value as JSON, for people too.
pub(crate) fn json(value: &impl Serialize) {
    text(&to_json(value));
}

/// A value as JSON, for people too. Nothing but the reason, where it has none.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    match serde_json::to_string_pretty(value) {
        Ok(out) => out + "\n",
        Err(error) => {
            eprintln!("clickbox: {error}");
            String::new()
        }
    }
}
