//! Standard output. A closed pipe ends the program without an error.
//!
//! The program's output and what elements write to the file `-` share one buffer, so that their order is preserved.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;

static BUFFER: LazyLock<Mutex<BufWriter<Stdout>>> =
    LazyLock::new(|| Mutex::new(BufWriter::new(io::stdout())));

fn buffer() -> MutexGuard<'static, BufWriter<Stdout>> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard output as a writer for elements. It is flushed on drop.
pub(crate) struct SharedStdout;

impl Write for SharedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        buffer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        buffer().flush()
    }
}

impl Drop for SharedStdout {
    fn drop(&mut self) {
        // A closed pipe is not an error.
        let _ = buffer().flush();
    }
}

/// Ends the program without an error as soon as the reader of standard output closes it, after running `last`. For
/// commands that may wait long for the next thing to print, which would not notice before they write again.
pub(crate) fn end_with_reader(last: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        if wait_for_reader(&io::stdout()) {
            last();
            std::process::exit(0);
        }
    });
}

/// Waits until the reader of a pipe or socket is gone. Returns false if the stream can't be watched.
fn wait_for_reader(stream: &impl std::os::fd::AsFd) -> bool {
    loop {
        // Errors and hang-ups are reported without being asked for.
        let mut polled = [PollFd::new(stream, PollFlags::empty())];
        match poll(&mut polled, None) {
            Ok(_) => return polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Prints text.
pub(crate) fn text(text: &str) {
    bytes(text.as_bytes());
}

/// Prints raw bytes.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = buffer();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints a value as one line of JSON, for programs that read a stream.
pub(crate) fn json_line(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(out) => text(&(out + "\n")),
        Err(error) => eprintln!("clickbox: {error}"),
    }
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) {
    text(&to_json(value));
}

/// A value as indented JSON. If it can't be represented, prints the error and returns an empty string.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    match serde_json::to_string_pretty(value) {
        Ok(out) => out + "\n",
        Err(error) => {
            eprintln!("clickbox: {error}");
            String::new()
        }
    }
}
