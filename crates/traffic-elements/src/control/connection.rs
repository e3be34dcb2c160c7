//! A control connection: unparsed input and unsent output.

use element::prelude::*;
use element::{Descriptor, HandlerTarget, Io, Stream};

use super::protocol::{Parsed, Progress, parse};

/// Bytes read from a connection at a time, so that one client can't delay the others.
const READ_SIZE: usize = 1 << 14;
/// Unsent bytes above which no more commands are read: a client that does not read its replies is not served.
const MAX_WAITING: usize = 1 << 20;

/// A control connection.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    /// Number of processed bytes in `input`.
    used: usize,
    progress: Progress,
    /// Whether `input` contains no complete command.
    needs_input: bool,
    output: Vec<u8>,
    /// Number of sent bytes in `output`.
    sent: usize,
    input_closed: bool,
    output_closed: bool,
    /// A write that goes on in steps: the handler, and its name in the command. Later commands wait for it.
    pub(super) long_write: Option<(HandlerTarget, String)>,
}

impl Connection {
    /// Creates a connection and queues the greeting.
    pub(super) fn new(stream: Box<dyn Stream>, greeting: &str) -> Connection {
        Connection {
            stream,
            input: Vec::new(),
            used: 0,
            progress: Progress::default(),
            needs_input: true,
            output: greeting.as_bytes().to_vec(),
            sent: 0,
            input_closed: false,
            output_closed: false,
            long_write: None,
        }
    }

    /// The descriptor to watch.
    pub(super) fn descriptor(&self) -> Descriptor {
        self.stream.descriptor()
    }

    /// The peer's address, in Click's notation.
    pub(super) fn peer(&self) -> Option<String> {
        self.stream.peer().map(|peer| peer.replace(':', "."))
    }

    /// Reads at most `READ_SIZE` bytes, after all previous commands have been processed.
    pub(super) fn fill(&mut self) {
        if !self.needs_input || self.input_closed || self.is_backlogged() || self.long_write.is_some() {
            return;
        }
        let before = self.input.len();
        self.input.resize(before + READ_SIZE, 0);
        let result = self.stream.read(self.input.get_mut(before..).unwrap_or_default());
        let count = if let Ok(Io::Done(count)) = result { count } else { 0 };
        self.input.truncate(before + count);
        self.input_closed = matches!(result, Ok(Io::Closed) | Err(_));
    }

    /// Removes and returns the next item of the input; `None` if none is complete.
    pub(super) fn next(&mut self) -> Option<Parsed> {
        let rest = self.input.get(self.used..).unwrap_or_default();
        if self.is_backlogged() || self.long_write.is_some() {
            return None;
        }
        self.needs_input = rest.is_empty();
        if self.needs_input {
            return None;
        }
        let parsed = parse(rest, self.input_closed, self.progress);
        self.progress = Progress::default();
        match &parsed {
            Parsed::Incomplete(progress) => {
                self.progress = *progress;
                self.needs_input = true;
                return None;
            }
            Parsed::Blank(used) | Parsed::Command(used, _) | Parsed::Bad(used, ..) => self.used += used,
            Parsed::TooBig(..) => self.close(),
        }
        if self.used >= self.input.len() {
            self.input.clear();
            self.used = 0;
        } else if self.used > READ_SIZE {
            self.input.drain(..self.used);
            self.used = 0;
        }
        Some(parsed)
    }

    /// Stops reading. The connection ends when all output is sent.
    pub(super) fn close(&mut self) {
        self.input = Vec::new();
        self.used = 0;
        self.input_closed = true;
    }

    /// Queues a reply line; `more` marks that others follow. Unprintable characters are escaped as in Click.
    pub(super) fn line(&mut self, code: u16, text: &str, more: bool) {
        self.output.extend_from_slice(format!("{code}{}", if more { '-' } else { ' ' }).as_bytes());
        for byte in text.replace(['‘', '’'], "'").bytes() {
            match byte {
                32..127 => self.output.push(byte),
                0..32 => self.output.extend_from_slice(&[b'^', byte + 64]),
                _ => self.output.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            }
        }
        self.output.extend_from_slice(b"\r\n");
    }

    /// Queues a reply line, and the lines of `details` if any.
    pub(super) fn lines(&mut self, code: u16, text: &str, details: &str) {
        if details.is_empty() {
            return self.line(code, text, false);
        }
        self.line(code, &format!("{text}:"), true);
        let mut lines = details.lines().peekable();
        while let Some(line) = lines.next() {
            self.line(code, line, lines.peek().is_some());
        }
    }

    /// Queues reply data.
    pub(super) fn data(&mut self, data: &[u8]) {
        self.output.extend_from_slice(format!("DATA {}\r\n", data.len()).as_bytes());
        self.output.extend_from_slice(data);
    }

    /// Sends pending output.
    pub(super) fn flush(&mut self) {
        while let Some(rest) = self.output.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(Io::Done(count)) if count > 0 => self.sent += count,
                Ok(Io::Wait | Io::Done(_)) => return,
                Ok(Io::Closed) | Err(_) => {
                    self.output_closed = true;
                    return;
                }
            }
        }
        self.output.clear();
        self.sent = 0;
    }

    /// Whether the connection is finished.
    pub(super) fn is_finished(&self) -> bool {
        self.output_closed || (self.input_closed && self.input.is_empty() && self.output.is_empty())
    }

    /// Whether to watch for input and for writability. Remaining commands are processed when the connection is
    /// writable.
    pub(super) fn wants(&self) -> (bool, bool) {
        let reads = self.needs_input && !self.input_closed && !self.is_backlogged();
        (reads, !self.needs_input || !self.output.is_empty())
    }

    fn is_backlogged(&self) -> bool {
        self.output.len() - self.sent > MAX_WAITING
    }
}
