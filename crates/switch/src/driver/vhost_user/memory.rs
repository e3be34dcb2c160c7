//! The memory of a peer: regions of files that it shares, found by its addresses.
//!
//! The peer writes to it at any time, so no reference into it is made: words are read by atomic loads, bytes are copied,
//! and what was copied is then checked and used. An address is translated with the length of the access, which must be
//! inside a region; a buffer may cross from one region into the next.

use super::error::VhostUserError;
use super::messages::RegionPlace;
use crate::driver::kernel::check;
use crate::driver::peer_memory::PeerMapping;
use boundary::{Mapped, SharedMemory};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Bytes of an ordinary page.
const PAGE: u64 = 4096;

/// Bytes of the longest header before a frame.
pub(super) const MAX_HEADER: usize = 12;

/// A region: a range of guest addresses, and the memory behind it.
#[derive(Debug)]
struct Region {
    place: RegionPlace,
    /// The region alone, without what else had to be mapped.
    memory: Mapped,
    mapping: Arc<PeerMapping>,
}

/// The memory of a peer.
#[derive(Debug, Default)]
pub(super) struct GuestMemory(Vec<Region>);

impl GuestMemory {
    /// Maps the regions of a table, of up to `most` bytes in all. Each comes with a file.
    pub(super) fn map(
        places: &[RegionPlace],
        files: Vec<OwnedFd>,
        most: u64,
    ) -> Result<Self, VhostUserError> {
        check_places(places, most)?;
        let regions = places.iter().zip(files).map(|(place, file)| Region::map(*place, &file));
        Ok(Self(regions.collect::<Result<_, _>>()?))
    }

    /// Whether the peer has truncated its memory, and the switch noticed.
    #[inline]
    pub(super) fn is_broken(&self) -> bool {
        self.0.iter().any(|region| region.mapping.is_broken())
    }

    /// The part of a ring at an address of the peer, aligned to `align` bytes.
    pub(super) fn ring_part(&self, address: u64, length: usize, align: usize) -> Option<RingPart> {
        let mut found = self.0.iter().filter_map(|region| {
            let offset = usize::try_from(address.checked_sub(region.place.user)?).ok()?;
            let start = region.memory.pointer(offset, length)?;
            (start.as_ptr() as usize).is_multiple_of(align).then(|| RingPart {
                start,
                length,
                _mapping: region.mapping.clone(),
            })
        });
        found.next()
    }

    /// The region that a buffer starts in, and its offset there.
    #[inline(always)]
    fn find(&self, address: u64) -> Option<(&Region, usize)> {
        let inside = |region: &&Region| address.wrapping_sub(region.place.guest) < region.place.size;
        let region = self.0.iter().find(inside)?;
        Some((region, (address - region.place.guest) as usize))
    }

    /// Copies bytes of the peer. Returns false if they are not all inside its memory.
    #[inline(always)]
    pub(super) fn read(&self, address: u64, into: &mut [u8]) -> bool {
        match self.find(address) {
            Some((region, offset)) if region.memory.pointer(offset, into.len()).is_some() => {
                region.memory.read(offset, into);
                true
            }
            Some(_) => self.read_pieces(address, into),
            None => into.is_empty(),
        }
    }

    /// Copies a header and a frame into a buffer of `room` bytes of the peer, which reads them after
    /// [`end_stream`](boundary::end_stream). Those after them may become zeros. Returns false if they do not fit in its memory; a
    /// part may then be written.
    #[inline(always)]
    pub(super) fn write(&self, address: u64, header: &[u8], frame: &[u8], room: usize) -> bool {
        match self.find(address) {
            Some((region, offset)) if region.memory.pointer(offset, header.len() + frame.len()).is_some() => {
                // A store to a line that the peer has waits for it. It seldom changes the headers of its buffers.
                let mut before = [0; MAX_HEADER];
                let is_changed = before.get_mut(..header.len()).is_none_or(|before| {
                    region.memory.read(offset, before);
                    before != header
                });
                if is_changed {
                    region.memory.write(offset, header);
                }
                region.memory.stream(offset + header.len(), frame, room.saturating_sub(header.len()));
                true
            }
            _ => {
                let after = address.wrapping_add(header.len() as u64);
                self.write_pieces(address, header) && self.write_pieces(after, frame)
            }
        }
    }

