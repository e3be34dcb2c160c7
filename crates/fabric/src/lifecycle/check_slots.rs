//! Limits the number of concurrent checks, so that slow ones do not delay quick ones.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A semaphore for concurrent checks. A check that has run for a while no longer counts as a quick one, and makes room
/// for another.
#[derive(Debug)]
pub(super) struct CheckSlots {
    /// The maximum number of quick checks.
    quick: usize,
    /// The maximum number of all checks.
    all: usize,
    /// The time after which a check is slow.
    slow_after: Duration,
    /// When each running check started.
    running: Mutex<Vec<Instant>>,
    ended: Condvar,
}

/// A permit for one check.
#[derive(Debug)]
pub(super) struct CheckSlot<'a> {
    slots: &'a CheckSlots,
    start: Instant,
}

impl CheckSlots {
    pub(super) fn new(quick: usize, all: usize, slow_after: Duration) -> Self {
        Self { quick, all, slow_after, running: Mutex::default(), ended: Condvar::new() }
    }

    pub(super) fn enter(&self) -> CheckSlot<'_> {
        let mut running = self.running();
        loop {
            let now = Instant::now();
            match self.delay(&running, now) {
                Delay::None => {
                    running.push(now);
                    return CheckSlot { slots: self, start: now };
                }
                Delay::AtMost(time) => {
                    let waited = self.ended.wait_timeout(running, time);
                    running = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Delay::UntilOneEnds => {
                    running = self.ended.wait(running).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// How long another check has to wait beside those that started at these times, if none of them ends.
    fn delay(&self, running: &[Instant], now: Instant) -> Delay {
        if running.len() >= self.all {
            return Delay::UntilOneEnds;
        }
        let age = |start: &Instant| now.saturating_duration_since(*start);
        let quick = running.iter().map(age).filter(|age| *age < self.slow_after);
        match quick.clone().max() {
            Some(oldest) if quick.count() >= self.quick => Delay::AtMost(self.slow_after - oldest),
            _ => Delay::None,
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time until a check may start.
#[derive(Debug, PartialEq, Eq)]
enum Delay {
    None,
    AtMost(Duration),
    UntilOneEnds,
}

impl Drop for CheckSlot<'_> {
    fn drop(&mut self) {
        let mut running = self.slots.running();
        if let Some(index) = running.iter().position(|start| *start == self.start) {
            running.swap_remove(index);
        }
        drop(running);
        // All waiting ones may wait for different times.
        self.slots.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_checks_do_not_delay_a_quick_one() {
        let slots = CheckSlots::new(4, 8, Duration::from_secs(1));
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let check = |running: &[u64], now: u64, expected: Delay| {
            let running: Vec<Instant> = running.iter().map(|start| after(*start)).collect();
            assert_eq!(slots.delay(&running, after(now)), expected, "{running:?} at {now}");
        };
        check(&[], 0, Delay::None);
        check(&[0, 0, 0], 0, Delay::None);
        check(&[0, 100, 200, 300], 400, Delay::AtMost(Duration::from_millis(600)));
        // Four checks that run for a minute: another one starts after a second at most, also beside four more of them.
        check(&[0, 0, 0, 0], 1000, Delay::None);
        check(&[0, 0, 0, 0, 1500, 1500, 1500], 2000, Delay::None);
        check(&[0, 0, 0, 0, 1500, 1500, 1500, 1500], 2000, Delay::UntilOneEnds);
    }

    #[test]
    fn permits_are_given_back() {
        let slots = CheckSlots::new(1, 2, Duration::from_secs(3600));
        drop(slots.enter());
        let first = slots.enter();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(slots.enter()));
            drop(first);
            second.join().expect("it is let in");
        });
        assert!(slots.running().is_empty());
    }
}
