//! Finds functions that stand still: they have packets waiting and take none.

use std::time::Duration;

/// What waits for the other end of a port, and what it took so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Frames that wait.
    pub waiting: u64,
    /// Frames that the other end took since the port was created.
    pub taken: u64,
}

/// The watch over one port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SilenceWatch {
    /// How long the other end may take nothing while frames wait.
    limit: Duration,
    /// What was taken when frames began to wait, and when this was, in nanoseconds.
    since: Option<(u64, u64)>,
    is_silent: bool,
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
        Self { limit, since: None, is_silent: false }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Looks at a port at a time, in nanoseconds. `None`: the other end does not run.
    pub(crate) fn look(&mut self, progress: Option<Progress>, now: u64) -> Look {
        let waiting = progress.filter(|progress| progress.waiting > 0);
        let limit = u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX);
        let since = waiting.map(|progress| match self.since {
            Some((taken, since)) if taken == progress.taken => (taken, since),
            _ => (progress.taken, now),
        });
        self.since = since;
        let end = since.map(|(_, since)| since.saturating_add(limit));
        let is_silent = end.is_some_and(|end| end <= now);
        let change = (is_silent != self.is_silent).then_some(is_silent);
        self.is_silent = is_silent;
        Look { change, due: end.filter(|_| !is_silent) }
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
            (3, 0, 2000, None, Some(2100)),
            (3, 0, 2099, None, Some(2100)),
            (2, 1, 2099, None, Some(2199)),
            (9, 1, 2198, None, Some(2199)),
            (9, 1, 2199, Some(true), None),
            (9, 1, 9999, None, None),
            // It comes back.
            (8, 2, 10_000, Some(false), Some(10_100)),
            (0, 10, 10_050, None, None),
            (1, 10, 10_200, None, Some(10_300)),
            (1, 10, 10_300, Some(true), None),
            (0, 11, 10_301, Some(false), None),
        ];
        for (waiting, taken, now, change, due) in steps {
            let look = watch.look(Some(Progress { waiting, taken }), now);
            assert_eq!(look, Look { change, due }, "{waiting} wait and {taken} are taken at {now}");
        }
        // One that ended and starts again has its whole time again, although it took as many.
        watch.look(Some(Progress { waiting: 1, taken: 11 }), 20_000);
        assert_eq!(watch.look(Some(Progress { waiting: 1, taken: 11 }), 20_100).change, Some(true));
        assert_eq!(watch.look(None, 20_101), Look { change: Some(false), due: None });
        let look = watch.look(Some(Progress { waiting: 1, taken: 11 }), 20_300);
        assert_eq!(look, Look { change: None, due: Some(20_400) });
    }
}
