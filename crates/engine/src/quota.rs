//! The length of a box's turn: a quantum of packets, and more while no other box waits.

use boundary::{Mapped, Platform, StatusPage};
use core::cell::Cell;

/// The packets moved in the current turn.
pub(crate) struct Quota {
    status: StatusPage<Mapped>,
    /// Packets received by ports since the turn began.
    received: Cell<u64>,
    /// Packets sent by ports since the turn began, including those dropped for lack of room.
    sent: Cell<u64>,
}

impl Quota {
    pub(crate) fn new(status: StatusPage<Mapped>) -> Quota {
        Quota { status, received: Cell::new(0), sent: Cell::new(0) }
    }

    pub(crate) fn count_received(&self, packets: usize) {
        self.received.set(self.received.get() + packets as u64);
    }

    pub(crate) fn count_sent(&self, packets: usize) {
        self.sent.set(self.sent.get() + packets as u64);
    }

    /// Starts a turn.
    pub(crate) fn begin(&self) {
        self.received.set(0);
        self.sent.set(0);
    }

    /// Whether the turn must end. A turn that moves no packets is not ended here: the host preempts a box that only
    /// computes, and shares time among such boxes by weight.
    pub(crate) fn is_over(&self, platform: &dyn Platform) -> bool {
        let quantum = u64::from(self.status.quantum());
        quantum != 0 && self.moved() >= quantum && !self.is_free(platform)
    }

    /// The packets moved in the turn.
    pub(crate) fn moved(&self) -> u64 {
        self.received.get().max(self.sent.get())
    }

    /// Whether no other box waits for a turn.
    fn is_free(&self, platform: &dyn Platform) -> bool {
        let until = self.status.uncontended_until();
        until != 0 && platform.cycles() < until
    }
}
