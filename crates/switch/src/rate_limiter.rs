//! A limit on what a port may send, with two token buckets.

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
    /// Bucket depth in nanoseconds at the full rate, at least a millisecond: how long a port may exceed its rate after
    /// it was idle.
    pub burst_ns: u64,
}

/// Two token buckets, one of frames and one of bits. A frame passes if both have enough tokens.
#[derive(Clone, Copy, Debug)]
pub struct RateLimiter {
    frames: Bucket,
    bits: Bucket,
}

impl RateLimiter {
    /// A limiter with full buckets.
    pub fn new(settings: RateLimit, now: u64) -> Self {
        let burst = settings.burst_ns.max(SECOND / 1000);
        Self {
            frames: Bucket::new(settings.frames, burst, 1, now),
            bits: Bucket::new(settings.bits, burst, LONGEST, now),
        }
    }

    /// Whether a frame of `bytes` bytes may pass now (nanoseconds of any monotonic clock). Takes its tokens if so.
    #[inline(always)]
    pub fn allows(&mut self, bytes: usize, now: u64) -> bool {
        self.frames.rate | self.bits.rate == 0 || self.pays(bytes, now)
    }

    fn pays(&mut self, bytes: usize, now: u64) -> bool {
        let bits = bytes as u64 * 8;
        let allowed = self.frames.has(1, now) && self.bits.has(bits, now);
        if allowed {
            self.frames.take(1);
            self.bits.take(bits);
        }
        allowed
    }
}

/// A token bucket. Tokens are kept in units of 1 / SECOND, so that no fraction is lost.
#[derive(Clone, Copy, Debug)]
struct Bucket {
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

    #[inline]
    fn has(&mut self, tokens: u64, now: u64) -> bool {
        if self.rate == 0 {
            return true;
        }
        let gained = u128::from(now.saturating_sub(self.then)) * u128::from(self.rate);
        self.then = self.then.max(now);
        self.level = (self.level + gained).min(self.most);
        self.level >= u128::from(tokens) * u128::from(SECOND)
    }

    #[inline]
    fn take(&mut self, tokens: u64) {
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
        while limiter.allows(bytes, 0) {}
        (0..1_000_000u64).map(|at| u64::from(limiter.allows(bytes, at * 1000))).sum()
    }

    #[test]
    fn rates_are_kept_exactly() {
        for (frames, bits, bytes, expected) in
            [(1000, 0, 64, 1000), (0, 8_000_000, 1000, 1000), (500, 8_000_000, 1000, 500), (7, 0, 64, 7)]
        {
            let count = passed(RateLimit { frames, bits, burst_ns: 0 }, bytes);
            assert!(count.abs_diff(expected) <= 1, "{frames} {bits}: {count}");
        }
    }

    #[test]
    fn unlimited_rates_and_backward_clocks_are_handled() {
        let mut free = RateLimiter::new(RateLimit::default(), 5);
        assert!((0..10_000).all(|_| free.allows(1500, 5)));
        let mut limiter =
            RateLimiter::new(RateLimit { frames: u64::MAX, bits: u64::MAX, burst_ns: u64::MAX }, u64::MAX);
        assert!(limiter.allows(usize::MAX >> 3, 0));
    }
}
