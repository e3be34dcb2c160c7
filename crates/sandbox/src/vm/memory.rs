//! The memory of a virtual machine.
//!
//! It consists of two pieces of the host's memory, each a memory slot:
//! - The first is small and touched at once: the shared region, page tables, the top of the stack, the image's
//!   variables, and the start of the heap. It is backed by huge pages and packed together with the first pieces of
//!   other machines.
//! - The second is the rest of heap and stack, allocated page by page as the box touches it.
//!
//! Each slot adds to the creation time of a machine, so there is no third. The page tables arrange the pieces in the
//! box's addresses:
//!
//! ```text
//! box's addresses:   region ... guard | stack | variables | heap ...
//! first piece:       region | tables | top of the stack | variables | start of the heap
//! second piece:      rest of the heap | rest of the stack
//! ```

use crate::error::CreateError;
use crate::image::{Image, REGION_ADDRESS};
use crate::memory::{Arena, HUGE_PAGE, PAGE, Part};
use crate::pool::POOL_SIZE;
use crate::shared_region::{Backing, RegionPlan, SharedRegion};
use crate::vm::tables::{Access, PageTables, Range};
use boundary::{MemoryRegion, SharedMemory};
use std::sync::Arc;

/// Bytes of heap in the first piece: enough for a small configuration.
const DENSE_HEAP: u64 = 64 << 10;

/// Bytes of stack in the first piece: enough for most configurations.
const DENSE_STACK: u64 = 16 << 10;

/// Physical address of the second piece: above all others, and above the addresses below 4 GB that processors reserve.
const SPARSE_ADDRESS: u64 = 4 << 30;

/// Physical address of a shared packet pool: between the machine's own two pieces.
pub(crate) const POOL_ADDRESS: u64 = 2 << 30;

/// The memory of a virtual machine, without the image and without a shared packet pool.
#[derive(Debug)]
pub(crate) struct VmMemory {
    /// The first piece.
    pub(crate) first: Part,
    /// The private part of the first piece.
    pub(crate) dense: Part,
    /// The second piece.
    pub(crate) sparse: Option<Part>,
    /// Physical address of the page tables, which start the private part of the first piece.
    pub(crate) tables_address: u64,
    /// Physical address of the second piece.
    pub(crate) sparse_address: u64,
    pub(crate) stack_top: u64,
    /// The regions in the box's boot info.
    pub(crate) regions: Vec<MemoryRegion>,
}

/// Physical address of the first piece. It equals the shared region's address in the box, so that large regions can be
/// mapped by huge pages.
pub(crate) const FIRST_ADDRESS: u64 = REGION_ADDRESS;

impl VmMemory {
    /// Allocates memory for an image: a shared region, and `size` private bytes. Fills it, unless it is for a copy, which gets
    /// the pages of a machine with the same settings.
    pub(crate) fn new(
        image: &Image,
        descriptors: u64,
        (size, is_copy): (usize, bool),
        plan: RegionPlan,
        dense: &Arc<Arena>,
        sparse: &Arc<Arena>,
    ) -> Result<(Self, Arc<SharedRegion>), CreateError> {
        let page = PAGE as u64;
        let region_size = plan.layout.size as u64;
        let own @ [data, heap, stack] = image.private_regions(size);
        let (dense_heap, dense_stack) = (heap.size.min(DENSE_HEAP), stack.size.min(DENSE_STACK));
        let (stack_rest, heap_rest) = (stack.size - dense_stack, heap.size - dense_heap);
        // The rest of the heap has the same offset in a huge page as in the box's addresses.
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
        ranges.push(write(REGION_ADDRESS, FIRST_ADDRESS, region_size));
        if let Some(offset) = plan.pool_offset() {
            ranges.push(write(REGION_ADDRESS + offset as u64, POOL_ADDRESS, POOL_SIZE as u64));
        }
        let above_stack = dense_stack + data.size + dense_heap;
        let fixed = ranges.len();
        ranges.push(write(data.address - dense_stack, 0, above_stack));
        ranges.push(write(heap.address + dense_heap, sparse_address, heap_rest));
        ranges.push(write(stack.address, sparse_address + heap_rest, stack_rest));
        // The number of tables doesn't depend on the offset of a range that is mapped by small pages.
        let tables_address = FIRST_ADDRESS + region_size;
        let tables_size = PageTables::pages(&ranges) as u64 * page;
        if let Some(range) = ranges.get_mut(fixed) {
            range.physical = tables_address + tables_size;
        }

        // A region of at least a huge page is aligned to one.
        let align = if region_size >= HUGE_PAGE as u64 { HUGE_PAGE } else { PAGE };
        let first = dense.take((region_size + tables_size + above_stack) as usize, align)?;
        let region = first.part(0, plan.layout.size)?;
        let private = Self {
            dense: first.part(plan.layout.size, first.size - plan.layout.size)?,
            sparse: match stack_rest + heap_rest {
                0 => None,
                rest => Some(sparse.take(rest as usize, PAGE)?),
            },
            first,
            tables_address,
            sparse_address,
            stack_top: data.address,
            regions: own.into_iter().chain(plan.regions(REGION_ADDRESS)).collect(),
        };
        if !is_copy {
            let memory = private.dense.mapped();
            memory.write(0, &PageTables::new(tables_address, &ranges).bytes());
            memory.write((tables_size + dense_stack) as usize, &image.data.bytes);
        }
        Ok((private, SharedRegion::new(region.mapped(), plan, Backing::Part(region))))
    }
}
