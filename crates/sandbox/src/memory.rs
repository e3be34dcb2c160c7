//! Memory for boxes: whole mappings, and chunks of arenas that are mapped once.
//!
//! While virtual machines exist, creating or removing a mapping costs time for each of them; taking a chunk does not.

use crate::error::{CreateError, SystemError};
use boundary::{Mapped, SharedMemory};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Size of a page in bytes.
pub(crate) const PAGE: usize = 4096;

/// Size of a huge page in bytes.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Maximum bytes of reserved huge pages (hugetlb) that an arena takes. It keeps them as long as it exists.
const MAX_HUGETLB: usize = 1 << 30;

/// Pages of a piece of memory, with their numbers.
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

/// A mapping. It is unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: it is a range of addresses; `Mapped` makes accesses to it safe.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps zeroed private memory, aligned to 2 MB. Pages are allocated when they are touched.
    pub(crate) fn anonymous(size: usize) -> Result<Self, SystemError> {
        let whole = size.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mapping = Self::map(None, whole, flags, -1)?;
        // The start up to the next boundary is skipped; it stays mapped and untouched.
        let skip = mapping.base.as_ptr().align_offset(HUGE_PAGE);
        let base = mapping.base;
        std::mem::forget(mapping);
        // SAFETY: both pieces lie in the mapping that was just created, and are not used.
        unsafe {
            let start = base.add(skip);
            let size = size.next_multiple_of(HUGE_PAGE);
            libc::munmap(base.as_ptr().cast(), skip);
            libc::munmap(start.add(size).as_ptr().cast(), whole - skip - size);
            Ok(Self { base: start, size })
        }
    }

    /// Maps zeroed private memory from the huge pages that the system has reserved (`vm.nr_hugepages`): at most half of
    /// the free ones, and at most `most` bytes. `None` if there are none.
    ///
    /// A range must be [populated](Self::populate) before use: touching a page that the control group refuses would
    /// kill the process.
    fn hugetlb(most: usize) -> Option<Self> {
        let size = (free_hugetlb_pages() / 2).saturating_mul(HUGE_PAGE).min(most);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
        if size == 0 { None } else { Self::map(None, size, flags, -1).ok() }
    }

    /// Allocates the pages of a range, as if each was written to. Returns whether they are available.
    fn populate(&self, offset: usize, size: usize) -> bool {
        let (start, end) = (offset / HUGE_PAGE * HUGE_PAGE, (offset + size).next_multiple_of(HUGE_PAGE));
        // SAFETY: the range lies in this mapping, which consists of whole huge pages; its contents stay.
        unsafe {
            let address = self.base.add(start).as_ptr().cast();
            libc::madvise(address, end - start, libc::MADV_POPULATE_WRITE) == 0
        }
    }

    /// Maps the first `size` bytes of a file, shared. From the size of a huge page on, the mapping is aligned to one.
    pub(crate) fn shared(file: &OwnedFd, size: usize) -> Result<Self, SystemError> {
        let file = file.as_raw_fd();
        if size < HUGE_PAGE {
            return Self::map(None, size, libc::MAP_SHARED, file);
        }
        let reserved = Self::anonymous(size)?;
        let mapping = Self::map(Some(&reserved), size, libc::MAP_SHARED, file)?;
        let whole = reserved.size;
        std::mem::forget(reserved);
        // SAFETY: the rest of the reserved range, which the file does not cover, is not used.
        unsafe { libc::munmap(mapping.base.add(size).as_ptr().cast(), whole - size) };
        Ok(mapping)
    }

    /// Creates a mapping: in place of `reserved`, which must be unused, or at an address that the kernel chooses.
    fn map(reserved: Option<&Self>, size: usize, flags: i32, file: i32) -> Result<Self, SystemError> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (address, fixed) = match reserved {
            Some(reserved) => (reserved.base.as_ptr().cast(), libc::MAP_FIXED),
            None => (std::ptr::null_mut(), 0),
        };
        // SAFETY: a new mapping, which affects no existing memory except that of `reserved`, which is unused.
        let at = unsafe { libc::mmap(address, size, protection, flags | fixed, file, 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(base) if at != libc::MAP_FAILED => Ok(Self { base, size }),
            _ => Err(SystemError::last("map memory")),
        }
    }

    /// Asks for huge pages, if the kernel has them.
    pub(crate) fn prefer_huge_pages(&self) {
        self.advise(0, self.size, libc::MADV_HUGEPAGE);
    }

    /// Collapses the touched pages of a range into huge pages now, where the kernel can. The contents stay, and other
    /// mappings of the same file get huge pages too. This takes up to a millisecond per huge page.
    pub(crate) fn collapse(&self, offset: usize, size: usize) {
        let end = offset.saturating_add(size).min(self.size) / HUGE_PAGE * HUGE_PAGE;
        for start in (offset / HUGE_PAGE * HUGE_PAGE..end).step_by(HUGE_PAGE) {
            self.advise(start, HUGE_PAGE, libc::MADV_COLLAPSE);
        }
    }

    fn advise(&self, offset: usize, size: usize, advice: i32) {
        // SAFETY: the range lies in this mapping; the advice values in use don't change the visible contents of live
        // chunks.
        unsafe { libc::madvise(self.base.add(offset).as_ptr().cast(), size, advice) };
    }

    /// The whole mapping, for shared use.
    pub(crate) fn mapped(&self) -> Mapped {
        // SAFETY: the mapping lives as long as self, and every holder of a part keeps self alive with it.
        unsafe { Mapped::new(self.base, self.size) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: every user of the mapping held a reference to it, and none is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// The number of reserved huge pages that are neither in use nor promised.
fn free_hugetlb_pages() -> usize {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}"));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0usize)
    };
    read("free_hugepages").saturating_sub(read("resv_hugepages"))
}

