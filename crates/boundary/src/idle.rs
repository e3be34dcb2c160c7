//! How long a box polls for work before it sleeps.

/// Rounds without work before a box sleeps while other boxes wait for the processor.
const ROUNDS: u32 = 16;

/// Rounds without work after which a busy box lets others run, if it can do that without leaving. A round takes some 100 ns, for
/// which the functions of a chain that share the processor would wait.
const ROUNDS_WHILE_BUSY: u32 = 1;

/// The fraction of a second for which a box polls while no other box waits (1/20,000 is 50 us): about what an exit from a
/// slow virtual machine and the entry after it cost.
const LEAVING: u64 = 20_000;

/// Packets in the longest watch, on average, from which on a box lets others run before it sleeps.
const BUSY: u64 = 32;

/// The fractions of a second for which a busy box at least, and at most, lets others run and looks for work before it sleeps (20
/// and 200 us). To wake a box costs its host some 5 us if the box's processor halts meanwhile.
const SHORTEST_WATCH: u64 = 50_000;
const LONGEST_WATCH: u64 = 5_000;

/// For how many times as long as others kept the processor a box does not let them run, if they kept it for longer than the longest
/// watch. Where others compute, a box that sleeps is woken at once, and one that lets them run waits for them.
const KEPT: u64 = 16;

/// Decides how long a box polls for work before it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct IdleBackoff {
    /// Cycles of the time stamp counter in a second.
    tsc_hz: u64,
    /// Consecutive rounds without work, and the time of the first one.
    rounds: u32,
    since: u64,
    /// Packets that the box moved since a time. It is seldom counted, because a box that watches sees packets as they come.
    packets: u64,
    counted_since: u64,
    /// Whether the box was busy when that was last counted.
    is_busy: bool,
    /// When the box was first about to sleep since it last had work.
    idle_since: Option<u64>,
    /// How long it then lets others run and looks for work, in cycles. It doubles while work comes within the longest such time, and
    /// halves while it does not.
    watch: u64,
    /// Whether work came within that time last.
    came_soon: bool,
    /// Whether the box has ever let others run.
    has_yielded: bool,
    /// When the box last let others run, and until when it does not.
    yielded: u64,
    kept_until: u64,
}

impl IdleBackoff {
    /// A backoff for a time stamp counter with this rate per second.
    pub fn new(tsc_hz: u64) -> Self {
        Self {
            tsc_hz,
            rounds: 0,
            since: 0,
            packets: 0,
            counted_since: 0,
            is_busy: false,
            idle_since: None,
            watch: 0,
            came_soon: false,
            has_yielded: false,
            yielded: 0,
            kept_until: 0,
        }
    }

    /// Starts over: the box may not sleep now.
    #[inline]
    pub fn reset(&mut self) {
        self.rounds = 0;
    }

    /// Starts over: there was work, and `packets` were moved.
    #[inline]
    pub fn found_work(&mut self, packets: u64) {
        self.reset();
        self.packets += packets;
        self.came_soon |= self.idle_since.take().is_some();
    }

    /// Counts a round without work at `now`, and returns whether the box should sleep. No other box waits before
    /// `uncontended_until`.
    #[inline]
    pub fn should_idle(&mut self, now: u64, uncontended_until: u64) -> bool {
        if self.rounds == 0 {
            self.since = now;
        }
        self.rounds = self.rounds.saturating_add(1);
        let waited = now.wrapping_sub(self.since);
        let is_watching = self.has_yielded && self.watch > 0 && now >= self.kept_until;
        let most = if is_watching { ROUNDS_WHILE_BUSY } else { ROUNDS };
        let should = self.rounds > most && (now >= uncontended_until || waited >= self.tsc_hz / LEAVING);
        if should {
            self.rounds = 0;
        }
        should
    }

    /// Returns whether a box that should sleep should let others run first, and look for work again. If it lets them,
    /// [`has_yielded`](Self::has_yielded) follows.
    pub fn should_yield(&mut self, now: u64) -> bool {
        let should = match self.idle_since {
            Some(since) => now.wrapping_sub(since) < self.watch,
            None => {
                self.idle_since = Some(now);
                self.count(now);
                let [shortest, longest] = [SHORTEST_WATCH, LONGEST_WATCH].map(|part| self.tsc_hz / part);
                let came_soon = core::mem::take(&mut self.came_soon);
                self.watch = match self.is_busy && came_soon {
                    true => (2 * self.watch).clamp(shortest, longest),
                    false if self.watch > shortest => self.watch / 2,
                    false => 0,
                };
                self.watch > 0
            }
        };
        self.yielded = now;
        should && now >= self.kept_until
    }

