//! Counters of places of a chain.

/// Packets of one direction at one place of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounters {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets lost here.
    pub lost: u64,
}

impl HopCounters {
    /// Counts a packet.
    pub(super) fn add(&mut self, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
    }
}
