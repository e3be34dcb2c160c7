//! The budget of CPU time of a box with a limit.

use std::time::{Duration, Instant};

/// Maximum unused budget that a box may save, in seconds at its limit.
const MAX_SAVED_SECONDS: f64 = 0.1;

/// Minimum budget, in seconds at its limit, before a throttled box is resumed: throttling has a cost too.
const MIN_RUN_SECONDS: f64 = 0.01;

/// The budget of a box with a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuBudget {
    /// When it was last checked.
    checked: Instant,
    used: Duration,
    /// Remaining seconds; negative if more was used.
    left: f64,
}

/// The action after a check of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThrottleAction {
    GoOn,
    Hold,
    Release,
}

impl CpuBudget {
    /// The budget of a box that has used `used` until now, with a limit of `cores` processors.
    pub(crate) fn new(now: Instant, used: Duration, cores: f64) -> Self {
        Self { checked: now, used, left: cores * MAX_SAVED_SECONDS }
    }

    /// Updates the budget with the CPU time used until now. `held` says whether the box is throttled.
    pub(crate) fn advance(&mut self, now: Instant, used: Duration, cores: f64, held: bool) -> ThrottleAction {
        let gained = cores * now.duration_since(self.checked).as_secs_f64();
        self.left = (self.left + gained).min(cores * MAX_SAVED_SECONDS)
            - used.saturating_sub(self.used).as_secs_f64();
        (self.checked, self.used) = (now, used);
        match held {
            false if self.left < 0.0 => ThrottleAction::Hold,
            true if self.left >= cores * MIN_RUN_SECONDS => ThrottleAction::Release,
            _ => ThrottleAction::GoOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(4);

    /// The CPU time per second of a box that uses all it gets, checked every 4 ms for ten seconds.
    fn used(cores: f64) -> f64 {
        let start = Instant::now();
        let mut budget = CpuBudget::new(start, Duration::ZERO, cores);
        let (mut used, mut held) = (Duration::ZERO, false);
        for look in 1..=2500 {
            if !held {
                used += INTERVAL;
            }
            match budget.advance(start + INTERVAL * look, used, cores, held) {
                ThrottleAction::GoOn => {}
                ThrottleAction::Hold => held = true,
                ThrottleAction::Release => held = false,
            }
        }
        used.as_secs_f64() / 10.0
    }

    #[test]
    fn cpu_limits_hold_on_average() {
        for cores in [0.01, 0.05, 0.2, 0.5, 0.9] {
            let found = used(cores);
            assert!((found - cores).abs() < 0.02, "{cores}: {found}");
        }
        assert!(used(1.5) > 0.99);
    }
}
