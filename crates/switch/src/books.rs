//! Second counts of frames, on the far side of each place: what one place counts as gone out, the next counts as come in.
//!
//! [`Counters`] are what a port shows. These counts are kept apart, so that the two can be compared.

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
    /// Frames that controllers sent to it.
    pub injected: u64,
    /// Frames that wait for controllers or were sent to them.
    pub taken: u64,
}

/// What passed a port's end of a link to another process, since the link was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBooks {
    /// Identifies the link: both ends have the same number.
    pub link: u64,
    /// Frames that this end put into the link.
    pub sent: u64,
    /// Frames that this end took out of the link, with those that were faulty.
    pub received: u64,
    /// Frames from the other end that wait to be taken here.
    pub waiting: u64,
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

#[cfg(test)]
mod tests {
    use crate::batch::Batch;
    use crate::forward::{LearningBridge, LearningSettings};
    use crate::plan::ForwardingPlan;
    use crate::port::{PortId, PortSettings};
    use crate::rate_limiter::RateLimit;
    use crate::switch::Switch;
    use packet::MacAddr;
    use random::Random;
    use reason::Reason;

    /// Frames of random lengths between few addresses, through ports with limits that come and go: each frame and each
    /// copy is planned or dropped.
    #[test]
    fn what_a_switch_receives_and_copies_is_planned_or_dropped() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut switch = Switch::new(LearningBridge::new(LearningSettings::default()));
            let mut plan = ForwardingPlan::default();
            let mut seen = Vec::new();
            for round in 0..300 {
                if random.below(8) == 0 {
                    let _ = switch.remove_port(PortId(random.below(6) as u16));
                }
                if random.below(4) == 0 {
                    let mut limit = || if random.below(3) == 0 { u64::from(random.below(100)) } else { 0 };
                    let rate_limit =
                        RateLimit { frames: limit(), bits: limit(), broadcasts: limit(), burst_ns: 0 };
                    let new_addresses = limit();
                    let source = (random.below(6) == 0).then_some(MacAddr([2, 0, 0, 0, 0, 1]));
                    let settings =
                        PortSettings { rate_limit, new_addresses, source, ..PortSettings::default() };
                    let _ = switch.add_port(settings);
                }
                let mut batch = Batch::new(32);
                for _ in 0..random.below(33) {
                    let mut frame = vec![0; random.below(80) as usize];
                    for (at, byte) in frame.iter_mut().take(12).enumerate() {
                        let last = if at % 6 == 5 { random.below(5) as u8 } else { 0 };
                        // Some addresses are those of groups.
                        *byte = if at % 6 == 0 { 2 + u8::from(random.below(5) == 0) } else { last };
                    }
                    batch.push(&frame);
                }
                let from = PortId(random.below(6) as u16);
                switch.switch(&batch, from, round * 1_000_000, &mut plan);
                let books = switch.books();
                let lost: u64 = books.counters.drops.iter().sum();
                let received = books.counters.received_frames;
                assert_eq!(received + books.copied, books.planned + lost, "seed {seed}, round {round}");
                seen = vec![books.copied, books.planned];
                seen.extend(
                    [Reason::TOO_SHORT, Reason::NO_ROUTE, Reason::SPOOFED, Reason::CAPPED]
                        .map(|reason| books.counters.dropped(reason)),
                );
            }
            assert!(seen.iter().all(|count| *count > 0), "seed {seed}: {seen:?}");
        }
    }
}
