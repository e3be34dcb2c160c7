//! How long a box polls for work before it sleeps.

/// Rounds without work before a box sleeps while other boxes wait for the processor.
const ROUNDS: u32 = 16;

/// The fraction of a second for which a box polls while no other box waits (1/20,000 is 50 us): about what an exit from a
/// slow virtual machine and the entry after it cost.
const LEAVING: u64 = 20_000;

/// Packets in a turn from which on a box lets others run before it sleeps.
const BUSY: u64 = 32;

/// Times that a box lets others run before it sleeps, at most. To wake a box costs its host several times as much as to let it
/// look for work once.
const MAX_YIELDS: u32 = 16;

/// Decides how long a box polls for work before it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct IdleBackoff {
    /// Cycles of the time stamp counter for which the box polls while no other box waits.
    long: u64,
    /// Consecutive rounds without work, and the time of the first one.
    rounds: u32,
    since: u64,
    /// Times in a row that the box let others run and found no work.
    yields: u32,
    /// How often that is worth it: more often if it found work lately, less often if it slept after all.
    worth: u32,
}

impl IdleBackoff {
    /// A backoff for a time stamp counter with this rate per second.
    pub fn new(tsc_hz: u64) -> Self {
        Self { long: tsc_hz / LEAVING, rounds: 0, since: 0, yields: 0, worth: 1 }
    }

    /// Starts over: the box may not sleep now.
    #[inline]
    pub fn reset(&mut self) {
        self.rounds = 0;
    }

    /// Starts over: there was work.
    #[inline]
    pub fn found_work(&mut self) {
        self.reset();
        if self.yields > 0 {
            self.yields = 0;
            self.worth = (2 * self.worth).min(MAX_YIELDS);
        }
    }

    /// Counts a round without work at `now`, and returns whether the box should sleep. No other box waits before
    /// `uncontended_until`.
    #[inline]
    pub fn should_idle(&mut self, now: u64, uncontended_until: u64) -> bool {
        if self.rounds == 0 {
            self.since = now;
        }
        self.rounds = self.rounds.saturating_add(1);
        let should =
            self.rounds > ROUNDS && (now >= uncontended_until || now.wrapping_sub(self.since) >= self.long);
        if should {
            self.rounds = 0;
        }
        should
    }

    /// Returns whether a box that should sleep should let others run first, and look for work again. `packets`: how many it moved
    /// since it last did that or slept.
    pub fn should_yield(&mut self, packets: u64) -> bool {
        let should = (packets >= BUSY || self.worth > 1) && self.yields < self.worth;
        self.yields += u32::from(should);
        should
    }

    /// Starts over: the box sleeps now.
    pub fn sleeps(&mut self) {
        self.reset();
        if self.yields > 0 {
            self.yields = 0;
            self.worth = (self.worth / 2).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box that finds work when it has let others run does so more often, and one that sleeps after all does so less often.
    #[test]
    fn yielding_is_worth_what_it_found() {
        let mut backoff = IdleBackoff::new(2_000_000_000);
        let yields = |backoff: &mut IdleBackoff, packets| {
            let count = (0..).find(|_| !backoff.should_yield(packets)).unwrap();
            backoff.sleeps();
            count
        };
        assert_eq!([0, 32, 99, 31].map(|packets| yields(&mut backoff, packets)), [0, 1, 1, 0]);
        for _ in 0..2 {
            assert!(backoff.should_yield(32));
            backoff.found_work();
        }
        // Work that comes while the box sleeps says nothing, and no more does a request.
        backoff.found_work();
        assert!(backoff.should_yield(0));
        backoff.reset();
        backoff.sleeps();
        assert_eq!(backoff.worth, 2);
        assert!(backoff.should_yield(0));
        backoff.found_work();
        assert_eq!([(); 4].map(|()| yields(&mut backoff, 0)), [4, 2, 0, 0]);
        for _ in 0..9 {
            assert!(backoff.should_yield(32));
            backoff.found_work();
        }
        assert_eq!([(); 5].map(|()| yields(&mut backoff, 32)), [16, 8, 4, 2, 1]);
    }

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
