//! TCP options as text: `mss1460`, `wscale7`, `sackok`, `sack1-5`, `ts1:2`, `number=byte:byte`.

use super::number::take;
use super::options;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use packet::view::tcp::option;

/// A selection of options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct OptionSelection {
    sack: bool,
    timestamp: bool,
    others: bool,
}

impl OptionSelection {
    pub(super) const ALL: OptionSelection = OptionSelection { sack: true, timestamp: true, others: true };
    /// All options except timestamps and padding.
    pub(super) const PLAIN: OptionSelection = OptionSelection { timestamp: false, ..OptionSelection::ALL };
    /// Selective acknowledgements only.
    pub(super) const SACK: OptionSelection = OptionSelection { sack: true, timestamp: false, others: false };

    fn includes(self, kind: u8) -> bool {
        match kind {
            option::SACK | option::SACK_PERMITTED => self.sack,
            option::TIMESTAMP => self.timestamp,
            _ => self.others,
        }
    }
}

/// Appends the selected options as text.
pub(super) fn write(options: &[u8], selection: OptionSelection, out: &mut String) {
    options::write(options, out, |option, start, out| write_one(option, selection, start, out));
}

/// Appends one option. The error means that it is malformed, even if it is not selected.
fn write_one(option: &[u8], selection: OptionSelection, start: usize, out: &mut String) -> fmt::Result {
    let (kind, data) = (option[0], &option[2..]);
    let right = match kind {
        option::SEGMENT_SIZE => data.len() == 2,
        option::WINDOW_SCALE => data.len() == 1,
        option::SACK_PERMITTED => data.is_empty(),
        option::SACK => data.len().is_multiple_of(8),
        option::TIMESTAMP => data.len() == 8,
        _ => true,
    };
    if !right {
        return Err(fmt::Error);
    }
    if !selection.includes(kind) {
        return Ok(());
    }
    let (words, _) = data.as_chunks::<4>();
    let number = |at: usize| words.get(at).map_or(0, |word| u32::from_be_bytes(*word));
    if kind == option::SACK {
        return (0..words.len()).step_by(2).try_for_each(|at| {
            options::separate(start, out);
            write!(out, "sack{}-{}", number(at), number(at + 1))
        });
    }
    options::separate(start, out);
    match (kind, data) {
        (option::SEGMENT_SIZE, [high, low]) => write!(out, "mss{}", u16::from_be_bytes([*high, *low])),
        (option::WINDOW_SCALE, [scale]) => write!(out, "wscale{scale}"),
        (option::SACK_PERMITTED, _) => out.write_str("sackok"),
        (option::TIMESTAMP, _) => write!(out, "ts{}:{}", number(0), number(1)),
        _ => options::write_other(option, out),
    }
}

/// Appends the bytes of the selected options, up to the first malformed one.
pub(super) fn pick(options: &[u8], selection: OptionSelection, out: &mut Vec<u8>) {
    options::split(options)
        .map_while(Result::ok)
        .filter(|option| selection.includes(option[0]))
        .for_each(|option| out.extend(option));
}

/// Parses the selected options; `None` if the text is malformed or they don't fit into a header.
pub(super) fn read(text: &str, selection: OptionSelection) -> Option<Vec<u8>> {
    options::read(text, |rest, options| read_one(rest, selection, options))
}

