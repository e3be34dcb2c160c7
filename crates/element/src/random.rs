//! Random numbers of elements: a sequence per element, or the one that Click draws from.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// The random sequence of one element (SplitMix64).
#[derive(Debug)]
pub struct RandomSequence(Cell<u64>);

impl RandomSequence {
    /// The sequence of the element with this index, in a router with this seed.
    pub fn new(seed: u64, index: usize) -> RandomSequence {
        RandomSequence(Cell::new(start(seed, index)))
    }

    /// Starts over with another seed.
    pub fn restart(&self, seed: u64, index: usize) {
        self.0.set(start(seed, index));
    }

    /// The next 64 bits.
    #[inline]
    pub fn draw(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn start(seed: u64, index: usize) -> u64 {
    seed ^ (index as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The sequence that all elements of a router share, if a seed asks for Click's numbers.
#[derive(Default)]
pub struct SharedRandom(RefCell<Option<AdditiveRandom>>);

impl SharedRandom {
    /// Makes all elements share the sequence that Click starts from this seed.
    pub fn start(&self, seed: u32) {
        self.0.replace(Some(AdditiveRandom::new(seed)));
    }

    /// Lets every element draw from its own sequence.
    pub fn stop(&self) {
        self.0.take();
    }

    /// Whether all elements share one sequence.
    pub fn is_shared(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// The next number below 2^31: of the shared sequence, or else of the element's own.
    pub fn draw(&self, own: &RandomSequence) -> u32 {
        match self.0.borrow_mut().as_mut() {
            Some(shared) => shared.draw(),
            None => (own.draw() >> 33) as u32,
        }
    }
}

/// Size of the history of [`AdditiveRandom`]: each number is the sum of the numbers 31 and 3 draws before it.
const LAG: usize = 31;
/// The distance of the second summand.
const TAP: usize = 3;
/// Numbers discarded at the start, so that the seed affects all of the state.
const WARM_UP: usize = 310;
/// Upper bound of the numbers, exclusive.
const LIMIT: u32 = 1 << 31;

/// The generator of the C library that Click uses: the same seed gives the same numbers. An additive feedback generator
/// (x^31 + x^3 + 1) of 31-bit numbers.
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
