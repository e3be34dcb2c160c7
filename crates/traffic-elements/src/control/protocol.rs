//! Parser of the ControlSocket protocol, version 1.3.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Maximum data of a command in bytes, so that clients can't fill the memory.
pub(super) const MAX_DATA: usize = 1 << 24;
/// Maximum length of a command line in bytes.
pub(super) const MAX_LINE: usize = 1 << 20;

/// Reply codes.
pub(super) mod code {
    pub(in super::super) const OK: u16 = 200;
    pub(in super::super) const WARNING: u16 = 220;
    pub(in super::super) const SYNTAX: u16 = 500;
    pub(in super::super) const UNIMPLEMENTED: u16 = 501;
    pub(in super::super) const NO_ELEMENT: u16 = 510;
    pub(in super::super) const NO_HANDLER: u16 = 511;
    pub(in super::super) const HANDLER: u16 = 520;
    pub(in super::super) const TOO_BIG: u16 = 521;
    pub(in super::super) const LLRPC: u16 = 522;
    pub(in super::super) const PERMISSION: u16 = 530;
    pub(in super::super) const UNSPECIFIED: u16 = 590;
}

/// The reply to `HELP`, line by line.
pub(super) const HELP: &[&str] = &[
    "Reading a handler; the answer carries its value:",
    "  READ PATH [TEXT]       with TEXT as its parameter",
    "  READDATA PATH LENGTH   with the LENGTH bytes after this line as its parameter",
    "  READUNTIL PATH END     with the lines up to one that is END as its parameter",
    "Writing to a handler:",
    "  WRITE PATH [TEXT]      writes TEXT",
    "  WRITEDATA PATH LENGTH  writes the LENGTH bytes after this line",
    "  WRITEUNTIL PATH END    writes the lines up to one that is END",
    "Asking whether a handler exists:",
    "  CHECKREAD PATH, CHECKWRITE PATH",
    "Calling an element's binary interface; the answer carries its data:",
    "  LLRPC ELEMENT#NUMBER [LENGTH]",
    "Ending the connection:",
    "  QUIT",
];

/// A command with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Read { handler: String, data: String },
    Write { handler: String, data: String },
    Check { handler: String, write: bool },
    Llrpc { name: String, data: Vec<u8> },
    Help,
    Quit { alone: bool },
}

/// The start of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// An incomplete command.
    Incomplete(Progress),
    /// An empty line of this many bytes.
    Blank(usize),
    /// A command of this many bytes, including its data.
    Command(usize, Command),
    /// This many bytes of invalid input, with the code and text of the reply.
    Bad(usize, u16, String),
    /// Input above the limits: reply and close the connection.
    TooBig(u16, String),
}

/// Results of earlier parsing of the same input, so that input that arrives byte by byte is not rescanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The first line does not end before this offset.
    line: usize,
    /// The data do not end before this offset.
    data: usize,
}

/// The words of a line with their offsets.
struct Line<'t> {
    text: &'t [u8],
    words: Vec<(usize, usize)>,
}

