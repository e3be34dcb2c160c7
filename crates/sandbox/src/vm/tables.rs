//! Tables that the processor needs in memory: page tables, and one page with the descriptor tables.
//!
//! All boxes share the descriptor page, which is read-only: the accessed bits of its segments are preset, so that the
//! processor never writes to it. Page tables lie in each box's private memory, outside the addresses that the box can
//! access. The processor sets bits in them, so a read-only slot would cause endless faults on real hardware.

use crate::memory::{HUGE_PAGE, PAGE};
use boundary::VersionNote;
use boundary::exit::{CRASH_PORT, EXIT_PORT};

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED_DIRTY: u64 = 0x60;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Permissions of mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Execute,
    Read,
    Write,
    /// Only for the processor itself, never for the box.
    Processor,
}

impl Access {
    const fn bits(self) -> u64 {
        match self {
            Self::Execute => USER,
            Self::Read => USER | NO_EXECUTE,
            Self::Write => USER | NO_EXECUTE | WRITABLE,
            Self::Processor => NO_EXECUTE,
        }
    }
}

/// A range of a box's addresses, and its physical address in the machine's memory slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) address: u64,
    pub(crate) physical: u64,
    pub(crate) size: u64,
    pub(crate) access: Access,
}

/// Page tables under construction. `base` is the physical address of the first.
pub(crate) struct PageTables {
    base: u64,
    entries: Vec<u64>,
}

impl PageTables {
    /// Tables that map `ranges`, which must consist of whole pages and not overlap. Where a range has the same offset
    /// in a huge page in both kinds of addresses, it is mapped by huge pages.
    pub(crate) fn new(base: u64, ranges: &[Range]) -> Self {
        let mut tables = Self { base, entries: vec![0; PAGE / 8] };
        for range in ranges {
            let size = range.size.next_multiple_of(PAGE as u64);
            let mut done = 0;
            while done < size {
                let (address, physical) = (range.address + done, range.physical + done);
                let page = HUGE_PAGE as u64;
                let aligned = address.is_multiple_of(page) && physical.is_multiple_of(page);
                let large = aligned && size - done >= page;
                done += tables.map(address, physical, range.access, large);
            }
        }
        tables
    }

    /// The number of pages that the tables for `ranges` need.
    pub(crate) fn pages(ranges: &[Range]) -> usize {
        Self::new(0, ranges).entries.len() * 8 / PAGE
    }

    /// The tables' bytes, to be stored at `base`.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()
    }

    fn map(&mut self, address: u64, physical: u64, access: Access, large: bool) -> u64 {
        let index = |level: u64| (address >> (12 + 9 * level)) as usize & 511;
        let mut table = 0;
        for level in [3, 2] {
            table = self.below(table + index(level));
        }
        let flags = PRESENT | ACCESSED_DIRTY | access.bits();
        if large {
            self.set(table + index(1), physical | flags | LARGE);
            return HUGE_PAGE as u64;
        }
        table = self.below(table + index(1));
        self.set(table + index(0), physical | flags);
        PAGE as u64
    }

    /// The table that an entry points to, created if it doesn't exist.
    fn below(&mut self, entry: usize) -> usize {
        let value = self.entries.get(entry).copied().unwrap_or(0);
        if value & PRESENT != 0 {
            return ((value & ADDRESS) - self.base) as usize / 8;
        }
        let made = self.entries.len();
        self.entries.resize(made + PAGE / 8, 0);
        self.set(entry, (self.base + 8 * made as u64) | PRESENT | WRITABLE | USER | ACCESSED_DIRTY);
        made
    }

    fn set(&mut self, entry: usize, value: u64) {
        if let Some(slot) = self.entries.get_mut(entry) {
            *slot = value;
        }
    }
}

/// Offsets in the descriptor page.
pub(crate) const GDT: u64 = 0;
pub(crate) const GDT_LIMIT: u16 = 16 * 8 - 1;
pub(crate) const IDT: u64 = 0x100;
pub(crate) const IDT_LIMIT: u16 = 32 * 16 - 1;
pub(crate) const TSS: u64 = 0x400;
/// The I/O bitmap follows the 104 bytes of the task state segment.
const BITMAP: u64 = 104;
/// It covers ports 0 to 63, and ends with a byte of ones.
const BITMAP_SIZE: u64 = 8;
pub(crate) const TSS_LIMIT: u32 = (BITMAP + BITMAP_SIZE) as u32;

/// Selectors: 64-bit code and data of ring 3, and the task.
pub(crate) const CODE: u16 = 0x33;
pub(crate) const DATA: u16 = 0x2b;
pub(crate) const TASK: u16 = 0x38;

