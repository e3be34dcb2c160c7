//! A cache line held in registers, to be written many times.

/// Bytes in a cache line.
pub(crate) const CACHE_LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
mod registers {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

    /// Four vector registers. The explicit type keeps the compiler from reloading them for every copy.
    #[derive(Clone, Copy)]
    pub(crate) struct CacheLine([__m128i; 4]);

    impl CacheLine {
        /// # Safety
        /// There are 64 initialised bytes at `from`.
        #[inline(always)]
        pub(crate) unsafe fn read(from: *const u8) -> CacheLine {
            let from = from.cast::<__m128i>();
            // SAFETY: by the contract above; the loads need no alignment.
            unsafe {
                CacheLine([
                    _mm_loadu_si128(from),
                    _mm_loadu_si128(from.add(1)),
                    _mm_loadu_si128(from.add(2)),
                    _mm_loadu_si128(from.add(3)),
                ])
            }
        }

        /// # Safety
        /// 64 bytes may be written at `to`.
        #[inline(always)]
        pub(crate) unsafe fn write(&self, to: *mut u8) {
            let to = to.cast::<__m128i>();
            // SAFETY: by the contract above; the stores need no alignment.
            unsafe {
                _mm_storeu_si128(to, self.0[0]);
                _mm_storeu_si128(to.add(1), self.0[1]);
                _mm_storeu_si128(to.add(2), self.0[2]);
                _mm_storeu_si128(to.add(3), self.0[3]);
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod registers {
    use super::CACHE_LINE;

    /// The bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct CacheLine([u8; CACHE_LINE]);

    impl CacheLine {
        /// # Safety
        /// There are 64 initialised bytes at `from`.
        #[inline(always)]
        pub(crate) unsafe fn read(from: *const u8) -> CacheLine {
            // SAFETY: by the contract above.
            CacheLine(unsafe { from.cast::<[u8; CACHE_LINE]>().read_unaligned() })
        }

        /// # Safety
        /// 64 bytes may be written at `to`.
        #[inline(always)]
        pub(crate) unsafe fn write(&self, to: *mut u8) {
            // SAFETY: by the contract above.
            unsafe { to.cast::<[u8; CACHE_LINE]>().write_unaligned(self.0) }
        }
    }
}

pub(crate) use registers::CacheLine;

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
