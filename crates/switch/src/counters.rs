//! What a port has carried and lost.

/// Why a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Reason {
    /// Shorter than an Ethernet header.
    Short,
    /// Longer than a packet buffer.
    Long,
    /// Nobody has its destination, or it was for the port that it came from.
    NoRoute,
    /// Its source address is not the port's.
    Spoofed,
    /// The port had more than its cap.
    Capped,
    /// The port that it was for had no room.
    Full,
    /// The port's other side wrote what it can't have meant.
    Faulty,
    /// The port that it was for is gone, can't send, or its device is down.
    Down,
    /// It came while nobody took frames from the device in time, and did not reach the switch.
    Missed,
    /// It was in the rings of a box when that ended, on its way to the box or from it.
    BoxEnded,
}

impl Reason {
    /// All reasons, in the order of [`Counters::drops`].
    pub const ALL: [Self; 10] = [
        Self::Short,
        Self::Long,
        Self::NoRoute,
        Self::Spoofed,
        Self::Capped,
        Self::Full,
        Self::Faulty,
        Self::Down,
        Self::Missed,
        Self::BoxEnded,
    ];

    /// The name under which it is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
            Self::NoRoute => "no_route",
            Self::Spoofed => "spoofed",
            Self::Capped => "capped",
            Self::Full => "full",
            Self::Faulty => "faulty",
            Self::Down => "down",
            Self::Missed => "missed",
            Self::BoxEnded => "box_ended",
        }
    }
}

/// A port's counters. `Full` and `Down` are counted at the port that a frame was for, all others where it
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
    /// Lost frames by reason, in the order of [`Reason::ALL`].
    pub drops: [u64; Reason::ALL.len()],
}

impl Counters {
    /// Counts lost frames.
    pub fn drop(&mut self, reason: Reason, frames: u64) {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count += frames;
        }
    }

    /// Lost frames of one reason.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.drops.get(reason as usize).copied().unwrap_or(0)
    }
}
