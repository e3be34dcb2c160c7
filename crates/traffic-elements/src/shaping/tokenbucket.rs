//! Token buckets with Click's arithmetic: refilled every millisecond; a full bucket is the maximum 32-bit number.

use element::prelude::*;

/// Refills per second.
const FREQUENCY: u64 = 1_000;
/// A full bucket in fractions of a token.
const FULL: u64 = u32::MAX as u64;

/// Token bucket that fills at a rate up to its capacity.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// Fractions per token.
    scale: u64,
    /// Fractions added per tick; zero for a rate of zero.
    refill: u64,
    /// Fractions in the bucket.
    level: u64,
    /// Tick of the last refill. `None` before the first use, which fills the bucket.
    tick: Option<i64>,
}

impl TokenBucket {
    /// For `rate` tokens a second and at most `capacity` tokens. The bucket is full at its first use.
    pub fn new(rate: u32, capacity: u32) -> TokenBucket {
        let mut bucket = TokenBucket { scale: 1, refill: 0, level: 0, tick: None };
        bucket.assign(rate, capacity);
        bucket
    }

    /// Changes rate and capacity; the filled fraction stays.
    pub fn assign(&mut self, rate: u32, capacity: u32) {
        let (rate, mut capacity) = if capacity == 0 { (0, FULL) } else { (u64::from(rate), capacity.into()) };
        if rate > 0 {
            // What comes in a tick fits.
            capacity = capacity.max((rate - 1) / FREQUENCY + 1);
        }
        self.scale = FULL / capacity;
        self.refill = if rate == 0 { 0 } else { (rate * self.scale / FREQUENCY).max(1) };
    }

    /// Changes rate and capacity; the number of tokens stays.
    pub fn assign_adjust(&mut self, rate: u32, capacity: u32) {
        let scale = self.scale;
        self.assign(rate, capacity);
        self.level = (u128::from(self.level) * u128::from(self.scale) / u128::from(scale)) as u64;
        self.level = self.level.min(FULL);
    }

    /// Takes over the filled fraction of `other`.
    pub fn take_level(&mut self, other: &TokenBucket) {
        (self.level, self.tick) = (other.level, other.tick);
    }

    /// The rate, with the precision at which it is stored.
    pub fn rate(&self) -> u32 {
        u32::try_from((self.refill * FREQUENCY + self.refill / 2) / self.scale).unwrap_or(u32::MAX)
    }

    /// Sets the number of tokens.
    pub fn set(&mut self, tokens: u32) {
        self.level = (u64::from(tokens) * self.scale).min(FULL);
    }

    /// Adds the tokens due by steady time `now`.
    #[inline]
    pub fn refill(&mut self, now: Timestamp) {
        let tick = now.millis();
        let ticks = match self.tick {
            Some(last) if tick <= last => 0,
            Some(last) => tick.saturating_sub(last) as u64,
            None => u64::MAX,
        };
        self.tick = Some(tick);
        if ticks > 0 {
            let idle = self.refill == 0 && ticks < FULL;
            let more = if idle { 0 } else { ticks.saturating_mul(self.refill.max(1)) };
            self.level = self.level.saturating_add(more).min(FULL);
        }
    }

    /// Whether the bucket holds at least `tokens`.
    #[inline]
    pub fn contains(&self, tokens: u32) -> bool {
        u64::from(tokens) * self.scale <= self.level
    }

    /// Removes `tokens`, or all if there are fewer.
    #[inline]
    pub fn remove(&mut self, tokens: u32) {
        self.level = self.level.saturating_sub(u64::from(tokens) * self.scale);
    }

    /// Removes `tokens` if the bucket holds that many; returns whether it did.
    #[inline]
    pub fn remove_if(&mut self, tokens: u32) -> bool {
        let there = self.contains(tokens);
        if there {
            self.remove(tokens);
        }
        there
    }

    /// Whole tokens in the bucket.
    pub fn tokens(&self) -> u32 {
        (self.level / self.scale) as u32
    }

    /// Time from the last refill until the bucket holds `tokens`.
    pub fn time_until(&self, tokens: u32) -> Timestamp {
        let wanted = u64::from(tokens) * self.scale;
        let ticks = if wanted > FULL || (self.refill == 0 && wanted > self.level) {
            FULL
        } else if wanted <= self.level {
            0
        } else {
            (wanted - self.level).div_ceil(self.refill)
        };
        Timestamp::from_millis(ticks as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_at_its_rate_up_to_its_capacity() {
        let mut bucket = TokenBucket::new(1_000, 10);
        bucket.refill(Timestamp::from_millis(5));
        assert_eq!(bucket.tokens(), 10);
        assert_eq!((0..20).filter(|_| bucket.remove_if(1)).count(), 10);
        assert_eq!(bucket.time_until(3), Timestamp::from_millis(3));
        bucket.refill(Timestamp::from_millis(8));
        assert!(bucket.contains(3) && !bucket.contains(4));
        bucket.refill(Timestamp::from_millis(1));
        assert_eq!(bucket.tokens(), 3);
    }

    #[test]
    fn rates_round_trip() {
        for rate in [0, 1, 10, 999, 1_000, 123_456, u32::MAX] {
            assert!(TokenBucket::new(rate, rate / 50 + 1).rate().abs_diff(rate) <= rate / 1_000);
        }
        assert_eq!(TokenBucket::new(5, 0).rate(), 0);
    }

    #[test]
    fn an_idle_bucket_never_fills_again() {
        let mut bucket = TokenBucket::new(0, 5);
        bucket.refill(Timestamp::from_millis(1));
        bucket.remove(5);
        bucket.refill(Timestamp::from_millis(1_000_000));
        assert_eq!(bucket.tokens(), 0);
    }
}
