//! IP options as text.
//!
//! `rr{1.0.0.1,1.0.0.2}+3` is a record route with two addresses before its pointer and room for three more. In
//! `ssrr{..}` and `lsrr{..}`, `^` marks the pointer. `ts{..}`, `ts.ip{..}` and `ts.preip{..}` are timestamps, `!` marks
//! nonstandard ones, and `++5` is the overflow count. Other options are `number=byte:byte`.

use super::number::{take, take_address, take_decimal};
use super::options;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::net::Ipv4Addr;
use packet::view::ip4::{OPTION_LOOSE_ROUTE, OPTION_RECORD_ROUTE, OPTION_STRICT_ROUTE, OPTION_TIMESTAMP};

/// The timestamp option's flags: with addresses, and with addresses chosen by the sender.
const WITH_ADDRESS: u8 = 1;
const CHOSEN_ADDRESS: u8 = 3;

/// Appends options as text.
pub(super) fn write(options: &[u8], out: &mut String) {
    options::write(options, out, |option, start, out| {
        options::separate(start, out);
        match option[0] {
            OPTION_RECORD_ROUTE => write_route("rr", option, out),
            OPTION_LOOSE_ROUTE => write_route("lsrr", option, out),
            OPTION_STRICT_ROUTE => write_route("ssrr", option, out),
            OPTION_TIMESTAMP => write_timestamps(option, out),
            _ => options::write_other(option, out),
        }
    });
}

fn write_route(name: &str, option: &[u8], out: &mut String) -> fmt::Result {
    let &[kind, _, pointer, ref route @ ..] = option else { return Err(fmt::Error) };
    let pointer = usize::from(pointer).checked_sub(4).ok_or(fmt::Error)?;
    write!(out, "{name}{{")?;
    let (addresses, rest) = route.as_chunks::<4>();
    let record = kind == OPTION_RECORD_ROUTE;
    for (index, address) in addresses.iter().enumerate() {
        let reached = index * 4 == pointer;
        if reached && record {
            return write!(out, "}}+{}", addresses.len() - index);
        }
        let separator = match index {
            _ if reached => "^",
            0 => "",
            _ => ",",
        };
        write!(out, "{separator}{}", Ipv4Addr::from(*address))?;
    }
    if rest.is_empty() && pointer == route.len() && !record {
        out.write_char('^')?;
    }
    out.write_char('}')
}

fn write_timestamps(option: &[u8], out: &mut String) -> fmt::Result {
    let &[_, _, pointer, flags, ref entries @ ..] = option else { return Err(fmt::Error) };
    let pointer = usize::from(pointer).checked_sub(5).ok_or(fmt::Error)?;
    let flag = flags & 0xf;
    match flag {
        0 => out.write_str("ts{")?,
        WITH_ADDRESS => out.write_str("ts.ip{")?,
        CHOSEN_ADDRESS => out.write_str("ts.preip{")?,
        _ => write!(out, "ts.{flag}{{")?,
    }
    // Undefined flags also have addresses, but their free space is counted in single words.
    let size = if matches!(flag, 1..=3) { 8 } else { 4 };
    let step = if flag == 0 { 4 } else { 8 };
    let mut at = 0;
    let mut separator = "";
    while at + size <= entries.len() {
        if at == pointer {
            if flag != CHOSEN_ADDRESS {
                break;
            }
            separator = "^";
        }
        out.write_str(separator)?;
        separator = ",";
        let entry = entries.get(at..at + step).ok_or(fmt::Error)?;
        let (words, _) = entry.as_chunks::<4>();
        let (address, time) = if flag == 0 { (None, words[0]) } else { (Some(words[0]), words[1]) };
        if let Some(address) = address {
            write!(out, "{}", Ipv4Addr::from(address))?;
        }
        // From the pointer on, a chosen address has no time yet.
        if flag != CHOSEN_ADDRESS || at < pointer {
            let time = u32::from_be_bytes(time);
            let equals = if address.is_some() { "=" } else { "" };
            let nonstandard = if time >> 31 != 0 { "!" } else { "" };
            write!(out, "{equals}{nonstandard}{}", time & 0x7fff_ffff)?;
        }
        at += step;
    }
    if at == entries.len() && at == pointer {
        out.write_char('^')?;
    }
    out.write_char('}')?;
    if at + size <= entries.len() && at == pointer {
        write!(out, "+{}", (entries.len() - at) / size)?;
    }
    if flags >> 4 != 0 {
        write!(out, "++{}", flags >> 4)?;
    }
    Ok(())
}

