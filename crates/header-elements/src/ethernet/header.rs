//! Ethernet headers, shared by the elements of this group.

use element::arguments::Word;
use element::prelude::*;
use packet::{EtherType, EthernetViewMut, MacAddr};

/// The length of an Ethernet header.
pub(super) const LENGTH: usize = 14;
/// The length of an Ethernet header with a VLAN tag.
pub(super) const TAGGED_LENGTH: usize = 18;

/// The bytes of an Ethernet header.
pub(super) fn ethernet(destination: MacAddr, source: MacAddr, kind: EtherType) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    if let Some(mut view) = EthernetViewMut::new(&mut bytes) {
        view.set_destination(destination);
        view.set_source(source);
        view.set_ether_type(kind);
    }
    bytes
}

/// The Ethernet addresses at the start of a packet, destination first.
#[inline]
pub(super) fn addresses(bytes: &[u8]) -> Option<(MacAddr, MacAddr)> {
    let (destination, rest) = bytes.split_first_chunk()?;
    Some((MacAddr(*destination), MacAddr(*rest.first_chunk()?)))
}

/// The big-endian 16-bit number at `at`.
#[inline]
pub(super) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// The offset of an address in a packet: `src` or `dst` (of an Ethernet header at the start), or a byte offset.
pub(super) fn address_offset(word: &Word, setup: &Setup) -> Result<usize, SetupError> {
    match word.0.to_ascii_lowercase().as_str() {
        "src" => Ok(6),
        "dst" => Ok(0),
        text => match u32::from_argument(text, setup) {
            Ok(offset) if offset <= u32::MAX - 6 => Ok(offset as usize),
            _ => Err(SetupError::new("type mismatch: bad OFFSET")),
        },
    }
}
