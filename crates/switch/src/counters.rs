//! Traffic and drop counters of a port.

use reason::Reason;
use std::ops::AddAssign;

/// The reasons for which a switch drops frames, in the order of [`Counters::drops`].
pub const REASONS: [Reason; 32] = [
    Reason::TOO_SHORT,
    Reason::TOO_LONG,
    Reason::NO_ROUTE,
    Reason::BAD_SOURCE,
    Reason::SPOOFED,
    Reason::CAPPED,
    Reason::BROADCASTS_CAPPED,
    Reason::FULL,
    Reason::FAULTY,
    Reason::DOWN,
    Reason::MISSED,
    Reason::BOX_ENDED,
    Reason::FLOW_MISS,
    Reason::FLOW_DROP,
    Reason::METER_DROP,
    Reason::PORT_CONFIG,
    Reason::CONTROLLER_FULL,
    Reason::NO_INSTANCE,
    Reason::FUNCTION_DROP,
    Reason::CONGESTED,
    Reason::OUT_OF_RANGE,
    Reason::FLOW_TAKEN,
    Reason::TOO_MANY_FLOWS,
    Reason::SAME_PORT,
    Reason::ENDLESS_LOOP,
    Reason::THREAD_FULL,
    Reason::BAD_CHECKSUM,
    Reason::BAD_TUNNEL_HEADER,
    Reason::CRITICAL_OPTION,
    Reason::TUNNEL_CONTROL,
    Reason::CONGESTION_MARK,
    Reason::TOO_BIG,
];

/// A port's counters. [`Reason::FULL`], [`Reason::DOWN`] and [`Reason::TOO_BIG`] are counted at the destination port, [`Reason::THREAD_FULL`]
/// at the port that the frame comes from or goes to, all other reasons at the source port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received from the port.
    pub received_frames: u64,
    /// Bytes received from the port.
    pub received_bytes: u64,
    /// Frames sent to the port. A flooded frame counts at each port that it is sent to.
    pub sent_frames: u64,
    /// Bytes sent to the port.
    pub sent_bytes: u64,
    /// Dropped frames by reason, in the order of [`REASONS`].
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
    /// Adds to the dropped frames of a reason.
    pub fn drop(&mut self, reason: Reason, frames: u64) {
        let index = index(reason);
        debug_assert!(index.is_some(), "a switch has no drops for {}", reason.name());
        if let Some(count) = index.and_then(|index| self.drops.get_mut(index)) {
            *count += frames;
        }
    }

    /// Dropped frames of one reason.
    pub fn dropped(&self, reason: Reason) -> u64 {
        index(reason).and_then(|index| self.drops.get(index)).copied().unwrap_or(0)
    }
}

/// The index of a reason in [`REASONS`].
fn index(reason: Reason) -> Option<usize> {
    REASONS.iter().position(|known| *known == reason)
}
