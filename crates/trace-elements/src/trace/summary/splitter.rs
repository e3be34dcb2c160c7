//! Splits a summary dump, which arrives in chunks of any size, into lines and binary records.

use alloc::string::String;
use alloc::vec::Vec;

/// Maximum length of a line or binary record: room for a packet's payload with every byte escaped. A longer one ends
/// the dump, so that a file without line ends can't fill the memory.
pub const MAX_LINE: usize = 1 << 19;

/// A line or record.
pub(super) enum RawRecord {
    /// A line of text without its terminator.
    Line(String),
    /// The bytes of a binary record.
    Record(Vec<u8>),
}

/// Splits a dump. Feed bytes, take records until there are none, feed again, and finish.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// The number of the last line, from 1, or of the next record.
    pub(super) number: u64,
    /// Whether the dump is binary.
    pub(super) binary: bool,
    buffer: Vec<u8>,
    start: usize,
    finished: bool,
    /// Whether the dump was abandoned after an error.
    ended: bool,
}

impl Splitter {
    /// Adds bytes of the dump.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.ended {
            return;
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Marks the end of the dump.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// Number of buffered bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Switches to records, which are counted from the start.
    pub(super) fn become_binary(&mut self) {
        (self.binary, self.number) = (true, 1);
    }

    /// The first line as far as it is buffered; `None` if a record was already taken.
    pub(super) fn first_line(&self) -> Option<String> {
        let line = self.buffer.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
        (self.number == 0).then(|| String::from_utf8_lossy(line).into_owned())
    }

    /// The next line or record; `None` if more bytes are needed, or at the end.
    ///
    /// # Errors
    ///
    /// The problem of the dump, reported once. The dump is then abandoned.
    pub(super) fn next(&mut self) -> Result<Option<RawRecord>, &'static str> {
        let taken = if self.binary { self.take_record() } else { self.take_line() };
        if taken.is_err() {
            self.buffer.clear();
            self.start = 0;
            self.ended = true;
        }
        taken
    }

    /// Removes a line from the buffer and returns it without its terminator.
    fn take_line(&mut self) -> Result<Option<RawRecord>, &'static str> {
        let unread = &self.buffer[self.start..];
        let (line, length) = match unread.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            // A line feed that belongs to the terminator may follow.
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
        self.number += 1;
        Ok(Some(RawRecord::Line(line)))
    }

    /// Removes a binary record from the buffer. Some records are lines of text.
    fn take_record(&mut self) -> Result<Option<RawRecord>, &'static str> {
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
            RawRecord::Record(record.to_vec())
        } else {
            RawRecord::Line(String::from_utf8_lossy(record).trim_end_matches(['\0', '\n', '\r']).into())
        };
        self.start += length;
        self.number += 1;
        Ok(Some(taken))
    }
}
