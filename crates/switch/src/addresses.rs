//! The addresses of a frame.

use packet::MacAddr;

/// Length of an Ethernet header.
pub(crate) const HEADER: usize = 14;

/// The first twelve bytes of an Ethernet header in two words, because they are compared for each frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses(u64, u32);

impl Addresses {
    #[inline(always)]
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let (first, rest) = head.split_first_chunk()?;
        Some(Self(u64::from_ne_bytes(*first), u32::from_ne_bytes(*rest.first_chunk()?)))
    }

    /// Destination and source address.
    pub(crate) fn pair(self) -> [MacAddr; 2] {
        let [d0, d1, d2, d3, d4, d5, s0, s1] = self.0.to_ne_bytes();
        let [s2, s3, s4, s5] = self.1.to_ne_bytes();
        [MacAddr([d0, d1, d2, d3, d4, d5]), MacAddr([s0, s1, s2, s3, s4, s5])]
    }
}
