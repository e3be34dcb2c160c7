//! The extent of a measurement.

use crate::error::MeasureError;
use crate::statistics::microseconds;
use serde::{Serialize, Serializer};
use std::time::{Duration, Instant};

/// The number and duration of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SamplePlan {
    /// Number of runs; the figure is their median.
    pub runs: u32,
    /// Duration of a run, if it does not end by itself.
    #[serde(rename = "time_ms", serialize_with = "in_milliseconds")]
    pub time: Duration,
}

fn in_milliseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(time.as_millis())
}

/// Minimum number of samples per run: percentiles of fewer are meaningless.
const MIN_SAMPLES: usize = 20;

impl SamplePlan {
    /// Times an action repeatedly for the duration of a run, with a pause before each; returns sorted microseconds.
    pub(crate) fn sample(
        self,
        pause: Duration,
        mut round: impl FnMut() -> Result<(), MeasureError>,
    ) -> Result<Vec<f64>, MeasureError> {
        let (begin, mut times) = (Instant::now(), Vec::new());
        while times.len() < MIN_SAMPLES || begin.elapsed() < self.time {
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
