//! `memcpy` and `memmove`.

use core::arch::asm;
use core::arch::x86_64::{__m128i, __m256i};
use core::arch::x86_64::{_mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256};

/// From this size on the string instruction is faster than a loop of vectors.
const STRING_COPY: usize = 1024;

/// Copies `count` bytes; the ranges don't overlap.
///
/// # Safety
///
/// As C's: `from` readable, `to` writable for `count` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller's promise covers `count` bytes of both.
    unsafe {
        if count <= 64 {
            short(to, from, count);
        } else if count < STRING_COPY {
            forward(to, from, count);
        } else {
            asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
    }
    to
}

/// Copies `count` bytes; the ranges may overlap.
///
/// # Safety
///
/// As C's: `from` readable, `to` writable for `count` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    let distance = (to as usize).wrapping_sub(from as usize);
    // SAFETY: the caller's promise covers `count` bytes of both. A forward copy is right when the target
    // doesn't begin inside the source, a backward copy when it does.
    unsafe {
        if count <= 64 {
            short(to, from, count);
        } else if distance >= count {
            forward(to, from, count);
        } else {
            backward(to, from, count);
        }
    }
    to
}

/// Up to 64 bytes, all loaded before any is stored, so that overlap doesn't matter.
#[inline(always)]
unsafe fn short(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: each branch touches only the first and last bytes of a range that is at least as long as
    // two accesses that may overlap.
    unsafe {
        match count {
            33..=64 => ends::<__m256i>(
                to,
                from,
                count,
                |at| _mm256_loadu_si256(at),
                |at, v| _mm256_storeu_si256(at, v),
            ),
            17..=32 => {
                ends::<__m128i>(to, from, count, |at| _mm_loadu_si128(at), |at, v| _mm_storeu_si128(at, v))
            }
            9..=16 => ends::<u64>(to, from, count, |at| at.read_unaligned(), |at, v| at.write_unaligned(v)),
            5..=8 => ends::<u32>(to, from, count, |at| at.read_unaligned(), |at, v| at.write_unaligned(v)),
            3..=4 => ends::<u16>(to, from, count, |at| at.read_unaligned(), |at, v| at.write_unaligned(v)),
            2 => to.cast::<u16>().write_unaligned(from.cast::<u16>().read_unaligned()),
            1 => *to = *from,
            _ => {}
        }
    }
}

/// The first and the last `T` of the range.
#[inline(always)]
unsafe fn ends<T>(
    to: *mut u8,
    from: *const u8,
    count: usize,
    load: impl Fn(*const T) -> T,
    store: impl Fn(*mut T, T),
) {
    let last = count - size_of::<T>();
    // SAFETY: `count` is at least the size of a T.
    unsafe {
        let (head, tail) = (load(from.cast()), load(from.add(last).cast()));
        store(to.cast(), head);
        store(to.add(last).cast(), tail);
    }
}

/// More than 64 bytes from low to high addresses. The last 32 are loaded first: an overlapping target may
/// reach them.
#[inline(always)]
unsafe fn forward(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: every access lies within `count` bytes.
    unsafe {
        let last = _mm256_loadu_si256(from.add(count - 32).cast());
        let mut at = 0;
        while at + 64 <= count {
            let low = _mm256_loadu_si256(from.add(at).cast());
            let high = _mm256_loadu_si256(from.add(at + 32).cast());
            _mm256_storeu_si256(to.add(at).cast(), low);
            _mm256_storeu_si256(to.add(at + 32).cast(), high);
            at += 64;
        }
        if at + 32 <= count {
            _mm256_storeu_si256(to.add(at).cast(), _mm256_loadu_si256(from.add(at).cast()));
        }
        _mm256_storeu_si256(to.add(count - 32).cast(), last);
    }
}

/// More than 64 bytes from high to low addresses. The first 32 are loaded first.
#[inline(always)]
unsafe fn backward(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: every access lies within `count` bytes.
    unsafe {
        let first = _mm256_loadu_si256(from.cast());
        let mut end = count;
        while end >= 64 {
            let high = _mm256_loadu_si256(from.add(end - 32).cast());
            let low = _mm256_loadu_si256(from.add(end - 64).cast());
            _mm256_storeu_si256(to.add(end - 32).cast(), high);
            _mm256_storeu_si256(to.add(end - 64).cast(), low);
            end -= 64;
        }
        if end >= 32 {
            let high = _mm256_loadu_si256(from.add(end - 32).cast());
            _mm256_storeu_si256(to.add(end - 32).cast(), high);
        }
        _mm256_storeu_si256(to.cast(), first);
    }
}
