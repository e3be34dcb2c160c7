//! How long a box that finds nothing to do looks for work before it rests.

/// Rounds in vain before a box rests that others wait for.
const ROUNDS: u32 = 16;

/// The share of a second that a box goes on looking for work while nobody else waits: what it takes to leave a slow
/// machine and to come back.
const LEAVING: u64 = 20_000;

/// How long a box looks for work before it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct IdleBackoff {
    /// Cycles of the time stamp counter that it lasts while nobody else waits.
    long: u64,
    /// Rounds in vain, one after the other, and when the first of them was.
    rounds: u32,
    since: u64,
}

impl IdleBackoff {
    /// For a time stamp counter of such a rate.
    pub fn new(tsc_hz: u64) -> Self {
        Self { long: tsc_hz / LEAVING, rounds: 0, since: 0 }
    }

    /// There was work.
    #[inline]
    pub fn reset(&mut self) {
        self.rounds = 0;
    }

    /// There was none at `now`; whether the box is to rest. `uncontended_until` is when, at the latest, others wait for its turn.
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
