//! Base64, in which a module arrives at a handler.

use alloc::vec::Vec;

/// Decodes text of the standard alphabet, with or without padding and white space. `None` if it is something else.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count, mut padding) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // What is left is less than a byte, and zero.
    (count < 6 && bits == 0 && padding < 3).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn text_is_decoded_or_refused() {
        for (text, bytes) in
            [("", &b""[..]), ("AGFzbQ==", b"\0asm"), ("AGFz\nbQ", b"\0asm"), ("+/+/", b"\xfb\xff\xbf")]
        {
            assert_eq!(decode(text).as_deref(), Some(bytes), "{text}");
        }
        for text in ["A", "AGFzbQ===", "AG=Fz", "AGFzb!", "AGFzbR", "\u{e4}"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
