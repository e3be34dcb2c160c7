//! A file in memory, open for reading.

use alloc::rc::Rc;

use crate::environment::{IoError, Reader};

/// A file whose contents are in memory, open for reading.
pub struct MemoryFile {
    contents: Rc<[u8]>,
    position: usize,
}

impl MemoryFile {
    /// Opens a file with these contents.
    pub fn new(contents: Rc<[u8]>) -> MemoryFile {
        MemoryFile { contents, position: 0 }
    }
}

impl Reader for MemoryFile {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError> {
        let rest = self.contents.get(self.position..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..count), rest.get(..count)) {
            into.copy_from_slice(rest);
        }
        self.position += count;
        Ok(count)
    }

    fn size(&self) -> Option<u64> {
        Some(self.contents.len() as u64)
    }

    fn position(&self) -> u64 {
        self.position as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_in_pieces_to_its_end() {
        let mut file = MemoryFile::new(Rc::from(&b"abcde"[..]));
        let mut piece = [0; 3];
        assert_eq!((file.read(&mut piece), piece, file.position()), (Ok(3), *b"abc", 3));
        assert_eq!((file.read(&mut piece), &piece[..2]), (Ok(2), &b"de"[..]));
        assert_eq!((file.read(&mut piece), file.read(&mut []), file.size()), (Ok(0), Ok(0), Some(5)));
    }
}
