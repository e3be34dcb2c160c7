//! Configuration text as the language itself needs it: arguments, words, comments, quotes.
//!
//! A configuration text is the text between an element's parentheses. Unquoted commas separate arguments; unquoted
//! spaces separate the words of an argument. Quoting is by `'...'`, `"..."` (with backslash escapes) and `\<hex>`.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// The characters that separate words: space, tab, line feed, vertical tab, form feed, carriage return.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Whether a byte is allowed in a variable name.
pub(crate) fn is_variable_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a comment begins at `at`.
pub(crate) fn starts_comment(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'/') && matches!(bytes.get(at + 1), Some(b'/' | b'*'))
}

/// The end of the comment that begins at `at`: after its line end or its `*/`, or the end of the text.
pub(crate) fn skip_comment(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'/') { skip_line(bytes, at + 2) } else { skip_block(bytes, at + 2) }
}

/// The start of the next line; `\n`, `\r` and `\r\n` end lines.
pub(crate) fn skip_line(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte == b'\n' {
            break;
        }
        if byte == b'\r' {
            return if bytes.get(at) == Some(&b'\n') { at + 1 } else { at };
        }
    }
    at
}

fn skip_block(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        if bytes[at] == b'*' && bytes.get(at + 1) == Some(&b'/') {
            return at + 2;
        }
        at += 1;
    }
    at.min(bytes.len())
}

/// The end of the `\<...>` that begins at `at`; comments inside it may contain `>`.
pub(crate) fn skip_hex(bytes: &[u8], mut at: usize) -> usize {
    at += 2;
    while at < bytes.len() {
        if bytes[at] == b'>' {
            return at + 1;
        }
        at = if starts_comment(bytes, at) { skip_comment(bytes, at) } else { at + 1 };
    }
    bytes.len()
}

/// The end of the quoted string that begins at `at`: after its closing quote, or the end of the text.
pub(crate) fn skip_quoted(bytes: &[u8], mut at: usize) -> usize {
    let quote = bytes[at];
    at += 1;
    while at < bytes.len() {
        if bytes[at] == quote {
            return at + 1;
        }
        at = if bytes[at] != b'\\' || quote == b'\'' {
            at + 1
        } else if bytes.get(at + 1) == Some(&b'<') {
            skip_hex(bytes, at)
        } else if bytes[at..].starts_with(b"\\\r\n") {
            at + 3
        } else {
            at + 2
        };
    }
    bytes.len()
}

/// Skips one unit outside comments and spaces: a quoted string, a `\<...>`, or one byte.
pub(crate) fn skip_unit(bytes: &[u8], at: usize) -> usize {
    match bytes[at] {
        b'"' | b'\'' => skip_quoted(bytes, at),
        b'\\' if bytes.get(at + 1) == Some(&b'<') => skip_hex(bytes, at),
        _ => at + 1,
    }
}

fn skip_space_and_comments(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        if is_space(bytes[at]) {
            at += 1;
        } else if starts_comment(bytes, at) {
            at = skip_comment(bytes, at);
        } else {
            break;
        }
    }
    at.min(bytes.len())
}

/// Reads one argument from `from`, or the whole rest if `commas` is false. Returns it and its end.
fn clean(text: &str, from: usize, commas: bool) -> (Cow<'_, str>, usize) {
    let bytes = text.as_bytes();
    let mut at = skip_space_and_comments(bytes, from);
    let mut joined = String::new();
    let (mut left, mut right) = (at, at);
    let mut after_comment = false;
    while at < bytes.len() {
        if is_space(bytes[at]) {
            at += 1;
        } else if starts_comment(bytes, at) {
            at = skip_comment(bytes, at);
            after_comment = true;
        } else if commas && bytes[at] == b',' {
            break;
        } else {
            if after_comment {
                joined.push_str(&text[left..right]);
                joined.push(' ');
                left = at;
                after_comment = false;
            }
            at = skip_unit(bytes, at);
            right = at;
        }
    }
    let last = &text[left..right];
    if joined.is_empty() {
        return (Cow::Borrowed(last), at);
    }
    joined.push_str(last);
    (Cow::Owned(joined), at)
}

/// Removes surrounding spaces, and replaces each comment and the spaces around it by one space.
pub fn uncomment(text: &str) -> Cow<'_, str> {
    clean(text, 0, false).0
}

/// Splits a text into arguments at unquoted commas, without comments. An empty last argument is omitted.
pub fn arguments(text: &str) -> Vec<Cow<'_, str>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (argument, end) = clean(text, at, true);
        if !argument.is_empty() || end < text.len() {
            found.push(argument);
        }
        at = end + 1;
    }
    found
}

/// Splits off the first word: returns it and the rest, both without leading spaces and comments.
pub fn first_word(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let start = skip_space_and_comments(bytes, 0);
    let mut end = start;
    while end < bytes.len() && !is_space(bytes[end]) && !starts_comment(bytes, end) {
        end = skip_unit(bytes, end);
    }
    (&text[start..end], &text[skip_space_and_comments(bytes, end)..])
}

/// Splits a text into words at unquoted spaces and comments.
pub fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let (word, next) = first_word(rest);
        if word.is_empty() {
            return found;
        }
        found.push(word);
        rest = next;
    }
}

/// Splits a leading keyword (letters, digits and `_.:?!`) off an argument: returns it and the rest.
///
/// Returns `None` if the first word is not a keyword.
pub fn keyword(argument: &str) -> Option<(&str, &str)> {
    let bytes = argument.as_bytes();
    let end = bytes.iter().position(|&byte| is_space(byte)).unwrap_or(bytes.len());
    let word = &bytes[..end];
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:?!".contains(byte);
    if word.is_empty() || !word.iter().all(fits) {
        return None;
    }
    let rest = argument[end..].trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8));
    Some((&argument[..end], rest))
}