    /// Has the processor fetch what is at an address.
    #[inline(always)]
    pub(super) fn prefetch(&self, address: u64) {
        #[cfg(target_arch = "x86_64")]
        if let Some((region, offset)) = self.find(address)
            && let Some(start) = region.memory.pointer(offset, 1)
        {
            // SAFETY: it changes only the contents of the processor's caches.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(start.as_ptr().cast());
            }
        }
    }

    #[cold]
    fn read_pieces(&self, mut address: u64, mut into: &mut [u8]) -> bool {
        while !into.is_empty() {
            let Some((region, offset)) = self.find(address) else { return false };
            let length = into.len().min(region.memory.size() - offset);
            let (piece, rest) = into.split_at_mut(length);
            region.memory.read(offset, piece);
            (address, into) = (address.wrapping_add(length as u64), rest);
        }
        true
    }

    #[cold]
    fn write_pieces(&self, mut address: u64, mut from: &[u8]) -> bool {
        while !from.is_empty() {
            let Some((region, offset)) = self.find(address) else { return false };
            let length = from.len().min(region.memory.size() - offset);
            let (piece, rest) = from.split_at(length);
            region.memory.write(offset, piece);
            (address, from) = (address.wrapping_add(length as u64), rest);
        }
        true
    }
}

impl Region {
    fn map(place: RegionPlace, file: &OwnedFd) -> Result<Self, VhostUserError> {
        let (mut volume, mut status) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the kernel fills the variables, each of the type of its call. They are read only if it has done so.
        let (volume, status): (libc::statfs, libc::stat) = unsafe {
            check(libc::fstatfs(file.as_raw_fd(), volume.as_mut_ptr()) as isize)?;
            check(libc::fstat(file.as_raw_fd(), status.as_mut_ptr()) as isize)?;
            (volume.assume_init(), status.assume_init())
        };
        // An access to a page of another file may wait for a server of the peer's choice.
        let page = match volume.f_type {
            libc::TMPFS_MAGIC => PAGE,
            libc::HUGETLBFS_MAGIC => u64::try_from(volume.f_bsize).unwrap_or(PAGE).max(PAGE),
            _ => return Err(VhostUserError::NotMemory),
        };
        let file_size = u64::try_from(status.st_size).unwrap_or(0);
        let end = place.offset.checked_add(place.size).filter(|end| *end <= file_size);
        let end = end.ok_or(VhostUserError::Region)?;
        let start = place.offset - place.offset % page;
        let skipped = (place.offset - start) as usize;
        let length = usize::try_from((end - start).next_multiple_of(page)).unwrap_or(usize::MAX);
        let mapping =
            PeerMapping::map(file.as_fd(), start, length).map_err(|error| match error.raw_os_error() {
                Some(libc::EACCES) => VhostUserError::ReadOnly,
                _ => error.into(),
            });
        let mapping = Arc::new(mapping?);
        let memory = mapping.mapped().part(skipped, place.size as usize).ok_or(VhostUserError::Region)?;
        Ok(Self { place, memory, mapping })
    }
}

/// Checks sizes, and that no address is in two regions.
fn check_places(places: &[RegionPlace], most: u64) -> Result<(), VhostUserError> {
    let sum = places.iter().try_fold(0u64, |sum, place| sum.checked_add(place.size));
    let wanted = sum.ok_or(VhostUserError::Region)?;
    if wanted > most {
        return Err(VhostUserError::TooMuchMemory { wanted, most });
    }
    let has_no_end = |place: &RegionPlace| {
        place.size == 0
            || place.guest.checked_add(place.size).is_none()
            || place.user.checked_add(place.size).is_none()
    };
    if places.iter().any(has_no_end) {
        return Err(VhostUserError::Region);
    }
    let apart =
        |one: u64, size: u64, other: u64, other_size: u64| one + size <= other || other + other_size <= one;
    for (number, one) in places.iter().enumerate() {
        let rest = places.get(number + 1..).unwrap_or_default();
        let overlaps = |other: &RegionPlace| {
            !apart(one.guest, one.size, other.guest, other.size)
                || !apart(one.user, one.size, other.user, other.size)
        };
        if rest.iter().any(overlaps) {
            return Err(VhostUserError::Region);
        }
    }
    Ok(())
}

