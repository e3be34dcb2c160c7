//! How files of `AggregateCounter` tell aggregates and counts.

use core::net::Ipv4Addr;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// How files are written.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Both as four bytes, lowest first.
    Binary,
    /// Both as numbers.
    Text,
    /// Aggregates as addresses.
    Ip,
    /// Counts as shares of the total.
    Share,
}

impl Form {
    /// The line that says so at the head of a file.
    pub(super) fn announcement(self) -> &'static str {
        match self {
            Form::Binary => "!packed_le\n",
            Form::Ip => "!ip\n",
            Form::Text | Form::Share => "",
        }
    }

    /// Adds an aggregate and its count.
    pub(super) fn add(self, key: u32, count: u32, total: u64, bytes: &mut Vec<u8>) {
        let line = match self {
            Form::Binary => {
                bytes.extend(key.to_le_bytes());
                return bytes.extend(count.to_le_bytes());
            }
            Form::Text => format!("{key} {count}\n"),
            Form::Ip => format!("{} {count}\n", Ipv4Addr::from_bits(key)),
            Form::Share => format!("{key} {}\n", significant(f64::from(count) / total as f64)),
        };
        bytes.extend(line.into_bytes());
    }
}

/// A share with twelve significant digits, as C's `%.12g` prints it.
fn significant(share: f64) -> String {
    let scientific = format!("{share:.11e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    match exponent {
        -4..=11 => trim(&format!("{share:.*}", (11 - exponent) as usize)),
        _ => format!("{}e{}{:02}", trim(digits), if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn shares_have_twelve_digits() {
        let texts = [1.0, 0.5, 1.0 / 3.0, 2.0 / 30_000.0, 2.0 / 3_000_000.0, 0.1].map(significant);
        assert_eq!(texts, ["1", "0.5", "0.333333333333", "6.66666666667e-05", "6.66666666667e-07", "0.1"]);
    }
}
