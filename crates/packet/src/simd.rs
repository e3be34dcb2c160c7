//! Operations on several numbers at once.
//!
//! They are written with instructions for vectors, because the compiler makes vectors of plain loops only where it optimises for
//! speed, up to the end: neither in the image of a box, nor in a program that is optimised for size when it is linked.

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

/// Tests 16 words in network byte order: the byte of a lane has all bits set if its word's bits under `mask` exceed `low` by at
/// most `span`, wrapping around; otherwise none.
#[inline(always)]
pub fn lanes_in_range(words: &[u32; 16], (mask, low, span): (u32, u32, u32)) -> [u8; 16] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has these instructions; `words` are four times 16 bytes and the result is 16
    // bytes, and neither loads nor stores need alignment.
    unsafe {
        use core::arch::x86_64::{
            __m128i, _mm_and_si128, _mm_cmpeq_epi32, _mm_cmpgt_epi32, _mm_loadu_si128, _mm_or_si128,
            _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi32, _mm_shufflehi_epi16, _mm_shufflelo_epi16,
            _mm_slli_epi16, _mm_srli_epi16, _mm_storeu_si128, _mm_sub_epi32, _mm_xor_si128,
        };
        const SIGN: u32 = 1 << 31;
        const SWAP: i32 = 0b10_11_00_01;
        let all = |value: u32| _mm_set1_epi32(value.cast_signed());
        let from = words.as_ptr().cast::<__m128i>();
        let masked = |quarter| _mm_and_si128(_mm_loadu_si128(from.add(quarter)), all(mask.to_be()));
        let packed =
            |[a, b, c, d]: [__m128i; 4]| _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
        let inside = if span == 0 {
            // Equality needs no order of bytes.
            packed([0, 1, 2, 3].map(|quarter| _mm_cmpeq_epi32(masked(quarter), all(low.to_be()))))
        } else {
            let number = |quarter| {
                let bytes = masked(quarter);
                let pairs = _mm_or_si128(_mm_slli_epi16::<8>(bytes), _mm_srli_epi16::<8>(bytes));
                _mm_shufflehi_epi16::<SWAP>(_mm_shufflelo_epi16::<SWAP>(pairs))
            };
            // Signed numbers are compared, so both sides are moved by half of all values.
            let excess = |quarter| _mm_sub_epi32(number(quarter), all(low ^ SIGN));
            let above = [0, 1, 2, 3].map(|quarter| _mm_cmpgt_epi32(excess(quarter), all(span ^ SIGN)));
            _mm_xor_si128(packed(above), all(u32::MAX))
        };
        let mut lanes = [0; 16];
        _mm_storeu_si128(lanes.as_mut_ptr().cast(), inside);
        lanes
    }
    #[cfg(not(target_arch = "x86_64"))]
    words.map(|word| u8::from((u32::from_be(word) & mask).wrapping_sub(low) <= span).wrapping_neg())
}

/// Replaces those of 16 bytes that are `from`: by `set` where the byte of `lanes` has all bits set, by `unset` where it has none.
#[inline(always)]
pub fn replace_lanes(bytes: &mut [u8; 16], from: u8, lanes: &[u8; 16], (set, unset): (u8, u8)) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has these instructions; `bytes` and `lanes` are 16 bytes each, and neither
    // loads nor the store need alignment.
    unsafe {
        use core::arch::x86_64::{
            __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_set1_epi8, _mm_storeu_si128,
            _mm_xor_si128,
        };
        let all = |value: u8| _mm_set1_epi8(value.cast_signed());
        let to = bytes.as_mut_ptr().cast::<__m128i>();
        let (old, lanes) = (_mm_loadu_si128(to), _mm_loadu_si128(lanes.as_ptr().cast()));
        let change = _mm_xor_si128(all(from ^ unset), _mm_and_si128(lanes, all(set ^ unset)));
        let change = _mm_and_si128(change, _mm_cmpeq_epi8(old, all(from)));
        _mm_storeu_si128(to, _mm_xor_si128(old, change));
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (byte, lane) in bytes.iter_mut().zip(lanes).filter(|(byte, _)| **byte == from) {
        *byte = if *lane == 0 { unset } else { set };
    }
}

