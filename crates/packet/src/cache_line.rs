//! A cache line, or a quarter of one, held in registers.

/// Bytes in a cache line.
pub(crate) const CACHE_LINE: usize = 64;
/// Bytes in a quarter of a cache line.
pub(crate) const QUARTER_LINE: usize = CACHE_LINE / 4;

/// 64 bytes, to be written many times.
pub(crate) type CacheLine = Registers<4>;
/// 16 bytes.
pub(crate) type QuarterLine = Registers<1>;

#[cfg(target_arch = "x86_64")]
mod registers {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

    /// Vector registers. The explicit type keeps the compiler from reloading them for every copy, and from writing them to the
    /// stack.
    #[derive(Clone, Copy)]
    pub(crate) struct Registers<const COUNT: usize>([__m128i; COUNT]);

    impl<const COUNT: usize> Registers<COUNT> {
        /// # Safety
        /// There are `16 * COUNT` initialised bytes at `from`.
        #[inline(always)]
        pub(crate) unsafe fn read(from: *const u8) -> Self {
            // SAFETY: by the contract above; the loads need no alignment.
            Self(core::array::from_fn(|at| unsafe { _mm_loadu_si128(from.cast::<__m128i>().add(at)) }))
        }

        /// # Safety
        /// `16 * COUNT` bytes may be written at `to`.
        #[inline(always)]
        pub(crate) unsafe fn write(&self, to: *mut u8) {
            for (at, register) in self.0.iter().enumerate() {
                // SAFETY: by the contract above; the stores need no alignment.
                unsafe { _mm_storeu_si128(to.cast::<__m128i>().add(at), *register) };
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod registers {
    /// The bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct Registers<const COUNT: usize>([[u8; 16]; COUNT]);

    impl<const COUNT: usize> Registers<COUNT> {
        /// # Safety
        /// There are `16 * COUNT` initialised bytes at `from`.
        #[inline(always)]
        pub(crate) unsafe fn read(from: *const u8) -> Self {
            // SAFETY: by the contract above.
            Self(unsafe { from.cast::<[[u8; 16]; COUNT]>().read_unaligned() })
        }

        /// # Safety
        /// `16 * COUNT` bytes may be written at `to`.
        #[inline(always)]
        pub(crate) unsafe fn write(&self, to: *mut u8) {
            // SAFETY: by the contract above.
            unsafe { to.cast::<[[u8; 16]; COUNT]>().write_unaligned(self.0) }
        }
    }
}

use registers::Registers;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_as_it_was_read() {
        let from: [u8; CACHE_LINE + 1] = core::array::from_fn(|at| at as u8);
        let mut to = [0u8; CACHE_LINE + 2];
        // SAFETY: 64 bytes follow the second of `from` and the third of `to`.
        unsafe { CacheLine::read(from[1..].as_ptr()).write(to[2..].as_mut_ptr()) };
        assert_eq!((&to[..2], &to[2..]), (&[0, 0][..], &from[1..]));
    }
}
