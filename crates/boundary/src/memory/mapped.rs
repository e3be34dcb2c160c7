//! Real shared memory: a mapped range of addresses.

use super::access::SharedMemory;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

/// Size of a cache line in bytes.
pub const CACHE_LINE: usize = 64;

/// Maximum bytes that [`Mapped::stream`] writes past the caches.
const MAX_STREAMED: usize = 2 * CACHE_LINE;

/// A mapped range that a peer may change at any time.
///
/// It does not own the mapping: the caller of [`new`](Self::new) keeps the mapping for as long as any copy is used.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: a Mapped is an address and a length; every access is atomic or a byte copy that tolerates a
// concurrent writer, so it may be used from any thread.
unsafe impl Send for Mapped {}
// SAFETY: as above; no method hands out a reference into the range.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// A range of `size` bytes from `base`. If `base` is not aligned to 8 bytes, word accesses behave as if they were
    /// outside the range.
    ///
    /// # Safety
    ///
    /// The range must be mapped readable and writable for as long as the value or a copy or part of it is used, and no
    /// Rust reference to any byte of it may exist meanwhile except those of [`BufferLeases`](crate::BufferLeases),
    /// whose buffers no safe code reaches through a `Mapped`.
    pub const unsafe fn new(base: NonNull<u8>, size: usize) -> Self {
        Self { base, size }
    }

    /// The part of `size` bytes from `offset`, or `None` if it is not inside the range.
    pub fn part(&self, offset: usize, size: usize) -> Option<Self> {
        Some(Self { base: self.inside(offset, size)?, size })
    }

    /// The address of a part, or `None` if it is not inside the range.
    ///
    /// For code that passes the memory on (a packet's data inside a box). The peer may write to it.
    #[inline(always)]
    pub fn pointer(&self, offset: usize, size: usize) -> Option<NonNull<u8>> {
        self.inside(offset, size)
    }

    /// Copies `length` bytes to other memory. Returns false, with nothing copied, if one of the ranges is out of
    /// bounds.
    ///
    /// Peers of either memory may write meanwhile; the copy may then contain what they wrote.
    #[inline(always)]
    pub(crate) fn copy_to(&self, offset: usize, to: &Self, to_offset: usize, length: usize) -> bool {
        let (Some(from), Some(to)) = (self.inside(offset, length), to.inside(to_offset, length)) else {
            return false;
        };
        // SAFETY: both ranges are mapped, and they may overlap.
        unsafe { to.copy_from(from, length) };
        true
    }

    /// Like [`write`](SharedMemory::write), for a frame that a peer on another processor reads next: the cache lines of a short
    /// one bypass the caches, if it begins at a line.
    ///
    /// A cached store to a line of which the peer's processor has a copy waits until that copy is invalid, and all later stores
    /// wait with it. Prefetching the line does not help. Of lines of 64 bytes that another core had read, a core of an AMD EPYC
    /// (family 25, model 17) wrote one in 30 to 40 ns, and in 3 ns so; the reader was as fast as before. The lines of a long
    /// frame are different: the reader gets them sooner from a cache than from memory.
    ///
    /// The last line is filled up with zeros, if the peer needs none of the `room` bytes from `offset` on. Before the peer is told
    /// about the bytes, [`end_stream`] is due.
    #[inline(always)]
    pub fn stream(&self, offset: usize, from: &[u8], room: usize) {
        let is_aligned = self
            .inside(offset, from.len())
            .is_some_and(|to| (to.as_ptr() as usize).is_multiple_of(CACHE_LINE));
        if !is_aligned || from.len() > MAX_STREAMED {
            return self.write(offset, from);
        }
        let (lines, rest) = from.as_chunks::<CACHE_LINE>();
        let mut offset = offset;
        for line in lines {
            self.stream_line(offset, line);
            offset += CACHE_LINE;
        }
        let has_room = lines.len() * CACHE_LINE + CACHE_LINE <= room;
        match rest {
            [] => {}
            _ if has_room && self.inside(offset, CACHE_LINE).is_some() => {
                let mut line = [0; CACHE_LINE];
                line.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                self.stream_line(offset, &line);
            }
            _ => self.write(offset, rest),
        }
    }

    /// Writes a line past the caches. Does nothing if it is not inside the range, or does not begin at a line in memory.
    #[inline(always)]
    fn stream_line(&self, offset: usize, line: &[u8; CACHE_LINE]) {
        let Some(to) = self.inside(offset, CACHE_LINE) else { return };
        #[cfg(target_arch = "x86_64")]
        if (to.as_ptr() as usize).is_multiple_of(CACHE_LINE) {
            use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
            let (from, to) = (line.as_ptr().cast::<__m128i>(), to.as_ptr().cast::<__m128i>());
            for part in 0..CACHE_LINE / size_of::<__m128i>() {
                // SAFETY: both are 64 bytes long: the source is a live array, the target is inside the mapped range and aligned.
                unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        self.write(offset, line);
    }

    /// Prefetches the cache line at `offset` for reading. Out-of-range offsets are ignored.
    #[inline(always)]
    pub fn prefetch_read(&self, offset: usize) {
        prefetch_read(self.base.as_ptr().wrapping_add(offset));
    }

    /// Prefetches the cache line at `offset` for writing. Out-of-range offsets are ignored.
    #[inline(always)]
    pub fn prefetch_write(&self, offset: usize) {
        prefetch_write(self.base.as_ptr().wrapping_add(offset));
    }

    /// Prefetches all cache lines of a range for reading.
    #[inline(always)]
    pub(crate) fn prefetch_reads(&self, start: usize, length: usize) {
        for_each_line(self.base.as_ptr().wrapping_add(start), length, prefetch_read);
    }

    /// Prefetches all cache lines of a range for writing.
    #[inline(always)]
    pub(crate) fn prefetch_writes(&self, start: usize, length: usize) {
        for_each_line(self.base.as_ptr().wrapping_add(start), length, prefetch_write);
    }

    /// Prefetches `count` words of the ring of `mask + 1` words at `start`, from number `first` on, for reading and writing.
    ///
    /// The peer on another processor has written these words. A load alone would fetch a line that is shared with that
    /// processor, and the store that follows would wait for it once more.
    #[inline(always)]
    pub(crate) fn prefetch_ring(&self, start: usize, mask: u32, first: u32, count: u32) {
        ring_lines(mask, first, count)
            .for_each(|word| self.prefetch_write(start + word as usize * size_of::<u64>()));
    }

    /// The ring of `mask + 1` words at `start`, for many accesses; `None` if it is not inside the range or not aligned. `mask + 1`
    /// is a power of two.
    #[inline(always)]
    pub(crate) fn ring(&self, start: usize, mask: u32) -> Option<MappedRing> {
        let count = mask as usize + 1;
        let words = self.inside(start, count * size_of::<u64>())?.cast::<AtomicU64>();
        (count.is_power_of_two() && words.is_aligned()).then_some(MappedRing { words, mask })
    }

    #[inline(always)]
    fn inside(&self, offset: usize, size: usize) -> Option<NonNull<u8>> {
        if size > self.size || offset > self.size - size {
            return None;
        }
        // SAFETY: offset + size is within the range that `new`'s caller guarantees.
        Some(unsafe { self.base.add(offset) })
    }

    #[inline(always)]
    fn word_u32(&self, offset: usize) -> Option<&AtomicU32> {
        let at = self.inside(offset, 4)?.cast::<AtomicU32>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: inside the mapped range and aligned; an atomic may be shared with any other writer of
        // the same size, and the reference ends with the access that asked for it.
        Some(unsafe { at.as_ref() })
    }

    #[inline(always)]
    fn word_u64(&self, offset: usize) -> Option<&AtomicU64> {
        let at = self.inside(offset, 8)?.cast::<AtomicU64>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: as in `word_u32`.
        Some(unsafe { at.as_ref() })
    }
}

/// A ring of words in a mapped range. It is checked once, and each access takes one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappedRing {
    words: NonNull<AtomicU64>,
    mask: u32,
}

