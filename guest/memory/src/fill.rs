//! `memset`.

use core::arch::asm;
use core::arch::x86_64::{_mm256_set1_epi8, _mm256_storeu_si256};

/// From this size on the string instruction is faster than a loop of vectors.
const STRING_FILL: usize = 1024;

/// Sets `count` bytes to the low byte of `value`.
///
/// # Safety
///
/// As C's: `to` writable for `count` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8 {
    let byte = value as u8;
    // SAFETY: every store lies within `count` bytes.
    unsafe {
        if count >= STRING_FILL {
            asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") byte,
                options(nostack, preserves_flags));
        } else if count >= 32 {
            let vector = _mm256_set1_epi8(byte as i8);
            let mut at = 0;
            while at + 32 <= count {
                _mm256_storeu_si256(to.add(at).cast(), vector);
                at += 32;
            }
            _mm256_storeu_si256(to.add(count - 32).cast(), vector);
        } else {
            let word = u64::from_ne_bytes([byte; 8]);
            let mut at = 0;
            while at + 8 <= count {
                to.add(at).cast::<u64>().write_unaligned(word);
                at += 8;
            }
            while at < count {
                *to.add(at) = byte;
                at += 1;
            }
        }
    }
    to
}
