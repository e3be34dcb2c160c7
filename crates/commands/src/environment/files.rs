//! Files, standard input and output. gzip is detected by the file name extension or the first bytes.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

use element::{FileView, IoError, Reader, Writer};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use packet::SharedBytes;
use switch::MappedFile;

use crate::error::message;

/// Size in bytes of the smallest file that is read in place. A smaller one is read at once.
const MIN_VIEWED: u64 = 1 << 20;

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

/// The bytes of a file.
enum Bytes {
    /// As they are stored in a regular file.
    Stored(BufReader<CountingReader<File>>),
    /// Decompressed, or from standard input, a pipe or a device.
    Other(Box<dyn Read>),
}

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Bytes::Stored(file) => file.read(into),
            Bytes::Other(inner) => inner.read(into),
        }
    }
}

struct FileReader {
    inner: Bytes,
    size: Option<u64>,
    count: Rc<Cell<u64>>,
}

/// A file that is read in place.
struct MappedReader {
    file: MappedFile,
    count: Rc<Cell<u64>>,
}

impl FileView for MappedReader {
    fn bytes(&mut self, position: u64, least: usize) -> SharedBytes<'_> {
        self.count.set(position);
        self.file.bytes(position, least)
    }

    fn is_intact(&self) -> bool {
        self.file.is_intact()
    }
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

    fn view(&mut self) -> Option<Box<dyn FileView>> {
        let Bytes::Stored(file) = &self.inner else { return None };
        let is_large = self.size.is_some_and(|size| size >= MIN_VIEWED);
        let file = file.get_ref().inner.try_clone().ok().filter(|_| is_large)?;
        Some(Box::new(MappedReader { file: MappedFile::new(file).ok()?, count: self.count.clone() }))
    }

    fn seek(&mut self, position: u64) -> Result<(), IoError> {
        let Bytes::Stored(file) = &mut self.inner else { return Err(IoError::Unsupported("seeking")) };
        file.seek(SeekFrom::Start(position)).map(drop).map_err(|error| io_error(&error))
    }
}

impl Seek for CountingReader<File> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = self.inner.seek(to)?;
        self.count.set(position);
        Ok(position)
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
    if path == "-" {
        let mut buffered = buffered(io::stdin().lock(), &count);
        let is_gzip = is_gzip(&mut buffered);
        let inner: Box<dyn Read> =
            if is_gzip { Box::new(MultiGzDecoder::new(buffered)) } else { Box::new(buffered) };
        return Ok(Box::new(FileReader { inner: Bytes::Other(inner), size: None, count }));
    }
    let file = File::open(path).map_err(|error| io_error(&error))?;
    let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
    if let Some(size) = size {
        progress.inputs.borrow_mut().push((count.clone(), size));
    }
    let mut buffered = buffered(file, &count);
    let inner = match is_gzip(&mut buffered) {
        true => Bytes::Other(Box::new(MultiGzDecoder::new(buffered))),
        false if size.is_some() => Bytes::Stored(buffered),
        false => Bytes::Other(Box::new(buffered)),
    };
    Ok(Box::new(FileReader { inner, size, count }))
}

fn buffered<R: Read>(inner: R, count: &Rc<Cell<u64>>) -> BufReader<CountingReader<R>> {
    BufReader::with_capacity(1 << 16, CountingReader { inner, count: count.clone() })
}

fn is_gzip(bytes: &mut impl BufRead) -> bool {
    bytes.fill_buf().is_ok_and(|start| start.starts_with(&[0x1f, 0x8b]))
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
    fn a_large_file_has_a_view_beside_its_reader() {
        let path = std::env::temp_dir().join(format!("clickbox-view-{}", std::process::id()));
        let name = path.to_str().expect("a path of text");
        let bytes: Vec<u8> = (0..MIN_VIEWED as u32 + 1).map(|number| (number % 251) as u8).collect();
        let progress = ReadProgress::default();
        std::fs::write(name, &bytes[..1000]).expect("a file");
        assert!(open(name, &progress).expect("a reader").view().is_none(), "it is small");
        std::fs::write(name, &bytes).expect("a file");
        let progress = ReadProgress::default();
        let mut reader = open(name, &progress).expect("a reader");
        let mut into = [0; 10];
        assert_eq!((reader.read(&mut into), &into[..]), (Ok(10), &bytes[..10]));
        let mut view = reader.view().expect("a view");
        let part = view.bytes(500_000, 100);
        assert_eq!((part.chunk::<2>(0), part.len() >= 100), (bytes[500_000..].first_chunk().copied(), true));
        assert_eq!((progress.sum(), view.is_intact()), ((500_000, MIN_VIEWED + 1), true));
        reader.seek(MIN_VIEWED - 2).expect("it goes on there");
        assert_eq!(reader.position(), MIN_VIEWED - 2);
        assert_eq!((reader.read(&mut into), &into[..3]), (Ok(3), &bytes[bytes.len() - 3..]));
        std::fs::remove_file(name).expect("removed");
    }

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