/// A part of a ring: inside one region, which stays mapped as long as the value is there.
#[derive(Debug)]
pub(super) struct RingPart {
    start: NonNull<u8>,
    length: usize,
    _mapping: Arc<PeerMapping>,
}

// SAFETY: the value is an address and a length of a mapping that it holds; every access is atomic.
unsafe impl Send for RingPart {}
// SAFETY: as above.
unsafe impl Sync for RingPart {}

macro_rules! word {
    ($name:ident, $atomic:ty) => {
        /// The word at an offset, which is a multiple of its size.
        ///
        /// # Panics
        ///
        /// The offset is not inside the part. Callers compute it from a number that they checked.
        #[inline(always)]
        pub(super) fn $name(&self, offset: usize) -> &$atomic {
            assert!(offset + size_of::<$atomic>() <= self.length);
            // SAFETY: the word is inside the mapped part. The part is aligned for its words, and the offset is a multiple
            // of the word's size. An atomic may be shared with other writers, and the reference ends with the access.
            unsafe { self.start.add(offset).cast::<$atomic>().as_ref() }
        }
    };
}

impl RingPart {
    word!(half, AtomicU16);
    word!(word, AtomicU32);
    word!(long, AtomicU64);

    /// A descriptor of a table that starts here.
    #[inline(always)]
    pub(super) fn descriptor(&self, number: u16) -> Descriptor {
        let address = self.long(usize::from(number) * 16).load(Ordering::Relaxed);
        Descriptor::new(address, self.long(usize::from(number) * 16 + 8).load(Ordering::Relaxed))
    }
}

/// A descriptor, as it was when it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) flags: u16,
    pub(super) next: u16,
}

impl Descriptor {
    /// From the two halves of its 16 bytes.
    #[inline(always)]
    fn new(address: u64, rest: u64) -> Self {
        Self { address, length: rest as u32, flags: (rest >> 32) as u16, next: (rest >> 48) as u16 }
    }

