//! The memory functions that compiled code calls and that this target's library lacks.
//!
//! `no_builtins` keeps the compiler from turning these loops into calls of themselves. Short copies use whole vector
//! registers that may overlap; long ones use the processor's string instructions, which win from about
//! 1 KB.
#![cfg_attr(not(test), no_std)]
#![no_builtins]

mod compare;
mod copy;
mod fill;

/// Makes sure that the functions are linked.
pub fn link() {}

#[cfg(test)]
mod tests {
    use crate::compare::{bcmp, memcmp, strlen};
    use crate::copy::{memcpy, memmove};
    use crate::fill::memset;

    /// Bytes around the ranges that are to stay as they are.
    const MARGIN: usize = 70;

    fn lengths() -> impl Iterator<Item = usize> {
        (0..300).chain([511, 512, 1000, 1023, 1024, 1025, 4096, 5000])
    }

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 131 + at / 251) as u8).collect()
    }

    #[test]
    fn copies_are_exact() {
        for length in lengths() {
            let from = pattern(length + MARGIN);
            for shift in [0, 1, 7] {
                let mut to = vec![0xee; length + 2 * MARGIN];
                // SAFETY: both ranges are inside their vectors.
                let returned = unsafe { memcpy(to[MARGIN..].as_mut_ptr(), from[shift..].as_ptr(), length) };
                assert_eq!(returned, to[MARGIN..].as_mut_ptr());
                assert!(
                    to[MARGIN..MARGIN + length].iter().eq(&from[shift..shift + length]),
                    "{length} {shift}"
                );
                assert!(
                    to[..MARGIN].iter().chain(&to[MARGIN + length..]).all(|byte| *byte == 0xee),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn moves_overlap_in_both_directions() {
        for length in lengths() {
            for distance in [0, 1, 8, 31, 32, 33, 64, 69] {
                for forward in [true, false] {
                    let mut bytes = pattern(length + MARGIN);
                    let (from, to) = if forward { (0, distance) } else { (distance, 0) };
                    let mut expected = bytes.clone();
                    for (at, byte) in bytes[from..from + length].iter().enumerate() {
                        expected[to + at] = *byte;
                    }
                    let base = bytes.as_mut_ptr();
                    // SAFETY: both ranges are inside the vector.
                    unsafe { memmove(base.add(to), base.add(from), length) };
                    assert!(bytes.iter().eq(&expected), "{length} by {distance}, forward {forward}");
                }
            }
        }
    }

    #[test]
    fn fills_are_exact() {
        for length in lengths() {
            let mut bytes = vec![0xee; length + 2 * MARGIN];
            // SAFETY: the range is inside the vector.
            unsafe { memset(bytes[MARGIN..].as_mut_ptr(), 0x1_42, length) };
            let inside = MARGIN..MARGIN + length;
            assert!(
                bytes
                    .iter()
                    .enumerate()
                    .all(|(at, byte)| *byte == if inside.contains(&at) { 0x42 } else { 0xee })
            );
        }
    }

    #[test]
    fn comparisons_find_the_first_difference() {
        for length in lengths() {
            let (left, mut right) = (pattern(length), pattern(length));
            // SAFETY: both vectors have `length` bytes.
            let compare = |right: &[u8]| unsafe { memcmp(left.as_ptr(), right.as_ptr(), length) };
            assert_eq!(compare(&right), 0);
            for at in (0..length).step_by(1 + length / 40) {
                for change in [1u8, 0x80, 0xff] {
                    right[at] = left[at].wrapping_add(change);
                    assert_eq!(
                        compare(&right).signum(),
                        (i32::from(left[at]) - i32::from(right[at])).signum()
                    );
                    // SAFETY: as above.
                    assert!(unsafe { bcmp(left.as_ptr(), right.as_ptr(), length) } != 0);
                }
                right[at] = left[at];
            }
        }
        // SAFETY: the text has its zero.
        assert_eq!(unsafe { strlen(c"Clickbox".as_ptr().cast()) }, 8);
    }
}