/// Parses options; `None` if the text is malformed or they don't fit into a header.
pub(super) fn read(text: &str) -> Option<Vec<u8>> {
    options::read(text, read_one)
}

fn read_one(rest: &mut &[u8], options: &mut Vec<u8>) -> Option<()> {
    for (name, kind) in
        [(&b"rr{"[..], OPTION_RECORD_ROUTE), (b"ssrr{", OPTION_STRICT_ROUTE), (b"lsrr{", OPTION_LOOSE_ROUTE)]
    {
        if let Some(after) = rest.strip_prefix(name) {
            *rest = after;
            return read_route(kind, rest, options);
        }
    }
    if rest.starts_with(b"ts{") || rest.starts_with(b"ts.") {
        *rest = &rest[2..];
        return read_timestamps(rest, options);
    }
    options::read_other(rest, options)
}

/// Sets the length of the option at `start`; `None` if it doesn't fit.
fn close(options: &mut [u8], start: usize) -> Option<()> {
    let length = u8::try_from(options.len() - start).ok()?;
    *options.get_mut(start + 1)? = length;
    Some(())
}

fn read_route(kind: u8, rest: &mut &[u8], options: &mut Vec<u8>) -> Option<()> {
    let start = options.len();
    options.extend([kind, 0, 0]);
    let mut pointer = None;
    loop {
        if let Some(after) = rest.strip_prefix(b"^").filter(|_| pointer.is_none()) {
            pointer = Some(options.len() - start + 1);
            *rest = after;
        }
        if !rest.first().is_some_and(u8::is_ascii_digit) {
            break;
        }
        options.extend(take_address(rest)?);
        if options.len() > start + 255 {
            return None;
        }
        *rest = rest.strip_prefix(b",").unwrap_or(rest);
    }
    *rest = rest.strip_prefix(b"}")?;
    options[start + 2] = u8::try_from(pointer.unwrap_or(options.len() - start + 1)).ok()?;
    read_room(rest, 4, options)?;
    close(options, start)
}

/// Parses `+N` and adds room for that many entries.
fn read_room(rest: &mut &[u8], size: usize, options: &mut Vec<u8>) -> Option<()> {
    if let [b'+', b'0'..=b'9', ..] = rest {
        *rest = &rest[1..];
        let room = take_decimal(rest)? as usize;
        if room < 64 {
            options.resize(options.len() + room * size, 0);
        }
    }
    Some(())
}

