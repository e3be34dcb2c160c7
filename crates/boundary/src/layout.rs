//! Where everything lies: in the shared area, and in a box's addresses.

use crate::limits::{BUFFER_SIZE, MAX_PORTS};
use crate::ring::Slots;
use alloc::vec::Vec;
use core::fmt;

const PAGE: usize = 4096;

/// Bytes of a large page, at which a shared pool begins.
const LARGE_PAGE: usize = 2 << 20;

/// Offsets of the parts of the control area, which is the start of the shared area.
pub mod control {
    /// The boot info: written by the host before the box runs.
    pub const BOOT: usize = 0;
    /// The crash page: written by a box that can't go on.
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
    /// Most instructions of the filter, 8 bytes each.
    pub const FILTER_LENGTH: usize = (SIZE - FILTER) / 8 - 1;
    /// Bytes of the control area; the ports follow.
    pub const SIZE: usize = 0x1_2000;
    /// Bytes of a one-page part.
    pub const PAGE_SIZE: usize = super::PAGE;
    /// Bytes of a channel.
    pub const CHANNEL_SIZE: usize = REPLIES - REQUESTS;
}

const _: () = assert!(control::CHANNEL_SIZE >= crate::mailbox::CHANNEL_BYTES);
const _: () = assert!(control::EVENTS + crate::mailbox::CHANNEL_BYTES <= control::FILTER);

/// Why an area can't be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// More ports than a box can have.
    Ports(usize),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ports(ports) => write!(f, "{ports} ports; a box can have {MAX_PORTS}"),
        }
    }
}

impl core::error::Error for LayoutError {}

/// Where one port lies, in bytes from the start of the area.
///
/// All ports of a box share its buffers, so that a packet goes from one port to another with its buffer.
/// Buffer `first` and those after it start out in the receive ring, as many more in the transmit ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLayout {
    /// Slots of each of the two rings.
    pub slots: Slots,
    /// The ring that carries packets to the box.
    pub receive: usize,
    /// The ring that carries packets from the box.
    pub transmit: usize,
    /// The packet buffers of all ports.
    pub buffers: usize,
    /// Their bytes.
    pub buffers_size: usize,
    /// The first buffer that the port starts with; in a shared pool, of those that the box got.
    pub first: u16,
}

/// Where everything in the shared area lies: control area, then the rings of each port, then the buffers.
///
/// The buffers may be those of a pool that several boxes share. They are other memory then, and lie behind the area at
/// the next large page; between the two nothing is mapped, and no part of the layout lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLayout {
    /// The ports in order.
    pub ports: Vec<PortLayout>,
    /// Bytes of the area, a multiple of the page size.
    pub size: usize,
    /// Bytes from the start of the area to the end of the buffers, wherever they are.
    pub extent: usize,
}

impl RegionLayout {
    /// Lays out an area for ports with so many slots each.
    pub fn new(ports: &[Slots]) -> Result<Self, LayoutError> {
        if ports.len() > MAX_PORTS {
            return Err(LayoutError::Ports(ports.len()));
        }
        let rings = |slots: &Slots| (2 * slots.bytes()).next_multiple_of(PAGE);
        let slots_in_all: usize = ports.iter().map(|slots| 2 * slots.count() as usize).sum();
        let buffers = control::SIZE + ports.iter().map(rings).sum::<usize>();
        let buffers_size = slots_in_all * BUFFER_SIZE;
        let (mut receive, mut first) = (control::SIZE, 0u16);
        let place = |&slots: &Slots| {
            let transmit = receive + slots.bytes();
            let port = PortLayout { slots, receive, transmit, buffers, buffers_size, first };
            receive += rings(&slots);
            // Sixteen ports of the longest rings have as many buffers as there are numbers.
            first = first.wrapping_add(2 * slots.count() as u16);
            port
        };
        let ports = ports.iter().map(place).collect();
        let size = buffers + buffers_size.next_multiple_of(PAGE);
        Ok(Self { ports, size, extent: size })
    }

    /// Lays out an area whose buffers are those of a shared pool of so many bytes.
    pub fn pooled(ports: &[Slots], pool: usize) -> Result<Self, LayoutError> {
        let mut layout = Self::new(ports)?;
        let own: usize = ports.iter().map(|slots| 2 * slots.count() as usize * BUFFER_SIZE).sum();
        layout.size -= own.next_multiple_of(PAGE);
        let buffers = layout.size.next_multiple_of(LARGE_PAGE);
        for port in &mut layout.ports {
            (port.buffers, port.buffers_size) = (buffers, pool);
        }
        layout.extent = buffers + pool;
        Ok(layout)
    }

    /// Buffers that the rings of all ports start with.
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
                assert_eq!((port.receive, u32::from(port.first)), (end, first));
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
    fn a_shared_pool_lies_behind_the_area() {
        let slots = [64, 2048].map(|slots| Slots::new(slots).unwrap());
        let (own, pooled) =
            (RegionLayout::new(&slots).unwrap(), RegionLayout::pooled(&slots, 6 << 20).unwrap());
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
