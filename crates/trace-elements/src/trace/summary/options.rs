//! Conversion of options between bytes and text, common to IP and TCP.
//!
//! `;` separates options; `.` means no options, `?` malformed ones. The end and padding options are read but never
//! written.

use super::number::take;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use packet::view::ip4::{OPTION_END, OPTION_NOP};

/// The maximum length of an IP or TCP header's options.
pub(super) const MAX_LENGTH: usize = 40;

/// Appends options as text, each by `one`, which gets the position in `out` where the options start. It returns an
/// error if an option is malformed.
pub(super) fn write(
    options: &[u8],
    out: &mut String,
    mut one: impl FnMut(&[u8], usize, &mut String) -> fmt::Result,
) {
    let start = out.len();
    if split(options).try_for_each(|option| one(option?, start, out)).is_err() {
        out.truncate(start);
        out.push('?');
    } else if out.len() == start {
        out.push('.');
    }
}

/// Appends a separator, unless nothing was written since `start`.
pub(super) fn separate(start: usize, out: &mut String) {
    if out.len() > start {
        out.push(';');
    }
}

/// Iterates over options without padding. A malformed option ends the iteration with an error.
pub(super) fn split(mut options: &[u8]) -> impl Iterator<Item = Result<&[u8], fmt::Error>> {
    core::iter::from_fn(move || {
        loop {
            match *options {
                [] | [OPTION_END, ..] => return None,
                [OPTION_NOP, ref rest @ ..] => options = rest,
                [_, length, ..] if length >= 2 && options.len() >= usize::from(length) => {
                    let (option, rest) = options.split_at(usize::from(length));
                    options = rest;
                    return Some(Ok(option));
                }
                _ => {
                    options = &[];
                    return Some(Err(fmt::Error));
                }
            }
        }
    })
}

/// Appends an option as `number=byte:byte`.
pub(super) fn write_other(option: &[u8], out: &mut String) -> fmt::Result {
    let (kind, data) = (option.first().ok_or(fmt::Error)?, option.get(2..).unwrap_or(&[]));
    write!(out, "{kind}")?;
    data.iter()
        .enumerate()
        .try_for_each(|(index, byte)| write!(out, "{}{byte}", if index == 0 { '=' } else { ':' }))
}

/// Parses options, each by `one`; `None` if the text is malformed or they don't fit into a header.
pub(super) fn read(
    text: &str,
    mut one: impl FnMut(&mut &[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<Vec<u8>> {
    let mut rest = text.as_bytes();
    let mut options = Vec::new();
    loop {
        one(&mut rest, &mut options)?;
        if rest.is_empty() {
            return fit(options);
        }
        rest = rest.strip_prefix(b",").or_else(|| rest.strip_prefix(b";"))?;
    }
}

/// Removes leading padding until the options fit; `None` if they don't.
fn fit(mut options: Vec<u8>) -> Option<Vec<u8>> {
    let surplus = options.len().saturating_sub(MAX_LENGTH);
    let padding = options.iter().take(surplus).take_while(|byte| **byte == OPTION_NOP).count();
    options.drain(..padding);
    (options.len() <= MAX_LENGTH).then_some(options)
}

/// Parses `nop`, `eol`, or an option as `number=byte:byte`.
pub(super) fn read_other(rest: &mut &[u8], options: &mut Vec<u8>) -> Option<()> {
    for (name, kind) in [(&b"nop"[..], OPTION_NOP), (b"eol", OPTION_END)] {
        if let Some(after) = rest.strip_prefix(name) {
            *rest = after;
            options.push(kind);
            // Only another form of the end option can follow it.
            return (kind != OPTION_END || !after.starts_with(b",")).then_some(());
        }
    }
    let kind = u8::try_from(take(rest)?).ok()?;
    options.push(kind);
    let start = options.len();
    while rest.len() > 1
        && rest[0] == (if options.len() == start { b'=' } else { b':' })
        && rest[1].is_ascii_digit()
    {
        *rest = &rest[1..];
        if options.len() == start {
            options.push(0);
        }
        options.push(u8::try_from(take(rest)?).ok()?);
        if options.len() > start + MAX_LENGTH {
            return None;
        }
    }
    if options.len() > start {
        options[start] = (options.len() - start + 1) as u8;
    }
    Some(())
}
