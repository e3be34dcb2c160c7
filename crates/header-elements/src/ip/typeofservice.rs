//! Modifies the type-of-service byte of IPv4 headers.

use element::prelude::*;
use packet::checksum::update;
use packet::{Ip4View, Ip4ViewMut};

/// Replaces the bits of `mask` in the type-of-service byte of the marked header, and updates the checksum.
#[inline]
pub(super) fn set_bits(mut packet: Packet, mask: u8, bits: u8) -> Verdict {
    let Some(header) = Ip4View::new(packet.network()) else {
        return Verdict::Drop(packet, Reason::NO_IP_HEADER);
    };
    let (first, old) = (header.version_length(), header.tos());
    let new = old & !mask | bits;
    if let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) {
        let checksum = header.view().checksum();
        header.set_tos(new);
        header.set_checksum(update(
            checksum,
            u16::from_be_bytes([first, old]),
            u16::from_be_bytes([first, new]),
        ));
    }
    Verdict::Pass(packet)
}
