//! Sampling, pacing and activation, shared by elements that replay packets from a file.

use element::Direction;
use element::prelude::*;

/// Sampling probabilities are fixed-point numbers with this many fraction bits.
const SAMPLING_BITS: u32 = 28;

/// The state of a replay.
#[derive(Clone, Debug)]
pub(super) struct Playback {
    /// Whether the replay is running.
    pub(super) active: bool,
    /// The sampling probability, times 2^28.
    sampling: u32,
    /// Whether packets keep their spacing in time.
    timing: bool,
    /// The difference between monotonic time and packet timestamps.
    offset: Option<Timestamp>,
}

/// The timer for the next packet.
pub(super) const TIMER: usize = 0;

impl Playback {
    /// Checks the probability, which must be at most 1.
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

    /// Whether the next packet is in the sample.
    pub(super) fn is_sampled(&self, cx: &Context) -> bool {
        let all = 1 << SAMPLING_BITS;
        self.sampling >= all || cx.random() & (all - 1) < self.sampling
    }

    /// Whether every packet is in the sample, and is sent at once.
    pub(super) fn sends_all(&self) -> bool {
        self.sampling >= 1 << SAMPLING_BITS && !self.timing
    }

    /// The sampling probability as text.
    pub(super) fn sampling(&self) -> String {
        format!("{}", f64::from(self.sampling) / f64::from(1u32 << SAMPLING_BITS))
    }

    /// Whether a packet is due. If not, sets a timer for it. The first packet is due at once.
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

    /// Maps `time` to the current time as the reference for later packets.
    pub(super) fn begin(&mut self, cx: &Context, time: Timestamp) {
        self.offset.get_or_insert(cx.steady() - time);
    }

    /// Makes the next packet the new reference.
    pub(super) fn reset_timing(&mut self) {
        self.offset = None;
    }

    /// Starts, resumes or stops the replay.
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

    /// Resumes after a wait.
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
