//! Numbers that look random and are the same everywhere.

/// A SplitMix64 sequence (Steele, Lea, Flood, 2014).
pub(super) struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number below a bound, which must not be zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is far below what any use of it can tell.
        self.next() % bound.max(1)
    }

    /// The next number between two bounds, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// 64 random bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }
}
