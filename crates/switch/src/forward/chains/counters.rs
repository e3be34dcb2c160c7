//! Counters of places of a chain.

use std::ops::AddAssign;

/// Packets of one direction at one place of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounters {
    /// Packets for this place, also those that were lost.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that were lost: no instance of the service had them.
    pub lost: u64,
}

impl HopCounters {
    /// Counts a packet.
    pub(super) fn add(&mut self, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
    }

    /// Counts a packet that was lost.
    pub(super) fn add_lost(&mut self, length: usize) {
        self.add(length);
        self.lost += 1;
    }

    /// Counts several packets.
    pub(super) fn add_all(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }
}

/// What became of the packets of a chain in the switch, since it was created. Packets pass the switch between two functions:
///
/// `entered + returned = sent + left + elsewhere + no_instance + congested + dropped + waiting + overflowed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainBooks {
    /// Packets that entered the chain.
    pub entered: u64,
    /// Packets that came back from functions.
    pub returned: u64,
    /// Packets that were sent to functions.
    pub sent: u64,
    /// Those of them for which there was no room.
    pub full: u64,
    /// Packets that left the chain at an end.
    pub left: u64,
    /// Packets that functions sent elsewhere: to a service, to a port, into a chain, or to be looked up; and those whose flow takes
    /// another chain.
    pub elsewhere: u64,
    /// Packets for which no instance was up.
    pub no_instance: u64,
    /// Packets that were refused because an instance had little room left.
    pub congested: u64,
    /// Packets that functions dropped.
    pub dropped: u64,
    /// Packets that wait because the state of their flow is handed over.
    pub waiting: u64,
    /// Packets that were lost because too many waited.
    pub overflowed: u64,
}

impl AddAssign for HopCounters {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.lost += other.lost;
    }
}

impl AddAssign for ChainBooks {
    fn add_assign(&mut self, other: Self) {
        self.entered += other.entered;
        self.returned += other.returned;
        self.sent += other.sent;
        self.full += other.full;
        self.left += other.left;
        self.elsewhere += other.elsewhere;
        self.no_instance += other.no_instance;
        self.congested += other.congested;
        self.dropped += other.dropped;
        self.waiting += other.waiting;
        self.overflowed += other.overflowed;
    }
}
