//! The anti-replay window: which sequence numbers of an association were taken (RFC 4303, section 3.4.3).

/// The largest window, in packets: the largest OOSIZE.
pub(super) const MAX_WINDOW: u32 = 255;
/// Words of the ring that stands for the numbers of the window. Its bits are a power of two above [`MAX_WINDOW`].
const WORDS: usize = 4;
const BITS: u32 = 64 * WORDS as u32;

/// Which sequence numbers were taken: a ring of bits up to the highest one.
#[derive(Clone)]
pub(super) struct Window {
    /// Numbers below this one are refused.
    first: u32,
    /// The highest number that was taken; that before `first` at the beginning.
    highest: u32,
    /// Numbers up to the highest that are looked at: at least 1.
    size: u32,
    /// The bit of a number is its remainder. Bits outside the window have no meaning.
    taken: [u64; WORDS],
}

impl Window {
    /// A window before the first packet, whose number is at least `first`.
    pub(super) fn new(first: u32, size: u32) -> Window {
        let first = first.max(1);
        Window { first, highest: first - 1, size: size.clamp(1, MAX_WINDOW), taken: [0; WORDS] }
    }

    /// The highest number that was taken.
    pub(super) fn highest(&self) -> u32 {
        self.highest
    }

    /// Continues with what another window has taken.
    pub(super) fn inherit(&mut self, old: &Window) {
        if old.highest > self.highest {
            (self.highest, self.taken) = (old.highest, old.taken);
            // Numbers that the old window had left behind look untaken only to a larger one.
            self.first = self.first.max(old.first).max(old.highest.saturating_sub(old.size - 1));
        }
    }

    /// Takes a number. Returns whether it is new: not taken before, and not behind the window.
    pub(super) fn take(&mut self, number: u32) -> bool {
        if number < self.first {
            return false;
        }
        if number > self.highest {
            let ahead = number - self.highest;
            if ahead >= BITS {
                self.taken = [0; WORDS];
            } else {
                (self.highest + 1..number).for_each(|skipped| self.mark(skipped, false));
            }
            self.highest = number;
        } else if self.highest - number >= self.size || self.is_taken(number) {
            return false;
        }
        self.mark(number, true);
        true
    }

    fn is_taken(&self, number: u32) -> bool {
        let word = self.taken.get(word(number)).copied().unwrap_or(u64::MAX);
        word & bit(number) != 0
    }

    fn mark(&mut self, number: u32, taken: bool) {
        if let Some(word) = self.taken.get_mut(word(number)) {
            *word = if taken { *word | bit(number) } else { *word & !bit(number) };
        }
    }
}

fn word(number: u32) -> usize {
    (number % BITS / 64) as usize
}

fn bit(number: u32) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn numbers_are_taken_once_and_not_behind_the_window() {
        let mut window = Window::new(300, 64);
        for (number, is_new) in [
            (0, false),
            (299, false),
            (300, true),
            (300, false),
            (302, true),
            (301, true),
            (301, false),
            (365, true),
            (301, false),
            (303, true),
            (302, false),
            (u32::MAX, true),
            (u32::MAX, false),
            (365, false),
            (u32::MAX - 63, true),
            (u32::MAX - 64, false),
        ] {
            assert_eq!(window.take(number), is_new, "{number}");
        }
        assert_eq!(window.highest(), u32::MAX);
    }

    /// A set of all numbers that were taken decides the same, for any order of numbers and any size.
    #[test]
    fn a_set_of_numbers_decides_the_same() {
        let mut random = random::Random::new(7);
        for size in [0, 1, 2, 31, 32, 64, 200, 255] {
            for span in [3, 100, 1_000, 1 << 20] {
                let first = random.below(50);
                let (mut window, mut taken) = (Window::new(first, size), BTreeSet::new());
                let mut highest = first.max(1) - 1;
                for _ in 0..2_000 {
                    let number = (highest + random.below(20)).saturating_sub(random.below(span) % 300)
                        + random.below(span) * u32::from(random.below(10) == 0);
                    let is_new = number >= first.max(1)
                        && (number > highest || highest - number < size.max(1))
                        && taken.insert(number);
                    assert_eq!(window.take(number), is_new, "{number} with {size} up to {highest}");
                    highest = if is_new { highest.max(number) } else { highest };
                }
            }
        }
    }

    #[test]
    fn a_window_that_takes_over_takes_no_number_again() {
        let mut old = Window::new(1, 32);
        assert!([1, 2, 100, 90].map(|number| old.take(number)).iter().all(|taken| *taken));
        for size in [16, 32, 255] {
            let mut new = Window::new(1, size);
            new.inherit(&old);
            let taken: BTreeSet<u32> = (0..=101).filter(|number| new.take(*number)).collect();
            let least = 101 - size.min(32);
            let expected: BTreeSet<u32> =
                (least..=101).filter(|number| ![90, 100].contains(number)).collect();
            assert!(taken.contains(&101) && taken.is_subset(&expected), "{size}: {taken:?}");
            assert!(!(0..=101).any(|number| new.take(number)));
        }
        let mut raised = Window::new(200, 32);
        raised.inherit(&old);
        assert!(!raised.take(199) && raised.take(200));
    }
}
