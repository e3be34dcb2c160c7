//! The file that a dump is read from.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use element::{Environment, IoError, Reader};

/// Bytes asked for at once.
const CHUNK: usize = 1 << 16;

/// A file, read in chunks, or a text that stands for one.
pub(super) struct Input {
    source: Source,
    chunk: Vec<u8>,
    /// The name for messages.
    pub(super) name: String,
    passed: u64,
}

enum Source {
    File(Box<dyn Reader>),
    Text(Vec<u8>),
    Ended,
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(environment: &dyn Environment, path: &str) -> Result<Input, IoError> {
        let reader = environment.open(path)?;
        let name = if path == "-" { "<stdin>" } else { path };
        Ok(Input { source: Source::File(reader), chunk: alloc::vec![0; CHUNK], name: name.into(), passed: 0 })
    }

    /// Stands for a file of these bytes.
    pub(super) fn text(bytes: Vec<u8>) -> Input {
        Input { source: Source::Text(bytes), chunk: Vec::new(), name: "<data>".into(), passed: 0 }
    }

    /// Nothing at all.
    pub(super) fn nothing() -> Input {
        Input { source: Source::Ended, chunk: Vec::new(), name: String::new(), passed: 0 }
    }

    /// The next bytes; none at the end.
    pub(super) fn next(&mut self) -> Result<&[u8], IoError> {
        let length = match &mut self.source {
            Source::Ended => 0,
            Source::Text(bytes) => {
                self.chunk = core::mem::take(bytes);
                self.source = Source::Ended;
                self.chunk.len()
            }
            Source::File(reader) => reader.read(&mut self.chunk)?,
        };
        self.passed += length as u64;
        if length == 0 {
            self.source = Source::Ended;
        }
        Ok(self.chunk.get(..length).unwrap_or(&[]))
    }

    /// The size of the file as it lies there, as text; `-` if it is not known.
    pub(super) fn size(&self) -> String {
        let size = match &self.source {
            Source::File(reader) => reader.size(),
            _ => Some(self.passed),
        };
        size.map_or_else(|| "-".into(), |size| alloc::format!("{size}"))
    }

    /// Bytes of the file, as it lies there, read so far.
    pub(super) fn position(&self) -> u64 {
        match &self.source {
            Source::File(reader) => reader.position(),
            _ => self.passed,
        }
    }
}
