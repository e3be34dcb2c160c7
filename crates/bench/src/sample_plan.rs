//! How much is measured.

use crate::error::MeasureError;
use crate::statistics::microseconds;
use serde::{Serialize, Serializer};
use std::time::{Duration, Instant};

/// How often and how long something is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SamplePlan {
    /// Runs; their median is the figure.
    pub runs: u32,
    /// How long a run takes, where it doesn't end by itself.
    #[serde(rename = "time_ms", serialize_with = "in_milliseconds")]
    pub time: Duration,
}

fn in_milliseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(time.as_millis())
}

/// Fewest questions in a run: fewer have no percentiles to speak of.
const ROUNDS: usize = 20;

impl SamplePlan {
    /// Times something again and again for as long as a run takes, with a pause before each; microseconds,
    /// in order of size.
    pub(crate) fn sample(
        self,
        pause: Duration,
        mut round: impl FnMut() -> Result<(), MeasureError>,
    ) -> Result<Vec<f64>, MeasureError> {
        let (begin, mut times) = (Instant::now(), Vec::new());
        while times.len() < ROUNDS || begin.elapsed() < self.time {
            std::thread::sleep(pause);
            let since = Instant::now();
            round()?;
            times.push(microseconds(since.elapsed()));
        }
        times.sort_unstable_by(f64::total_cmp);
        Ok(times)
    }
}

impl Default for SamplePlan {
    /// Five runs of 300 milliseconds.
    fn default() -> Self {
        Self { runs: 5, time: Duration::from_millis(300) }
    }
}
