//! A file that is read in place, as far as the kernel has it in memory: nothing is copied to find what is in it.

use crate::driver::peer_memory::PeerMapping;
use packet::SharedBytes;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Bytes that are mapped at once. More would only make the process look larger.
const WINDOW: usize = 4 << 20;

/// Mappings begin at a multiple of this, the size of a page.
const PAGE: u64 = 4096;

/// A regular file that is read in place. Other processes may write to it meanwhile, or make it shorter: what is read then may be
/// zeros, and [`is_intact`](Self::is_intact) says so.
#[derive(Debug)]
pub struct MappedFile {
    file: File,
    size: u64,
    window: Option<Window>,
    is_intact: bool,
}

/// The part of the file that is mapped.
#[derive(Debug)]
struct Window {
    start: u64,
    mapping: PeerMapping,
}

impl MappedFile {
    /// A file with the size that it has now.
    ///
    /// # Errors
    ///
    /// It is not a regular file, or its size is not known.
    pub fn new(file: File) -> io::Result<MappedFile> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(MappedFile { file, size: metadata.len(), window: None, is_intact: true })
    }

    /// The bytes from `position` on: at least `least`, if the file has as many and can be mapped.
    #[inline]
    pub fn bytes(&mut self, position: u64, least: usize) -> SharedBytes<'_> {
        if self.window.as_ref().is_none_or(|window| window.from(position).len() < least) {
            self.move_window(position, least);
        }
        self.window.as_ref().map_or(SharedBytes::EMPTY, |window| window.from(position))
    }

    /// Whether the file had all bytes that were read.
    #[inline]
    pub fn is_intact(&self) -> bool {
        self.is_intact && self.window.as_ref().is_none_or(|window| !window.mapping.is_broken())
    }

    /// Maps the file from `position` on, unless all of the rest is mapped.
    #[cold]
    fn move_window(&mut self, position: u64, least: usize) {
        let end = |window: &Window| window.start + window.mapping.bytes().len() as u64;
        if self.window.as_ref().is_some_and(|window| window.start <= position && end(window) == self.size) {
            return;
        }
        self.is_intact = self.is_intact();
        self.window = None;
        let start = position - position % PAGE;
        let rest = usize::try_from(self.size.saturating_sub(start)).unwrap_or(usize::MAX);
        let length = rest.min(WINDOW.max(least.saturating_add(PAGE as usize)));
        if position < self.size {
            let mapping = PeerMapping::map_to_read(self.file.as_fd(), start, length);
            self.window = mapping.ok().map(|mapping| Window { start, mapping });
        }
    }
}

impl Window {
    /// Its bytes from a position in the file on.
    #[inline]
    fn from(&self, position: u64) -> SharedBytes<'_> {
        let bytes = self.mapping.bytes();
        let offset = position.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
        let part = offset.and_then(|offset| bytes.part(offset, bytes.len().checked_sub(offset)?));
        part.unwrap_or(SharedBytes::EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file of numbered words, which has no name.
    fn numbered(words: u64) -> File {
        let path = std::env::temp_dir().join(format!("clickbox-mapped-{}-{words}", std::process::id()));
        let mut file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        let bytes: Vec<u8> = (0..words).flat_map(u64::to_le_bytes).collect();
        file.write_all(&bytes).expect("written");
        file
    }

    #[test]
    fn the_window_moves_over_the_file() {
        let words = (3 * WINDOW as u64 + 8 * 1000) / 8;
        let mut file = MappedFile::new(numbered(words)).expect("a file");
        let mut position = 0;
        while position < 8 * words {
            let bytes = file.bytes(position, 100_000);
            assert!(bytes.len() >= 100_000.min((8 * words - position) as usize), "{position}");
            assert_eq!(bytes.chunk(0).map(u64::from_le_bytes), Some(position / 8));
            let last = bytes.len() - 8;
            assert_eq!(bytes.chunk(last).map(u64::from_le_bytes), Some((position + last as u64) / 8));
            position += 99_992;
        }
        assert_eq!((file.bytes(8 * words, 1).len(), file.bytes(u64::MAX, 1).len()), (0, 0));
        assert_eq!(file.bytes(16, 1).chunk(0).map(u64::from_le_bytes), Some(2), "it can go back");
        assert!(file.is_intact());
    }

    #[test]
    fn a_file_that_becomes_shorter_is_noticed() {
        let file = numbered(100_000);
        let mut mapped = MappedFile::new(file.try_clone().expect("a descriptor")).expect("a file");
        assert_eq!(mapped.bytes(80_000, 8).chunk(0).map(u64::from_le_bytes), Some(10_000));
        file.set_len(PAGE).expect("it is shorter");
        assert!(mapped.is_intact());
        assert_eq!(mapped.bytes(80_000, 8).chunk(0).map(u64::from_le_bytes), Some(0));
        assert!(!mapped.is_intact());
    }

    #[test]
    fn only_regular_files_are_mapped() {
        let error = MappedFile::new(File::open("/dev/null").expect("a device")).expect_err("no regular file");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
