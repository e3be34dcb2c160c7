//! What the elements that play packets from a file have in common: sampling, pacing, activity.

use element::Direction;
use element::prelude::*;

/// Sampling probabilities are compared as numbers of so many bits.
const SAMPLING_BITS: u32 = 28;

/// When packets are let out.
#[derive(Clone, Debug)]
pub(super) struct Playback {
    /// Whether it plays.
    pub(super) active: bool,
    /// The probability by which packets are let out, times 2^28.
    sampling: u32,
    /// Whether packets keep their distances in time.
    timing: bool,
    /// What must be added to a packet's time to get the steady time at which it leaves.
    offset: Option<Timestamp>,
}

/// The number of the timer that waits for a packet's time.
pub(super) const TIMER: usize = 0;

impl Playback {
    /// Reads the probability, which must not exceed 1.
    pub(super) fn new(active: bool, timing: bool, sample: f64, setup: &mut Setup) -> Playback {
        let one = f64::from(1u32 << SAMPLING_BITS);
        if sample > 1.0 {
            setup.warn("SAMPLE probability reduced to 1");
        }
        let sampling = (sample.clamp(0.0, 1.0) * one + 0.5) as u32;
        if sampling == 0 {
            setup.warn("SAMPLE probability is 0; emitting no packets");
        }
        Playback { active, sampling, timing, offset: None }
    }

    /// Whether the next packet is one of the sample.
    pub(super) fn is_sampled(&self, cx: &Context) -> bool {
        let all = 1 << SAMPLING_BITS;
        self.sampling >= all || cx.random() & (all - 1) < self.sampling
    }

    /// The probability, as text.
    pub(super) fn sampling(&self) -> String {
        format!("{}", f64::from(self.sampling) / f64::from(1u32 << SAMPLING_BITS))
    }

    /// Whether a packet's time has come; if not, a timer is set for it. The first packet's time is now.
    pub(super) fn is_due(&mut self, cx: &Context, packet: &Packet) -> bool {
        if !self.timing {
            return true;
        }
        let now = cx.steady();
        let offset = *self.offset.get_or_insert(now - packet.timestamp());
        let at = packet.timestamp() + offset;
        if now >= at {
            return true;
        }
        cx.set_timer(TIMER, at);
        false
    }

    /// Takes a time for now, from which others are reckoned.
    pub(super) fn begin(&mut self, cx: &Context, time: Timestamp) {
        self.offset.get_or_insert(cx.steady() - time);
    }

    /// Takes the next packet's time for now.
    pub(super) fn reset_timing(&mut self) {
        self.offset = None;
    }

    /// Starts, goes on or stops.
    pub(super) fn set_active(&mut self, cx: &Context, active: bool) {
        self.active = active;
        if cx.outputs() > 0 && cx.is_push_output(0) {
            if active {
                cx.schedule();
            }
        } else {
            cx.set_signal(Direction::Empty, active);
        }
    }

    /// Goes on after a wait.
    pub(super) fn wake(&self, cx: &Context) {
        if self.active {
            if cx.is_push_output(0) {
                cx.schedule();
            } else {
                cx.set_signal(Direction::Empty, true);
            }
        }
    }
}
