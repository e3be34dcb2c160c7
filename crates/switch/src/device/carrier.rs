//! Whether an interface has a carrier, for a driver that sends to it.
//!
//! The kernel takes frames for an interface that is up and has no carrier, and drops them without a word: they would count as
//! sent. So the driver looks at the interface now and then, and does not send without a carrier.
//!
//! When an interface is brought up, the kernel may pass frames up to a second before it says that there is a carrier
//! (`net/core/link_watch.c`). Later it says so at once.

use std::time::Duration;

/// Calls to send until the interface is looked at again. A look takes about half of such a call.
const CALLS_PER_LOOK: u32 = 16;

/// How long a driver that sleeps between frames relies on a look.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// How long the kernel may take to report the carrier of an interface that was brought up.
const REPORT_DELAY: Duration = Duration::from_secs(1);

/// What is known of the carrier of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CarrierWatch {
    /// Calls to send until the next look.
    calls_left: u32,
    /// When the last one was.
    looked: Duration,
    seen: Seen,
}

/// What the last look showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Present,
    Absent,
    /// There was none since the interface was brought up, which was first seen at this time.
    NotYet(Option<Duration>),
}

impl Default for Seen {
    fn default() -> Self {
        Self::NotYet(None)
    }
}

impl CarrierWatch {
    /// Whether the interface can send now, as far as known. `look`: whether the kernel reports a carrier; `None` if the interface is
    /// down or gone, which shows itself when frames are sent.
    pub(super) fn can_send(
        &mut self,
        look: impl FnOnce() -> Option<bool>,
        now: impl FnOnce() -> Duration,
    ) -> bool {
        if let (Seen::Present, Some(left)) = (self.seen, self.calls_left.checked_sub(1)) {
            self.calls_left = left;
            return true;
        }
        let now = now();
        (self.calls_left, self.looked) = (CALLS_PER_LOOK, now);
        self.seen = match (look(), self.seen) {
            (Some(true), _) => Seen::Present,
            (Some(false), Seen::Present | Seen::Absent) => Seen::Absent,
            (Some(false), Seen::NotYet(since)) => {
                let since = since.unwrap_or(now);
                if now.saturating_sub(since) > REPORT_DELAY {
                    Seen::Absent
                } else {
                    Seen::NotYet(Some(since))
                }
            }
            (None, _) => Seen::NotYet(None),
        };
        self.seen != Seen::Absent
    }

    /// Notes that the driver is about to sleep: the next call looks, unless that was done a moment ago.
    pub(super) fn note_sleep(&mut self, now: Duration) {
        if now.saturating_sub(self.looked) >= LOOK_INTERVAL {
            self.calls_left = 0;
        }
    }

    /// Notes that the interface is down.
    pub(super) fn note_down(&mut self) {
        self.seen = Seen::NotYet(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_a_carrier_does_not_send() {
        let mut watch = CarrierWatch::default();
        let second = Duration::from_secs;
        let mut ask = |reported: Option<bool>, at: u64| {
            let mut looks = 0;
            let can_send = watch.can_send(
                || {
                    looks += 1;
                    reported
                },
                || second(at),
            );
            (can_send, looks)
        };
        // It was just brought up: the carrier may be reported later.
        assert_eq!([5, 6, 7].map(|at| ask(Some(false), at)), [(true, 1), (true, 1), (false, 1)]);
        // While it is there, it is looked at after some calls; while it is not, at each.
        assert_eq!(ask(Some(true), 8), (true, 1));
        (0..CALLS_PER_LOOK).for_each(|_| assert_eq!(ask(Some(false), 8), (true, 0)));
        assert_eq!([8, 8].map(|at| ask(Some(false), at)), [(false, 1); 2]);
        // The interface goes down and comes up.
        assert_eq!([None, Some(false)].map(|reported| ask(reported, 9)), [(true, 1); 2]);
        assert_eq!([Some(true), Some(false)].map(|reported| ask(reported, 20)), [(true, 1), (true, 0)]);
        let mut same = watch;
        watch.note_sleep(second(20) + LOOK_INTERVAL / 2);
        assert!(watch.can_send(|| Some(false), || second(20)));
        watch.note_sleep(second(20) + LOOK_INTERVAL);
        assert!(!watch.can_send(|| Some(false), || second(20)));
        same.note_down();
        assert!(same.can_send(|| Some(false), || second(20)));
    }
}
