//! A machine's memory.
//!
//! Two pieces of the host's memory, each a memory slot. The first is small and touched at once: the area that the
//! machine shares with its host, page tables, the top of the stack, the image's variables, the start of the heap; it
//! comes from memory with large pages, packed with other machines' first pieces. The second is the rest of heap and
//! stack, taken page by page as the box needs it. Each slot costs its time when a machine is made, so there is no
//! third. What is next to what in the box's addresses is the page tables' doing:
//!
//! ```text
//! box's addresses:   area ...   guard | stack | variables | heap ...
//! first piece:       area | tables | top of the stack | variables | start of the heap
//! second piece:      rest of the heap | rest of the stack
//! ```

use crate::error::CreateError;
use crate::image::{AREA_ADDRESS, Image};
use crate::memory::{Arena, HUGE_PAGE, PAGE, Part};
use crate::pool::POOL_SIZE;
use crate::shared_region::{Backing, RegionPlan, SharedRegion};
use crate::vm::tables::{Access, PageTables, Range};
use boundary::{MemoryRegion, SharedMemory};
use std::sync::Arc;

/// Bytes of heap in the first piece: what a small configuration needs.
const DENSE_HEAP: u64 = 64 << 10;

/// Bytes of stack in the first piece: what most configurations need.
const DENSE_STACK: u64 = 16 << 10;

/// Where the second piece lies in the machine's memory slots: above all others, and above what processors keep for
/// themselves below 4 GB.
const SPARSE_ADDRESS: u64 = 4 << 30;

/// Where a packet pool that the machine shares with others lies in its memory slots: between its own two pieces.
pub(crate) const POOL_ADDRESS: u64 = 2 << 30;

/// A machine's memory but for the image, and for a packet pool that is shared.
#[derive(Debug)]
pub(crate) struct VmMemory {
    /// The first piece.
    pub(crate) first: Part,
    /// What of it is private.
    pub(crate) dense: Part,
    /// The second piece.
    pub(crate) sparse: Option<Part>,
    /// Physical address of the page tables, where the private part of the first piece begins.
    pub(crate) tables_address: u64,
    /// Physical address of the second piece.
    pub(crate) sparse_address: u64,
    pub(crate) stack_top: u64,
    /// What the box is told.
    pub(crate) regions: Vec<MemoryRegion>,
}

/// Physical address of the first piece: where its area lies in the box's addresses too, so that large areas are mapped
/// by large pages.
pub(crate) const FIRST_ADDRESS: u64 = AREA_ADDRESS;

impl VmMemory {
    /// Takes and fills memory for an image: an area, and `size` private bytes.
    pub(crate) fn new(
        image: &Image,
        descriptors: u64,
        size: usize,
        layout: RegionPlan,
        dense: &Arc<Arena>,
        sparse: &Arc<Arena>,
    ) -> Result<(Self, Arc<SharedRegion>), CreateError> {
        let page = PAGE as u64;
        let region_size = layout.area.size as u64;
        let own @ [data, heap, stack] = image.private_regions(size);
        let (dense_heap, dense_stack) = (heap.size.min(DENSE_HEAP), stack.size.min(DENSE_STACK));
        let (stack_rest, heap_rest) = (stack.size - dense_stack, heap.size - dense_heap);
        // The heap's rest begins at the same place of a large page as in the box's addresses.
        let sparse_address = SPARSE_ADDRESS + (heap.address + dense_heap) % HUGE_PAGE as u64;

        let write = |address, physical, size| Range { address, physical, size, access: Access::Write };
        let mut ranges: Vec<Range> = image
            .shared_parts()
            .map(|(segment, size)| Range {
                address: segment.address,
                physical: segment.address,
                size,
                access: if segment.execute { Access::Execute } else { Access::Read },
            })
            .collect();
        ranges.push(Range {
            address: descriptors,
            physical: descriptors,
            size: page,
            access: Access::Processor,
        });
        ranges.push(write(AREA_ADDRESS, FIRST_ADDRESS, region_size));
        if let Some(offset) = layout.pool_offset() {
            ranges.push(write(AREA_ADDRESS + offset as u64, POOL_ADDRESS, POOL_SIZE as u64));
        }
        let above_stack = dense_stack + data.size + dense_heap;
        let fixed = ranges.len();
        ranges.push(write(data.address - dense_stack, 0, above_stack));
        ranges.push(write(heap.address + dense_heap, sparse_address, heap_rest));
        ranges.push(write(stack.address, sparse_address + heap_rest, stack_rest));
        // How many tables there are doesn't depend on where in its small pages a range lies.
        let tables_address = FIRST_ADDRESS + region_size;
        let tables_size = PageTables::pages(&ranges) as u64 * page;
        if let Some(range) = ranges.get_mut(fixed) {
            range.physical = tables_address + tables_size;
        }
        let tables = PageTables::new(tables_address, &ranges).bytes();

        // An area of large pages begins at one.
        let align = if region_size >= HUGE_PAGE as u64 { HUGE_PAGE } else { PAGE };
        let first = dense.take((region_size + tables_size + above_stack) as usize, align)?;
        let area = first.part(0, layout.area.size)?;
        let private = Self {
            dense: first.part(layout.area.size, first.size - layout.area.size)?,
            sparse: match stack_rest + heap_rest {
                0 => None,
                rest => Some(sparse.take(rest as usize, PAGE)?),
            },
            first,
            tables_address,
            sparse_address,
            stack_top: data.address,
            regions: own.into_iter().chain(layout.regions(AREA_ADDRESS)).collect(),
        };
        let memory = private.dense.mapped();
        memory.write(0, &tables);
        memory.write((tables_size + dense_stack) as usize, &image.data.bytes);
        Ok((private, SharedRegion::new(area.mapped(), layout, Backing::Part(area))))
    }
}
