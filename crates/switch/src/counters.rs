//! What a port has carried and lost.

use reason::Reason;
use std::ops::AddAssign;

/// The reasons for which a switch loses frames, in the order of [`Counters::drops`].
pub const REASONS: [Reason; 10] = [
    Reason::TOO_SHORT,
    Reason::TOO_LONG,
    Reason::NO_ROUTE,
    Reason::SPOOFED,
    Reason::CAPPED,
    Reason::FULL,
    Reason::FAULTY,
    Reason::DOWN,
    Reason::MISSED,
    Reason::BOX_ENDED,
];

/// A port's counters. [`Reason::FULL`] and [`Reason::DOWN`] are counted at the port that a frame was for, all others where it
/// came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came in from the port.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames that went out to the port; one that is flooded counts at each.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Lost frames by reason, in the order of [`REASONS`].
    pub drops: [u64; REASONS.len()],
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.received_frames += other.received_frames;
        self.received_bytes += other.received_bytes;
        self.sent_frames += other.sent_frames;
        self.sent_bytes += other.sent_bytes;
        for (sum, count) in self.drops.iter_mut().zip(other.drops) {
            *sum += count;
        }
    }
}

impl Counters {
    /// Counts lost frames.
    pub fn drop(&mut self, reason: Reason, frames: u64) {
        let index = index(reason);
        debug_assert!(index.is_some(), "a switch has no drops for {}", reason.name());
        if let Some(count) = index.and_then(|index| self.drops.get_mut(index)) {
            *count += frames;
        }
    }

    /// Lost frames of one reason.
    pub fn dropped(&self, reason: Reason) -> u64 {
        index(reason).and_then(|index| self.drops.get(index)).copied().unwrap_or(0)
    }
}

/// The index of a reason in [`REASONS`].
fn index(reason: Reason) -> Option<usize> {
    REASONS.iter().position(|known| *known == reason)
}
