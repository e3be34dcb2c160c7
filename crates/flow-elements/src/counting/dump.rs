//! The formats in which the printing elements show bytes.

use core::fmt::Write;

use element::arguments::{ArgumentError, FromArgument, Word};
use element::prelude::*;

/// Format in which to print the bytes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentsFormat {
    Nothing,
    Hex,
    Ascii,
}

impl FromArgument for ContentsFormat {
    const KIND: &'static str = "NONE, HEX or ASCII";

    fn from_argument(text: &str, setup: &Setup) -> Result<ContentsFormat, ArgumentError> {
        if let Ok(shown) = bool::from_argument(text, setup) {
            return Ok(if shown { ContentsFormat::Hex } else { ContentsFormat::Nothing });
        }
        match Word::from_argument(text, setup)?.0.to_ascii_uppercase().as_str() {
            "NONE" => Ok(ContentsFormat::Nothing),
            "HEX" => Ok(ContentsFormat::Hex),
            "ASCII" => Ok(ContentsFormat::Ascii),
            upper => Err(ArgumentError::semantic(format!(
                "bad contents value '{upper}'; should be 'NONE', 'HEX', or 'ASCII'"
            ))),
        }
    }
}

/// Appends `bytes` in hexadecimal. `space` returns the separator before each byte.
pub(crate) fn hex(line: &mut String, bytes: &[u8], space: impl Fn(usize) -> &'static str) {
    for (index, byte) in bytes.iter().enumerate() {
        line.push_str(space(index));
        // Writing to a string does not fail.
        let _ = write!(line, "{byte:02x}");
    }
}

/// Appends `bytes` as ASCII, with dots for unprintable ones.
pub(crate) fn ascii(line: &mut String, bytes: &[u8], space: impl Fn(usize) -> &'static str) {
    for (index, byte) in bytes.iter().enumerate() {
        line.push_str(space(index));
        line.push(if (32..127).contains(byte) { char::from(*byte) } else { '.' });
    }
}

/// The first `most` bytes; all if `most` is negative.
pub(crate) fn first(bytes: &[u8], most: i32) -> &[u8] {
    match usize::try_from(most) {
        Ok(most) => bytes.get(..most).unwrap_or(bytes),
        Err(_) => bytes,
    }
}
