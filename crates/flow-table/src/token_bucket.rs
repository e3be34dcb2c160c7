//! A token bucket that several threads share.
//!
//! The bucket is one number, the time at which it would be full again (the virtual scheduling of ITU-T I.371). A thread leases some
//! nanoseconds of it, which are worth as many tokens as the rate says, and pays with these. It leases what it needs at once, and
//! then as much as it has used of this moment, so that many frames cost few leases.
//!
//! No nanosecond is leased twice, and a lease ends when the bucket would be full without it. So all threads together never get more
//! tokens, in any time, than one bucket grants; and what one of them leased and did not use is not lost for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// When a bucket is full again. It has a cache line of its own, because threads write it.
#[derive(Debug, Default)]
#[repr(align(64))]
struct FullTime(AtomicU64);

/// The end of a token bucket that one thread has. Tokens are counted in units of 1 / SECOND, so that no fraction is lost.
#[derive(Debug, Default)]
pub struct TokenBucket {
    rate: u64,
    /// The nanoseconds in which an empty bucket becomes full.
    depth: u64,
    /// None without a rate.
    full: Option<Arc<FullTime>>,
    /// What was leased last, and the rest of what was leased before.
    lease: Lease,
    rest: Lease,
    /// The time of the last call, and the units that were paid then.
    then: u64,
    paid: u128,
    /// What could not be leased then; 0: nothing.
    refused: u128,
}

/// Units that were leased and not used: those of the nanoseconds before `end`.
#[derive(Clone, Copy, Debug, Default)]
struct Lease {
    units: u128,
    end: u64,
}

impl Lease {
    /// Forgets what has ended.
    #[inline]
    fn expire(&mut self, rate: u64, now: u64) {
        if self.units != 0 {
            self.units = self.units.min(u128::from(rate) * u128::from(self.end.saturating_sub(now)));
        }
    }
}

impl Clone for TokenBucket {
    /// Another end of the same bucket.
    fn clone(&self) -> Self {
        Self { rate: self.rate, depth: self.depth, full: self.full.clone(), ..Self::default() }
    }
}

impl TokenBucket {
    /// A full bucket with a depth of `burst` nanoseconds at its rate, but at least `least` tokens. Without a rate, it always has
    /// enough.
    pub fn new(rate: u64, burst: u64, least: u64) -> Self {
        if rate == 0 {
            return Self::default();
        }
        let depth = (u128::from(SECOND) * u128::from(least)).div_ceil(rate.into()).max(burst.into());
        let depth = u64::try_from(depth).unwrap_or(u64::MAX);
        Self { rate, depth, full: Some(Arc::default()), ..Self::default() }
    }

    /// A full bucket that holds the tokens of a second.
    pub fn per_second(rate: u64) -> Self {
        Self::new(rate, SECOND, 1)
    }

    /// Whether there is a limit.
    #[inline(always)]
    pub fn is_limited(&self) -> bool {
        self.rate != 0
    }

    /// Whether there are so many tokens, which [`take`](Self::take) may take then.
    #[inline]
    pub fn has(&mut self, tokens: u64, now: u64) -> bool {
        if self.rate == 0 {
            return true;
        }
        if now != self.then {
            (self.then, self.paid, self.refused) = (now, 0, 0);
            self.lease.expire(self.rate, now);
            self.rest.expire(self.rate, now);
        }
        let needed = u128::from(tokens) * u128::from(SECOND);
        let there = self.lease.units + self.rest.units;
        there >= needed || self.lease(needed - there, now)
    }

    /// Takes tokens.
    #[inline]
    pub fn take(&mut self, tokens: u64) {
        if self.rate != 0 {
            let units = u128::from(tokens) * u128::from(SECOND);
            self.paid += units;
            let of_rest = units.min(self.rest.units);
            self.rest.units -= of_rest;
            self.lease.units = self.lease.units.saturating_sub(units - of_rest);
        }
    }

    /// Takes tokens if there are so many. Leases no more than these, so that nothing has to be given back.
    #[inline]
    pub fn take_if(&mut self, tokens: u64, now: u64) -> bool {
        self.paid = 0;
        let has_them = self.has(tokens, now);
        if has_them {
            self.take(tokens);
        }
        has_them
    }

    /// Gives back what was leased and is not used, unless another thread has leased since.
    #[inline]
    pub fn give_back(&mut self) {
        if self.lease.units >= u128::from(self.rate) && self.rate != 0 {
            self.return_lease();
        }
    }

    #[inline(never)]
    fn return_lease(&mut self) {
        let Some(full) = &self.full else { return };
        let time = u64::try_from(self.lease.units / u128::from(self.rate)).unwrap_or(u64::MAX);
        let end = self.lease.end.saturating_sub(time);
        if full.0.compare_exchange(self.lease.end, end, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.lease = Lease {
                units: self.lease.units - u128::from(self.rate) * u128::from(self.lease.end - end),
                end,
            };
        }
    }

