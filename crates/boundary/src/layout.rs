//! The layout of the shared region, and of a box's addresses.

use crate::limits::{BUFFER_SIZE, MAX_BOX_PAIRS, MAX_BUFFERS, MAX_PAIRS, MAX_PORTS};
use crate::ring::Slots;
use alloc::vec::Vec;
use core::fmt;

const PAGE: usize = 4096;

/// Size of a huge page in bytes; a shared pool is aligned to one.
const LARGE_PAGE: usize = 2 << 20;

/// Offsets of the parts of the control area, at the start of the shared region.
pub mod control {
    /// The boot info: written by the host before the box runs.
    pub const BOOT: usize = 0;
    /// The crash page: written by a box that cannot continue.
    pub const CRASH: usize = 0x1000;
    /// The status page.
    pub const STATUS: usize = 0x2000;
    /// The channel of requests, host to box.
    pub const REQUESTS: usize = 0x3000;
    /// The channel of replies, box to host.
    pub const REPLIES: usize = 0x8000;
    /// The channel of events, box to host.
    pub const EVENTS: usize = 0xd000;
    /// The system call filter of a box in a process: a 64-bit count of instructions, then the instructions.
    pub const FILTER: usize = 0x1_1800;
    /// Maximum instructions of the filter, 8 bytes each.
    pub const FILTER_LENGTH: usize = (SIZE - FILTER) / 8 - 1;
    /// Size of the control area in bytes; the ports follow.
    pub const SIZE: usize = 0x1_2000;
    /// Size of a one-page part in bytes.
    pub const PAGE_SIZE: usize = super::PAGE;
    /// Size of a channel in bytes.
    pub const CHANNEL_SIZE: usize = REPLIES - REQUESTS;
}

const _: () = assert!(control::CHANNEL_SIZE >= crate::mailbox::CHANNEL_BYTES);
const _: () = assert!(control::EVENTS + crate::mailbox::CHANNEL_BYTES <= control::FILTER);

/// Why a region cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// There are more ports than a box can have.
    Ports(usize),
    /// The ports have more ring pairs than a box can have.
    Pairs {
        /// The number of ports.
        ports: usize,
        /// The ring pairs of each.
        pairs: usize,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ports(ports) => write!(f, "{ports} ports; a box can have {MAX_PORTS}"),
            Self::Pairs { ports, pairs } => write!(
                f,
                "{ports} ports with {pairs} ring pairs each; a port can have {MAX_PAIRS}, a box {MAX_BOX_PAIRS} and {MAX_BUFFERS} buffers in them: give the box fewer ports or smaller rings, or use fewer switch threads"
            ),
        }
    }
}

impl core::error::Error for LayoutError {}

/// The layout of a ring pair of a port, in bytes from the start of the region.
///
/// All ports of a box share its buffers, so that a packet can move from one port to another with its buffer. The
/// receive ring starts with buffer `first` and the following ones, the transmit ring with as many after these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLayout {
    /// The number of slots of each of the two rings.
    pub slots: Slots,
    /// The ring that carries packets to the box.
    pub receive: usize,
    /// The ring that carries packets from the box.
    pub transmit: usize,
    /// The packet buffers of all ports.
    pub buffers: usize,
    /// Their size in bytes.
    pub buffers_size: usize,
    /// The index of the first buffer that the port starts with; in a shared pool, among those assigned to the box.
    pub first: u32,
}

/// The layout of a shared region: the control area, then the rings of each port, then the buffers.
///
/// The buffers may be those of a pool that several boxes share. The pool is separate memory, mapped at the next huge
/// page after the region; nothing is mapped in between, and no part of the layout lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLayout {
    /// The ring pairs of the ports, in order: all of the first port, then those of the next one.
    pub ports: Vec<PortLayout>,
    /// The size of the region in bytes, a multiple of the page size.
    pub size: usize,
    /// Bytes from the start of the region to the end of the buffers, including those of a shared pool.
    pub extent: usize,
}

impl RegionLayout {
    /// Lays out a region for ports with these numbers of slots, and one ring pair each.
    pub fn new(ports: &[Slots]) -> Result<Self, LayoutError> {
        Self::paired(ports, 1)
    }

    /// Lays out a region for ports with these numbers of slots, each with several ring pairs.
    pub fn paired(ports: &[Slots], pairs: usize) -> Result<Self, LayoutError> {
        if ports.len() > MAX_PORTS {
            return Err(LayoutError::Ports(ports.len()));
        }
        let paired: Vec<Slots> =
            ports.iter().flat_map(|slots| core::iter::repeat_n(*slots, pairs.min(MAX_PAIRS + 1))).collect();
        let buffers: u32 = paired.iter().map(|slots| 2 * slots.count()).sum();
        let is_right = (1..=MAX_PAIRS).contains(&pairs) && paired.len() <= MAX_BOX_PAIRS;
        if !is_right || buffers > MAX_BUFFERS {
            return Err(LayoutError::Pairs { ports: ports.len(), pairs });
        }
        Ok(Self::lay_out(&paired))
    }

