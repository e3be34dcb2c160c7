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

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Bytes of a large page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Most bytes of large pages that an arena takes of those that the system has set aside: it keeps them while it lives.
const MAX_HUGETLB: usize = 1 << 30;

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
        let mapping = Self::map(None, whole, flags, -1)?;
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

    /// Maps zeroed private memory in large pages that the system has set aside (`vm.nr_hugepages`): at most half of
    /// those that nobody has, and at most `most` bytes. Nothing: there are none.
    ///
    /// What of it is to be used has to be [taken](Self::populate) first: a page that a control group keeps back would end
    /// whoever touches it.
    fn hugetlb(most: usize) -> Option<Self> {
        let size = (free_hugetlb_pages() / 2).saturating_mul(HUGE_PAGE).min(most);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
        if size == 0 { None } else { Self::map(None, size, flags, -1).ok() }
    }

    /// Takes the pages of a range, as if each was written to; whether they can be had.
    fn populate(&self, offset: usize, size: usize) -> bool {
        let (start, end) = (offset / HUGE_PAGE * HUGE_PAGE, (offset + size).next_multiple_of(HUGE_PAGE));
        // SAFETY: the range lies in this mapping, which is of whole large pages; what is in it stays.
        unsafe {
            let address = self.base.add(start).as_ptr().cast();
            libc::madvise(address, end - start, libc::MADV_POPULATE_WRITE) == 0
        }
    }

    /// Maps a file's first `size` bytes, shared; where that is a large page or more, at the start of one.
    pub(crate) fn shared(file: &OwnedFd, size: usize) -> Result<Self, SystemError> {
        let file = file.as_raw_fd();
        if size < HUGE_PAGE {
            return Self::map(None, size, libc::MAP_SHARED, file);
        }
        let place = Self::anonymous(size)?;
        let mapping = Self::map(Some(&place), size, libc::MAP_SHARED, file)?;
        let whole = place.size;
        std::mem::forget(place);
        // SAFETY: what the file does not fill of the place is nobody's.
        unsafe { libc::munmap(mapping.base.add(size).as_ptr().cast(), whole - size) };
        Ok(mapping)
    }

    /// Makes a mapping: in the place of one that nobody uses, or where the kernel likes.
    fn map(place: Option<&Self>, size: usize, flags: i32, file: i32) -> Result<Self, SystemError> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (address, fixed) = match place {
            Some(place) => (place.base.as_ptr().cast(), libc::MAP_FIXED),
            None => (std::ptr::null_mut(), 0),
        };
        // SAFETY: a new mapping, which touches no existing memory but that of `place`, where nothing lies.
        let at = unsafe { libc::mmap(address, size, protection, flags | fixed, file, 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(base) if at != libc::MAP_FAILED => Ok(Self { base, size }),
            _ => Err(SystemError::last("map memory")),
        }
    }

    /// Has it backed by large pages, where the kernel has them to give.
    pub(crate) fn prefer_huge_pages(&self) {
        self.advise(0, self.size, libc::MADV_HUGEPAGE);
    }

    /// Gathers what was touched of a range into large pages now, wherever the kernel can: what is in it stays, and whoever
    /// maps the same file finds large pages, too. It takes up to a millisecond for each.
    pub(crate) fn collapse(&self, offset: usize, size: usize) {
        let end = offset.saturating_add(size).min(self.size) / HUGE_PAGE * HUGE_PAGE;
        for start in (offset / HUGE_PAGE * HUGE_PAGE..end).step_by(HUGE_PAGE) {
            self.advise(start, HUGE_PAGE, libc::MADV_COLLAPSE);
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

/// Large pages that the system has set aside and nobody has or is promised.
fn free_hugetlb_pages() -> usize {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}"));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0usize)
    };
    read("free_hugepages").saturating_sub(read("resv_hugepages"))
}

/// How an arena's memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArenaKind {
    /// Small chunks, all of which is touched: backed by large pages.
    Dense,
    /// The same, of large pages that the system has set aside.
    Hugetlb,
    /// Large chunks, of which little is touched: backed by small pages.
    Sparse,
}

/// A large mapping, made once, from which chunks are taken.
#[derive(Debug)]
pub(crate) struct Arena {
    mapping: Mapping,
    kind: ArenaKind,
    /// Free ranges: offset to size.
    free: Mutex<BTreeMap<usize, usize>>,
    /// Where there may be room that is better.
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

    /// An arena for small chunks, which come from large pages that the system has set aside, where it has, as long as
    /// there is room.
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

    /// Takes zeroed memory of whole pages, which begins at a multiple of `align`.
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

/// A chunk of an arena, given back zeroed when it is dropped.
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

/// A part of a chunk, or all of it. The chunk is given back with the last of its parts.
#[derive(Debug)]
pub(crate) struct Part {
    chunk: Arc<Chunk>,
    offset: usize,
    pub(crate) size: usize,
}

impl Part {
    /// So many bytes of it from `offset` on, both of whole pages.
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

    /// The memory, for shared use. Whoever keeps it keeps the part.
    pub(crate) fn mapped(&self) -> Mapped {
        // SAFETY: the chunk is its parts' alone, and lives as long as any of them; every holder of the result keeps
        // self.
        unsafe { Mapped::new(self.address(), self.size) }
    }

    /// Its pages that are not zero, by number, with their bytes. Pages that were never touched aren't now.
    pub(crate) fn touched_pages(&self) -> std::io::Result<Pages> {
        let memory = self.mapped();
        Ok(self.touched()?.into_iter().filter_map(|number| page(&memory, number)).collect())
    }

    /// Bytes of memory that it takes: those of its pages that were touched.
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

    /// Writes pages that another part of this size had.
    pub(crate) fn write_pages(&self, pages: &Pages) {
        write_pages(&self.mapped(), pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::{Capability, skip};

    #[test]
    fn pages_that_are_set_aside_are_used_first() {
        let arena = Arena::with_hugetlb(8 << 20).unwrap();
        let Some(better) = &arena.better else {
            skip(Capability::HugePages, "vm.nr_hugepages is 0");
            return;
        };
        let (first, second) = (arena.take(1, PAGE).unwrap(), arena.take(better.mapping.size, PAGE).ok());
        assert!(Arc::ptr_eq(&first.chunk.arena, better));
        // What has no room there is taken elsewhere.
        assert!(second.is_none_or(|part| Arc::ptr_eq(&part.chunk.arena, &arena)));
        first.mapped().write(0, &[9; PAGE]);
        drop(first);
        let mut bytes = [1; PAGE];
        arena.take(1, PAGE).unwrap().mapped().read(0, &mut bytes);
        assert_eq!(bytes, [0; PAGE]);
    }

    /// Bytes of large pages at the mapping that begins at an address.
    fn large_bytes(base: NonNull<u8>) -> usize {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines =
            text.lines().skip_while(|line| !line.starts_with(&format!("{:x}-", base.as_ptr() as usize)));
        let figure = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:")).unwrap();
        1024 * figure.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    }

    #[test]
    fn pages_of_a_file_are_gathered_with_what_is_in_them() {
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
                // A part keeps the whole.
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
