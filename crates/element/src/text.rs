//! Click's argument syntax: commas, words, quotes, comments, `\<hex>`.

use alloc::string::String;
use alloc::vec::Vec;

/// Splits a configuration into arguments at commas outside quotes, and removes comments and surrounding spaces. An
/// empty argument after the last comma is ignored.
pub fn split_arguments(config: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = config;
    while let Some(argument) = next_argument(&mut rest) {
        arguments.push(argument);
    }
    arguments
}

/// Takes the next argument from a configuration, as [`split_arguments`] does.
pub fn next_argument(rest: &mut &str) -> Option<String> {
    let (argument, end) = uncommented(rest, true);
    let is_argument = !argument.is_empty() || end < rest.len();
    *rest = rest.get(end + 1..).unwrap_or("");
    is_argument.then_some(argument)
}

/// Removes comments and surrounding spaces; a comment between words becomes one space.
pub fn uncomment(text: &str) -> String {
    uncommented(text, false).0
}

fn uncommented(text: &str, to_comma: bool) -> (String, usize) {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut at = skip_blank(text, 0);
    let (mut left, mut right, mut closed) = (at, at, false);
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if is_comment(bytes, at) {
            at = skip_comment(bytes, at);
            closed = true;
        } else if *byte == b',' && to_comma {
            break;
        } else {
            if closed {
                if left < right {
                    out.push_str(text.get(left..right).unwrap_or(""));
                    out.push(' ');
                }
                (left, closed) = (at, false);
            }
            at = match byte {
                b'\'' => skip_single(bytes, at),
                b'"' => skip_double(bytes, at),
                b'\\' if bytes.get(at + 1) == Some(&b'<') => skip_backslash(bytes, at),
                _ => at + 1,
            };
            right = at;
        }
    }
    out.push_str(text.get(left..right).unwrap_or(""));
    (out, at)
}

/// The words of an argument, separated by spaces outside quotes; a comment counts as a space.
pub fn words(text: &str) -> Vec<String> {
    let mut rest = text;
    let mut words = Vec::new();
    while let Some(word) = next_word(&mut rest) {
        words.push(word.into());
    }
    words
}

/// Removes the first word of `text` and returns it.
pub fn next_word<'t>(text: &mut &'t str) -> Option<&'t str> {
    let bytes = text.as_bytes();
    let start = skip_blank(text, 0);
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() || is_comment(bytes, at) {
            break;
        }
        at = match byte {
            b'\'' => skip_single(bytes, at),
            b'"' => skip_double(bytes, at),
            b'\\' if bytes.get(at + 1) == Some(&b'<') => skip_backslash(bytes, at),
            _ => at + 1,
        };
    }
    let word = text.get(start..at).filter(|word| !word.is_empty())?;
    *text = text.get(skip_blank(text, at)..).unwrap_or("");
    Some(word)
}

/// The bytes of a quoted text: removes comments, surrounding spaces and quotes, and replaces backslashes in double
/// quotes and `\<hex>` anywhere.
pub fn unquote_bytes(text: &str) -> Vec<u8> {
    let text = uncomment(text);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let (mut at, mut quote) = (0, 0u8);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\'' | b'"' if quote == 0 => quote = byte,
            b'\'' | b'"' if quote == byte => quote = 0,
            b'\\' if quote == b'"' || (quote == 0 && bytes.get(at + 1) == Some(&b'<')) => {
                at = backslash(bytes, at, &mut out);
                continue;
            }
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}

/// Like `unquote_bytes`, as text; invalid UTF-8 becomes U+FFFD.
pub fn unquote(text: &str) -> String {
    String::from_utf8_lossy(&unquote_bytes(text)).into_owned()
}

/// The text that `unquote_bytes` turns into `bytes`, in double quotes if needed.
pub fn quote(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\,#$(){};".contains(byte);
    if !bytes.is_empty()
        && bytes.iter().all(plain)
        && !bytes.windows(2).any(|pair| pair == b"//" || pair == b"/*")
    {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut out = String::from("\"");
    let mut in_hex = false;
    for &byte in bytes {
        let printable = byte == b' ' || byte.is_ascii_graphic();
        if !printable && !b"\n\r\t".contains(&byte) {
            if !in_hex {
                out.push_str("\\<");
            }
            in_hex = true;
            for nibble in [byte >> 4, byte & 15] {
                out.push(char::from_digit(nibble.into(), 16).unwrap_or('0'));
            }
            continue;
        }
        if core::mem::take(&mut in_hex) {
            out.push('>');
        }
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\\' | b'$' => {
                out.push('\\');
                out.push(byte.into());
            }
            _ => out.push(byte.into()),
        }
    }
    out.push_str(if in_hex { ">\"" } else { "\"" });
    out
}

/// Whether `text` is a valid element name in Click.
pub fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_@/".contains(&byte))
        && !text.starts_with('/')
        && !text.ends_with('/')
        && !text.contains("//")
}

