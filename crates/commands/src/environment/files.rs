//! Files, standard input and output. gzip is detected by the file name extension or the first bytes.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::rc::Rc;

use element::{IoError, Reader, Writer};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::error::message;

/// The error that the user sees for a file.
pub(super) fn io_error(error: &io::Error) -> IoError {
    match error.kind() {
        io::ErrorKind::NotFound => IoError::NotFound("No such file or directory".into()),
        io::ErrorKind::PermissionDenied => IoError::Denied("Permission denied".into()),
        _ => IoError::Failed(message(error)),
    }
}

/// A reader that counts the bytes that it reads from the file.
struct CountingReader<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

struct FileReader {
    inner: Box<dyn Read>,
    size: Option<u64>,
    count: Rc<Cell<u64>>,
}

impl Reader for FileReader {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError> {
        loop {
            match self.inner.read(into) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_error(&error)),
            }
        }
    }

    fn size(&self) -> Option<u64> {
        self.size
    }

    fn position(&self) -> u64 {
        self.count.get()
    }
}

/// The progress of reading files.
#[derive(Clone, Default)]
pub(super) struct ReadProgress {
    inputs: Rc<RefCell<Vec<FileProgress>>>,
}

/// Bytes of a file read so far, and its size.
type FileProgress = (Rc<Cell<u64>>, u64);

impl ReadProgress {
    /// Bytes read, and the total size of all files whose size is known.
    pub(super) fn sum(&self) -> (u64, u64) {
        let inputs = self.inputs.borrow();
        inputs.iter().fold((0, 0), |(read, all), (count, size)| (read + count.get(), all + size))
    }
}

/// Opens a file to read; `-` is standard input.
pub(super) fn open(path: &str, progress: &ReadProgress) -> Result<Box<dyn Reader>, IoError> {
    let count = Rc::new(Cell::new(0));
    let (file, size): (Box<dyn Read>, _) = if path == "-" {
        (Box::new(io::stdin().lock()), None)
    } else {
        let file = File::open(path).map_err(|error| io_error(&error))?;
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        (Box::new(file), size)
    };
    if let Some(size) = size {
        progress.inputs.borrow_mut().push((count.clone(), size));
    }
    let mut buffered =
        BufReader::with_capacity(1 << 16, CountingReader { inner: file, count: count.clone() });
    let is_gzip = buffered.fill_buf().is_ok_and(|start| start.starts_with(&[0x1f, 0x8b]));
    let inner: Box<dyn Read> =
        if is_gzip { Box::new(MultiGzDecoder::new(buffered)) } else { Box::new(buffered) };
    Ok(Box::new(FileReader { inner, size, count }))
}

struct FileWriter {
    inner: Box<dyn Write>,
}

impl Writer for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        self.inner.write_all(bytes).map_err(|error| io_error(&error))
    }

    fn flush(&mut self) -> Result<(), IoError> {
        self.inner.flush().map_err(|error| io_error(&error))
    }
}

/// A file that is truncated at the first write or flush.
struct TruncatingFile {
    file: File,
    is_pending: bool,
}

impl TruncatingFile {
    fn truncate(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_pending) && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        Ok(())
    }
}

impl Write for TruncatingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.truncate()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.truncate()?;
        self.file.flush()
    }
}

/// Creates a file, or opens it for appending; `-` is standard output. An existing file is kept until something is
/// written, so that a configuration that fails does not change it, and one that takes over can continue it.
pub(super) fn create(path: &str, append: bool) -> Result<Box<dyn Writer>, IoError> {
    if path == "-" {
        return Ok(Box::new(FileWriter { inner: Box::new(crate::output::SharedStdout) }));
    }
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(append).truncate(false);
    let file = options.open(path).map_err(|error| io_error(&error))?;
    let buffered = BufWriter::with_capacity(1 << 16, TruncatingFile { file, is_pending: !append });
    let inner: Box<dyn Write> = if path.ends_with(".gz") {
        Box::new(GzEncoder::new(buffered, flate2::Compression::default()))
    } else {
        Box::new(buffered)
    };
    Ok(Box::new(FileWriter { inner }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_truncated_at_the_first_write() {
        let path = std::env::temp_dir().join(format!("clickbox-files-{}", std::process::id()));
        let name = path.to_str().expect("a path of text");
        let content = || std::fs::read_to_string(name).expect("a file");
        std::fs::write(name, "old").expect("a file");
        drop(create(name, false).expect("a writer"));
        assert_eq!(content(), "old");
        create(name, false).expect("a writer").write(b"n").expect("written");
        assert_eq!(content(), "n");
        create(name, true).expect("a writer").write(b"ew").expect("written");
        assert_eq!(content(), "new");
        create(name, false).expect("a writer").flush().expect("written");
        assert_eq!(content(), "");
        std::fs::remove_file(name).expect("removed");
    }
}
