//! Limits on CPU time: a box that has used up its budget is suspended for a while.
//!
//! Control groups could limit processes, but not boxes that share a worker's thread, and moving a process into one
//! costs milliseconds. Boxes of both kinds are therefore throttled here.

use super::state::Fabric;
use crate::boxes::{CpuBudget, ManagedBox, Phase, ThrottleAction};
use std::time::{Duration, Instant};

/// Interval between checks while a box has a limit.
const THROTTLE_INTERVAL: Duration = Duration::from_millis(4);

impl Fabric {
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