fn backslash(bytes: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let Some(&next) = bytes.get(at + 1) else {
        out.push(b'\\');
        return at + 1;
    };
    match next {
        b'<' => {
            let end = skip_backslash(bytes, at);
            hex(bytes.get(at + 2..end).unwrap_or(&[]), out);
            return end;
        }
        b'\r' if bytes.get(at + 2) == Some(&b'\n') => return at + 3,
        b'\n' | b'\r' => return at + 2,
        b'a' => out.push(7),
        b'b' => out.push(8),
        b'f' => out.push(12),
        b'n' => out.push(b'\n'),
        b'r' => out.push(b'\r'),
        b't' => out.push(b'\t'),
        b'v' => out.push(11),
        b'0'..=b'7' => {
            let digits = bytes.get(at + 1..).unwrap_or(&[]).iter().take(3);
            let digits: Vec<u8> = digits.take_while(|digit| (b'0'..=b'7').contains(digit)).copied().collect();
            out.push(
                digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')),
            );
            return at + 1 + digits.len();
        }
        b'x' => {
            let digits: Vec<u8> =
                bytes.get(at + 2..).unwrap_or(&[]).iter().map_while(|digit| nibble(*digit)).collect();
            if digits.is_empty() {
                out.push(b'x');
            } else {
                out.push(digits.iter().fold(0u8, |value, digit| (value << 4) | digit));
            }
            return at + 2 + digits.len();
        }
        other => out.push(other),
    }
    at + 2
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    let mut high = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if is_comment(bytes, at) {
            at = skip_comment(bytes, at);
            continue;
        }
        if let Some(digit) = nibble(byte) {
            match high.take() {
                Some(first) => out.push((first << 4) | digit),
                None => high = Some(digit),
            }
        }
        at += 1;
    }
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

/// The offset after the comment at `at`, if there is one.
pub fn comment_end(text: &str, at: usize) -> Option<usize> {
    is_comment(text.as_bytes(), at).then(|| skip_comment(text.as_bytes(), at))
}

fn is_comment(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'/') && matches!(bytes.get(at + 1), Some(b'/' | b'*'))
}

fn skip_comment(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at + 2..).unwrap_or(&[]);
    let length = if bytes.get(at + 1) == Some(&b'/') {
        match rest.iter().position(|byte| *byte == b'\n' || *byte == b'\r') {
            Some(end) if rest.get(end..end + 2) == Some(b"\r\n") => end + 2,
            Some(end) => end + 1,
            None => rest.len(),
        }
    } else {
        rest.windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 2)
    };
    at + 2 + length
}

fn skip_blank(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if is_comment(bytes, at) {
            at = skip_comment(bytes, at);
        } else {
            break;
        }
    }
    at
}

fn skip_single(bytes: &[u8], at: usize) -> usize {
    bytes
        .get(at + 1..)
        .unwrap_or(&[])
        .iter()
        .position(|byte| *byte == b'\'')
        .map_or(bytes.len(), |end| at + end + 2)
}

fn skip_double(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at = skip_backslash(bytes, at),
            _ => at += 1,
        }
    }
    bytes.len()
}

fn skip_backslash(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        Some(b'<') => {
            let mut end = at + 2;
            while let Some(byte) = bytes.get(end) {
                if *byte == b'>' {
                    return end + 1;
                }
                end = if is_comment(bytes, end) { skip_comment(bytes, end) } else { end + 1 };
            }
            bytes.len()
        }
        Some(b'\r') if bytes.get(at + 2) == Some(&b'\n') => at + 3,
        Some(_) => at + 2,
        None => at + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_commas_outside_quotes() {
        let check =
            |config: &str, expected: &[&str]| assert_eq!(split_arguments(config), expected, "{config}");
        check("", &[]);
        check("  /* nothing */ ", &[]);
        check("a, b c ,d", &["a", "b c", "d"]);
        check("a,", &["a"]);
        check("a,,b", &["a", "", "b"]);
        check("\"x, y\", 'p,q', \\<2c, 2c>", &["\"x, y\"", "'p,q'", "\\<2c, 2c>"]);
        check("a /* one */ b // two\n c", &["a b c"]);
    }

    #[test]
    fn unquotes() {
        let check = |text: &str, expected: &[u8]| assert_eq!(unquote_bytes(text), expected, "{text}");
        check(r#""a\tb"'\t'"#, b"a\tb\\t");
        check(r"\<48 656C /* x */ 6c>o", b"Hello");
        check(r#""\x41\101\q""#, b"AAq");
        check("\"open", b"open");
    }

    #[test]
    fn quoting_turns_back() {
        for text in ["", "plain", "two words", "a\"b\\c", "\u{1}\u{2}x\n", "1,2", "//x"] {
            assert_eq!(unquote_bytes(&quote(text.as_bytes())), text.as_bytes());
        }
    }

    #[test]
    fn words_keep_quotes_together() {
        assert_eq!(words(" a 'b c' \"d e\"f /* g */ h"), ["a", "'b c'", "\"d e\"f", "h"]);
    }
}