/// The use of an arena's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArenaKind {
    /// Small chunks that are touched completely: backed by huge pages.
    Dense,
    /// Like `Dense`, backed by huge pages that the system has reserved.
    Hugetlb,
    /// Large chunks that are touched sparsely: backed by small pages.
    Sparse,
}

/// A large mapping, created once, from which chunks are allocated.
#[derive(Debug)]
pub(crate) struct Arena {
    mapping: Mapping,
    kind: ArenaKind,
    /// Free ranges: offset to size.
    free: Mutex<BTreeMap<usize, usize>>,
    /// A preferred arena, tried first.
    better: Option<Arc<Arena>>,
}

impl Arena {
    pub(crate) fn new(size: usize, kind: ArenaKind) -> Result<Arc<Self>, SystemError> {
        let mapping = Mapping::anonymous(size)?;
        let advice = match kind {
            ArenaKind::Dense | ArenaKind::Hugetlb => libc::MADV_HUGEPAGE,
            ArenaKind::Sparse => libc::MADV_NOHUGEPAGE,
        };
        mapping.advise(0, mapping.size, advice);
        Ok(Arc::new(Self::of(mapping, kind, None)))
    }

    /// An arena for small chunks, which are taken from reserved huge pages while there are any.
    pub(crate) fn with_hugetlb(size: usize) -> Result<Arc<Self>, SystemError> {
        let better = Mapping::hugetlb(MAX_HUGETLB);
        let better = better.map(|mapping| Arc::new(Self::of(mapping, ArenaKind::Hugetlb, None)));
        let mapping = Mapping::anonymous(size)?;
        mapping.prefer_huge_pages();
        Ok(Arc::new(Self::of(mapping, ArenaKind::Dense, better)))
    }

    fn of(mapping: Mapping, kind: ArenaKind, better: Option<Arc<Self>>) -> Self {
        let free = Mutex::new(BTreeMap::from([(0, mapping.size)]));
        Self { mapping, kind, free, better }
    }

