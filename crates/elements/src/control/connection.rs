//! One control connection: what came in and is not yet understood, what has to go out.

use element::prelude::*;
use element::{Descriptor, Io, Stream};

use super::protocol::{Parsed, Seen, parse};

/// Bytes taken from a connection at a time, so that one can't keep the others waiting.
const MOUTHFUL: usize = 1 << 14;
/// Bytes waiting to be sent beyond which no more commands are read: a client that does not listen is not served.
const MOST_WAITING: usize = 1 << 20;

/// A connection.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    /// Bytes of `input` that are done with.
    used: usize,
    seen: Seen,
    /// Whether there is no complete command in `input`.
    hungry: bool,
    output: Vec<u8>,
    /// Bytes of `output` that are sent.
    sent: usize,
    input_closed: bool,
    output_closed: bool,
}

impl Connection {
    /// A new one, that is greeted.
    pub(super) fn new(stream: Box<dyn Stream>, greeting: &str) -> Connection {
        Connection {
            stream,
            input: Vec::new(),
            used: 0,
            seen: Seen::default(),
            hungry: true,
            output: greeting.as_bytes().to_vec(),
            sent: 0,
            input_closed: false,
            output_closed: false,
        }
    }

    /// What to watch.
    pub(super) fn descriptor(&self) -> Descriptor {
        self.stream.descriptor()
    }

    /// Who is at the other end, in Click's notation.
    pub(super) fn peer(&self) -> Option<String> {
        self.stream.peer().map(|peer| peer.replace(':', "."))
    }

    /// Reads what has come, a mouthful at most, once all commands before are done.
    pub(super) fn fill(&mut self) {
        if !self.hungry || self.input_closed || self.is_choked() {
            return;
        }
        let before = self.input.len();
        self.input.resize(before + MOUTHFUL, 0);
        let result = self.stream.read(self.input.get_mut(before..).unwrap_or_default());
        let count = if let Ok(Io::Done(count)) = result { count } else { 0 };
        self.input.truncate(before + count);
        self.input_closed = matches!(result, Ok(Io::Closed) | Err(_));
    }

    /// The next thing in the input, which is taken out; `None` if nothing is complete.
    pub(super) fn next(&mut self) -> Option<Parsed> {
        let rest = self.input.get(self.used..).unwrap_or_default();
        if self.is_choked() {
            return None;
        }
        self.hungry = rest.is_empty();
        if self.hungry {
            return None;
        }
        let parsed = parse(rest, self.input_closed, self.seen);
        self.seen = Seen::default();
        match &parsed {
            Parsed::Part(seen) => {
                self.seen = *seen;
                self.hungry = true;
                return None;
            }
            Parsed::Blank(used) | Parsed::Command(used, _) | Parsed::Bad(used, ..) => self.used += used,
            Parsed::Flood(..) => self.close(),
        }
        if self.used >= self.input.len() {
            self.input.clear();
            self.used = 0;
        } else if self.used > MOUTHFUL {
            self.input.drain(..self.used);
            self.used = 0;
        }
        Some(parsed)
    }

    /// Takes no more input: the connection ends when what is to be said has been said.
    pub(super) fn close(&mut self) {
        self.input = Vec::new();
        self.used = 0;
        self.input_closed = true;
    }

    /// Answers with a line; `more` says that others follow. Whatever can't be printed is shown as Click shows it.
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

    /// Answers with a line, and with those of `details` if there are any.
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

    /// Answers with data.
    pub(super) fn data(&mut self, data: &[u8]) {
        self.output.extend_from_slice(format!("DATA {}\r\n", data.len()).as_bytes());
        self.output.extend_from_slice(data);
    }

    /// Sends what the connection takes.
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

    /// Whether there is nothing more to expect of it.
    pub(super) fn is_over(&self) -> bool {
        self.output_closed || (self.input_closed && self.input.is_empty() && self.output.is_empty())
    }

    /// Whether to wait for input, and for room to write: commands that are left over go on with that.
    pub(super) fn wants(&self) -> (bool, bool) {
        let reads = self.hungry && !self.input_closed && !self.is_choked();
        (reads, !self.hungry || !self.output.is_empty())
    }

    fn is_choked(&self) -> bool {
        self.output.len() - self.sent > MOST_WAITING
    }
}
