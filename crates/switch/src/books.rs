//! Second counts of frames, on the far side of each place: what one place counts as gone out, the next counts as come in.
//!
//! [`Counters`](crate::Counters) are what a port shows. These counts are kept apart, so that the two can be compared.

use crate::counters::Counters;
use std::ops::AddAssign;

/// What a port took and gave, as counted at its driver and in the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortBooks {
    /// Frames that came from the driver, with those that were faulty, too long, or missed.
    pub came: u64,
    /// Frames that the driver accepted.
    pub went: u64,
    /// Frames that the switch planned to send to the port.
    pub planned: u64,
}

/// What a switch did with the frames of all its ports, those that were removed too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchBooks {
    /// The sum of the ports' counters.
    pub counters: Counters,
    /// Copies that it made: a frame that goes to three ports is copied twice.
    pub copied: u64,
    /// Frames that it planned to send to ports.
    pub planned: u64,
}

/// The frames in the rings of a box's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingBooks {
    /// Frames that were put into the ring to the box.
    pub put: u64,
    /// Frames that were taken out of the ring from the box, with those that were faulty.
    pub taken: u64,
    /// Frames that wait in the ring to the box.
    pub waiting_to_box: u64,
    /// Frames that wait in the ring from the box.
    pub waiting_from_box: u64,
}

impl RingBooks {
    /// Frames that wait, in both directions.
    pub fn waiting(&self) -> u64 {
        self.waiting_to_box + self.waiting_from_box
    }
}

impl AddAssign for RingBooks {
    fn add_assign(&mut self, other: Self) {
        self.put += other.put;
        self.taken += other.taken;
        self.waiting_to_box += other.waiting_to_box;
        self.waiting_from_box += other.waiting_from_box;
    }
}