/// The descriptor page for an image.
pub(crate) fn descriptor_page(note: &VersionNote) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let mut put = |offset: u64, bytes: &[u8]| {
        for (to, from) in page.iter_mut().skip(offset as usize).zip(bytes) {
            *to = *from;
        }
    };
    // Flat ring-3 segments with the accessed bit set. The ring-0 segments are formally required but never used.
    for (slot, descriptor) in [
        (2, 0x00af_9b00_0000_ffff),
        (3, 0x00cf_9300_0000_ffff),
        (5, 0x00cf_f300_0000_ffff),
        (6, 0x00af_fb00_0000_ffff),
    ] {
        put(GDT + slot * 8, &u64::to_le_bytes(descriptor));
    }
    // Gates of all 32 exceptions: present, ring 3, interrupt, to ring-3 code, on the first interrupt stack (IST1) of
    // the task state segment.
    for vector in 0..32 {
        let handler = note.fault_table + vector * 16;
        let low = (handler & 0xffff)
            | u64::from(CODE) << 16
            | 1 << 32
            | 0xee << 40
            | (handler >> 16 & 0xffff) << 48;
        put(IDT + vector * 16, &low.to_le_bytes());
        put(IDT + vector * 16 + 8, &(handler >> 32).to_le_bytes());
    }
    // The task state segment: the ring-0 stack (never used), IST1, and the offset of the bitmap.
    put(TSS + 4, &note.fault_stack.to_le_bytes());
    put(TSS + 0x24, &note.fault_stack.to_le_bytes());
    put(TSS + 102, &(BITMAP as u16).to_le_bytes());
    let mut bitmap = u64::MAX;
    for port in [EXIT_PORT, CRASH_PORT] {
        bitmap &= !(1 << port);
    }
    put(TSS + BITMAP, &bitmap.to_le_bytes());
    put(TSS + BITMAP + BITMAP_SIZE, &[0xff]);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Translates an address: its physical address and the flags.
    fn walk(tables: &PageTables, address: u64) -> Option<(u64, u64)> {
        let mut table = 0;
        for level in [3u64, 2, 1, 0] {
            let entry = tables.entries[table + ((address >> (12 + 9 * level)) as usize & 511)];
            if entry & PRESENT == 0 {
                return None;
            }
            if level == 0 || entry & LARGE != 0 {
                let within = (1u64 << (12 + 9 * level)) - 1;
                return Some(((entry & ADDRESS & !within) | address & within, entry & !ADDRESS));
            }
            table = ((entry & ADDRESS) - tables.base) as usize / 8;
        }
        None
    }

    #[test]
    fn only_the_given_ranges_are_mapped() {
        let range = |address, physical, size, access| Range { address, physical, size, access };
        let ranges = [
            range(0x20_0000, 0x20_0000, 0x5000, Access::Execute),
            range(0x20_5000, 0x20_5000, 1, Access::Read),
            range(0x1000_0000, 0x3000_0000, 0x48_1000, Access::Write),
            range(0x2000_0000, 0x3100_1000, 0x20_0000, Access::Write),
            range(0x3fff_f000, 0x3fff_f000, 0x1000, Access::Processor),
        ];
        let tables = PageTables::new(0x5000_0000, &ranges);
        assert_eq!(tables.bytes().len(), PageTables::pages(&ranges) * PAGE);
        for range in ranges {
            for offset in [0, range.size - 1] {
                let (leads, flags) = walk(&tables, range.address + offset).unwrap();
                assert_eq!(leads, range.physical + offset);
                assert_eq!(flags & (USER | WRITABLE | NO_EXECUTE), range.access.bits());
            }
        }
        let large = [0x1000_0000, 0x1020_0000, 0x2000_0000].map(|at| walk(&tables, at).unwrap().1 & LARGE);
        assert_eq!(large, [LARGE, LARGE, 0]);
        for address in [0, 0x1f_f000, 0x20_6000, 0x0fff_f000, 0x1048_1000, 0x4000_0000, 0x5000_0000] {
            assert_eq!(walk(&tables, address), None, "{address:#x}");
        }
    }

    #[test]
    fn only_two_ports_are_open() {
        let page = descriptor_page(&VersionNote {
            fault_table: 0x1234_5678,
            fault_stack: 0x4000_4000,
            stack_size: 0,
        });
        let bitmap = &page[(TSS + BITMAP) as usize..][..9];
        for port in 0..72u16 {
            let closed = bitmap[usize::from(port / 8)] >> (port % 8) & 1 == 1;
            assert_eq!(closed, port != EXIT_PORT && port != CRASH_PORT, "{port}");
        }
    }
}
