//! Lines and binary records of a summary dump, out of bytes that come in pieces of any size.

use alloc::string::String;
use alloc::vec::Vec;

/// The longest line or binary record: room for a whole packet's payload with every byte escaped. A longer one ends the
/// dump, so that a file without line ends can't fill the memory.
pub const MAX_LINE: usize = 1 << 19;

/// A line or record.
pub(super) enum Piece {
    /// A line of text, without its end.
    Line(String),
    /// The bytes of a binary record.
    Record(Vec<u8>),
}

/// Takes a dump apart. Feed bytes, take pieces until there are none, feed again, and finish.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The number of the line that was taken last, from 1, or of the record that comes next.
    pub(super) place: u64,
    /// Whether records come, rather than lines.
    pub(super) binary: bool,
    buffer: Vec<u8>,
    start: usize,
    finished: bool,
    /// Whether the dump was given up.
    ended: bool,
}

impl Pieces {
    /// Adds bytes of the dump.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.ended {
            return;
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Says that no more bytes will come.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// Bytes that are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Records come from now on; they are counted anew.
    pub(super) fn become_binary(&mut self) {
        (self.binary, self.place) = (true, 1);
    }

    /// The first line, as much of it as has come; `None` if something was taken already.
    pub(super) fn first_line(&self) -> Option<String> {
        let line = self.buffer.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
        (self.place == 0).then(|| String::from_utf8_lossy(line).into_owned())
    }

    /// The next piece; `None` when more bytes must be fed first, or at the end.
    ///
    /// # Errors
    ///
    /// What is wrong with the dump, once: it is given up.
    pub(super) fn next(&mut self) -> Result<Option<Piece>, &'static str> {
        let taken = if self.binary { self.take_record() } else { self.take_line() };
        if taken.is_err() {
            self.buffer.clear();
            self.start = 0;
            self.ended = true;
        }
        taken
    }

    /// Takes a line off the buffer, without its end.
    fn take_line(&mut self) -> Result<Option<Piece>, &'static str> {
        let unread = &self.buffer[self.start..];
        let (line, length) = match unread.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            // Whether a line feed belongs to it can't be told yet.
            Some(at) if unread[at] == b'\r' && unread.len() == at + 1 && !self.finished => {
                return Ok(None);
            }
            Some(at) => (&unread[..at], at + if unread[at..].starts_with(b"\r\n") { 2 } else { 1 }),
            None if unread.len() > MAX_LINE => return Err("line too long"),
            None if self.finished && !unread.is_empty() => (unread, unread.len()),
            None => return Ok(None),
        };
        let line = String::from_utf8_lossy(line).into_owned();
        self.start += length;
        self.place += 1;
        Ok(Some(Piece::Line(line)))
    }

    /// Takes a binary record off the buffer; some are lines of text.
    fn take_record(&mut self) -> Result<Option<Piece>, &'static str> {
        let Some((head, body)) = self.buffer[self.start..].split_first_chunk::<4>() else {
            return Ok(None);
        };
        let word = u32::from_be_bytes(*head);
        let length = (word & 0x7fff_ffff) as usize;
        if length < 4 {
            return Err("binary record too short");
        } else if length > MAX_LINE {
            return Err("binary record too long");
        }
        let Some(record) = body.get(..length - 4) else { return Ok(None) };
        let taken = if word >> 31 == 0 {
            Piece::Record(record.to_vec())
        } else {
            Piece::Line(String::from_utf8_lossy(record).trim_end_matches(['\0', '\n', '\r']).into())
        };
        self.start += length;
        self.place += 1;
        Ok(Some(taken))
    }
}
