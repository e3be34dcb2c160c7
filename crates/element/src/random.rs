//! The random number generator of the C library that Click uses: the same seed gives the same numbers.

use alloc::vec::Vec;

/// Size of the history: each number is the sum of the numbers 31 and 3 draws before it.
const LAG: usize = 31;
/// The distance of the second summand.
const TAP: usize = 3;
/// Numbers discarded at the start, so that the seed affects all of the state.
const WARM_UP: usize = 310;
/// Upper bound of the numbers, exclusive.
const LIMIT: u32 = 1 << 31;

/// An additive feedback generator (x^31 + x^3 + 1) of 31-bit numbers.
pub struct AdditiveRandom {
    state: Vec<u32>,
    at: usize,
}

impl AdditiveRandom {
    /// Starts from a seed; 0 counts as 1.
    pub fn new(seed: u32) -> AdditiveRandom {
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
        let mut random = AdditiveRandom { state, at: TAP };
        for _ in 0..WARM_UP {
            random.draw();
        }
        random
    }

    /// The next number, below 2^31.
    pub fn draw(&mut self) -> u32 {
        let tap = self.state.get((self.at + LAG - TAP) % LAG).copied().unwrap_or(0);
        let Some(oldest) = self.state.get_mut(self.at) else { return 0 };
        *oldest = oldest.wrapping_add(tap);
        let sum = *oldest;
        self.at = (self.at + 1) % LAG;
        sum >> 1
    }
}

/// A uniformly distributed number from `low` to `high`, made from numbers below 2^31. It draws as many as Click does.
pub(crate) fn between(low: u32, high: u32, mut draw: impl FnMut() -> u32) -> u32 {
    let Some(span) = high.checked_sub(low) else { return low };
    if span == 1 {
        return low + (draw() >> 14 & 1);
    }
    if span >= LIMIT {
        loop {
            let first = draw() << 17;
            let number = first ^ draw() >> 14;
            if number <= span {
                return low + number;
            }
        }
    }
    let share = LIMIT / (span + 1);
    loop {
        let number = draw();
        if number < share * (span + 1) {
            return low + number / share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_known_numbers() {
        let mut random = AdditiveRandom::new(1);
        assert_eq!([0; 3].map(|_| random.draw()), [1_804_289_383, 846_930_886, 1_681_692_777]);
        assert_eq!(AdditiveRandom::new(0).draw(), 1_804_289_383);
    }

    #[test]
    fn spans_are_drawn_from_as_click_does() {
        let mut random = AdditiveRandom::new(1);
        let mut draw = |low, high| between(low, high, || random.draw());
        // Three cases: a scaled number (1,804,289,383 of 2^31), a span of two from one bit, a 32-bit number from two
        // draws.
        assert_eq!(draw(0, 64_510), 54_202);
        assert_eq!(draw(5, 6), 5);
        assert_eq!(draw(7, 3), 7);
        assert_eq!(draw(9, 9), 9);
        assert_eq!(draw(0, u32::MAX), 1_714_636_915 << 17 ^ 1_957_747_793 >> 14);
    }
}
