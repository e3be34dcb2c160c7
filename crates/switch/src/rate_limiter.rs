//! Limits on what a port may send, with token buckets.

use flow_table::TokenBucket;
use reason::Reason;

/// Bits of the longest frame. A bucket with less capacity would never pass it.
const LONGEST: u64 = 8 * 65_536;

/// Limits on what a port may send; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// Frames per second.
    pub frames: u64,
    /// Bits per second, counted from the Ethernet header.
    pub bits: u64,
    /// Frames to group addresses per second: broadcasts and multicasts. As many as in a second may come at once.
    pub broadcasts: u64,
    /// Bucket depth of frames and bits in nanoseconds at the full rate, at least a millisecond: how long a port may exceed its rate after
    /// it was idle.
    pub burst_ns: u64,
}

/// Token buckets of frames, of bits, and of frames to group addresses. A frame passes if all that it concerns have enough
/// tokens. A clone has the same buckets, for another thread.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    frames: TokenBucket,
    bits: TokenBucket,
    broadcasts: TokenBucket,
}

impl RateLimiter {
    /// A limiter with full buckets.
    pub fn new(settings: RateLimit) -> Self {
        let burst = settings.burst_ns.max(1_000_000);
        Self {
            frames: TokenBucket::new(settings.frames, burst, 1),
            bits: TokenBucket::new(settings.bits, burst, LONGEST),
            broadcasts: TokenBucket::per_second(settings.broadcasts),
        }
    }

    fn is_limited(&self) -> bool {
        self.frames.is_limited() | self.bits.is_limited() | self.broadcasts.is_limited()
    }

    /// Lets a frame of `bytes` bytes, to a group address or not, pass now (nanoseconds of any monotonic clock), and takes its
    /// tokens.
    ///
    /// # Errors
    ///
    /// The reason of the limit that it exceeds.
    #[inline(always)]
    pub fn admit(&mut self, bytes: usize, is_group: bool, now: u64) -> Result<(), Reason> {
        if self.is_limited() { self.pay(bytes, is_group, now) } else { Ok(()) }
    }

    fn pay(&mut self, bytes: usize, is_group: bool, now: u64) -> Result<(), Reason> {
        let bits = bytes as u64 * 8;
        if is_group && !self.broadcasts.has(1, now) {
            return Err(Reason::BROADCASTS_CAPPED);
        }
        if !(self.frames.has(1, now) && self.bits.has(bits, now)) {
            return Err(Reason::CAPPED);
        }
        self.frames.take(1);
        self.bits.take(bits);
        self.broadcasts.take(u64::from(is_group));
        Ok(())
    }

    /// Gives back what was leased for a batch and not used, so that other threads have it.
    #[inline(always)]
    pub fn end_batch(&mut self) {
        if self.is_limited() {
            [&mut self.frames, &mut self.bits, &mut self.broadcasts]
                .into_iter()
                .for_each(TokenBucket::give_back);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of `bytes` bytes that pass per second after the burst is used up, with a frame offered every microsecond.
    fn passed(settings: RateLimit, bytes: usize) -> u64 {
        let mut limiter = RateLimiter::new(settings);
        while limiter.admit(bytes, false, 0).is_ok() {}
        let admitted = |at: u64| limiter.admit(bytes, false, at * 1000).is_ok();
        (0..1_000_000u64).map(admitted).map(u64::from).sum()
    }

    #[test]
    fn rates_are_kept_exactly() {
        for (frames, bits, bytes, expected) in
            [(1000, 0, 64, 1000), (0, 8_000_000, 1000, 1000), (500, 8_000_000, 1000, 500), (7, 0, 64, 7)]
        {
            let count = passed(RateLimit { frames, bits, ..RateLimit::default() }, bytes);
            assert!(count.abs_diff(expected) <= 1, "{frames} {bits}: {count}");
        }
    }

    /// Ten broadcasts a second of 20 that are offered, among other frames, which cost none; and all together at most 1000.
    #[test]
    fn broadcasts_have_a_rate_of_their_own() {
        let settings = RateLimit { frames: 1000, broadcasts: 10, ..RateLimit::default() };
        let mut limiter = RateLimiter::new(settings);
        let (mut capped, mut broadcasts_capped, mut passed) = (0, 0, [0, 0]);
        for millisecond in 0..10_000u64 {
            for is_group in [millisecond % 50 == 0, false] {
                match limiter.admit(60, is_group, millisecond * 1_000_000) {
                    Ok(()) => passed[usize::from(is_group)] += 1,
                    Err(Reason::CAPPED) => capped += 1,
                    Err(Reason::BROADCASTS_CAPPED) => broadcasts_capped += 1,
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
        // The bucket was full: ten more than the rate. In the last 50 ms there was half a token.
        assert_eq!(passed[1] + broadcasts_capped, 200);
        assert!((109..=110).contains(&passed[1]), "{passed:?}");
        assert_eq!(passed[0] + passed[1], 10_000);
        assert_eq!(capped, 20_000 - 10_000 - broadcasts_capped);
    }

    #[test]
    fn unlimited_rates_and_backward_clocks_are_handled() {
        let mut free = RateLimiter::new(RateLimit::default());
        assert!((0..10_000).all(|_| free.admit(1500, true, 5).is_ok()));
        let most = RateLimit { frames: u64::MAX, bits: u64::MAX, broadcasts: u64::MAX, burst_ns: u64::MAX };
        let mut limiter = RateLimiter::new(most);
        assert_eq!(limiter.admit(usize::MAX >> 3, true, 0), Ok(()));
    }
}
