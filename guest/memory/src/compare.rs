//! `memcmp`, `bcmp` and `strlen`.

use core::arch::x86_64::{_mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8};

/// The difference of the first bytes that differ, or 0.
///
/// # Safety
///
/// As C's: both readable for `count` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    let mut at = 0;
    // SAFETY: every load lies within `count` bytes.
    unsafe {
        while at + 32 <= count {
            let (one, other) =
                (_mm256_loadu_si256(left.add(at).cast()), _mm256_loadu_si256(right.add(at).cast()));
            let equal = _mm256_movemask_epi8(_mm256_cmpeq_epi8(one, other)) as u32;
            if equal != u32::MAX {
                at += equal.trailing_ones() as usize;
                return i32::from(*left.add(at)) - i32::from(*right.add(at));
            }
            at += 32;
        }
        while at + 8 <= count {
            let one = left.add(at).cast::<u64>().read_unaligned();
            let other = right.add(at).cast::<u64>().read_unaligned();
            if one != other {
                return if one.swap_bytes() < other.swap_bytes() { -1 } else { 1 };
            }
            at += 8;
        }
        while at < count {
            let (one, other) = (*left.add(at), *right.add(at));
            if one != other {
                return i32::from(one) - i32::from(other);
            }
            at += 1;
        }
    }
    0
}

/// 0 when both are equal.
///
/// # Safety
///
/// As C's: both readable for `count` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    // SAFETY: the caller's promise is the same.
    unsafe { memcmp(left, right, count) }
}

/// Bytes before the first zero.
///
/// # Safety
///
/// As C's: `text` readable up to and with its zero.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut at = 0;
    // SAFETY: the text goes on at least to the next byte until the zero is found.
    while unsafe { *text.add(at) } != 0 {
        at += 1;
    }
    at
}
