//! Memory for boxes: whole mappings, and chunks of arenas that are mapped once.
//!
//! While virtual machines exist, every mapping made or taken away costs time for each of them; a chunk
//! costs none.

use crate::error::{CreateError, SystemError};
use boundary::{Mapped, SharedMemory};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

/// Pages of a piece of memory, by number.
pub(crate) type Pages = Vec<(usize, Box<[u8; PAGE]>)>;

/// A page of a piece of memory, unless it is zero.
fn page(memory: &Mapped, number: usize) -> Option<(usize, Box<[u8; PAGE]>)> {
    let mut page = Box::new([0; PAGE]);
    memory.read(number * PAGE, page.as_mut_slice());
    page.iter().any(|byte| *byte != 0).then_some((number, page))
}

/// All pages of a piece of memory that are not zero.
pub(crate) fn pages(memory: &Mapped) -> Pages {
    (0..memory.size() / PAGE).filter_map(|number| page(memory, number)).collect()
}

/// Writes pages into a piece of memory.
pub(crate) fn write_pages(memory: &Mapped, pages: &Pages) {
    for (number, page) in pages {
        memory.write(number * PAGE, page.as_slice());
    }
}

/// A mapping, taken away when it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: it is a range of addresses; what is done with them is for `Mapped` to keep safe.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps zeroed private memory, aligned to 2 MB, of which nothing is taken before it is touched.
    pub(crate) fn anonymous(size: usize) -> Result<Self, SystemError> {
        let whole = size.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mapping = Self::map(whole, flags, -1)?;
        // The start is skipped to the next boundary; it stays mapped and untouched.
        let skip = mapping.base.as_ptr().align_offset(HUGE_PAGE);
        let base = mapping.base;
        std::mem::forget(mapping);
        // SAFETY: both pieces lie in the mapping just made, and nobody uses them.
        unsafe {
            let start = base.add(skip);
            let size = size.next_multiple_of(HUGE_PAGE);
            libc::munmap(base.as_ptr().cast(), skip);
            libc::munmap(start.add(size).as_ptr().cast(), whole - skip - size);
            Ok(Self { base: start, size })
        }
    }

    /// Maps a file's first `size` bytes, shared.
    pub(crate) fn shared(file: &OwnedFd, size: usize) -> Result<Self, SystemError> {
        Self::map(size, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(size: usize, flags: i32, file: i32) -> Result<Self, SystemError> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, file, 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(base) if at != libc::MAP_FAILED => Ok(Self { base, size }),
            _ => Err(SystemError::last("map memory")),
        }
    }

    fn advise(&self, offset: usize, size: usize, advice: i32) {
        // SAFETY: the range lies in this mapping; the advices used don't change what is seen of live
        // chunks.
        unsafe { libc::madvise(self.base.add(offset).as_ptr().cast(), size, advice) };
    }

    /// The whole, for shared use.
    pub(crate) fn mapped(&self) -> Mapped {
        // SAFETY: the mapping lives as long as self, and every holder of a part keeps self alive with it.
        unsafe { Mapped::new(self.base, self.size) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: whoever used the mapping held it, and nobody holds it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// How an arena's memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Small chunks, all of which is touched: backed by large pages.
    Dense,
    /// Large chunks, of which little is touched: backed by small pages.
    Sparse,
}

/// A large mapping, made once, from which chunks are taken.
#[derive(Debug)]
pub(crate) struct Arena {
    mapping: Mapping,
    usage: Use,
    /// Free ranges: offset to size.
    free: Mutex<BTreeMap<usize, usize>>,
}

impl Arena {
    pub(crate) fn new(size: usize, usage: Use) -> Result<Arc<Self>, SystemError> {
        let mapping = Mapping::anonymous(size)?;
        let advice = match usage {
            Use::Dense => libc::MADV_HUGEPAGE,
            Use::Sparse => libc::MADV_NOHUGEPAGE,
        };
        mapping.advise(0, mapping.size, advice);
        let free = BTreeMap::from([(0, mapping.size)]);
        Ok(Arc::new(Self { mapping, usage, free: Mutex::new(free) }))
    }

    /// Takes a zeroed chunk of whole pages.
    pub(crate) fn take(self: &Arc<Self>, size: usize) -> Result<Chunk, CreateError> {
        let size = size.next_multiple_of(PAGE);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().find(|(_, space)| **space >= size).map(|(offset, space)| (*offset, *space));
        let (offset, space) = found.ok_or(CreateError::NoMemory)?;
        free.remove(&offset);
        if space > size {
            free.insert(offset + size, space - size);
        }
        Ok(Chunk { arena: self.clone(), offset, size })
    }

    fn give(&self, offset: usize, size: usize) {
        match self.usage {
            // SAFETY: the range lies in the mapping, and its last holder is being dropped.
            Use::Dense => unsafe { self.mapping.base.add(offset).write_bytes(0, size) },
            Use::Sparse => self.mapping.advise(offset, size, libc::MADV_DONTNEED),
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut start, mut end) = (offset, offset + size);
        if let Some(after) = free.remove(&end) {
            end += after;
        }
        if let Some((before, space)) =
            free.range(..start).next_back().map(|(before, space)| (*before, *space))
            && before + space == start
        {
            free.remove(&before);
            start = before;
        }
        free.insert(start, end - start);
    }
}

/// A chunk of an arena, given back zeroed when it is dropped.
#[derive(Debug)]
pub(crate) struct Chunk {
    arena: Arc<Arena>,
    offset: usize,
    pub(crate) size: usize,
}

impl Chunk {
    pub(crate) fn address(&self) -> NonNull<u8> {
        // SAFETY: the offset lies in the mapping.
        unsafe { self.arena.mapping.base.add(self.offset) }
    }

    /// The chunk, for shared use. Whoever keeps it keeps the chunk.
    pub(crate) fn mapped(&self) -> Mapped {
        // SAFETY: the chunk is this holder's alone, and lives as long as self; every holder of the result
        // keeps self.
        unsafe { Mapped::new(self.address(), self.size) }
    }

    /// The chunk's pages that are not zero, by number, with their bytes. Pages that were never touched
    /// aren't now.
    pub(crate) fn touched_pages(&self) -> std::io::Result<Pages> {
        let memory = self.mapped();
        Ok(self.touched()?.into_iter().filter_map(|number| page(&memory, number)).collect())
    }

    /// Bytes of memory that the chunk takes: those of its pages that were touched.
    pub(crate) fn resident(&self) -> std::io::Result<usize> {
        Ok(self.touched()?.len() * PAGE)
    }

    /// Numbers of the pages that were touched.
    fn touched(&self) -> std::io::Result<Vec<usize>> {
        let first = self.address().as_ptr() as usize / PAGE;
        let mut entries = vec![0; self.size / PAGE * 8];
        std::fs::File::open("/proc/self/pagemap")?.read_exact_at(&mut entries, first as u64 * 8)?;
        // The two highest bits: present, or in swap.
        let touched = |entry: &[u8]| entry.last().is_some_and(|flags| flags >> 6 != 0);
        let numbered = entries.chunks_exact(8).enumerate();
        Ok(numbered.filter(|(_, entry)| touched(entry)).map(|(number, _)| number).collect())
    }

    /// Writes pages that another chunk of this size had.
    pub(crate) fn write_pages(&self, pages: &Pages) {
        write_pages(&self.mapped(), pages);
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.arena.give(self.offset, self.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_apart_zeroed_and_joined_again() {
        for usage in [Use::Dense, Use::Sparse] {
            let arena = Arena::new(4 << 20, usage).unwrap();
            for _ in 0..3 {
                let chunks: Vec<Chunk> = [5000, 1, 1 << 20].map(|size| arena.take(size).unwrap()).into();
                for chunk in &chunks {
                    let mut bytes = vec![1; chunk.size];
                    chunk.mapped().read(0, &mut bytes);
                    assert!(bytes.iter().all(|byte| *byte == 0));
                    chunk.mapped().write(0, &vec![9; chunk.size]);
                }
                assert_eq!(chunks[1].offset, 8192);
                assert!(matches!(arena.take(4 << 20), Err(CreateError::NoMemory)));
                drop(chunks);
                assert_eq!(arena.free.lock().unwrap().len(), 1);
            }
        }
    }
}