    /// Allocates zeroed memory of whole pages, aligned to `align`.
    pub(crate) fn take(self: &Arc<Self>, size: usize, align: usize) -> Result<Part, CreateError> {
        if let Some(part) = self.better.as_ref().and_then(|arena| arena.take(size, align).ok()) {
            return Ok(part);
        }
        let size = size.next_multiple_of(PAGE);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = |(offset, space): (&usize, &usize)| {
            let start = offset.next_multiple_of(align);
            (start + size <= offset + space).then_some((*offset, *space, start))
        };
        let (offset, space, start) = free.iter().find_map(fitting).ok_or(CreateError::NoMemory)?;
        if self.kind == ArenaKind::Hugetlb && !self.mapping.populate(start, size) {
            return Err(CreateError::NoMemory);
        }
        free.remove(&offset);
        for (from, to) in [(offset, start), (start + size, offset + space)] {
            if to > from {
                free.insert(from, to - from);
            }
        }
        let chunk = Chunk { arena: self.clone(), offset: start, size };
        Ok(Part { chunk: Arc::new(chunk), offset: 0, size })
    }

    fn release(&self, offset: usize, size: usize) {
        match self.kind {
            // SAFETY: the range lies in the mapping, and its last holder is being dropped.
            ArenaKind::Dense | ArenaKind::Hugetlb => unsafe {
                self.mapping.base.add(offset).write_bytes(0, size)
            },
            ArenaKind::Sparse => self.mapping.advise(offset, size, libc::MADV_DONTNEED),
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

/// A chunk of an arena. On drop it is zeroed and returned.
#[derive(Debug)]
struct Chunk {
    arena: Arc<Arena>,
    offset: usize,
    size: usize,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.arena.release(self.offset, self.size);
    }
}

/// A part of a chunk, or the whole chunk. The chunk is returned when its last part is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    chunk: Arc<Chunk>,
    offset: usize,
    pub(crate) size: usize,
}

impl Part {
    /// A part of `size` bytes from `offset`, both in whole pages.
    pub(crate) fn part(&self, offset: usize, size: usize) -> Result<Self, CreateError> {
        match offset.checked_add(size) {
            Some(end) if end <= self.size => {
                Ok(Self { chunk: self.chunk.clone(), offset: self.offset + offset, size })
            }
            _ => Err(CreateError::NoMemory),
        }
    }

    pub(crate) fn address(&self) -> NonNull<u8> {
        // SAFETY: the chunk lies in the mapping, and the part in the chunk.
        unsafe { self.chunk.arena.mapping.base.add(self.chunk.offset + self.offset) }
    }

    /// The memory, for shared use. The holder must keep the part alive.
    pub(crate) fn mapped(&self) -> Mapped {
        // SAFETY: only the chunk's parts use it, and it lives as long as any of them; every holder of the result keeps
        // self alive.
        unsafe { Mapped::new(self.address(), self.size) }
    }

    /// Its pages that are not zero, with their numbers. This does not touch untouched pages.
    pub(crate) fn touched_pages(&self) -> std::io::Result<Pages> {
        let memory = self.mapped();
        Ok(self.touched()?.into_iter().filter_map(|number| page(&memory, number)).collect())
    }

    /// Resident bytes: those of the pages that were touched.
    pub(crate) fn resident(&self) -> std::io::Result<usize> {
        Ok(self.touched()?.len() * PAGE)
    }

    /// Numbers of the touched pages.
    fn touched(&self) -> std::io::Result<Vec<usize>> {
        let first = self.address().as_ptr() as usize / PAGE;
        let mut entries = vec![0; self.size / PAGE * 8];
        std::fs::File::open("/proc/self/pagemap")?.read_exact_at(&mut entries, first as u64 * 8)?;
        // The two highest bits: present, or in swap.
        let touched = |entry: &[u8]| entry.last().is_some_and(|flags| flags >> 6 != 0);
        let numbered = entries.chunks_exact(8).enumerate();
        Ok(numbered.filter(|(_, entry)| touched(entry)).map(|(number, _)| number).collect())
    }

