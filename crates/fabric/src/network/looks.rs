//! How late the looks at functions are that attached themselves.

use crate::limits::FUNCTION_LOOK_INTERVAL;
use std::time::{Duration, Instant};

/// The looks at the functions.
#[derive(Debug, Default)]
pub(super) struct Looks {
    last: Option<Instant>,
}

impl Looks {
    /// How late the look at this time is. If it is, because the machine paused or is overloaded, the functions did not run either:
    /// then this time does not count as theirs.
    pub(super) fn delay(&mut self, now: Instant) -> Duration {
        let pause = self.last.replace(now).map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        pause.saturating_sub(2 * FUNCTION_LOOK_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_look_is_known() {
        let (mut looks, start) = (Looks::default(), Instant::now());
        let steps = [(7000, 0), (7250, 0), (7700, 0), (8200, 0), (8800, 100), (18_800, 9500), (19_050, 0)];
        for (at, late) in steps {
            let [at, late] = [at, late].map(Duration::from_millis);
            assert_eq!(looks.delay(start + at), late, "{at:?}");
        }
    }
}
