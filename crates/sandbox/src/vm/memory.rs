//! A machine's private memory.
//!
//! Two pieces, one after the other in the box's addresses. The first is small and touched at once: page
//! tables, a guard page, the stack, the image's variables, the start of the heap; it comes from memory
//! with large pages, packed with other boxes' first pieces. The second is the rest of the heap, taken
//! page by page as the box needs it.
//!
//! ```text
//! tables | guard | stack | variables | heap ...            ... heap
//! `------------------ dense ------------------'`----- sparse -----'
//! ```

use crate::error::CreateError;
use crate::image::{AREA_ADDRESS, Image};
use crate::memory::{Arena, Chunk, PAGE};
use crate::vm::tables::{Access, PageTables, Range};
use boundary::{MemoryKind, MemoryRegion, SharedMemory};
use std::sync::Arc;

/// Bytes of heap in the first piece: what a small configuration needs.
const DENSE_HEAP: usize = 128 << 10;

/// The private memory of one machine.
#[derive(Debug)]
pub(crate) struct Private {
    pub(crate) dense: Chunk,
    pub(crate) sparse: Option<Chunk>,
    /// Physical address of the first piece, where the page tables lie.
    pub(crate) dense_address: u64,
    pub(crate) sparse_address: u64,
    pub(crate) stack_top: u64,
    /// What the box is told.
    pub(crate) regions: Vec<MemoryRegion>,
}

impl Private {
    /// Takes and fills `size` bytes of private memory for an image, beside an area of `area_size` bytes.
    pub(crate) fn new(
        image: &Image,
        descriptors: u64,
        size: usize,
        area_size: usize,
        dense: &Arc<Arena>,
        sparse: &Arc<Arena>,
    ) -> Result<Self, CreateError> {
        let page = PAGE as u64;
        let stack_size = image.note.stack_size.clamp(page, 1 << 20).next_multiple_of(page);
        let data = image.data.address;
        let data_size = image.data.size.next_multiple_of(page);
        let size = (size as u64).next_multiple_of(page);
        let heap_size = size.saturating_sub(stack_size + data_size).max(page);
        let dense_heap = heap_size.min(DENSE_HEAP as u64);
        let stack = data - stack_size;
        let mut ranges: Vec<Range> = image
            .shared
            .iter()
            .map(|segment| Range {
                address: segment.address,
                size: segment.size,
                access: if segment.execute { Access::Execute } else { Access::Read },
            })
            .collect();
        ranges.push(Range { address: descriptors, size: page, access: Access::Processor });
        ranges.push(Range { address: AREA_ADDRESS, size: area_size as u64, access: Access::Write });
        ranges.push(Range {
            address: stack,
            size: stack_size + data_size + heap_size,
            access: Access::Write,
        });
        let tables_size = PageTables::pages(&ranges) as u64 * page;
        let dense_address = stack - page - tables_size;
        let tables = PageTables::new(dense_address, &ranges).bytes();
        let sparse_address = data + data_size + dense_heap;
        let private = Self {
            dense: dense.take((sparse_address - dense_address) as usize)?,
            sparse: match heap_size - dense_heap {
                0 => None,
                rest => Some(sparse.take(rest as usize)?),
            },
            dense_address,
            sparse_address,
            stack_top: data,
            regions: vec![
                MemoryRegion { kind: MemoryKind::Data, address: data, size: data_size },
                MemoryRegion { kind: MemoryKind::Heap, address: data + data_size, size: heap_size },
                MemoryRegion { kind: MemoryKind::Stack, address: stack, size: stack_size },
                MemoryRegion { kind: MemoryKind::Area, address: AREA_ADDRESS, size: area_size as u64 },
            ],
        };
        let memory = private.dense.mapped();
        memory.write(0, &tables);
        memory.write((data - dense_address) as usize, &image.data.bytes);
        Ok(private)
    }
}
