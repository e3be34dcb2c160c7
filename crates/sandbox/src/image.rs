//! The image: an ELF program, parsed once.

use crate::error::ImageError;
use crate::memory::{HUGE_PAGE, PAGE};
use boundary::{MemoryKind, MemoryRegion, VersionNote};

/// Address of the shared region in a box; the image's shared part must end below it.
pub(crate) const REGION_ADDRESS: u64 = 0x1000_0000;

/// Lowest address of private memory: variables and heap. Stack and page tables lie below it, above the longest shared
/// region.
const PRIVATE_FLOOR: u64 = 0x4000_0000;

/// Lowest address of the shared part: the page below it holds the descriptor tables.
const SHARED_FLOOR: u64 = 0x2000;

/// Maximum bytes of an image's variables and of its stack. Stops a corrupt note or header from claiming all memory.
const MAX_DATA: u64 = 64 << 20;
const MAX_STACK: u64 = 1 << 20;

/// Maximum loaded segments; a linker creates about five. Stops headers that all refer to the same bytes, because each
/// segment is a copy.
const MOST_SEGMENTS: usize = 16;

/// A loaded segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    /// Size in memory; bytes beyond those of the file are zero.
    pub(crate) size: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) execute: bool,
    pub(crate) write: bool,
}

/// A verified image.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) entry: u64,
    pub(crate) note: VersionNote,
    /// Code and constants.
    pub(crate) shared: Vec<Segment>,
    /// Variables.
    pub(crate) data: Segment,
}

const LOAD: u32 = 1;
const NOTE: u32 = 4;
const HEADER_SIZE: usize = 56;

fn word<const N: usize>(file: &[u8], offset: usize) -> Result<[u8; N], ImageError> {
    file.get(offset..).and_then(|rest| rest.first_chunk::<N>()).copied().ok_or(ImageError::Truncated)
}

fn u64_at(file: &[u8], offset: usize) -> Result<u64, ImageError> {
    word(file, offset).map(u64::from_le_bytes)
}

impl Image {
    /// Parses an ELF file.
    pub(crate) fn parse(file: &[u8]) -> Result<Self, ImageError> {
        // 64-bit, little endian, version 1; x86-64, executable at fixed addresses.
        if file.get(..7) != Some(b"\x7fELF\x02\x01\x01") || file.get(16..20) != Some(&[2, 0, 62, 0]) {
            return Err(ImageError::NotElf);
        }
        let headers = usize::try_from(u64_at(file, 32)?).map_err(|_| ImageError::Truncated)?;
        let count = usize::from(u16::from_le_bytes(word(file, 56)?));
        let (mut shared, mut data, mut note) = (Vec::new(), None, None);
        for index in 0..count {
            let at = headers.checked_add(index * HEADER_SIZE).ok_or(ImageError::Truncated)?;
            let kind = u32::from_le_bytes(word(file, at)?);
            let flags = u32::from_le_bytes(word(file, at + 4)?);
            let (offset, address) = (u64_at(file, at + 8)?, u64_at(file, at + 16)?);
            let (stored, size) = (u64_at(file, at + 32)?, u64_at(file, at + 40)?);
            let bytes = || {
                let end = offset.checked_add(stored).ok_or(ImageError::Truncated)?;
                file.get(offset as usize..end as usize).ok_or(ImageError::Truncated)
            };
            match kind {
                LOAD => {
                    let (execute, write) = (flags & 1 != 0, flags & 2 != 0);
                    let segment = Segment { address, size, bytes: bytes()?.to_vec(), execute, write };
                    segment.check()?;
                    if shared.len() >= MOST_SEGMENTS {
                        return Err(ImageError::Layout(address));
                    }
                    match (write, &data) {
                        (false, _) => shared.push(segment),
                        (true, None) => data = Some(segment),
                        (true, Some(_)) => return Err(ImageError::Layout(address)),
                    }
                }
                NOTE => note = Some(VersionNote::find(bytes()?).map_err(ImageError::Note)?),
                _ => {}
            }
        }
        if shared.iter().chain(&data).map(|segment| segment.bytes.len()).sum::<usize>() > file.len() {
            return Err(ImageError::Overlap);
        }
        let note = note.ok_or(ImageError::Note(boundary::NoteError::Missing))?;
        shared.sort_by_key(|segment: &Segment| segment.address);
        let data = data.ok_or(ImageError::Layout(0))?;
        let entry = u64_at(file, 24)?;
        let inside = |segment: &Segment| segment.execute && (segment.address..segment.end()).contains(&entry);
        if !shared.iter().any(inside) || shared.windows(2).any(|pair| pair[0].end() > pair[1].address) {
            return Err(ImageError::Layout(entry));
        }
        Ok(Self { entry, note, shared, data })
    }

