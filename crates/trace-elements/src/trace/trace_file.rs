//! The source of a trace.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use element::{Environment, FileView, IoError, Reader};

/// Bytes read at once by [`TraceFile::next`].
const CHUNK_SIZE: usize = 1 << 16;

/// A file of the environment, or text in the configuration that is read like a file.
pub(super) struct TraceFile {
    source: Source,
    chunk: Vec<u8>,
    /// The name for messages.
    pub(super) name: String,
    bytes_read: u64,
}

enum Source {
    File(Box<dyn Reader>),
    Text(Vec<u8>),
    Ended,
}

impl TraceFile {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(environment: &dyn Environment, path: &str) -> Result<TraceFile, IoError> {
        let reader = environment.open(path)?;
        let name = if path == "-" { "<stdin>" } else { path };
        Ok(TraceFile { source: Source::File(reader), chunk: Vec::new(), name: name.into(), bytes_read: 0 })
    }

    /// Reads `bytes` as if they were a file.
    pub(super) fn text(bytes: Vec<u8>) -> TraceFile {
        TraceFile { source: Source::Text(bytes), chunk: Vec::new(), name: "<data>".into(), bytes_read: 0 }
    }
    pub(super) fn empty() -> TraceFile {
        TraceFile { source: Source::Ended, chunk: Vec::new(), name: String::new(), bytes_read: 0 }
    }

    /// Reads into the start of `into`. Returns the number of bytes, 0 at the end.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError> {
        let length = match &mut self.source {
            Source::Ended => 0,
            Source::Text(bytes) => {
                let length = bytes.len().min(into.len());
                into.iter_mut().zip(bytes.drain(..length)).for_each(|(to, byte)| *to = byte);
                length
            }
            Source::File(reader) => reader.read(into)?,
        };
        self.bytes_read += length as u64;
        if length == 0 {
            self.source = Source::Ended;
        }
        Ok(length)
    }

    /// The file, to be read in place.
    pub(super) fn view(&mut self) -> Option<Box<dyn FileView>> {
        match &mut self.source {
            Source::File(reader) => reader.view(),
            _ => None,
        }
    }

    /// Goes on at `position`, in bytes from the start of a file that has a view.
    pub(super) fn seek(&mut self, position: u64) -> Result<(), IoError> {
        match &mut self.source {
            Source::File(reader) => reader.seek(position),
            _ => Ok(()),
        }
    }

    /// The next bytes; empty at the end.
    pub(super) fn next(&mut self) -> Result<&[u8], IoError> {
        let mut chunk = core::mem::take(&mut self.chunk);
        chunk.resize(CHUNK_SIZE, 0);
        let read = self.read(&mut chunk);
        self.chunk = chunk;
        Ok(self.chunk.get(..read?).unwrap_or(&[]))
    }

    /// The size of the stored file as text; `-` if unknown.
    pub(super) fn size(&self) -> String {
        let size = match &self.source {
            Source::File(reader) => reader.size(),
            Source::Text(rest) => Some(self.bytes_read + rest.len() as u64),
            Source::Ended => Some(self.bytes_read),
        };
        size.map_or_else(|| "-".into(), |size| alloc::format!("{size}"))
    }

    /// Number of bytes of the stored file read so far.
    pub(super) fn position(&self) -> u64 {
        match &self.source {
            Source::File(reader) => reader.position(),
            _ => self.bytes_read,
        }
    }
}
