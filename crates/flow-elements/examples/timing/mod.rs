//! What the measurements of single tables have in common.

use std::hint::black_box;
use std::time::Instant;

/// Runs of which the fastest counts.
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

/// Marsaglia's xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 32) as usize % limit
    }
}