impl MappedRing {
    /// Loads the word with a number, which is reduced to the size of the ring.
    #[inline(always)]
    pub(crate) fn load(self, number: u32) -> u64 {
        self.word(number).load(Ordering::Relaxed)
    }

    /// Stores it.
    #[inline(always)]
    pub(crate) fn store(self, number: u32, value: u64) {
        self.word(number).store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn word(&self, number: u32) -> &AtomicU64 {
        // SAFETY: `Mapped::ring` found that as many aligned words as the mask says are inside the mapped range, which is mapped for
        // as long as any part of it is used. As in `word_u32`, the reference to the atomic ends with the access.
        unsafe { self.words.add((number & self.mask) as usize).as_ref() }
    }
}

// SAFETY: `new`'s caller keeps the range mapped; words are atomics; no reference leaves this file; each
// byte is copied by one pass.
unsafe impl SharedMemory for Mapped {
    #[inline(always)]
    fn size(&self) -> usize {
        self.size
    }

    #[inline(always)]
    fn load_u32(&self, offset: usize, order: Ordering) -> u32 {
        self.word_u32(offset).map_or(0, |word| word.load(order))
    }

    #[inline(always)]
    fn store_u32(&self, offset: usize, value: u32, order: Ordering) {
        if let Some(word) = self.word_u32(offset) {
            word.store(value, order);
        }
    }

