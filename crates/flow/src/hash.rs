//! Hashes of flow keys that a sender can't predict.

/// The secret that keys the hashes of one table.
///
/// Senders choose the keys. A sender who could predict which keys share a bucket could make every lookup walk one long
/// chain (hash flooding). The seed therefore comes from the environment's random numbers and is never shown. The hash
/// is a keyed multiplication, not a cryptographic function: it resists guessing, but not a sender who knows the seed.
#[derive(Clone, Copy)]
pub struct Seed {
    low: u64,
    high: u64,
}

impl Seed {
    /// Creates a seed from two random words.
    pub fn new(low: u64, high: u64) -> Self {
        // Constants (of the golden ratio and pi) so that an all-zero seed is not weak.
        Self { low: low ^ 0x9e37_79b9_7f4a_7c15, high: high ^ 0x2437_54ab_83f0_0d51 }
    }
}

impl core::fmt::Debug for Seed {
    /// Hides the seed: an attacker who knows it can flood a table.
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("Seed")
    }
}

/// A key of a flow table.
pub trait Key: Copy + Eq {
    /// A 64-bit hash whose bits are all usable.
    fn hash(self, seed: Seed) -> u64;
}

impl Key for u128 {
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        let mixed = multiply(self as u64 ^ seed.low, (self >> 64) as u64 ^ seed.high);
        multiply(mixed ^ seed.low, 0xa076_1d64_78bd_642f)
    }
}

impl Key for u64 {
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        u128::from(self).hash(seed)
    }
}

impl Key for u32 {
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        u128::from(self).hash(seed)
    }
}

impl Key for [u8; 6] {
    /// For Ethernet addresses.
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        let [a, b, c, d, e, f] = self;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f]).hash(seed)
    }
}

impl<const WORDS: usize> Key for [u128; WORDS] {
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        self.iter().fold(seed.high, |hash, word| (word ^ u128::from(hash)).hash(seed))
    }
}

/// The 128-bit product, with its halves folded into one word.
#[inline]
fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    /// The size of the fullest of 1,024 buckets, selected by the low bits, after 8,192 keys.
    fn fullest(key: impl Fn(u64) -> u128) -> usize {
        let mut buckets = [0; 1_024];
        for at in 0..8_192 {
            buckets[key(at).hash(Seed::new(1, 2)) as usize % 1_024] += 1;
        }
        buckets.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn regular_keys_spread() {
        assert!(fullest(u128::from) < 30);
        assert!(fullest(|at| u128::from(at) << 32) < 30);
        assert!(fullest(|at| u128::from(at) << 64) < 30);
        assert!(fullest(|at| u128::from(at) << 112) < 30);
        assert!(fullest(|at| u128::from(at) << 64 | u128::from(!at)) < 30);
    }

    #[test]
    fn seeds_make_hashes_differ() {
        let hashes: BTreeSet<u64> = (0..100).map(|at| 7u32.hash(Seed::new(at, 0))).collect();
        assert_eq!(hashes.len(), 100);
        let hashes: BTreeSet<u64> = (0..100).map(|at| 7u32.hash(Seed::new(0, at))).collect();
        assert_eq!(hashes.len(), 100);
    }
}