fn read_timestamps(rest: &mut &[u8], options: &mut Vec<u8>) -> Option<()> {
    let start = options.len();
    options.extend([OPTION_TIMESTAMP, 0, 0, 0]);
    let mut flag = None;
    if let Some(after) = rest.strip_prefix(b".") {
        *rest = after;
        flag = Some(match *rest {
            [b'i', b'p', after @ ..] => {
                *rest = after;
                WITH_ADDRESS
            }
            [b'p', b'r', b'e', b'i', b'p', after @ ..] => {
                *rest = after;
                CHOSEN_ADDRESS
            }
            _ => u8::try_from(take(rest)?).ok().filter(|flag| *flag <= 15)?,
        });
    }
    *rest = rest.strip_prefix(b"{")?;
    let mut pointer = None;
    loop {
        if let Some(after) = rest.strip_prefix(b"^").filter(|_| pointer.is_none()) {
            pointer = Some(options.len() - start + 1);
            *rest = after;
        }
        if !matches!(rest.first(), Some(b'0'..=b'9' | b'!')) {
            break;
        }
        // Without a flag, the first entry shows whether there are addresses.
        let with_address = flag.unwrap_or_else(|| {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if rest.get(digits) == Some(&b'.') { WITH_ADDRESS } else { 0 }
        });
        let guessed = flag.is_none() && with_address == WITH_ADDRESS;
        flag = Some(if guessed && pointer.is_some() { CHOSEN_ADDRESS } else { with_address });
        read_entry(rest, matches!(flag, Some(WITH_ADDRESS | CHOSEN_ADDRESS)), pointer.is_some(), options)?;
        if options.len() > start + 255 {
            return None;
        }
        *rest = rest.strip_prefix(b",").unwrap_or(rest);
    }
    // The closing brace may be missing at the end of the text.
    if !rest.is_empty() {
        *rest = rest.strip_prefix(b"}")?;
    }
    let flag = flag.unwrap_or(0);
    options[start + 2] = u8::try_from(pointer.unwrap_or(options.len() - start + 1)).ok()?;
    read_room(rest, if matches!(flag, WITH_ADDRESS | CHOSEN_ADDRESS) { 8 } else { 4 }, options)?;
    let mut overflow = 0;
    if let [b'+', b'+', b'0'..=b'9', ..] = rest {
        *rest = &rest[2..];
        overflow = u8::try_from(take(rest)?).ok().filter(|overflow| *overflow < 16).unwrap_or(0);
    }
    options[start + 3] = overflow << 4 | flag;
    close(options, start)
}

