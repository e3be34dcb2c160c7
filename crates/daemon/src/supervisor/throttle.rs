//! Limits on processor time: a box that has used up its budget is suspended for a while.
//!
//! Control groups could limit processes, but not boxes that share a worker's thread, and moving a process into one
//! costs milliseconds. Boxes of both kinds are therefore throttled here.

use super::state::Supervisor;
use crate::boxes::{ManagedBox, Phase};
use std::time::{Duration, Instant};

/// Interval between checks while a box has a limit.
const THROTTLE_INTERVAL: Duration = Duration::from_millis(4);

/// Maximum unused budget that a box may save, in seconds at its limit.
const MAX_SAVED_SECONDS: f64 = 0.1;

/// Minimum budget, in seconds at its limit, before a throttled box is resumed: throttling has a cost too.
const MIN_RUN_SECONDS: f64 = 0.01;

/// The budget of a box with a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuBudget {
    looked: Instant,
    used: Duration,
    /// Remaining seconds; negative if more was used.
    left: f64,
}

/// The action after a check of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThrottleAction {
    GoOn,
    Hold,
    Release,
}

impl CpuBudget {
    fn new(now: Instant, used: Duration, cores: f64) -> Self {
        Self { looked: now, used, left: cores * MAX_SAVED_SECONDS }
    }

    /// Updates the budget with the processor time used until now. `held` says whether the box is throttled.
    fn advance(&mut self, now: Instant, used: Duration, cores: f64, held: bool) -> ThrottleAction {
        let gained = cores * now.duration_since(self.looked).as_secs_f64();
        self.left = (self.left + gained).min(cores * MAX_SAVED_SECONDS)
            - used.saturating_sub(self.used).as_secs_f64();
        (self.looked, self.used) = (now, used);
        match held {
            false if self.left < 0.0 => ThrottleAction::Hold,
            true if self.left >= cores * MIN_RUN_SECONDS => ThrottleAction::Release,
            _ => ThrottleAction::GoOn,
        }
    }
}

impl Supervisor {
    /// Throttles boxes that have used up their budget, and resumes those that have budget again. Returns the time until
    /// the next check.
    pub(super) fn throttle(&self) -> Option<Duration> {
        let limited = self.0.all().into_iter().filter(|managed| self.throttle_one(managed));
        (limited.count() > 0).then_some(THROTTLE_INTERVAL)
    }

    /// Checks one box. Returns whether it has a limit and runs.
    fn throttle_one(&self, managed: &ManagedBox) -> bool {
        let (instance, cores) = {
            let inner = managed.inner();
            match (&inner.instance, inner.definition.cpu_limit, inner.phase) {
                (Some(instance), Some(cores), Phase::Running) => (instance.clone(), cores.number()),
                _ => return false,
            }
        };
        let (now, used) = (Instant::now(), instance.usage().time);
        let mut inner = managed.inner();
        let budget = inner.budget.get_or_insert_with(|| CpuBudget::new(now, used, cores));
        let verdict = budget.advance(now, used, cores, instance.is_held());
        drop(inner);
        match verdict {
            ThrottleAction::GoOn => {}
            ThrottleAction::Hold => instance.hold(),
            ThrottleAction::Release => instance.release(),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The processor time per second of a box that uses all it gets, checked every 4 ms for ten seconds.
    fn used(cores: f64) -> f64 {
        let start = Instant::now();
        let mut budget = CpuBudget::new(start, Duration::ZERO, cores);
        let (mut used, mut held) = (Duration::ZERO, false);
        for look in 1..=2500 {
            if !held {
                used += THROTTLE_INTERVAL;
            }
            match budget.advance(start + THROTTLE_INTERVAL * look, used, cores, held) {
                ThrottleAction::GoOn => {}
                ThrottleAction::Hold => held = true,
                ThrottleAction::Release => held = false,
            }
        }
        used.as_secs_f64() / 10.0
    }

    #[test]
    fn limits_are_kept_on_the_average() {
        for cores in [0.01, 0.05, 0.2, 0.5, 0.9] {
            let found = used(cores);
            assert!((found - cores).abs() < 0.02, "{cores}: {found}");
        }
        assert!(used(1.5) > 0.99);
    }
}
