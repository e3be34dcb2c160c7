//! Which OpenFlow controllers came and went, for events.

use model::{CreateSwitch, SwitchName};
use protocol::agent::ControllerState;
use std::time::{Duration, Instant};

/// Events about one controller in a row, and the time for one more. Stops a controller that comes and goes from filling the history.
const MAX_NEWS: u64 = 8;
const NEWS_INTERVAL: Duration = Duration::from_secs(10);

/// What the events have said of a controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedController {
    is_connected: bool,
    /// Events that may follow now, and since when.
    allowance: u64,
    since: Instant,
}

/// A controller that came or went.
#[derive(Clone, Debug)]
pub(crate) struct ControllerNews {
    pub(crate) switch: SwitchName,
    /// Its address, as in the definition of the switch.
    pub(crate) controller: String,
    pub(crate) is_connected: bool,
    /// Why the connection ended. The agent wrote it: it must be escaped before display.
    pub(crate) error: Option<String>,
}

impl ReportedController {
    fn new(now: Instant) -> Self {
        Self { is_connected: false, allowance: MAX_NEWS, since: now }
    }

    /// Whether this is news, and may be reported now.
    fn report(&mut self, is_connected: bool, now: Instant) -> bool {
        let more = now.saturating_duration_since(self.since).as_secs() / NEWS_INTERVAL.as_secs();
        if more > 0 {
            (self.allowance, self.since) = (MAX_NEWS.min(self.allowance.saturating_add(more)), now);
        }
        let is_reported = self.is_connected != is_connected && self.allowance > 0;
        if is_reported {
            (self.is_connected, self.allowance) = (is_connected, self.allowance - 1);
        }
        is_reported
    }
}

/// The controllers of a switch that came or went since this was asked last.
pub(super) fn controller_news(
    switch: &CreateSwitch,
    reported: &mut Vec<ReportedController>,
    states: &[ControllerState],
    now: Instant,
) -> Vec<ControllerNews> {
    reported.resize(switch.controllers.len(), ReportedController::new(now));
    let known = switch.controllers.iter().zip(states).zip(reported);
    let news = |((controller, state), reported): ((_, &ControllerState), &mut ReportedController)| {
        let is_connected = state.role.is_some();
        reported.report(is_connected, now).then(|| ControllerNews {
            switch: switch.name.clone(),
            controller: ToString::to_string(controller),
            is_connected,
            error: state.error.clone(),
        })
    };
    known.filter_map(news).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_bounded_and_true_in_the_end() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut reported = ReportedController::new(begin);
        assert!(!reported.report(false, begin));
        let count = (0..100).filter(|round| reported.report(round % 2 == 0, begin)).count();
        assert_eq!((count as u64, reported.is_connected), (MAX_NEWS, false));
        // It is connected, and no event said so. The next one does, once.
        assert!(
            !reported.report(true, at(9)) && reported.report(true, at(10)) && !reported.report(true, at(11))
        );
        assert!(!reported.report(false, at(12)) && reported.report(false, at(20)));
        // After a quiet time there may be as many as at first.
        let count = (0..100).filter(|round| reported.report(round % 2 == 0, at(10_000))).count();
        assert_eq!(count as u64, MAX_NEWS);
    }
}