    /// Lowest address of the shared part.
    pub(crate) fn shared_start(&self) -> u64 {
        self.shared.first().map_or(REGION_ADDRESS, |segment| segment.address)
    }

    /// The shared segments, each with the number of bytes that are mapped for it: rounded up to whole huge pages unless
    /// this would overlap another segment.
    pub(crate) fn shared_parts(&self) -> impl Iterator<Item = (&Segment, u64)> {
        let ends = self.shared.iter().skip(1).map(|segment| segment.address).chain([REGION_ADDRESS]);
        self.shared.iter().zip(ends).map(|(segment, limit)| {
            let end = (segment.address + segment.size).next_multiple_of(HUGE_PAGE as u64);
            let end = if end <= limit { end } else { segment.end() };
            (segment, end - segment.address)
        })
    }

    /// End address of the shared part as it is mapped.
    pub(crate) fn shared_end(&self) -> u64 {
        self.shared_parts().last().map_or(REGION_ADDRESS, |(segment, size)| segment.address + size)
    }

    /// The smallest private memory of a box that runs it.
    pub(crate) fn least_memory(&self) -> u64 {
        let [data, heap, stack] = self.private_regions(0);
        data.size + heap.size + stack.size
    }

    /// The private memory of a box with `size` bytes, in whole pages: variables, the heap above them, and the stack
    /// below them.
    pub(crate) fn private_regions(&self, size: usize) -> [MemoryRegion; 3] {
        let page = PAGE as u64;
        let (address, heap) = (self.data.address, self.data.end());
        let data_size = heap - address;
        let stack_size = self.note.stack_size.clamp(page, MAX_STACK).next_multiple_of(page);
        let heap_size = (size as u64).next_multiple_of(page).saturating_sub(stack_size + data_size).max(page);
        [
            MemoryRegion { kind: MemoryKind::Data, address, size: data_size },
            MemoryRegion { kind: MemoryKind::Heap, address: heap, size: heap_size },
            MemoryRegion { kind: MemoryKind::Stack, address: address - stack_size, size: stack_size },
        ]
    }
}

impl Segment {
    /// The segment's end address, rounded up to a page.
    pub(crate) fn end(&self) -> u64 {
        (self.address + self.size).next_multiple_of(PAGE as u64)
    }

    fn check(&self) -> Result<(), ImageError> {
        let fits = match self.write {
            true => self.address == PRIVATE_FLOOR && self.size <= MAX_DATA,
            false => {
                self.address >= SHARED_FLOOR && self.address < REGION_ADDRESS && self.size <= REGION_ADDRESS
            }
        };
        // What is shared is written once, as a whole: its memory is no larger than the file.
        let is_backed = self.write || self.size <= (self.bytes.len() as u64).next_multiple_of(PAGE as u64);
        let valid = fits
            && is_backed
            && self.address.is_multiple_of(PAGE as u64)
            && self.bytes.len() as u64 <= self.size
            && (self.write || self.end() <= REGION_ADDRESS)
            && !(self.write && self.execute);
        if valid { Ok(()) } else { Err(ImageError::Layout(self.address)) }
    }
}

