//! The host's end of a box's port. Packets are copied, so that what was checked stays as it was.

use crate::area::Area;
use crate::error::CreateError;
use boundary::limits::BUFFER_SIZE;
use boundary::{
    Consumer, Corrupt, Descriptor, DescriptorError, Mapped, Pool, PortLayout, Producer, SharedMemory,
};
use std::fmt;
use std::sync::Arc;

/// What a box did to its port that no correct box does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortFault {
    /// An index is impossible: the port is of no more use.
    Corrupt(Corrupt),
    /// A descriptor leaves its pool: the packet is lost, the port goes on.
    Descriptor(DescriptorError),
}

impl From<Corrupt> for PortFault {
    fn from(corrupt: Corrupt) -> Self {
        Self::Corrupt(corrupt)
    }
}

impl From<DescriptorError> for PortFault {
    fn from(error: DescriptorError) -> Self {
        Self::Descriptor(error)
    }
}

impl fmt::Display for PortFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(corrupt) => corrupt.fmt(f),
            Self::Descriptor(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PortFault {}

/// The host's end of a port.
#[derive(Debug)]
pub struct HostPort {
    to_box: Producer<Mapped>,
    from_box: Consumer<Mapped>,
    buffers: Mapped,
    pool: Pool,
    /// Keeps the memory that the rings lie in.
    _area: Arc<Area>,
}

impl HostPort {
    pub(crate) fn new(area: Arc<Area>, layout: &PortLayout) -> Result<Self, CreateError> {
        let ring = |offset| area.part(offset, layout.slots.bytes());
        let mut to_box = Producer::new(ring(layout.receive)?, layout.slots)?;
        to_box.fill(0);
        // The transmit ring is the box's to produce into; the buffers that it starts with are put there
        // by the host.
        Producer::new(ring(layout.transmit)?, layout.slots)?.fill(layout.slots.count() as u16);
        Ok(Self {
            to_box,
            from_box: Consumer::new(ring(layout.transmit)?, layout.slots)?,
            buffers: area.part(layout.buffers, layout.buffers_size)?,
            pool: Pool::in_bytes(layout.buffers_size),
            _area: area,
        })
    }

    /// The ends of a port whose rings were empty at these positions.
    pub(crate) fn at(area: Arc<Area>, layout: &PortLayout, positions: [u32; 2]) -> Result<Self, CreateError> {
        let ring = |offset| area.part(offset, layout.slots.bytes());
        Ok(Self {
            to_box: Producer::at(ring(layout.receive)?, layout.slots, positions[0])?,
            from_box: Consumer::at(ring(layout.transmit)?, layout.slots, positions[1])?,
            buffers: area.part(layout.buffers, layout.buffers_size)?,
            pool: Pool::in_bytes(layout.buffers_size),
            _area: area,
        })
    }

    /// Packets that can be sent to the box now.
    #[inline]
    pub fn room(&mut self, wanted: u32) -> Result<u32, PortFault> {
        Ok(self.to_box.free(wanted)?)
    }

    /// Copies a packet into the ring to the box, not visible before [`publish`](Self::publish). False:
    /// the ring is full by what [`room`](Self::room) last saw, or the packet is longer than a buffer.
    #[inline]
    pub fn send(&mut self, packet: &[u8]) -> Result<bool, PortFault> {
        let Some(spare) = self.to_box.spare().filter(|_| packet.len() <= BUFFER_SIZE) else {
            return Ok(false);
        };
        let start = self.pool.buffer(spare.buffer)?;
        self.buffers.write(start, packet);
        Ok(self.to_box.push(Descriptor {
            buffer: spare.buffer,
            offset: 0,
            length: packet.len() as u16,
            flags: 0,
        }))
    }

    /// Shows the box what was sent. True: it sleeps, and its doorbell is to be rung.
    #[inline]
    pub fn publish(&mut self) -> bool {
        self.to_box.publish()
    }

    /// Packets that the box has sent.
    #[inline]
    pub fn available(&mut self, wanted: u32) -> Result<u32, PortFault> {
        Ok(self.from_box.available(wanted)?)
    }

    /// Copies the next packet that the box has sent; its bytes. Nothing: there is none by what
    /// [`available`](Self::available) last saw.
    #[inline]
    pub fn receive<'a>(&mut self, into: &'a mut [u8; BUFFER_SIZE]) -> Result<Option<&'a [u8]>, PortFault> {
        let Some(descriptor) = self.from_box.pop() else { return Ok(None) };
        let range = self.pool.range(descriptor)?;
        let (packet, _) = into.split_at_mut(range.len());
        self.buffers.read(range.start, packet);
        Ok(Some(packet))
    }

    /// Gives the slots that were received from back. True: the box sleeps, and its doorbell is to be rung.
    #[inline]
    pub fn release(&mut self) -> bool {
        self.from_box.release()
    }

    /// Announces that the host sleeps until the box sends. False: it has sent already, don't sleep.
    pub fn prepare_sleep(&mut self) -> Result<bool, PortFault> {
        Ok(self.from_box.prepare_sleep()?)
    }

    /// Takes the announcement back.
    pub fn end_sleep(&self) {
        self.from_box.end_sleep();
    }
}
