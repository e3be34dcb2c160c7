//! Comparison of eight numbers with one value at once.

/// Compares each of `lanes` with `value`: bit `i` of the result is set if lane `i` is equal.
#[inline(always)]
pub fn equal_lanes(lanes: &[u32; 8], value: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has these instructions; both halves of `lanes` are 16 bytes, and the
    // loads need no alignment.
    unsafe {
        use core::arch::x86_64::{
            __m128i, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_ps, _mm_set1_epi32,
        };
        let value = _mm_set1_epi32(value.cast_signed());
        let half = lanes.as_ptr().cast::<__m128i>();
        let low = _mm_cmpeq_epi32(_mm_loadu_si128(half), value);
        let high = _mm_cmpeq_epi32(_mm_loadu_si128(half.add(1)), value);
        let low = _mm_movemask_ps(_mm_castsi128_ps(low)).cast_unsigned();
        let high = _mm_movemask_ps(_mm_castsi128_ps(high)).cast_unsigned();
        low | high << 4
    }
    #[cfg(not(target_arch = "x86_64"))]
    lanes.iter().rev().fold(0, |bits, lane| bits << 1 | u32::from(*lane == value))
}

#[cfg(test)]
mod tests {
    use super::equal_lanes;

    #[test]
    fn each_lane_has_its_bit() {
        assert_eq!(equal_lanes(&[7, 1, 7, u32::MAX, 0, 7, 8, 7], 7), 0b1010_0101);
        assert_eq!(equal_lanes(&[0; 8], 1), 0);
        for lane in 0..8 {
            let mut lanes = [0; 8];
            lanes[lane] = u32::MAX;
            assert_eq!(equal_lanes(&lanes, u32::MAX), 1 << lane);
        }
    }
}