/// Parses arbitrary bytes as an image, alone and after a valid ELF header, and checks that the resulting memory map is
/// consistent.
#[cfg(any(test, fuzzing))]
#[cfg_attr(not(fuzzing), allow(unreachable_pub, reason = "the fuzz target calls it"))]
pub fn survive(bytes: &[u8]) {
    let mut header = [0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[16..20].copy_from_slice(&[2, 0, 62, 0]);
    header[24..32].copy_from_slice(&SHARED_FLOOR.to_le_bytes());
    header[32] = 64;
    header[56..58].copy_from_slice(&((bytes.len() / HEADER_SIZE) as u16).to_le_bytes());
    for file in [bytes, &[&header, bytes].concat()] {
        let Ok(image) = Image::parse(file) else { continue };
        let mut end = SHARED_FLOOR;
        for (segment, size) in image.shared_parts() {
            assert!(segment.address >= end && size >= segment.bytes.len() as u64);
            end = segment.address + size;
        }
        assert!(end == image.shared_end() && end <= REGION_ADDRESS);
        let [data, heap, stack] = image.private_regions(8 << 20);
        assert!(stack.address + stack.size <= data.address && data.address + data.size <= heap.address);
        assert!(image.data.bytes.len() as u64 <= data.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Random;

    /// An image file with these program headers, each (kind, flags, offset, address, stored size, size in memory).
    fn file(headers: &[(u32, u32, u64, u64, u64, u64)]) -> Vec<u8> {
        let mut file = image::PROBE[..64].to_vec();
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[56..58].copy_from_slice(&(headers.len() as u16).to_le_bytes());
        for &(kind, flags, offset, address, stored, size) in headers {
            file.extend([kind, flags].iter().flat_map(|word| word.to_le_bytes()));
            let words = [offset, address, address, stored, size, 4096];
            file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        file
    }

    #[test]
    fn segments_that_share_their_bytes_are_limited() {
        let segment = |number: u64| (LOAD, 4, 0, SHARED_FLOOR + number * 4096, 64, 4096);
        let headers: Vec<_> = (0..=MOST_SEGMENTS as u64).map(segment).collect();
        let last = SHARED_FLOOR + MOST_SEGMENTS as u64 * 4096;
        assert!(matches!(Image::parse(&file(&headers)), Err(ImageError::Layout(address)) if address == last));
    }

    /// Neither a few bytes of a file nor a number in a header claim much memory of a host.
    #[test]
    fn an_image_takes_no_more_shared_memory_than_its_file() {
        let segment = |number: u64| (LOAD, 4, 0, SHARED_FLOOR + number * 4096, 128, 128);
        let headers: Vec<_> = (0..6).map(segment).collect();
        assert_eq!(Image::parse(&file(&headers)).unwrap_err(), ImageError::Overlap);
        let sparse = [(LOAD, 5, 0, SHARED_FLOOR, 64, 100 << 20)];
        assert_eq!(Image::parse(&file(&sparse)).unwrap_err(), ImageError::Layout(SHARED_FLOOR));
    }

    #[test]
    fn headers_of_any_numbers_are_refused_or_read() {
        let mut random = Random::new(1);
        let mut next = || {
            let any = random.next() >> 33;
            [0, 64, 4096, SHARED_FLOOR, PRIVATE_FLOOR, REGION_ADDRESS, u64::MAX, any]
                [random.below(8) as usize]
        };
        for _ in 0..20_000 {
            let headers: Vec<_> = (0..4)
                .map(|_| (1 + (next() & 3) as u32, next() as u32 & 7, next(), next(), next(), next()))
                .collect();
            survive(&file(&headers));
        }
    }

    /// An image with one changed field in its program headers is refused, or its memory map makes sense.
    #[test]
    fn an_image_with_one_wrong_number_is_refused_or_read() {
        const FIELDS: [u64; 8] = [0, 1, 4096, SHARED_FLOOR, PRIVATE_FLOOR, REGION_ADDRESS, 1 << 63, u64::MAX];
        let original = image::PROBE;
        let table = u64_at(original, 32).unwrap() as usize;
        let count = usize::from(u16::from_le_bytes(word(original, 56).unwrap()));
        let (mut read, mut refused) = (0, 0);
        for at in (table..table + count * HEADER_SIZE).step_by(8) {
            for field in FIELDS {
                let mut file = original.to_vec();
                file[at..at + 8].copy_from_slice(&field.to_le_bytes());
                survive(&file);
                match Image::parse(&file) {
                    Ok(_) => read += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    }

    #[test]
    fn the_probe_is_read() {
        let image = Image::parse(image::PROBE).unwrap();
        assert_eq!(image.entry, image.shared_start());
        assert!(image.shared.len() >= 2 && image.shared_end() < REGION_ADDRESS);
        for (segment, size) in image.shared_parts() {
            let whole = |bytes: u64| bytes.is_multiple_of(HUGE_PAGE as u64);
            assert!(whole(segment.address) && whole(size), "{size:#x}");
        }
        assert!(image.note.fault_stack > image.data.address && image.note.fault_stack <= image.data.end());
        assert!(image.shared.iter().filter(|segment| segment.execute).count() == 1);
    }

    /// A copied process fills its variables with the original's values before it is confined, so no variable may hold a
    /// code address.
    #[test]
    fn no_variable_leads_into_the_text() {
        for file in [image::PROBE, image::CLICKBOX] {
            let image = Image::parse(file).unwrap();
            let text = image.shared.iter().find(|segment| segment.execute).unwrap();
            let words =
                image.data.bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            let leads: Vec<u64> = words.filter(|word| (text.address..text.end()).contains(word)).collect();
            assert!(leads.is_empty(), "{leads:x?}");
        }
    }

    #[test]
    fn damaged_images_are_refused_or_read_but_never_trusted() {
        let good = image::PROBE;
        for length in (0..512).chain([4096, good.len() / 2]) {
            assert!(Image::parse(&good[..length]).is_err(), "{length} bytes");
        }
        // Each byte of the headers, changed in three ways.
        for at in 0..64 + 5 * HEADER_SIZE {
            for change in [0xff, 0x01, 0x80] {
                let mut file = good.to_vec();
                file[at] ^= change;
                survive(&file);
            }
        }
        assert!(matches!(Image::parse(&[0; 100]), Err(ImageError::NotElf)));
    }
}
