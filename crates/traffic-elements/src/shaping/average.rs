//! The average length of a queue, as an EWMA.

use element::number_format;
use element::prelude::*;

/// Fractional bits of the average.
const SCALE: u32 = 10;
/// Consecutive empty observations after which the average is zero.
const DECAY_OBSERVATIONS: i64 = 100;

/// Exponentially weighted moving average (EWMA) in fixed point.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    value: i64,
    stability: u32,
}

impl Average {
    /// Starts at zero. Each observation has weight 2^-`stability` (`stability` is at most 16).
    pub fn new(stability: u32) -> Average {
        Average { value: 0, stability: stability.min(16) }
    }

    /// The stability exponent.
    pub fn stability(&self) -> u32 {
        self.stability
    }

    /// Changes the stability exponent and keeps the average.
    pub fn set_stability(&mut self, stability: u32) {
        self.stability = stability.min(16);
    }

    /// Adds one observation.
    pub fn observe(&mut self, value: usize) {
        let half = if self.stability == 0 { 0 } else { 1 << (self.stability - 1) };
        let scaled = ((value.min(u32::MAX as usize) as i64) << SCALE) + half;
        self.value += (scaled - self.value) >> self.stability;
    }

    /// Adds `times` observations of zero.
    pub fn observe_none(&mut self, times: i64) {
        if times >= DECAY_OBSERVATIONS {
            self.value = 0;
        }
        for _ in 0..times.min(DECAY_OBSERVATIONS) {
            self.observe(0);
        }
    }

    /// The average times 1024.
    pub fn scaled(&self) -> i64 {
        self.value
    }

    /// The average, rounded to an integer.
    pub fn rounded(&self) -> u32 {
        ((self.value + (1 << (SCALE - 1))) >> SCALE) as u32
    }

    /// The average as handlers print it.
    pub fn text(&self) -> String {
        number_format::signed_fixed(self.value, SCALE)
    }
}