    #[inline(always)]
    fn load_u64(&self, offset: usize, order: Ordering) -> u64 {
        self.word_u64(offset).map_or(0, |word| word.load(order))
    }

    #[inline(always)]
    fn store_u64(&self, offset: usize, value: u64, order: Ordering) {
        if let Some(word) = self.word_u64(offset) {
            word.store(value, order);
        }
    }

    #[inline(always)]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn read(&self, offset: usize, into: &mut [u8]) {
        match self.inside(offset, into.len()) {
            // SAFETY: the source is inside the mapped range, the target is an exclusive slice outside it.
            // The peer may write meanwhile: any byte is a valid u8.
            Some(from) => unsafe {
                from.copy_to_nonoverlapping(NonNull::from(&mut *into).cast(), into.len())
            },
            None => into.fill(0),
        }
        // From here on the copy is used: the compiler must not read the source again.
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn write(&self, offset: usize, from: &[u8]) {
        if let Some(to) = self.inside(offset, from.len()) {
            // SAFETY: the target is inside the mapped range, the source is a slice outside it.
            unsafe { to.copy_from_nonoverlapping(NonNull::from(from).cast(), from.len()) };
        }
    }
}

/// Orders what was [streamed](Mapped::stream) before all later stores.
#[inline(always)]
pub fn end_stream() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all processors of this kind have the instruction, which only orders stores.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

/// The first word of each cache line of `count` words in a ring of `mask + 1` words, from number `first` on.
#[inline(always)]
fn ring_lines(mask: u32, first: u32, count: u32) -> impl Iterator<Item = u32> {
    const WORDS: u32 = (CACHE_LINE / size_of::<u64>()) as u32;
    let before = first % WORDS;
    let lines = (before + count.min(mask + 1)).div_ceil(WORDS);
    (0..lines).map(move |line| (first - before).wrapping_add(line * WORDS) & mask)
}

/// Calls `expect` for every cache line of the `length` bytes from `start`, which must be aligned to a line.
#[inline(always)]
fn for_each_line(start: *const u8, length: usize, expect: impl Fn(*const u8)) {
    for line in 0..length.div_ceil(CACHE_LINE) {
        expect(start.wrapping_add(line * CACHE_LINE));
    }
}

#[inline(always)]
fn prefetch_read(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it changes only the contents of the processor's caches, and has no effect on unmapped addresses.
    unsafe {
        core::arch::asm!("prefetcht0 [{}]", in(reg) at, options(nostack, preserves_flags, readonly))
    };
}

#[inline(always)]
fn prefetch_write(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `prefetch_read`; a processor without this instruction ignores it.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_touched() {
        let mut bytes = [0xaau64; 4];
        let memory = Mapped { base: NonNull::from(&mut bytes).cast(), size: 16 };
        for offset in [9, 16, 17, usize::MAX - 3, usize::MAX] {
            memory.store_u64(offset, 1, Ordering::Relaxed);
            assert_eq!(memory.load_u64(offset, Ordering::Relaxed), 0);
            memory.store_u32(offset | 2, 1, Ordering::Relaxed);
            assert_eq!(memory.load_u32(offset | 2, Ordering::Relaxed), 0);
            memory.write(offset, &[1; 8]);
            let mut out = [7; 8];
            memory.read(offset, &mut out);
            assert_eq!(out, [0; 8]);
        }
        assert!(memory.part(8, 9).is_none() && memory.part(8, 8).is_some());
        for (from, to, length) in [(9, 0, 8), (0, 9, 8), (0, 0, 17), (usize::MAX, 0, 1)] {
            assert!(!memory.copy_to(from, &memory, to, length));
            memory.prefetch_read(from);
            memory.prefetch_write(to);
        }
        assert_eq!(bytes, [0xaa; 4]);
    }

    /// Every length at a line's begin and elsewhere, with and without room for whole lines.
    #[test]
    fn streamed_bytes_arrive() {
        const SIZE: usize = 4 * CACHE_LINE;
        #[repr(align(64))]
        struct Lines([u8; SIZE + CACHE_LINE]);
        let content: [u8; SIZE] = core::array::from_fn(|at| at as u8 | 1);
        for (offset, length) in
            [0, 64, 65, 72].into_iter().flat_map(|offset| (0..=SIZE).map(move |length| (offset, length)))
        {
            for room in [length, length.next_multiple_of(CACHE_LINE)] {
                let mut lines = Lines([0xaa; SIZE + CACHE_LINE]);
                let memory = Mapped { base: NonNull::from(&mut lines).cast(), size: SIZE };
                memory.stream(offset, &content[..length], room);
                end_stream();
                let mut expected = [0xaa; SIZE + CACHE_LINE];
                if offset + length <= SIZE {
                    if offset % CACHE_LINE == 0 && length <= MAX_STREAMED && room > length {
                        expected[offset..offset + room].fill(0);
                    }
                    expected[offset..offset + length].copy_from_slice(&content[..length]);
                }
                assert_eq!(lines.0, expected, "{offset} {length} {room}");
            }
        }
    }

    #[test]
    fn a_ring_lies_inside_its_memory() {
        let mut bytes = [0u64; 10];
        let memory = Mapped { base: NonNull::from(&mut bytes).cast(), size: 72 };
        for (start, mask) in [(0, 15), (16, 7), (4, 3), (usize::MAX, 0), (0, 2), (0, u32::MAX)] {
            assert!(memory.ring(start, mask).is_none(), "{start} {mask}");
        }
        let ring = memory.ring(8, 7).unwrap();
        (0..9u32).for_each(|number| ring.store(number.wrapping_sub(4), number.into()));
        assert_eq!([3, 4, 5, u32::MAX].map(|number| ring.load(number)), [7, 8, 1, 3]);
        assert_eq!(bytes, [0, 4, 5, 6, 7, 8, 1, 2, 3, 0]);
    }

    #[test]
    fn the_lines_of_words_in_a_ring_are_found() {
        for (first, count, expected) in [
            (0, 0, &[][..]),
            (3, 5, &[0]),
            (3, 6, &[0, 8]),
            (60, 5, &[56, 0]),
            (u32::MAX, 2, &[56, 0]),
            (8, 64, &[8, 16, 24, 32, 40, 48, 56, 0]),
            (9, u32::MAX, &[8, 16, 24, 32, 40, 48, 56, 0, 8]),
        ] {
            assert!(ring_lines(63, first, count).eq(expected.iter().copied()), "{first} {count}");
        }
    }

    #[test]
    fn copies_may_overlap() {
        let mut bytes: [u64; 4] = [1, 2, 3, 4];
        let memory = Mapped { base: NonNull::from(&mut bytes).cast(), size: 32 };
        assert!(memory.copy_to(0, &memory, 8, 24));
        assert_eq!(bytes, [1, 1, 2, 3]);
    }
}
