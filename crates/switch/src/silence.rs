//! Finds functions that stand still: they have packets waiting and take none.
//!
//! On a machine that pauses or is overloaded, a function may stand still only because nothing runs. Then the switch does not run
//! either, so its looks are late. So a port is looked at several times before it counts as silent, and the time before a late look
//! counts only in part.

use std::time::Duration;

/// What waits for the other end of a port, and what it took so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Frames that wait.
    pub waiting: u64,
    /// Frames that the other end took since the port was created.
    pub taken: u64,
}

/// How often a port is looked at in the time after which it is silent.
const LOOKS: u64 = 4;

/// However late a look comes, no more than this part of that time counts as passed: a half.
const LATE_SHARE: u64 = 2;

/// The watch over one port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SilenceWatch {
    /// How long the other end may take nothing while frames wait.
    limit: Duration,
    /// What was taken when frames began to wait.
    waits: Option<Waits>,
    is_silent: bool,
}

/// Frames that wait while none is taken. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Waits {
    /// What was taken when they began to wait.
    taken: u64,
    /// How long they have waited, without the time before late looks that does not count.
    time: u64,
    /// When they were looked at last.
    looked: u64,
}

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// The other end has become silent, or has come back.
    pub(crate) change: Option<bool>,
    /// When to look again, in nanoseconds, if nothing happens before.
    pub(crate) due: Option<u64>,
}

impl SilenceWatch {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, waits: None, is_silent: false }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Looks at a port at a time, in nanoseconds. `None`: the other end does not run.
    pub(crate) fn look(&mut self, progress: Option<Progress>, now: u64) -> Look {
        let waiting = progress.filter(|progress| progress.waiting > 0);
        let limit = u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX);
        let waits = waiting.map(|Progress { taken, .. }| match self.waits {
            Some(waits) if waits.taken == taken => {
                let more = now.saturating_sub(waits.looked).min(limit / LATE_SHARE);
                Waits { time: waits.time.saturating_add(more), looked: now, ..waits }
            }
            _ => Waits { taken, time: 0, looked: now },
        });
        self.waits = waits;
        let left = waits.map(|waits| limit.saturating_sub(waits.time));
        let is_silent = left == Some(0);
        let change = (is_silent != self.is_silent).then_some(is_silent);
        self.is_silent = is_silent;
        let due = left.filter(|_| !is_silent).map(|left| now.saturating_add(left.min(limit / LOOKS)));
        Look { change, due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_silent_when_frames_wait_and_none_is_taken() {
        let mut watch = SilenceWatch::new(Duration::from_nanos(100));
        let steps = [
            // An idle port is not silent, however long it is idle.
            (0, 0, 0, None, None),
            (0, 0, 1000, None, None),
            // The time begins when frames are seen waiting, and again with each that is taken.
            (3, 0, 2000, None, Some(2025)),
            (3, 0, 2025, None, Some(2050)),
            (3, 0, 2050, None, Some(2075)),
            (3, 0, 2075, None, Some(2100)),
            (2, 1, 2099, None, Some(2124)),
            (9, 1, 2140, None, Some(2165)),
            (9, 1, 2180, None, Some(2199)),
            (9, 1, 2198, None, Some(2199)),
            (9, 1, 2199, Some(true), None),
            (9, 1, 9999, None, None),
            // It comes back.
            (8, 2, 10_000, Some(false), Some(10_025)),
            (0, 10, 10_050, None, None),
            (1, 10, 10_200, None, Some(10_225)),
            (1, 10, 10_250, None, Some(10_275)),
            (1, 10, 10_300, Some(true), None),
            (0, 11, 10_301, Some(false), None),
        ];
        for (waiting, taken, now, change, due) in steps {
            let look = watch.look(Some(Progress { waiting, taken }), now);
            assert_eq!(look, Look { change, due }, "{waiting} wait and {taken} are taken at {now}");
        }
        // One that ended and starts again has its whole time again, although it took as many.
        let mut look = |progress, now| watch.look(progress, now);
        let waits = Some(Progress { waiting: 1, taken: 11 });
        look(waits, 20_000);
        look(waits, 20_050);
        assert_eq!(look(waits, 20_100).change, Some(true));
        assert_eq!(look(None, 20_101), Look { change: Some(false), due: None });
        assert_eq!(look(waits, 20_300), Look { change: None, due: Some(20_325) });
    }

    /// The whole machine stood still, or it had no time for this thread.
    #[test]
    fn a_pause_of_the_switch_makes_no_port_silent() {
        let mut watch = SilenceWatch::new(Duration::from_nanos(100));
        let mut look = |taken, now| watch.look(Some(Progress { waiting: 5, taken }), now);
        assert_eq!(look(7, 1000), Look { change: None, due: Some(1025) });
        assert_eq!(look(7, 9000), Look { change: None, due: Some(9025) });
        assert_eq!(look(8, 9010), Look { change: None, due: Some(9035) });
        // One that takes none then either is found.
        assert_eq!(look(8, 20_000), Look { change: None, due: Some(20_025) });
        assert_eq!(look(8, 20_030), Look { change: None, due: Some(20_050) });
        assert_eq!(look(8, 20_050).change, Some(true));
    }
}
