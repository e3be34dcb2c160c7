//! The average length of a queue.

use element::number_format;
use element::prelude::*;

/// Bits of fraction.
const SCALE: u32 = 10;
/// Empty observations after which the average is zero.
const FORGOTTEN: i64 = 100;

/// An exponentially weighted moving average in fixed point.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    value: i64,
    stability: u32,
}

impl Average {
    /// Zero; each observation moves it by the part of one over two to the `stability` (at most 16).
    pub fn new(stability: u32) -> Average {
        Average { value: 0, stability: stability.min(16) }
    }

    /// The exponent.
    pub fn stability(&self) -> u32 {
        self.stability
    }

    /// Changes the exponent; the value stays.
    pub fn set_stability(&mut self, stability: u32) {
        self.stability = stability.min(16);
    }

    /// Observes a value.
    pub fn observe(&mut self, value: usize) {
        let half = if self.stability == 0 { 0 } else { 1 << (self.stability - 1) };
        let scaled = ((value.min(u32::MAX as usize) as i64) << SCALE) + half;
        self.value += (scaled - self.value) >> self.stability;
    }

    /// Observes zero so many times.
    pub fn observe_none(&mut self, times: i64) {
        if times >= FORGOTTEN {
            self.value = 0;
        }
        for _ in 0..times.min(FORGOTTEN) {
            self.observe(0);
        }
    }

    /// The average, scaled by 1024.
    pub fn scaled(&self) -> i64 {
        self.value
    }

    /// The average, rounded.
    pub fn rounded(&self) -> u32 {
        ((self.value + (1 << (SCALE - 1))) >> SCALE) as u32
    }

    /// As handlers write it.
    pub fn text(&self) -> String {
        number_format::signed_fixed(self.value, SCALE)
    }
}
