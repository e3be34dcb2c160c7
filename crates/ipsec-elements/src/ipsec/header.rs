//! The header of a packet of ESP (RFC 4303, section 2), with the initialisation vector of AES-CBC (RFC 3602, section 3).

use packet::Packet;

use super::transforms::BLOCK;

/// Bytes of a header, with the initialisation vector.
pub(super) const HEADER: usize = 8 + BLOCK;

/// The header of a packet.
pub(super) struct Header {
    /// The number of the association: the security parameters index.
    pub(super) spi: u32,
    pub(super) sequence: u32,
    /// The initialisation vector.
    pub(super) vector: [u8; BLOCK],
}

impl Header {
    /// The header at the start of a packet. `None` if the packet is too short.
    pub(super) fn read(packet: &Packet) -> Option<Header> {
        let (spi, rest) = packet.data().split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (spi, sequence) = (u32::from_be_bytes(*spi), u32::from_be_bytes(*sequence));
        Some(Header { spi, sequence, vector: *rest.first_chunk()? })
    }

    /// The bytes of the header.
    pub(super) fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let fields = self.spi.to_be_bytes().into_iter().chain(self.sequence.to_be_bytes()).chain(self.vector);
        bytes.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        bytes
    }
}
