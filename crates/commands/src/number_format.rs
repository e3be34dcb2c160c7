//! Numbers as text.

/// A number with its digits grouped in threes.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun, which has a regular plural.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A number with a suffix for thousands, millions or billions.
pub(crate) fn scaled(number: f64) -> String {
    match number {
        number if number >= 1e9 => format!("{:.2} G", number / 1e9),
        number if number >= 1e6 => format!("{:.2} M", number / 1e6),
        number if number >= 1e3 => format!("{:.1} k", number / 1e3),
        number => format!("{number:.0}"),
    }
}

/// A number of bytes with its unit.
pub(crate) fn bytes(number: f64) -> String {
    match number {
        number if number >= 1e9 => format!("{:.2} GB", number / 1e9),
        number if number >= 1e6 => format!("{:.1} MB", number / 1e6),
        number if number >= 1e3 => format!("{:.0} kB", number / 1e3),
        number => format!("{number:.0} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_scaled() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!(scaled(1_234_567.0), "1.23 M");
        assert_eq!([count(1, "box"), count(2, "packet")], ["1 box", "2 packets"]);
    }
}