impl<'t> Line<'t> {
    fn new(text: &'t [u8]) -> Line<'t> {
        let mut words = Vec::new();
        let mut start = None;
        for (at, byte) in text.iter().chain(b" ").enumerate() {
            match (is_space(*byte), start) {
                (true, Some(begun)) => {
                    words.push((begun, at));
                    start = None;
                }
                (false, None) => start = Some(at),
                _ => {}
            }
        }
        Line { text, words }
    }

    fn word(&self, number: usize) -> String {
        let (start, end) = self.words.get(number).copied().unwrap_or_default();
        text(self.text.get(start..end).unwrap_or_default())
    }

    /// The text from the third word to the end of the last one.
    fn rest(&self) -> &'t [u8] {
        match (self.words.get(2), self.words.last()) {
            (Some((start, _)), Some((_, end))) => self.text.get(*start..*end).unwrap_or_default(),
            _ => b"",
        }
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The end of a line, without and with its terminator (CR, LF or CRLF). The search starts at `from`.
fn line_end(input: &[u8], from: usize) -> Option<(usize, usize)> {
    let end = from + input.get(from..)?.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
    let pair = input.get(end..end + 2) == Some(b"\r\n");
    Some((end, end + 1 + usize::from(pair)))
}

/// Parses the start of `input`; `closed` means that no more input will arrive.
pub(super) fn parse(input: &[u8], closed: bool, progress: Progress) -> Parsed {
    let (end, next) = match line_end(input, progress.line) {
        Some(found) => found,
        None if input.len() > MAX_LINE => return Parsed::TooBig(code::TOO_BIG, "Line too long".into()),
        None if closed => (input.len(), input.len()),
        None => return Parsed::Incomplete(Progress { line: input.len(), data: 0 }),
    };
    let line = Line::new(input.get(..end).unwrap_or_default());
    if line.words.is_empty() {
        return Parsed::Blank(next);
    }
    let count = line.words.len();
    let command = line.word(0).to_ascii_uppercase();
    let bad = |text: &str| Parsed::Bad(next, code::SYNTAX, text.to_owned());
    let wrong = || bad("Wrong number of arguments");
    match command.as_str() {
        "READ" | "GET" | "WRITE" | "SET" if count < 2 => wrong(),
        "READ" | "GET" => {
            Parsed::Command(next, Command::Read { handler: line.word(1), data: text(line.rest()) })
        }
        "WRITE" | "SET" => {
            Parsed::Command(next, Command::Write { handler: line.word(1), data: text(line.rest()) })
        }
        "READDATA" | "WRITEDATA" | "SETDATA" if count != 3 => wrong(),
        "READDATA" | "WRITEDATA" | "SETDATA" => {
            let Some(length) = length(&line.word(2)) else {
                return bad(&format!("Syntax error in '{}'", line.word(0)));
            };
            let (handler, read) = (line.word(1), command == "READDATA");
            sized(input, (end, next), length, closed, |data| read_or_write(read, handler, text(data)))
        }
        "READUNTIL" | "WRITEUNTIL" if count < 2 => wrong(),
        "READUNTIL" | "WRITEUNTIL" => {
            let (handler, read) = (line.word(1), command == "READUNTIL");
            until(input, (end, next), line.rest(), (closed, progress.data), |data| {
                read_or_write(read, handler, text(data))
            })
        }
        "CHECKREAD" | "CHECKWRITE" if count != 2 => wrong(),
        "CHECKREAD" | "CHECKWRITE" => {
            Parsed::Command(next, Command::Check { handler: line.word(1), write: command == "CHECKWRITE" })
        }
        "LLRPC" if count != 2 && count != 3 => wrong(),
        "LLRPC" => {
            let Some(length) = (if count == 3 { length(&line.word(2)) } else { Some(0) }) else {
                return bad("Syntax error in 'llrpc'");
            };
            let name = line.word(1);
            sized(input, (end, next), length, closed, |data| Command::Llrpc { name, data: data.to_vec() })
        }
        "CLOSE" | "QUIT" => Parsed::Command(next, Command::Quit { alone: count == 1 }),
        "HELP" => Parsed::Command(next, Command::Help),
        _ => Parsed::Bad(next, code::UNIMPLEMENTED, format!("Command '{command}' unimplemented")),
    }
}

/// Parses a number of bytes: decimal, or hexadecimal or octal with Click's prefixes.
fn length(word: &str) -> Option<u64> {
    let length = match word.strip_prefix('0') {
        Some(rest) => match rest.strip_prefix(['x', 'X']) {
            Some(digits) => i32::from_str_radix(digits, 16),
            None if rest.is_empty() => return Some(0),
            None => i32::from_str_radix(rest, 8),
        },
        None => word.parse(),
    };
    u64::try_from(length.ok()?).ok()
}

fn read_or_write(read: bool, handler: String, data: String) -> Command {
    if read { Command::Read { handler, data } } else { Command::Write { handler, data } }
}

/// A command whose line ends at `line`, and whose data are the `length` bytes at `start`.
fn sized(
    input: &[u8],
    (line, start): (usize, usize),
    length: u64,
    closed: bool,
    command: impl FnOnce(&[u8]) -> Command,
) -> Parsed {
    let Some(length) = usize::try_from(length).ok().filter(|length| *length <= MAX_DATA) else {
        return Parsed::TooBig(code::TOO_BIG, "Data too large".into());
    };
    match input.get(start..start + length) {
        Some(data) => Parsed::Command(start + length, command(data)),
        None if closed => Parsed::Bad(start, code::SYNTAX, "Not enough data".into()),
        None => Parsed::Incomplete(Progress { line, data: start }),
    }
}

/// A command whose line ends at `first`, and whose data are the lines from `start` to one that equals `terminator`,
/// ignoring trailing spaces.
fn until(
    input: &[u8],
    (first, start): (usize, usize),
    terminator: &[u8],
    (closed, from): (bool, usize),
    command: impl FnOnce(&[u8]) -> Command,
) -> Parsed {
    let mut line = from.max(start);
    while let Some((end, next)) = line_end(input, line) {
        let text = input.get(line..end).unwrap_or_default();
        let length = text.iter().rposition(|byte| !is_space(*byte)).map_or(0, |last| last + 1);
        if text.get(..length) == Some(terminator) {
            return Parsed::Command(next, command(input.get(start..line).unwrap_or_default()));
        }
        line = next;
    }
    if input.len() - start > MAX_DATA || input.len() - line > MAX_LINE {
        Parsed::TooBig(code::TOO_BIG, "Data too large".into())
    } else if closed {
        Parsed::Bad(start, code::SYNTAX, "Not enough data".into())
    } else {
        Parsed::Incomplete(Progress { line: first, data: line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn read(handler: &str, data: &str) -> Command {
        Command::Read { handler: handler.to_string(), data: data.to_string() }
    }

    fn write(handler: &str, data: &str) -> Command {
        Command::Write { handler: handler.to_string(), data: data.to_string() }
    }

    fn part(line: usize, data: usize) -> Parsed {
        Parsed::Incomplete(Progress { line, data })
    }

    #[test]
    fn commands() {
        for (input, length, command) in [
            ("read a.b\r\n", 10, read("a.b", "")),
            ("get a.b  1  2 \nx", 15, read("a.b", "1  2")),
            ("WRITE a.b # c\r", 14, write("a.b", "# c")),
            ("writedata a.b 3\nx\ny--", 19, write("a.b", "x\ny")),
            ("writedata a.b 0\n", 16, write("a.b", "")),
            ("readuntil a.b\nx\n y \n \nz", 22, read("a.b", "x\n y \n")),
            ("writeuntil a.b E N\nE\nE N  \n", 27, write("a.b", "E\n")),
            ("checkwrite h\n", 13, Command::Check { handler: "h".into(), write: true }),
            ("llrpc s#5 2\nxy", 14, Command::Llrpc { name: "s#5".into(), data: b"xy".to_vec() }),
            ("quit now\n", 9, Command::Quit { alone: false }),
        ] {
            assert_eq!(
                parse(input.as_bytes(), false, Progress::default()),
                Parsed::Command(length, command),
                "{input}"
            );
        }
    }

    #[test]
    fn invalid_input_is_rejected() {
        for (input, closed, answer) in [
            ("\r\n", false, Parsed::Blank(2)),
            (" \t", true, Parsed::Blank(2)),
            ("read a.b", false, part(8, 0)),
            ("writedata a.b 3\nx", false, part(15, 16)),
            ("writedata a.b 3\nx", true, Parsed::Bad(16, 500, "Not enough data".into())),
            ("writeuntil a\nb\nc", false, part(12, 15)),
            ("writeuntil a\nb\nc", true, Parsed::Bad(13, 500, "Not enough data".into())),
            ("read\n", false, Parsed::Bad(5, 500, "Wrong number of arguments".into())),
            ("readdata a -1\n", false, Parsed::Bad(14, 500, "Syntax error in 'readdata'".into())),
            ("walk on\n", false, Parsed::Bad(8, 501, "Command 'WALK' unimplemented".into())),
            ("writedata a 2000000000\n", false, Parsed::TooBig(521, "Data too large".into())),
        ] {
            assert_eq!(parse(input.as_bytes(), closed, Progress::default()), answer, "{input}");
        }
        let long = alloc::vec![b'x'; MAX_LINE + 1];
        assert_eq!(parse(&long, false, Progress::default()), Parsed::TooBig(521, "Line too long".into()));
    }

    /// On closed input, the parser never waits and always consumes something.
    #[test]
    fn closed_input_is_consumed() {
        let pieces =
            ["read", " ", "\n", "\r", "writedata", "x 4", "readuntil", "quit", "\u{0}", "llrpc a#1 9"];
        let mut random = random::Random::new(1);
        for _ in 0..5_000 {
            let mut input = String::new();
            for _ in 0..8 {
                input.push_str(pieces[random.below(pieces.len() as u32) as usize]);
            }
            let mut rest = input.as_bytes();
            while !rest.is_empty() {
                let used = match parse(rest, true, Progress::default()) {
                    Parsed::Blank(used) | Parsed::Command(used, _) | Parsed::Bad(used, ..) => used,
                    other => panic!("{other:?}"),
                };
                assert!(used > 0 && used <= rest.len());
                rest = &rest[used..];
            }
        }
    }
}
