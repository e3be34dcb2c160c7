//! Measurement of single tables.

use std::hint::black_box;
use std::time::Instant;

/// Runs, of which the fastest counts.
const RUNS: usize = 7;

/// Nanoseconds per operation of the fastest run.
pub(crate) fn fastest<R>(operations: usize, mut run: impl FnMut() -> R) -> f64 {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min) * 1e9 / operations as f64
}