/// Removes comments and one level of quotes, and expands escapes. The result is bytes, because escapes can produce any
/// byte.
pub fn unquote(text: &str) -> Vec<u8> {
    let cleaned = uncomment(text);
    let bytes = cleaned.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut quote = 0;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let escape =
            byte == b'\\' && at + 1 < bytes.len() && (quote == b'"' || (quote == 0 && bytes[at + 1] == b'<'));
        if escape {
            at = unescape(bytes, at, &mut out);
            continue;
        }
        if quote == 0 && (byte == b'"' || byte == b'\'') {
            quote = byte;
        } else if quote == byte {
            quote = 0;
        } else {
            out.push(byte);
        }
        at += 1;
    }
    out
}

/// Expands the escape at `at`, which at least one byte must follow. Returns its end.
fn unescape(bytes: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let kind = bytes[at + 1];
    let simple = match kind {
        b'\r' => return if bytes.get(at + 2) == Some(&b'\n') { at + 3 } else { at + 2 },
        b'\n' => return at + 2,
        b'0'..=b'7' => {
            let digits = bytes[at + 1..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(*byte));
            let (count, value) =
                digits.fold((0, 0_u32), |(n, v), byte| (n + 1, v * 8 + u32::from(byte - b'0')));
            out.push(value as u8);
            return at + 1 + count;
        }
        b'x' => {
            let digits = bytes[at + 2..].iter().map_while(|&byte| hex_digit(byte));
            let (count, value) = digits.fold((0, 0_u8), |(n, v), digit| (n + 1, (v << 4) | digit));
            out.push(value);
            return at + 2 + count;
        }
        b'<' => return unescape_hex(bytes, at + 2, out),
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        other => other,
    };
    out.push(simple);
    at + 2
}

/// Reads pairs of hexadecimal digits up to `>`. Other characters between them are skipped; an odd digit is dropped.
fn unescape_hex(bytes: &[u8], mut at: usize, out: &mut Vec<u8>) -> usize {
    let mut half = None;
    while at < bytes.len() {
        if bytes[at] == b'>' {
            return at + 1;
        }
        if starts_comment(bytes, at) {
            at = skip_comment(bytes, at);
            continue;
        }
        if let Some(digit) = hex_digit(bytes[at]) {
            match half.take() {
                Some(high) => out.push((high << 4) | digit),
                None => half = Some(digit),
            }
        }
        at += 1;
    }
    bytes.len()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Puts a text into double quotes, as [`unquote`] reverses; the result is ASCII on one line.
pub fn quote(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for &byte in text {
        match byte {
            b'\\' | b'"' | b'$' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            32..=126 => out.push(char::from(byte)),
            _ => {
                out.push('\\');
                for shift in [6, 3, 0] {
                    out.push(char::from(b'0' + ((byte >> shift) & 7)));
                }
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn arguments_are_split_and_cleaned() {
        let check = |text: &str, expected: &[&str]| assert_eq!(arguments(text), expected, "{text:?}");
        check("", &[]);
        check("a, b, c", &["a", "b", "c"]);
        check("  a /*?*/ b,  c, ", &["a b", "c"]);
        check("a,,b", &["a", "", "b"]);
        check(",", &[""]);
        check("\"x, y\" // ?", &["\"x, y\""]);
        check("'a,b' \\<2c , // , \n>, c", &["'a,b' \\<2c , // , \n>", "c"]);
        check("a   b", &["a   b"]);
        check("/* only */", &[]);
        check("\"unfinished, ", &["\"unfinished, "]);
        check("\"\\", &["\"\\"]);
        check("é, ü", &["é", "ü"]);
    }

    #[test]
    fn words_are_split() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text:?}");
        check("a  b, c", &["a", "b,", "c"]);
        check("  'a /*?*/ b'c", &["'a /*?*/ b'c"]);
        check("a/* x */b", &["a", "b"]);
        check("\\<00 11> x", &["\\<00 11>", "x"]);
        check("", &[]);
    }

    #[test]
    fn keywords_are_taken_off() {
        assert_eq!(keyword("LIMIT  10"), Some(("LIMIT", "10")));
        assert_eq!(keyword("10"), Some(("10", "")));
        assert_eq!(keyword("\"a\" b"), None);
        assert_eq!(keyword(""), None);
    }

    #[test]
    fn quotes_and_escapes_are_undone() {
        let check = |text: &str, expected: &[u8]| assert_eq!(unquote(text), expected, "{text:?}");
        check("\"\\n\" abc /* 123 */ '/* def */'", b"\n abc /* def */");
        check("\\<48656c6C 6f 2 /* And > finally */ 1>", b"Hello!");
        check("\"\\x41\\102\\q\\\\\"", b"ABq\\");
        check("'a\\n'", b"a\\n");
        check("\"a\\\r\nb\"", b"ab");
        check("\"\\<ff0>\"", b"\xff");
        check("\\", b"\\");
        check("\"it's\"", b"it's");
    }

    #[test]
    fn quoting_is_undone_by_unquoting() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unquote(&quote(&all)), all);
        assert_eq!(quote(b""), "\"\"");
        assert_eq!(quote(b"a\"$\n\xff"), "\"a\\\"\\$\\n\\377\"");
        assert_eq!(unquote(&quote(b"")), vec![0_u8; 0]);
    }
}