    fn lay_out(ports: &[Slots]) -> Self {
        let rings = |slots: &Slots| (2 * slots.bytes()).next_multiple_of(PAGE);
        let slots_in_all: usize = ports.iter().map(|slots| 2 * slots.count() as usize).sum();
        let buffers = control::SIZE + ports.iter().map(rings).sum::<usize>();
        let buffers_size = slots_in_all * BUFFER_SIZE;
        let (mut receive, mut first) = (control::SIZE, 0);
        let lay_out = |&slots: &Slots| {
            let transmit = receive + slots.bytes();
            let port = PortLayout { slots, receive, transmit, buffers, buffers_size, first };
            receive += rings(&slots);
            first += 2 * slots.count();
            port
        };
        let ports = ports.iter().map(lay_out).collect();
        let size = buffers + buffers_size.next_multiple_of(PAGE);
        Self { ports, size, extent: size }
    }

    /// Lays out a region whose buffers are those of a shared pool of `pool` bytes.
    pub fn pooled(ports: &[Slots], pairs: usize, pool: usize) -> Result<Self, LayoutError> {
        let mut layout = Self::paired(ports, pairs)?;
        let own = layout.buffers() * BUFFER_SIZE;
        layout.size -= own.next_multiple_of(PAGE);
        let buffers = layout.size.next_multiple_of(LARGE_PAGE);
        for port in &mut layout.ports {
            (port.buffers, port.buffers_size) = (buffers, pool);
        }
        layout.extent = buffers + pool;
        Ok(layout)
    }

    /// The number of buffers that the rings of all ports start with.
    pub fn buffers(&self) -> usize {
        self.ports.iter().map(|port| 2 * port.slots.count() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap_and_a_slot_costs_four_kilobytes() {
        for slots in [64, 128, 256, 512, 1024, 2048] {
            let slots = Slots::new(slots).unwrap();
            let layout = RegionLayout::new(&[slots; MAX_PORTS]).unwrap();
            let (mut end, mut first) = (control::SIZE, 0);
            for port in &layout.ports {
                assert_eq!((port.receive, port.first), (end, first));
                assert!(port.receive + slots.bytes() <= port.transmit && port.transmit % 64 == 0);
                end = (port.transmit + slots.bytes()).next_multiple_of(PAGE);
                first += 2 * slots.count();
                assert_eq!((port.buffers, port.buffers_size), (layout.ports[0].buffers, first_size(&layout)));
            }
            assert_eq!(layout.ports[0].buffers, end);
            assert_eq!(first as usize * BUFFER_SIZE, first_size(&layout));
            assert_eq!(layout.size, end + first_size(&layout));
            assert!(layout.size - control::SIZE <= MAX_PORTS * (slots.count() as usize * 4096 + 40_960));
        }
        assert_eq!(RegionLayout::new(&[Slots::new(64).unwrap(); 17]), Err(LayoutError::Ports(17)));
    }

    #[test]
    fn ports_have_a_ring_pair_for_each_thread() {
        let slots = [64, 2048].map(|slots| Slots::new(slots).unwrap());
        let (paired, single) = (
            RegionLayout::paired(&slots, 2).unwrap(),
            RegionLayout::new(&[slots[0], slots[0], slots[1], slots[1]]).unwrap(),
        );
        assert_eq!(paired, single);
        let refused = |ports: &[Slots], pairs| {
            assert_eq!(
                RegionLayout::paired(ports, pairs),
                Err(LayoutError::Pairs { ports: ports.len(), pairs })
            );
        };
        refused(&slots, 0);
        refused(&slots, MAX_PAIRS + 1);
        refused(&[slots[0]; 16], 5);
        // 5 * 8 * 2 * 2048 buffers are more than a pool has.
        refused(&[slots[1]; 5], 8);
    }

    #[test]
    fn a_shared_pool_lies_behind_the_region() {
        let slots = [64, 2048].map(|slots| Slots::new(slots).unwrap());
        let (own, pooled) =
            (RegionLayout::new(&slots).unwrap(), RegionLayout::pooled(&slots, 1, 6 << 20).unwrap());
        assert_eq!((pooled.buffers(), own.extent), (2 * 64 + 2 * 2048, own.size));
        assert_eq!(own.size - pooled.size, pooled.buffers() * BUFFER_SIZE);
        for (own, pooled) in own.ports.iter().zip(&pooled.ports) {
            assert_eq!((pooled.buffers, pooled.buffers_size), (LARGE_PAGE, 6 << 20));
            assert_eq!(
                (own.receive, own.transmit, own.first),
                (pooled.receive, pooled.transmit, pooled.first)
            );
        }
        assert_eq!(pooled.extent, 8 << 20);
    }

    fn first_size(layout: &RegionLayout) -> usize {
        layout.ports[0].buffers_size
    }
}
