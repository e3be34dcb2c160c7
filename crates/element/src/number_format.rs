//! Number formats of Click's handlers: fixed point, time spans, bandwidths.

use alloc::format;
use alloc::string::{String, ToString};

use packet::Timestamp;

/// A binary fixed-point number with `bits` (at most 28) of fraction, with the fewest decimals that identify it.
pub fn fixed(value: u64, bits: u32) -> String {
    let bits = bits.min(28);
    let one = 1u64 << bits;
    let mut text = (value >> bits).to_string();
    let fraction = value & (one - 1);
    if fraction == 0 {
        return text;
    }
    text.push('.');
    // Stop as soon as the remainder is below the precision of the binary number (Knuth, TeX §103).
    let mut rest = 10 * fraction + 5;
    let mut doubt = 10;
    let mut rounding = 5;
    while rounding < one / 2 {
        rounding *= 10;
    }
    loop {
        if doubt > one {
            rest = (rest + one / 2).wrapping_sub(rounding) & u64::from(u32::MAX);
        }
        text.push(char::from_digit((rest >> bits) as u32 % 10, 10).unwrap_or('0'));
        rest = 10 * (rest & (one - 1));
        doubt *= 10;
        if rest <= doubt {
            return text;
        }
    }
}

/// Like [`fixed`], for a signed number.
pub fn signed_fixed(value: i64, bits: u32) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", fixed(value.unsigned_abs(), bits))
}

/// `value` divided by ten to the `digits`, without trailing zeros.
pub fn decimal(value: u64, digits: u32) -> String {
    let digits = digits.min(18);
    let one = 10u64.pow(digits);
    let (whole, fraction) = (value / one, value % one);
    if fraction == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{fraction:0width$}", width = digits as usize);
    text.trim_end_matches('0').to_string()
}

/// A real number with at most twelve digits, in the shorter of decimal and scientific notation, like C's `%.12g`.
pub fn general(value: f64) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.into();
    }
    if value == 0.0 || value.is_infinite() {
        return value.to_string();
    }
    let scientific = format!("{value:.11e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    match exponent {
        -4..=11 => trim(&format!("{value:.*}", (11 - exponent) as usize)),
        _ => format!("{}e{}{:02}", trim(digits), if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

/// A time span: `500ms`, `1500ns`, `1.500100s`.
pub fn interval(span: Timestamp) -> String {
    let nanos = i64::from(span.subsecond_nanos());
    if span.seconds() != 0 {
        format!("{}s", timestamp(span))
    } else if nanos % 1_000_000 == 0 {
        format!("{}ms", nanos / 1_000_000)
    } else if nanos % 1_000 == 0 {
        format!("{}us", nanos / 1_000)
    } else {
        format!("{nanos}ns")
    }
}

/// A time in seconds, with six decimals, or nine if needed.
pub fn timestamp(time: Timestamp) -> String {
    if time.subsecond_nanos().is_multiple_of(1_000) { format!("{time:.6}") } else { format!("{time:.9}") }
}

/// A bandwidth in bytes a second: `384kbps`, `1.5Gbps`.
pub fn bandwidth(bytes: u32) -> String {
    let bits = u64::from(bytes) * 8;
    match bytes {
        0x2000_0000.. => format!("{}MBps", decimal(bytes.into(), 6)),
        125_000_000.. => format!("{}Gbps", decimal(bits, 9)),
        125_000.. => format!("{}Mbps", decimal(bits, 6)),
        _ => format!("{}kbps", decimal(bits, 3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_numbers_are_short() {
        let cases = [
            (0.1 + 0.2, "0.3"),
            (1e10, "10000000000"),
            (1e12, "1e+12"),
            (1e-5, "1e-05"),
            (-2.5, "-2.5"),
            (1.0 / 3.0, "0.333333333333"),
            (2.0 / 30_000.0, "6.66666666667e-05"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in cases {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn fixed_point_is_as_short_as_it_can_be() {
        for (value, bits, text) in
            [(1000 << 10, 10, "1000"), (512, 10, "0.5"), (1, 10, "0.001"), (341, 10, "0.333"), (8, 4, "0.5")]
        {
            assert_eq!(fixed(value, bits), text, "{value} >> {bits}");
        }
        assert_eq!(fixed((1 << 28) / 3, 28), "0.333333332");
        assert_eq!(signed_fixed(-1536, 10), "-1.5");
    }

    #[test]
    fn intervals_and_bandwidths_choose_their_unit() {
        let check = |nanos: i64, text: &str| assert_eq!(interval(Timestamp::from_nanos(nanos)), text);
        check(0, "0ms");
        check(500_000_000, "500ms");
        check(1_500, "1500ns");
        check(20_000, "20us");
        check(1_500_100_000, "1.500100s");
        check(90_000_000_000, "90.000000s");
        assert_eq!(bandwidth(48_000), "384kbps");
        assert_eq!(bandwidth(48_024), "384.192kbps");
        assert_eq!(bandwidth(187_500_000), "1.5Gbps");
    }
}
