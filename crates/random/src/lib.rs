//! Seeded pseudo-random numbers for traffic, benchmarks and tests.
//!
//! Invariant: a seed gives the same sequence on every machine and in every version. Tests compare captures that are
//! generated from a seed byte by byte.
//!
//! Absent: unpredictable numbers. Seeds of flow tables and of running elements come from the environment.
#![no_std]
#![forbid(unsafe_code)]

/// A SplitMix64 sequence (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "the sequence has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// A number below `limit`, which is at least 1.
    #[inline]
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }

    /// A number below `limit`; a limit of zero counts as 1.
    #[inline]
    pub fn below_u64(&mut self, limit: u64) -> u64 {
        // The bias of the remainder is far below what these uses could notice.
        self.next() % limit.max(1)
    }

    /// A number between two bounds, both included.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below_u64(high.saturating_sub(low).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567 as the authors' reference program prints them.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| random.next()), expected);
    }

    #[test]
    fn bounds_are_kept() {
        let mut random = Random::new(1);
        for _ in 0..1_000 {
            assert!(random.below(7) < 7 && random.below_u64(7) < 7);
            assert!((3..=5).contains(&random.between(3, 5)));
        }
        assert_eq!((random.below(1), random.below_u64(0), random.between(4, 4)), (0, 0, 4));
    }
}
