//! Files that came with a configuration, and files that elements write.

use crate::context::BoxContext;
use crate::limits::MAX_LINE;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use element::{IoError, MemoryFile, Reader, Writer};

/// The magic number of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens a file of the box for reading.
pub(crate) fn open(files: &BTreeMap<String, Rc<[u8]>>, path: &str) -> Result<Box<dyn Reader>, IoError> {
    let Some(contents) = files.get(path) else {
        return Err(IoError::NotFound("No such file: ship it with the configuration".into()));
    };
    if contents.starts_with(&GZIP) {
        return Err(IoError::Failed("compressed: unpack it before it is shipped to a box".into()));
    }
    Ok(Box::new(MemoryFile::new(contents.clone())))
}

/// A file, open for writing: its bytes are sent to the host as events.
pub(crate) struct OutputFile {
    context: Rc<BoxContext>,
    path: Rc<str>,
    position: u64,
}

impl OutputFile {
    /// Opens a file on the host.
    pub(crate) fn new(context: Rc<BoxContext>, path: &str) -> OutputFile {
        OutputFile { context, path: path.into(), position: 0 }
    }
}

impl Writer for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        let now = self.context.steady();
        self.context.events.borrow_mut().output(&self.path, self.position, bytes, now);
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoError> {
        self.context.events.borrow_mut().queue_chunk();
        Ok(())
    }
}

/// Standard output, which in a box is the log. It is sent in whole lines.
pub(crate) struct LogWriter {
    context: Rc<BoxContext>,
    configuration: String,
    line: Vec<u8>,
}

impl LogWriter {
    pub(crate) fn new(context: Rc<BoxContext>, configuration: &str) -> LogWriter {
        LogWriter { context, configuration: configuration.into(), line: Vec::new() }
    }

    fn log_line(&mut self) {
        let now = self.context.steady();
        self.context.events.borrow_mut().log(&self.configuration, &String::from_utf8_lossy(&self.line), now);
        self.line.clear();
    }
}

impl Writer for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            // Bytes beyond the maximum line length are not stored.
            let room = MAX_LINE.saturating_sub(self.line.len()).min(text.len());
            self.line.extend_from_slice(text.get(..room).unwrap_or_default());
            if ends {
                self.log_line();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.log_line();
        }
    }
}
