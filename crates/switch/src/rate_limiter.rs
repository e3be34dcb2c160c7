//! Limits on what a port may send, with token buckets.

use reason::Reason;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

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
/// tokens.
#[derive(Clone, Copy, Debug)]
pub struct RateLimiter {
    frames: Bucket,
    bits: Bucket,
    broadcasts: Bucket,
}

impl RateLimiter {
    /// A limiter with full buckets.
    pub fn new(settings: RateLimit, now: u64) -> Self {
        let burst = settings.burst_ns.max(SECOND / 1000);
        Self {
            frames: Bucket::new(settings.frames, burst, 1, now),
            bits: Bucket::new(settings.bits, burst, LONGEST, now),
            broadcasts: Bucket::per_second(settings.broadcasts, now),
        }
    }

    /// Lets a frame of `bytes` bytes, to a group address or not, pass now (nanoseconds of any monotonic clock), and takes its
    /// tokens.
    ///
    /// # Errors
    ///
    /// The reason of the limit that it exceeds.
    #[inline(always)]
    pub fn admit(&mut self, bytes: usize, is_group: bool, now: u64) -> Result<(), Reason> {
        match self.frames.rate | self.bits.rate | self.broadcasts.rate {
            0 => Ok(()),
            _ => self.pay(bytes, is_group, now),
        }
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
}

/// A token bucket. Tokens are kept in units of 1 / SECOND, so that no fraction is lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    rate: u64,
    most: u128,
    level: u128,
    then: u64,
}

impl Bucket {
    /// A full bucket with a capacity of `burst` nanoseconds at its rate, but at least `least` tokens.
    fn new(rate: u64, burst: u64, least: u64, now: u64) -> Self {
        let most = (u128::from(rate) * u128::from(burst)).max(u128::from(SECOND) * u128::from(least));
        Self { rate, most, level: most, then: now }
    }

    /// A full bucket that holds the tokens of a second; without a rate, it always has enough.
    pub(crate) fn per_second(rate: u64, now: u64) -> Self {
        Self::new(rate, SECOND, 1, now)
    }

    #[inline]
    pub(crate) fn has(&mut self, tokens: u64, now: u64) -> bool {
        if self.rate == 0 {
            return true;
        }
        let gained = u128::from(now.saturating_sub(self.then)) * u128::from(self.rate);
        self.then = self.then.max(now);
        self.level = (self.level + gained).min(self.most);
        self.level >= u128::from(tokens) * u128::from(SECOND)
    }

    #[inline]
    pub(crate) fn take(&mut self, tokens: u64) {
        if self.rate != 0 {
            self.level = self.level.saturating_sub(u128::from(tokens) * u128::from(SECOND));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of `bytes` bytes that pass per second after the burst is used up, with a frame offered every microsecond.
    fn passed(settings: RateLimit, bytes: usize) -> u64 {
        let mut limiter = RateLimiter::new(settings, 0);
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
        let mut limiter = RateLimiter::new(settings, 0);
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
        let mut free = RateLimiter::new(RateLimit::default(), 5);
        assert!((0..10_000).all(|_| free.admit(1500, true, 5).is_ok()));
        let most = RateLimit { frames: u64::MAX, bits: u64::MAX, broadcasts: u64::MAX, burst_ns: u64::MAX };
        let mut limiter = RateLimiter::new(most, u64::MAX);
        assert_eq!(limiter.admit(usize::MAX >> 3, true, 0), Ok(()));
    }
}
