//! Hints on mistakes in the values of arguments.

use alloc::format;
use alloc::string::String;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A hint on the first word of a value, or of a rule or route, that looks like an address but is none.
pub fn value_hint(text: &str) -> Option<String> {
    let words = text.split(|letter: char| letter.is_whitespace() || "(),\"'".contains(letter));
    words.filter(|word| !word.is_empty()).find_map(word_hint)
}

fn word_hint(word: &str) -> Option<String> {
    let (address, length) =
        word.split_once('/').map_or((word, None), |(address, rest)| (address, Some(rest)));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = || address.split('.');
    if bytes().count() > 1 && bytes().all(is_number) {
        if bytes().count() != 4 {
            // Not every number with points is meant as an address.
            return length
                .map(|_| format!("an IPv4 address has four numbers, ‘{address}’ has {}", bytes().count()));
        }
        if let Some(byte) = bytes().find(|byte| byte.parse::<u8>().is_err()) {
            return Some(format!("{byte} in ‘{address}’ is over 255"));
        }
    }
    let length = length.filter(|length| is_number(length))?;
    let (kind, bound) = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(_), _) => ("IPv4", 32),
        (_, Ok(_)) => ("IPv6", 128),
        _ => return None,
    };
    let is_over = length.parse::<u32>().map_or(true, |length| length > bound);
    is_over.then(|| format!("/{length} is over {bound}, the length of an {kind} address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_addresses_are_explained() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(value_hint(text).as_deref(), expected, "{text}");
        };
        check("10.0.0.0/33", Some("/33 is over 32, the length of an IPv4 address"));
        check(
            "allow src net 10.0.0.0/99999999999",
            Some("/99999999999 is over 32, the length of an IPv4 address"),
        );
        check("(dst 2001:db8::/129)", Some("/129 is over 128, the length of an IPv6 address"));
        check("1.2.3.256 0", Some("256 in ‘1.2.3.256’ is over 255"));
        check("1.2.3.300/8", Some("300 in ‘1.2.3.300’ is over 255"));
        check("1.2.3/24", Some("an IPv4 address has four numbers, ‘1.2.3’ has 3"));
        check("1.5", None);
        check("1.2.3.4/24, ::1/64 x/33 1.2.3.4/x /33", None);
        check("", None);
    }
}