    /// Finds out whether the box is busy, if it moved many packets, or had time enough for it.
    fn count(&mut self, now: u64) {
        let (passed, longest) = (now.wrapping_sub(self.counted_since), self.tsc_hz / LONGEST_WATCH);
        if self.packets >= BUSY || passed >= longest {
            self.is_busy = self.packets / BUSY * longest >= passed;
            (self.packets, self.counted_since) = (0, now);
        }
    }

    /// Notes that the box has let others run until now.
    pub fn has_yielded(&mut self, now: u64) {
        self.has_yielded = true;
        let kept = now.wrapping_sub(self.yielded);
        if kept > self.tsc_hz / LONGEST_WATCH {
            (self.watch, self.kept_until) = (0, now.saturating_add(kept.saturating_mul(KEPT)));
        }
    }

    /// Starts over: the box has slept until now.
    pub fn has_slept(&mut self, now: u64) {
        self.reset();
        let longest = self.tsc_hz / LONGEST_WATCH;
        self.came_soon = self.idle_since.take().is_some_and(|since| now.wrapping_sub(since) < longest);
        (self.packets, self.counted_since) = (0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 2_000;

    /// A backoff, and the time.
    struct Watched {
        backoff: IdleBackoff,
        now: u64,
    }

    impl Watched {
        /// The microseconds for which the box looks for work, after it moved some packets; a look takes one. Then it sleeps, unless
        /// work comes after `gap` of them.
        fn idle(&mut self, packets: u64, gap: u64) -> u64 {
            let Self { backoff, now } = self;
            backoff.found_work(packets);
            let (start, mut looked) = (*now, 0);
            while backoff.should_yield(*now) {
                *now += US;
                backoff.has_yielded(*now);
                looked += 1;
                if looked == gap {
                    return looked;
                }
            }
            *now = start + gap * US;
            backoff.has_slept(*now);
            looked
        }
    }

    fn watched() -> Watched {
        Watched { backoff: IdleBackoff::new(US * 1_000_000), now: 5 }
    }

    #[test]
    fn a_box_watches_longer_while_work_comes_soon() {
        let mut watched = watched();
        let mut idle = |packets, gap| watched.idle(packets, gap);
        // Few packets are not worth it.
        assert_eq!([idle(0, 50), idle(31, 50), idle(32, 50)], [0, 0, 20]);
        assert_eq!([(); 5].map(|()| idle(32, 150)), [40, 80, 150, 150, 150]);
        // Work that comes later than the longest watch is not waited for in vain for long.
        assert_eq!([(); 6].map(|()| idle(32, 1000)), [200, 100, 50, 25, 13, 0]);
        assert_eq!([idle(32, 100), idle(32, 10), idle(32, 30), idle(32, 60)], [0, 10, 30, 60]);
        // As little as work that is no packets.
        assert_eq!([(); 5].map(|()| idle(0, 150)), [150, 80, 40, 20, 0]);
    }

    #[test]
    fn a_box_whose_processor_others_keep_sleeps() {
        let mut watched = watched();
        watched.idle(32, 10);
        assert_eq!(watched.idle(32, 15), 15);
        watched.backoff.found_work(32);
        assert!(watched.backoff.should_yield(watched.now));
        watched.now += 250 * US;
        watched.backoff.has_yielded(watched.now);
        // For four milliseconds.
        assert_eq!((0..99).find(|_| watched.idle(32, 100) > 0), Some(40));
    }

    /// It looks for work twice, and others run in between. Before it has let others run, nobody knows whether it can.
    #[test]
    fn a_busy_box_does_not_keep_others_waiting() {
        let mut watched = watched();
        let rounds = |watched: &mut Watched| {
            watched.backoff.reset();
            (1..).find(|_| watched.backoff.should_idle(watched.now, 0))
        };
        assert_eq!((rounds(&mut watched), watched.idle(0, 50)), (Some(17), 0));
        assert_eq!(
            (rounds(&mut watched), watched.idle(32, 50), rounds(&mut watched)),
            (Some(17), 20, Some(2))
        );
        // One that waits in vain is no longer busy.
        assert_eq!((watched.idle(32, 1000), rounds(&mut watched)), (40, Some(2)));
        assert_eq!((watched.idle(32, 1000), rounds(&mut watched)), (20, Some(2)));
        assert_eq!((watched.idle(32, 1000), rounds(&mut watched)), (0, Some(17)));
        // Others that keep the processor are not let run, so it looks for work as long as ever.
        watched.idle(32, 10);
        assert_eq!((watched.idle(32, 15), rounds(&mut watched)), (15, Some(2)));
        watched.backoff.found_work(32);
        assert!(watched.backoff.should_yield(watched.now));
        watched.now += 250 * US;
        watched.backoff.has_yielded(watched.now);
        assert_eq!(rounds(&mut watched), Some(17));
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
