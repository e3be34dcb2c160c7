//! Rates as Click measures them: a moving average of counts per millisecond.

use element::number_format;
use element::prelude::*;

/// Epochs per second.
const EPOCHS: i64 = 1_000;
/// Exponent of the EWMA weight per epoch.
const STABILITY: u32 = 4;
/// Empty epochs after which the average has decayed completely.
const DECAY_EPOCHS: i64 = 100;

/// EWMA of a count per epoch, in fixed point with `SCALE` fractional bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate<const SCALE: u32> {
    average: i64,
    current: i64,
    epoch: i64,
}

impl<const SCALE: u32> Rate<SCALE> {
    /// Starts at zero.
    pub const fn new() -> Rate<SCALE> {
        Rate { average: 0, current: 0, epoch: 0 }
    }

    /// Counts `amount` at steady time `now`. A batch may be counted at once.
    #[inline]
    pub fn count(&mut self, now: Timestamp, amount: u64) {
        let epoch = now.millis();
        if epoch != self.epoch {
            self.advance(epoch);
        }
        self.current = self.current.saturating_add(amount as i64);
    }

    fn advance(&mut self, epoch: i64) {
        self.observe(self.current);
        let empty = epoch.saturating_sub(self.epoch).saturating_sub(1);
        if empty >= DECAY_EPOCHS {
            self.average = 0;
        } else {
            for _ in 0..empty {
                self.observe(0);
            }
        }
        (self.current, self.epoch) = (0, epoch);
    }

    #[inline]
    fn observe(&mut self, count: i64) {
        let scaled = count.saturating_mul(1 << SCALE).saturating_add(1 << (STABILITY - 1));
        self.average += scaled.saturating_sub(self.average) >> STABILITY;
    }

    /// Average count per epoch times two to the `SCALE`, as of the last `count`.
    #[inline]
    pub fn scaled(&self) -> i64 {
        self.average
    }

    /// The rate per second at steady time `now`, as text.
    pub fn text(&mut self, now: Timestamp) -> String {
        self.text_times(now, 1)
    }

    /// `factor` times the rate per second at steady time `now`, as text.
    pub fn text_times(&mut self, now: Timestamp, factor: i64) -> String {
        self.count(now, 0);
        number_format::signed_fixed(self.average.saturating_mul(EPOCHS).saturating_mul(factor), SCALE)
    }

    /// The value of `scaled` at a constant rate per second.
    pub fn scale(rate: u32) -> i64 {
        (i64::from(rate) << SCALE) / EPOCHS
    }

    /// The rate per second, as text, for a value of [`Rate::scale`].
    pub fn unscale(scaled: i64) -> String {
        number_format::signed_fixed(scaled.saturating_mul(EPOCHS), SCALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approaches_a_constant_rate_and_decays() {
        let mut rate = Rate::<10>::new();
        for milli in 1..1_000 {
            rate.count(Timestamp::from_millis(milli), 5);
        }
        let text = rate.text(Timestamp::from_millis(1_000));
        // The average stops short of the rate by less than a sixteenth of a unit of its last digit.
        assert_eq!(text, "4993.164");
        assert_eq!(rate.text(Timestamp::from_millis(3_000)), "0");
    }

    #[test]
    fn a_batch_counts_like_its_packets() {
        let (mut one, mut many) = (Rate::<4>::new(), Rate::<4>::new());
        for milli in 1..50 {
            one.count(Timestamp::from_millis(milli), 7 * 64);
            for _ in 0..7 {
                many.count(Timestamp::from_millis(milli), 64);
            }
        }
        assert_eq!(one.scaled(), many.scaled());
    }

    #[test]
    fn extreme_times_and_amounts_leave_a_usable_rate() {
        let mut rate = Rate::<10>::new();
        for (nanos, amount) in [(i64::MAX, u64::MAX), (i64::MIN, u64::MAX), (0, 0), (5, u64::MAX)] {
            rate.count(Timestamp::from_nanos(nanos), amount);
        }
        assert_eq!(rate.text(Timestamp::from_millis(1_000)), "0");
        for milli in 1_001..2_000 {
            rate.count(Timestamp::from_millis(milli), 5);
        }
        assert_eq!(rate.text(Timestamp::from_millis(2_000)), "4993.164");
    }
}
