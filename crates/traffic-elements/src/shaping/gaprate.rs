//! Evenly spaced events at a rate, without bursts after a pause.

use element::prelude::*;

/// Fractional bits of a gap in microseconds.
const SHIFT: u32 = 12;
/// Highest rate in events a second.
pub(crate) const MAX_RATE: u32 = 1_000_000 << SHIFT;

/// Schedules events at a steady rate. Seconds are aligned with the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct GapRate {
    rate: u32,
    /// Microseconds between events, in fixed point.
    gap: u32,
    /// Events so far in this second; negative while the excess of an earlier second is worked off.
    count: i64,
    second: Option<i64>,
}

impl GapRate {
    /// For `rate` events a second; higher rates are cut to 4,096,000,000.
    pub fn new(rate: u32) -> GapRate {
        let mut gap = GapRate { rate: 0, gap: 0, count: 0, second: None };
        gap.assign(rate.min(MAX_RATE));
        gap
    }

    fn assign(&mut self, rate: u32) {
        self.rate = rate;
        self.gap = MAX_RATE.checked_div(rate).unwrap_or(MAX_RATE + 1);
    }

    /// Events a second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Changes the rate at time `now`.
    pub fn set_rate(&mut self, rate: u32, now: Timestamp) {
        let rate = rate.min(MAX_RATE);
        if rate != self.rate {
            self.assign(rate);
            if self.second.is_some() && rate != 0 {
                self.count = self.due(now);
            }
        }
    }

    /// Number of events due in the current second by time `now`.
    #[inline]
    fn due(&self, now: Timestamp) -> i64 {
        i64::from((now.subsecond_nanos() / 1_000) << SHIFT) / i64::from(self.gap)
    }

    /// Whether an event is due at time `now`.
    #[inline]
    pub fn is_due(&mut self, now: Timestamp) -> bool {
        let (due, second) = (self.due(now), now.seconds());
        match self.second {
            None => {
                let gap = i64::from(self.gap);
                let rest = i64::from((now.subsecond_nanos() / 1_000) << SHIFT) - due * gap;
                self.second = Some(second);
                self.count = due + i64::from(rest > gap / 2);
            }
            Some(last) if second > last => {
                self.second = Some(second);
                if self.count > 0 {
                    self.count -= i64::from(self.rate);
                }
            }
            Some(_) => {}
        }
        due >= self.count
    }

    /// Number of events that may still be counted at time `now`.
    #[inline]
    pub fn left(&mut self, now: Timestamp) -> usize {
        if self.is_due(now) { (self.due(now) - self.count + 1) as usize } else { 0 }
    }

    /// Counts `events` events.
    #[inline]
    pub fn add(&mut self, events: u32) {
        self.count += i64::from(events);
    }

    /// Starts over.
    pub fn reset(&mut self) {
        self.second = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_evenly_spaced() {
        let mut rate = GapRate::new(1_000);
        let start = Timestamp::from_parts(5, 0);
        let mut times = Vec::new();
        for micros in 0..3_000_000 {
            let now = start + Timestamp::from_micros(micros);
            if rate.is_due(now) {
                rate.add(1);
                times.push(micros);
            }
        }
        assert_eq!(times.len(), 3_000);
        assert!(times.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(1_000) <= 1));
    }

    #[test]
    fn as_many_events_are_left_as_are_due_one_by_one() {
        for rate in [0, 1, 999, 1_000_000, MAX_RATE] {
            let mut all = GapRate::new(rate);
            for micros in [1, 499_000, 500_000, 1_200_000, 7_000_001] {
                let now = Timestamp::from_micros(micros);
                let mut single = all;
                let mut events = 0;
                while events < 5_000_000 && single.is_due(now) {
                    single.add(1);
                    events += 1;
                }
                let left = all.left(now).min(5_000_000);
                assert_eq!(left, events, "{rate} a second at {micros} us");
                all.add(left as u32);
            }
        }
    }

    #[test]
    fn at_rate_zero_one_event_is_due() {
        let mut rate = GapRate::new(0);
        let mut events = 0;
        for milli in 1..2_000 {
            if rate.is_due(Timestamp::from_millis(milli)) {
                rate.add(1);
                events += 1;
            }
        }
        assert_eq!(events, 1);
    }
}