    /// From its bytes.
    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self::new(both as u64, (both >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::fs::File;
    use std::os::fd::FromRawFd;
    use std::os::unix::fs::FileExt;

    fn memory_file(name: &CStr, size: u64) -> File {
        // SAFETY: the name ends with a zero byte; the call returns a descriptor that nothing else owns.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC)) };
        file.set_len(size).unwrap();
        file
    }

    fn place(guest: u64, size: u64, user: u64, offset: u64) -> RegionPlace {
        RegionPlace { guest, size, user, offset }
    }

    fn map(places: &[RegionPlace], file: &File) -> Result<GuestMemory, VhostUserError> {
        let files = places.iter().map(|_| file.try_clone().unwrap().into());
        GuestMemory::map(places, files.collect(), 0x10000)
    }

    #[test]
    fn tables_are_checked() {
        let file = memory_file(c"tables", 0x4000);
        for (places, is_valid) in [
            (vec![place(0, 0x4000, 0, 0)], true),
            (vec![place(0, 0x1000, 0, 0x3000)], true),
            (vec![place(0, 0x800, 0, 0x37ff)], true),
            (vec![place(0, 0x800, 0, 0x3801)], false),
            (vec![place(0, 0x4001, 0, 0)], false),
            (vec![place(0, 0x1000, 0, u64::MAX - 0xfff)], false),
            (vec![place(0, 0, 0, 0)], false),
            (vec![place(u64::MAX - 1, 4, 0, 0)], false),
            (vec![place(0, 4, u64::MAX - 1, 0)], false),
            (vec![place(0, u64::MAX, 0, 0)], false),
            (vec![place(0, 0x2000, 0, 0), place(0x2000, 0x2000, 0x2000, 0)], true),
            (vec![place(0, 0x2000, 0, 0), place(0x1fff, 0x2000, 0x2000, 0)], false),
            (vec![place(0, 0x2000, 0x1000, 0), place(0x2000, 0x2000, 0, 0)], false),
        ] {
            assert_eq!(map(&places, &file).is_ok(), is_valid, "{places:?}");
        }
        let other =
            GuestMemory::map(&[place(0, 1, 0, 0)], vec![File::open("/proc/self/exe").unwrap().into()], 1);
        assert!(matches!(other, Err(VhostUserError::NotMemory | VhostUserError::System(_))), "{other:?}");
        let more = map(&[place(0, 0x8000, 0, 0), place(0x8000, 0x8001, 0x8000, 0)], &file).unwrap_err();
        assert!(matches!(more, VhostUserError::TooMuchMemory { wanted: 0x10001, most: 0x10000 }), "{more:?}");
    }

    #[test]
    fn addresses_are_translated_with_their_length() {
        let file = memory_file(c"translation", 0x4000);
        let memory = map(
            // The second region follows the first one in the guest, but not in the file; then there is a gap.
            &[
                place(0x1000, 0x1000, 0x7f00_0000, 0x800),
                place(0x2000, 0x1000, 0x8f00_0000, 0x3000),
                place(0x4000, 0x10, 0x9f00_0000, 0),
            ],
            &file,
        )
        .unwrap();
        let content: Vec<u8> = (0..64).collect();
        for (address, is_valid) in [
            (0x1000, true),
            (0x1fc0, true),
            (0x1fe0, true),
            (0x2000, true),
            (0x2fc0, true),
            (0x2fc1, false),
            (0x0fff, false),
            (0x3000, false),
            (0x4000, false),
            (u64::MAX, false),
            (u64::MAX - 63, false),
        ] {
            let mut found = [0; 64];
            assert_eq!(memory.write(address, &content[..12], &content[12..], 64), is_valid, "{address:#x}");
            assert_eq!(memory.read(address, &mut found), is_valid, "{address:#x}");
            if is_valid {
                assert_eq!(found[..], content);
            }
        }
        // The one that crossed: half of it is at the end of the first region, half at the start of the second one.
        assert!(memory.write(0x1fe0, &content[..40], &content[40..], 64));
        let mut halves = [0; 64];
        file.read_exact_at(&mut halves[..32], 0x800 + 0x1000 - 32).unwrap();
        file.read_exact_at(&mut halves[32..], 0x3000).unwrap();
        assert_eq!(halves[..], content);
        for (address, length, align, is_valid) in [
            (0x7f00_0000, 0x1000, 16, true),
            (0x7f00_0ff0, 16, 16, true),
            (0x7f00_0ff0, 17, 16, false),
            (0x7f00_0008, 16, 16, false),
            (0x7f00_0008, 16, 4, true),
            (0x8eff_ffff, 1, 1, false),
            (0x1000, 16, 1, false),
            (0x9f00_0000, usize::MAX, 1, false),
        ] {
            assert_eq!(memory.ring_part(address, length, align).is_some(), is_valid, "{address:#x}");
        }
    }

    #[test]
    fn truncated_memory_is_noticed_and_survived() {
        let file = memory_file(c"truncated", 0x4000);
        let memory = map(&[place(0, 0x4000, 0, 0)], &file).unwrap();
        let other = map(&[place(0, 0x2000, 0, 0)], &file).unwrap();
        assert!(memory.write(0x3000, &[], &[7; 64], 64) && !memory.is_broken());
        file.set_len(0x2000).unwrap();
        let mut found = [1; 64];
        assert!(memory.read(0x3000, &mut found));
        assert_eq!((found, memory.is_broken(), other.is_broken()), ([0; 64], true, false));
        // Anonymous memory is in its place: accesses go on, and reach nothing.
        assert!(memory.write(0, &[], &[9; 64], 64) && other.read(0, &mut found));
        assert_eq!(found, [0; 64]);
    }
}
