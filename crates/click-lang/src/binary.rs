//! Recognition of binary files that were given as configurations.

use crate::Diagnostic;
use alloc::format;

/// The number of characters that are examined.
const EXAMINED: usize = 4096;

/// A text is binary if more than one of this many characters is a control character or was not UTF-8. A text in another
/// encoding, with a few such characters in its comments, is not.
const TEXT_PER_BINARY: usize = 8;

/// A format that a file's first bytes show.
struct Format {
    /// The beginnings, as text: each byte that is not UTF-8 is U+FFFD.
    beginnings: &'static [&'static str],
    name: &'static str,
    hint: &'static str,
}

const DUMP_HINT: &str = "an element reads the packets of a capture: FromDump(FILE)";

const FORMATS: &[Format] = &[
    Format {
        // Little-endian and big-endian, with microseconds and with nanoseconds, of version 2.4.
        beginnings: &[
            "\u{fffd}\u{f2}\u{fffd}\u{2}\0\u{4}\0",
            "M<\u{fffd}\u{fffd}\u{2}\0\u{4}\0",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\0\u{2}\0\u{4}",
            "\u{fffd}\u{fffd}<M\0\u{2}\0\u{4}",
        ],
        name: "a pcap capture",
        hint: DUMP_HINT,
    },
    Format { beginnings: &["\n\r\r\n"], name: "a pcapng capture", hint: DUMP_HINT },
    Format {
        beginnings: &["\u{1f}\u{fffd}\u{8}", "(\u{fffd}/\u{fffd}", "BZh9", "\u{fffd}7zXZ\0"],
        name: "a compressed file",
        hint: "decompress it first",
    },
    Format {
        beginnings: &["\u{7f}ELF"],
        name: "a program",
        hint: "give the file with the text of the configuration",
    },
];

/// The diagnostic for a binary file, which states what the file looks like; `None` for a text.
pub(crate) fn refusal(text: &str, file: &str) -> Option<Diagnostic> {
    if !is_binary(text) {
        return None;
    }
    let begins = |format: &&Format| format.beginnings.iter().any(|beginning| text.starts_with(beginning));
    let (name, hint) = match FORMATS.iter().find(begins) {
        Some(format) => (format.name, format.hint),
        None => ("a binary file", "give the file with the text of the configuration"),
    };
    let file = if file.is_empty() { "config" } else { file };
    let message = format!("‘{file}’ is {name}, not a configuration");
    Some(Diagnostic::without_location(message).with_hint(Some(hint.into())))
}

/// Whether the beginning of a text has a NUL, or many control characters.
fn is_binary(text: &str) -> bool {
    let (mut all, mut binary) = (0, 0);
    for character in text.chars().take(EXAMINED) {
        all += 1;
        match character {
            '\0' => return true,
            '\u{fffd}' => binary += 1,
            _ if character.is_control() && !character.is_ascii_whitespace() => binary += 1,
            _ => {}
        }
    }
    binary * TEXT_PER_BINARY > all
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use capture::{LinkType, PcapEncoder};

    /// Asserts what the text of a file with these bytes looks like; empty for a configuration.
    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let found = refusal(&String::from_utf8_lossy(bytes), "f").map(|found| found.message);
        let expected = (!expected.is_empty()).then(|| format!("‘f’ is {expected}, not a configuration"));
        assert_eq!(found, expected, "{bytes:x?}");
    }

    #[test]
    fn the_first_bytes_show_the_format() {
        for has_nanoseconds in [false, true] {
            let encoder = PcapEncoder::new(LinkType::ETHERNET).nanoseconds(has_nanoseconds);
            let mut header = encoder.file_header();
            check(&header, "a pcap capture");
            // The magic number and the two numbers of the version, in the other byte order.
            header[..4].reverse();
            header[4..6].reverse();
            header[6..8].reverse();
            check(&header, "a pcap capture");
        }
        check(b"\n\r\r\n\x1c\0\0\0M<+\x1a\x01\0\0\0", "a pcapng capture");
        check(b"\x1f\x8b\x08\0\0\0\0\0", "a compressed file");
        check(b"\x28\xb5\x2f\xfd\0", "a compressed file");
        check(b"\x7fELF\x02\x01\x01\0", "a program");
        check(b"Idle -> Discard;\0", "a binary file");
        check(b"\x01\x02\x9f\xc0abcdef", "a binary file");
    }

    #[test]
    fn a_text_in_another_encoding_is_no_binary_file() {
        check(b"", "");
        check(b"\n\r\r\nIdle -> Discard;", "");
        check("Idle -> Discard; // Größe".as_bytes(), "");
        check(b"Idle -> Discard; // Gr\xf6\xdfe", "");
    }
}