    /// Writes the pages of another part of the same size.
    pub(crate) fn write_pages(&self, pages: &Pages) {
        write_pages(&self.mapped(), pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::{Capability, skip};

    #[test]
    fn reserved_huge_pages_are_used_first() {
        let arena = Arena::with_hugetlb(8 << 20).unwrap();
        let Some(better) = &arena.better else {
            skip(Capability::HugePages, "vm.nr_hugepages is 0");
            return;
        };
        let (first, second) = (arena.take(1, PAGE).unwrap(), arena.take(better.mapping.size, PAGE).ok());
        assert!(Arc::ptr_eq(&first.chunk.arena, better));
        // What does not fit there is allocated elsewhere.
        assert!(second.is_none_or(|part| Arc::ptr_eq(&part.chunk.arena, &arena)));
        first.mapped().write(0, &[9; PAGE]);
        drop(first);
        let mut bytes = [1; PAGE];
        arena.take(1, PAGE).unwrap().mapped().read(0, &mut bytes);
        assert_eq!(bytes, [0; PAGE]);
    }

    /// Bytes of huge pages in the mapping that starts at an address.
    fn large_bytes(base: NonNull<u8>) -> usize {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines =
            text.lines().skip_while(|line| !line.starts_with(&format!("{:x}-", base.as_ptr() as usize)));
        let figure = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:")).unwrap();
        1024 * figure.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    }

    #[test]
    fn pages_of_a_file_are_collapsed_with_their_contents() {
        let size = 2 * HUGE_PAGE + 5 * PAGE;
        let file = crate::process::region_file(size).unwrap();
        let [one, other] = [(); 2].map(|()| Mapping::shared(&file, size).unwrap());
        let bytes: Vec<u8> = (0..=255).cycle().take(size).collect();
        one.mapped().write(0, &bytes);
        one.collapse(0, size);
        let mut found = vec![0; size];
        for mapping in [&one, &other] {
            assert_eq!((mapping.size, mapping.base.as_ptr().align_offset(HUGE_PAGE)), (size, 0));
            mapping.mapped().read(0, &mut found);
            assert!(found == bytes);
        }
        match [&one, &other].map(|mapping| large_bytes(mapping.base)) {
            [0, 0] => skip(Capability::HugePages, "the kernel gathers none for files in memory"),
            large => assert_eq!(large, [2 * HUGE_PAGE; 2]),
        }
    }

    #[test]
    fn chunks_are_apart_zeroed_and_joined_again() {
        for kind in [ArenaKind::Dense, ArenaKind::Sparse] {
            let arena = Arena::new(8 << 20, kind).unwrap();
            for _ in 0..3 {
                let wanted = [(5000, PAGE), (1, PAGE), (1 << 20, HUGE_PAGE), (1, PAGE)];
                let chunks: Vec<Part> = wanted.map(|(size, align)| arena.take(size, align).unwrap()).into();
                for chunk in &chunks {
                    let mut bytes = vec![1; chunk.size];
                    chunk.mapped().read(0, &mut bytes);
                    assert!(bytes.iter().all(|byte| *byte == 0));
                    chunk.mapped().write(0, &vec![9; chunk.size]);
                }
                let offsets: Vec<usize> = chunks.iter().map(|chunk| chunk.chunk.offset).collect();
                assert_eq!(offsets, [0, 8192, HUGE_PAGE, 12288]);
                assert!(matches!(arena.take(8 << 20, PAGE), Err(CreateError::NoMemory)));
                // A part keeps the whole chunk.
                let part = chunks[2].part(PAGE, 2 * PAGE).unwrap();
                assert!(chunks[2].part(0, 2 << 20).is_err());
                drop(chunks);
                assert_eq!((arena.free.lock().unwrap().len(), part.size), (2, 2 * PAGE));
                drop(part);
                assert_eq!(arena.free.lock().unwrap().len(), 1);
            }
        }
    }
}
