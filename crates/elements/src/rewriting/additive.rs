//! The random numbers of the C library that Click is built with, where results depend on them.

use alloc::vec::Vec;

/// Numbers that are kept: each new one is the sum of the oldest and the one three places younger than it is.
const LAG: usize = 31;
/// The distance of the other summand.
const TAP: usize = 3;
/// Numbers that are made and not used, so that the seed has spread.
const WARM_UP: usize = 310;

/// An additive feedback generator (x^31 + x^3 + 1) of 31-bit numbers.
pub(crate) struct Additive {
    state: Vec<u32>,
    at: usize,
}

impl Additive {
    /// Begins with a seed; 0 counts as 1.
    pub(crate) fn new(seed: u32) -> Additive {
        let mut word = if seed == 0 { 1 } else { seed as i32 };
        let mut state = Vec::with_capacity(LAG);
        for _ in 0..LAG {
            state.push(word as u32);
            // 16807 times the word, modulo 2^31 - 1, by Schrage's method.
            word = 16_807i32.wrapping_mul(word % 127_773).wrapping_sub(2_836i32.wrapping_mul(word / 127_773));
            if word < 0 {
                word = word.wrapping_add(i32::MAX);
            }
        }
        let mut random = Additive { state, at: TAP };
        for _ in 0..WARM_UP {
            random.next();
        }
        random
    }

    /// The next number, below 2^31.
    pub(crate) fn next(&mut self) -> u32 {
        let tap = self.state.get((self.at + LAG - TAP) % LAG).copied().unwrap_or(0);
        let Some(oldest) = self.state.get_mut(self.at) else { return 0 };
        *oldest = oldest.wrapping_add(tap);
        let sum = *oldest;
        self.at = (self.at + 1) % LAG;
        sum >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_known_numbers() {
        let mut random = Additive::new(1);
        assert_eq!([0; 3].map(|_| random.next()), [1_804_289_383, 846_930_886, 1_681_692_777]);
        assert_eq!(Additive::new(0).next(), 1_804_289_383);
    }
}