/// Adds `amount` to those of 16 sums whose value is at least `bound`, wrapping around.
#[inline(always)]
pub fn add_where_at_least(sums: &mut [u32; 16], values: &[i32; 16], bound: i32, amount: u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has these instructions; `sums` and `values` are four times 16 bytes each, and
    // neither loads nor the store need alignment.
    unsafe {
        use core::arch::x86_64::{
            __m128i, _mm_add_epi32, _mm_andnot_si128, _mm_cmpgt_epi32, _mm_loadu_si128, _mm_set1_epi32,
            _mm_storeu_si128,
        };
        let (bound, amount) = (_mm_set1_epi32(bound), _mm_set1_epi32(amount.cast_signed()));
        let (sums, values) = (sums.as_mut_ptr().cast::<__m128i>(), values.as_ptr().cast::<__m128i>());
        for quarter in 0..4 {
            let is_below = _mm_cmpgt_epi32(bound, _mm_loadu_si128(values.add(quarter)));
            let sum = _mm_loadu_si128(sums.add(quarter));
            _mm_storeu_si128(sums.add(quarter), _mm_add_epi32(sum, _mm_andnot_si128(is_below, amount)));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (sum, _) in sums.iter_mut().zip(values).filter(|(_, value)| **value >= bound) {
        *sum = sum.wrapping_add(amount);
    }
}

/// The words of four rows, in columns: the first one has the first word of each row. Words keep the order of their bytes.
#[inline(always)]
pub fn transpose_words(rows: [&[u8; 16]; 4]) -> [[u32; 4]; 4] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has these instructions; each row and each column is 16 bytes, and neither
    // loads nor stores need alignment.
    unsafe {
        use core::arch::x86_64::{
            _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi32,
            _mm_unpacklo_epi64,
        };
        let [a, b, c, d] = rows.map(|row| _mm_loadu_si128(row.as_ptr().cast()));
        let (low, high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
        let (more_low, more_high) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
        let first = [_mm_unpacklo_epi64(low, more_low), _mm_unpackhi_epi64(low, more_low)];
        let last = [_mm_unpacklo_epi64(high, more_high), _mm_unpackhi_epi64(high, more_high)];
        let mut columns = [[0u32; 4]; 4];
        for (column, words) in columns.iter_mut().zip([first[0], first[1], last[0], last[1]]) {
            _mm_storeu_si128(column.as_mut_ptr().cast(), words);
        }
        columns
    }
    #[cfg(not(target_arch = "x86_64"))]
    core::array::from_fn(|word| {
        rows.map(|row| u32::from_ne_bytes(*row[4 * word..].first_chunk().expect("a row has four words")))
    })
}

#[cfg(test)]
mod tests {
    use super::{add_where_at_least, equal_lanes, lanes_in_range, replace_lanes, transpose_words};

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

    #[test]
    fn ranges_of_masked_words_are_those_of_numbers() {
        let ends = [0, 1, 2, 0xffff, 0x1234_5678, 0x7fff_ffff, 1 << 31, 0x8000_0001, 0xffff_fffe, u32::MAX];
        let words: [u32; 16] = core::array::from_fn(|lane| ends[lane % ends.len()]);
        for mask in [0, 1, 0xffff, 0xffff_0000, 0x8000_0000, u32::MAX] {
            for (low, span) in ends.iter().flat_map(|low| ends.map(|span| (*low, span))) {
                let is_inside = |word: u32| (word & mask).wrapping_sub(low) <= span;
                let expected = words.map(|word| if is_inside(word) { 0xff } else { 0 });
                let words = words.map(u32::to_be);
                assert_eq!(lanes_in_range(&words, (mask, low, span)), expected, "{mask:x} {low:x} {span:x}");
            }
        }
    }

    #[test]
    fn only_bytes_of_one_value_are_replaced() {
        let lanes = core::array::from_fn(|lane| if lane % 3 == 0 { 0xff } else { 0 });
        for (from, set, unset) in [(2, 9, 0x81), (2, 2, 0), (0xff, 0, 0xff), (0, 0x80, 0x80)] {
            let old: [u8; 16] = core::array::from_fn(|lane| [from, 2, 0, 0xff, 7][lane % 5]);
            let mut new = old;
            replace_lanes(&mut new, from, &lanes, (set, unset));
            for lane in 0..16 {
                let replacement = if lane % 3 == 0 { set } else { unset };
                let expected = if old[lane] == from { replacement } else { old[lane] };
                assert_eq!(new[lane], expected, "lane {lane} of {old:?}");
            }
        }
    }

    #[test]
    fn rows_become_columns() {
        let rows: [[u8; 16]; 4] =
            core::array::from_fn(|row| core::array::from_fn(|byte| (16 * row + byte) as u8));
        for (word, column) in transpose_words(rows.each_ref()).iter().enumerate() {
            for (row, value) in column.iter().enumerate() {
                assert_eq!(value.to_ne_bytes(), rows[row][4 * word..][..4], "word {word} of row {row}");
            }
        }
    }

    #[test]
    fn an_amount_is_added_from_a_bound_on() {
        let values: [i32; 16] =
            core::array::from_fn(|lane| [i32::MIN, -1, 0, 1, 7, 8, 9, i32::MAX][lane % 8]);
        for (bound, amount) in [(i32::MIN, 1), (0, u32::MAX), (8, 5), (i32::MAX, 1 << 31)] {
            let mut sums = [3; 16];
            add_where_at_least(&mut sums, &values, bound, amount);
            let expected = values.map(|value| if value >= bound { amount.wrapping_add(3) } else { 3 });
            assert_eq!(sums, expected, "{bound} {amount}");
        }
    }
}
