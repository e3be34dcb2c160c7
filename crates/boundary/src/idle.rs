//! How long a box polls for work before it sleeps.

/// Rounds without work before a box sleeps while other boxes wait for the processor.
const ROUNDS: u32 = 16;

/// The fraction of a second for which a box polls while no other box waits (1/20,000 is 50 us): about what an exit from a
/// slow virtual machine and the entry after it cost.
const LEAVING: u64 = 20_000;

/// Decides how long a box polls for work before it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct IdleBackoff {
    /// Cycles of the time stamp counter for which the box polls while no other box waits.
    long: u64,
    /// Consecutive rounds without work, and the time of the first one.
    rounds: u32,
    since: u64,
}

impl IdleBackoff {
    /// A backoff for a time stamp counter with this rate per second.
    pub fn new(tsc_hz: u64) -> Self {
        Self { long: tsc_hz / LEAVING, rounds: 0, since: 0 }
    }

    /// Starts over: there was work.
    #[inline]
    pub fn reset(&mut self) {
        self.rounds = 0;
    }

    /// Counts a round without work at `now`, and returns whether the box should sleep. No other box waits before
    /// `uncontended_until`.
    #[inline]
    pub fn should_idle(&mut self, now: u64, uncontended_until: u64) -> bool {
        if self.rounds == 0 {
            self.since = now;
        }
        self.rounds = self.rounds.saturating_add(1);
        self.rounds > ROUNDS && (now >= uncontended_until || now.wrapping_sub(self.since) >= self.long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_nobody_waiting_waits_longer() {
        let mut backoff = IdleBackoff::new(2_000_000_000);
        let mut rounds = |uncontended_until| {
            backoff.reset();
            (1..).find(|round| backoff.should_idle(1_000_000 + round * 1_000, uncontended_until))
        };
        assert_eq!([rounds(0), rounds(u64::MAX), rounds(1_080_000)], [Some(17), Some(101), Some(80)]);
    }
}