/// Parses one entry of a timestamp option. After the pointer, an address may stand alone or with `=?`.
fn read_entry(rest: &mut &[u8], address: bool, beyond: bool, options: &mut Vec<u8>) -> Option<()> {
    if address {
        options.extend(take_address(rest)?);
        match *rest {
            [b'=', b'0'..=b'9' | b'!', ..] => *rest = &rest[1..],
            [b'=', b'?', after @ ..] if beyond => {
                *rest = after;
                options.extend([0; 4]);
                return Some(());
            }
            [b'=', ..] => return None,
            _ if beyond => {
                options.extend([0; 4]);
                return Some(());
            }
            _ => return None,
        }
    }
    let nonstandard = rest.strip_prefix(b"!");
    *rest = nonstandard.unwrap_or(rest);
    let time = take(rest)? | if nonstandard.is_some() { 1 << 31 } else { 0 };
    options.extend(time.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses and prints options, and compares with the second text.
    fn check(text: &str, expected: &str) {
        let options = read(text).unwrap_or_else(|| panic!("{text} can't be read"));
        let mut written = String::new();
        write(&options, &mut written);
        assert_eq!(written, expected, "{text} is {options:?}");
    }

    #[test]
    fn reads_and_writes() {
        for text in [
            "ssrr{128.4.45.60,128.4.49.61^1.1.1.1,2.2.2.2}",
            "lsrr{1.2.3.4^}",
            "rr{2.3.4.5}+3",
            "rr{}+1",
            "ts.ip{1.0.0.1=!8320,1.0.0.2=8321^}++5",
            "ts{1,10000,!45}+2",
            "ts{1,10000,!45}+2;rr{}+1",
            "ts.ip{1.0.0.1=1}+2++3",
            "99=0:5:10",
        ] {
            check(text, text);
        }
        assert_eq!(read("98"), Some([98].to_vec()));
        check("nop;nop;eol", ".");
        check(
            "ssrr{128.4.45.60,128.4.49.61,^1.1.1.1,2.2.2.2}",
            "ssrr{128.4.45.60,128.4.49.61^1.1.1.1,2.2.2.2}",
        );
        check("ts{1.0.0.1=!8320,1.0.0.2=8321}++5", "ts.ip{1.0.0.1=!8320,1.0.0.2=8321^}++5");
        check("ts.3{1.0.0.1=1,^1.0.0.3,1.0.0.4=?}+1", "ts.preip{1.0.0.1=1^1.0.0.3,1.0.0.4,0.0.0.0}");
        check("ts.preip{1.0.0.1=1^1.0.0.3,1.0.0.4=?}+1", "ts.preip{1.0.0.1=1^1.0.0.3,1.0.0.4,0.0.0.0}");
        check("ts{1,10000,!45^0,0}", "ts{1,10000,!45}+2");
        check("ts{1,10000,!45,^0,0}", "ts{1,10000,!45}+2");
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [
            "rr{",
            "rr{1.2.3}",
            "rr{1.2.3.256}",
            "ts.99{}",
            "ts{1x",
            "ts.ip{1.2.3.4}",
            "300",
            "99=300",
            "x",
            "rr{}x",
            "eol,nop",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        // Options beyond the length of a header are cut.
        assert_eq!(
            read(&["nop"; 60].join(";")),
            Some([packet::view::ip4::OPTION_NOP; options::MAX_LENGTH].to_vec())
        );
        assert_eq!(read("rr{}+20"), None);
    }

    /// Options with every number of entries, and every number of entries before the pointer, survive as text.
    #[test]
    fn valid_options_are_read_back() {
        let check = |option: &[u8]| {
            let mut text = String::new();
            write(option, &mut text);
            assert_eq!(read(&text).as_deref(), Some(option), "{text}");
        };
        for entries in 0..=9u8 {
            for used in 0..=entries {
                for (kind, keeps_rest) in
                    [(OPTION_RECORD_ROUTE, false), (OPTION_LOOSE_ROUTE, true), (OPTION_STRICT_ROUTE, true)]
                {
                    let mut option = Vec::from([kind, 3 + 4 * entries, 4 + 4 * used]);
                    let address =
                        |entry| if entry < used || keeps_rest { [10, kind, entry, 1] } else { [0; 4] };
                    option.extend((0..entries).flat_map(address));
                    check(&option);
                }
                for overflow in [0, 1, 15] {
                    let mut option =
                        Vec::from([OPTION_TIMESTAMP, 4 + 4 * entries, 5 + 4 * used, overflow << 4]);
                    let time = |entry| if entry < used { [0x80 * (entry % 2), 0, entry, 7] } else { [0; 4] };
                    option.extend((0..entries).flat_map(time));
                    check(&option);
                    if entries > 4 {
                        continue;
                    }
                    for flag in [WITH_ADDRESS, CHOSEN_ADDRESS] {
                        let mut option = Vec::from([
                            OPTION_TIMESTAMP,
                            4 + 8 * entries,
                            5 + 8 * used,
                            overflow << 4 | flag,
                        ]);
                        let address = |entry| match entry < used || flag == CHOSEN_ADDRESS {
                            true => [10, flag, entry, 1],
                            false => [0; 4],
                        };
                        option.extend((0..entries).flat_map(|entry| [address(entry), time(entry)]).flatten());
                        check(&option);
                    }
                }
            }
        }
    }

    /// Any bytes give a text of printable characters, which is refused or read as options that fit into a header.
    #[test]
    fn any_bytes_give_printable_text() {
        for kind in 0..=255u8 {
            for length in 0..=45u8 {
                for third in [0, 3, 4, 5, 8, 9, 40, 255] {
                    for fourth in 0..16 {
                        let bytes = [kind, length, third, fourth, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
                        let mut text = String::new();
                        write(&bytes, &mut text);
                        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{bytes:?}: {text}");
                        let fits = read(&text).is_none_or(|options| options.len() <= options::MAX_LENGTH);
                        assert!(fits, "{bytes:?}: {text}");
                    }
                }
            }
        }
    }
}