    /// Leases at least so many units. What a bucket did not have at this moment it does not have later in it.
    #[inline(never)]
    fn lease(&mut self, needed: u128, now: u64) -> bool {
        if self.refused != 0 && needed >= self.refused {
            return false;
        }
        let Some(full) = &self.full else { return true };
        let time = |units: u128| u64::try_from(units.div_ceil(self.rate.into())).unwrap_or(u64::MAX);
        let [least, most] = [needed, needed.max(self.paid)].map(time);
        let limit = now.saturating_add(self.depth);
        // The number is all that threads share, so no other memory has to be ordered.
        let mut at = full.0.load(Ordering::Relaxed);
        let (taken, end) = loop {
            let start = at.max(now);
            let room = limit.saturating_sub(start);
            if room < least {
                self.refused = needed;
                return false;
            }
            let taken = most.min(room);
            match full.0.compare_exchange_weak(at, start + taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break (taken, start + taken),
                Err(other) => at = other,
            }
        };
        // Both ends count from the earlier one: so the rest may end early, but never late.
        let before = if self.rest.units == 0 { self.lease.end } else { self.rest.end };
        self.rest = Lease { units: self.rest.units + self.lease.units, end: before };
        self.lease = Lease { units: u128::from(taken) * u128::from(self.rate), end };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Random;

    /// What three threads get of a bucket, each of which wants tokens at random times, reads its clock a little earlier than others, and
    /// uses or gives back at random what it leased: in any time no more than a bucket grants, and as much as one thread gets of it.
    #[test]
    fn threads_get_together_what_one_bucket_grants() {
        for (rate, burst, wanted) in
            [(1_000_000, 1_000_000, 40), (8_000_000, 65_536_000, 12_000), (7, 0, 1), (3_000, 0, 3)]
        {
            for shares in [[1, 1, 1], [100, 1, 0], [1, 0, 0], [20, 20, 1]] {
                let first = TokenBucket::new(rate, burst, u64::from(wanted));
                let depth = first.depth;
                let mut alone = TokenBucket::new(rate, burst, u64::from(wanted));
                let mut ends = [first.clone(), first.clone(), first];
                let mut random = Random::new(rate);
                // Four times as much is wanted as is granted.
                let pause = (SECOND * u64::from(wanted) / rate / 4) as u32;
                let (mut now, mut grants, mut sums) = (0u64, Vec::new(), [0, 0]);
                for _ in 0..20_000 {
                    now += u64::from(random.below(pause * 2));
                    let mut at = random.below(shares.iter().sum());
                    let chosen = shares
                        .iter()
                        .position(|share| at.checked_sub(*share).map(|rest| at = rest).is_none());
                    let end = &mut ends[chosen.unwrap()];
                    let time = now.saturating_sub(u64::from(random.below(1000)));
                    for _ in 0..random.below(3) {
                        let tokens = 1 + u64::from(random.below(wanted));
                        let is_used = random.below(8) > 0;
                        if end.has(tokens, time) && is_used {
                            end.take(tokens);
                            grants.push((time, tokens));
                            sums[0] += tokens;
                        }
                        if alone.has(tokens, now) && is_used {
                            alone.take(tokens);
                            sums[1] += tokens;
                        }
                    }
                    if random.below(4) > 0 {
                        end.give_back();
                    }
                }
                grants.sort_unstable();
                let full = u128::from(depth) * u128::from(rate);
                let (mut level, mut then) = (full, 0);
                for (at, tokens) in grants {
                    level = (level + u128::from(at - then) * u128::from(rate)).min(full);
                    let units = u128::from(tokens) * u128::from(SECOND);
                    assert!(level >= units, "{rate} {shares:?}: more than granted at {at}");
                    (level, then) = (level - units, at);
                }
                let most = (full + u128::from(now) * u128::from(rate)) / u128::from(SECOND);
                let [granted, alone] = sums;
                assert!(granted * 100 >= alone * 97, "{rate} {shares:?}: {granted} of {alone}");
                assert!(u128::from(alone) * 10 >= most * 7, "{rate} {shares:?}: {alone} of {most}");
            }
        }
    }

    /// Four threads empty a bucket at one moment: they get exactly what it holds.
    #[test]
    fn real_threads_share_a_bucket() {
        let bucket = TokenBucket::new(1_000_000_000, 1_000_000, 1);
        let all: Vec<_> = (0..4)
            .map(|number: u64| {
                let mut end = bucket.clone();
                std::thread::spawn(move || {
                    let mut got = 0u64;
                    for round in 0u64.. {
                        let tokens = 1 + (number + round) % 3;
                        match end.has(tokens, 5_000) {
                            true => end.take(tokens),
                            false if end.has(1, 5_000) => {
                                end.take(1);
                                got += 1;
                                continue;
                            }
                            false => break,
                        }
                        got += tokens;
                        if round % 64 == 0 {
                            end.give_back();
                        }
                    }
                    end.give_back();
                    (got, (end.lease.units + end.rest.units) / u128::from(SECOND))
                })
            })
            .collect();
        let found = all.into_iter().map(|thread| thread.join().unwrap());
        let (got, kept) = found.fold((0, 0), |sum, found| (sum.0 + found.0, sum.1 + found.1));
        let mut last = bucket.clone();
        let mut left = 0;
        while last.has(1, 5_000) {
            last.take(1);
            left += 1;
        }
        assert_eq!(u128::from(got + left) + kept, 1_000_000, "{got} {left} {kept}");
    }
}
