//! How often a box that does not answer is asked for its counters.

use std::time::{Duration, Instant};

/// Maximum pause: a box that recovers is asked again within this time.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A box in an endless loop never answers, and each question makes its asker wait. So the pauses between questions
/// double while it is silent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// Questions without an answer, in a row.
    missed: u32,
    /// When it may be asked again.
    until: Option<Instant>,
}

impl Silence {
    /// Whether the box may be asked now.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// Notes whether the box answered.
    pub(crate) fn note(&mut self, answered: bool, now: Instant) {
        if answered {
            *self = Self::default();
            return;
        }
        self.missed = self.missed.saturating_add(1);
        // One missed answer can be chance.
        let seconds = 1u64.checked_shl(self.missed.saturating_sub(1)).unwrap_or(u64::MAX) - 1;
        self.until = Some(now + Duration::from_secs(seconds).min(MAX_PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_box_is_asked_less_and_less() {
        let (mut silence, start) = (Silence::default(), Instant::now());
        let asked: Vec<u64> = (0..100)
            .filter(|second| {
                let now = start + Duration::from_secs(*second);
                let is_asked = silence.is_over(now);
                if is_asked {
                    silence.note(false, now);
                }
                is_asked
            })
            .collect();
        assert_eq!(asked, [0, 1, 2, 5, 12, 27, 57, 87]);
        let now = start + Duration::from_secs(100);
        assert!(!silence.is_over(now));
        silence.note(true, now);
        assert!(silence.is_over(now));
        for _ in 0..200 {
            silence.note(false, now);
        }
        assert!(!silence.is_over(now) && silence.is_over(now + MAX_PAUSE));
    }
}