fn read_one(rest: &mut &[u8], selection: OptionSelection, options: &mut Vec<u8>) -> Option<()> {
    if let Some(after) = rest.strip_prefix(b"mss").filter(|_| selection.others) {
        *rest = after;
        let size = u16::try_from(take(rest)?).ok()?;
        options.extend([option::SEGMENT_SIZE, 4]);
        options.extend(size.to_be_bytes());
    } else if let Some(after) = rest.strip_prefix(b"wscale").filter(|_| selection.others) {
        *rest = after;
        options.extend([option::WINDOW_SCALE, 3, u8::try_from(take(rest)?).ok()?]);
    } else if let Some(after) = rest.strip_prefix(b"sackok").filter(|_| selection.sack) {
        *rest = after;
        options.extend([option::SACK_PERMITTED, 2]);
    } else if let Some(after) = rest.strip_prefix(b"sack").filter(|_| selection.sack) {
        *rest = after;
        return read_blocks(rest, options);
    } else if let Some(after) = rest.strip_prefix(b"ts").filter(|_| selection.timestamp) {
        *rest = after;
        let clock = take(rest)?;
        *rest = rest.strip_prefix(b":")?;
        let echo = take(rest)?;
        // A leading timestamp is aligned by two padding bytes, as is usual.
        if options.is_empty() {
            options.extend([option::NOP; 2]);
        }
        options.extend([option::TIMESTAMP, 10]);
        options.extend(clock.to_be_bytes());
        options.extend(echo.to_be_bytes());
    } else if selection.others && (selection.timestamp || rest.first().is_some_and(u8::is_ascii_digit)) {
        // Padding is accepted only if everything is selected.
        return options::read_other(rest, options);
    } else {
        return None;
    }
    Some(())
}

/// Parses the blocks of one option, which are separated by commas.
fn read_blocks(rest: &mut &[u8], options: &mut Vec<u8>) -> Option<()> {
    let start = options.len();
    options.extend([option::SACK, 0]);
    loop {
        let first = take(rest)?;
        *rest = rest.strip_prefix(b"-").or_else(|| rest.strip_prefix(b":"))?;
        options.extend(first.to_be_bytes());
        options.extend(take(rest)?.to_be_bytes());
        match rest.strip_prefix(b",sack") {
            Some(after) if after.first().is_some_and(u8::is_ascii_digit) => *rest = after,
            _ => break,
        }
    }
    options[start + 1] = u8::try_from(options.len() - start).ok()?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(options: &[u8], selection: OptionSelection) -> String {
        let mut out = String::new();
        write(options, selection, &mut out);
        out
    }

    #[test]
    fn reads_and_writes() {
        for text in [
            "mss1460",
            "wscale10",
            "sackok",
            "sack95-98;sack1-2",
            "ts669063908:38382731",
            "99=0:5:10",
            "mss1;ts1:2;sackok",
        ] {
            assert_eq!(written(&read(text, OptionSelection::ALL).unwrap(), OptionSelection::ALL), text);
        }
        let all = read("nop,mss1400;nop;sack1-2,sack3-4;ts1:2;eol", OptionSelection::ALL).unwrap();
        assert_eq!(written(&all, OptionSelection::ALL), "mss1400;sack1-2;sack3-4;ts1:2");
        assert_eq!(written(&all, OptionSelection::PLAIN), "mss1400;sack1-2;sack3-4");
        assert_eq!(written(&all, OptionSelection::SACK), "sack1-2;sack3-4");
        let mut sack = Vec::new();
        pick(&all, OptionSelection::SACK, &mut sack);
        assert_eq!(sack.len(), 18);
        assert_eq!(read("ts1:2", OptionSelection::ALL).unwrap(), [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(written(&[], OptionSelection::ALL), ".");
        assert_eq!(written(&[2, 3, 1], OptionSelection::SACK), "?");
        assert_eq!(written(&[9], OptionSelection::ALL), "?");
        assert_eq!(written(&[9, 1], OptionSelection::ALL), "?");
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [
            "",
            "mss",
            "mss65536",
            "wscale256",
            "sack1",
            "sack1-",
            "ts1",
            "ts:",
            "256",
            "mss1x",
            "eol,nop",
            "sackok sackok",
        ] {
            assert_eq!(read(text, OptionSelection::ALL), None, "{text}");
        }
        assert_eq!(read("mss1", OptionSelection::SACK), None);
        assert_eq!(read("sack1-2,sack1-2;sack1-2;sack1-2,sack1-2", OptionSelection::ALL), None);
    }
}
