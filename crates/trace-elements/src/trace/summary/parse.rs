//! Parses values from text and from binary records.

use super::encode::TCP_FLAGS;
use super::field::{Field, Width};
use super::value::Value;
use super::{ip_options, names, number, tcp_options};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use packet::{MacAddr, Timestamp, address, protocol};

/// Parses a field's text. `icmp` is the ICMP type if known, `minor` the dump's version. `buffer` stores options and
/// payload.
pub(super) fn text<'b>(
    field: Field,
    text: &str,
    icmp: Option<u8>,
    minor: u32,
    buffer: &'b mut Vec<u8>,
) -> Option<Value<'b>> {
    let number = || number::whole(text);
    let hold = |bytes: Vec<u8>, buffer: &'b mut Vec<u8>| {
        *buffer = bytes;
        &buffer[..]
    };
    let found = match field {
        Field::Nothing | Field::PayloadMd5 | Field::PayloadMd5Hex => return None,
        Field::Timestamp | Field::NanoTimestamp | Field::FirstTimestamp | Field::FirstNanoTimestamp => {
            return number::seconds(text).map(Value::Time);
        }
        Field::EthSource | Field::EthDestination => return text.parse().ok().map(Value::Mac),
        Field::IpSource | Field::IpDestination => return address::parse_ip4(text).ok().map(Value::Address),
        Field::IpOptions => {
            let options = if matches!(text, "." | "") { Vec::new() } else { ip_options::read(text)? };
            return Some(Value::Options(hold(options, buffer)));
        }
        Field::TcpOptions | Field::TcpPlainOptions | Field::TcpSack => {
            let selection = match field {
                Field::TcpOptions => tcp_options::OptionSelection::ALL,
                Field::TcpPlainOptions => tcp_options::OptionSelection::PLAIN,
                _ => tcp_options::OptionSelection::SACK,
            };
            let options =
                if matches!(text, "." | "") { Vec::new() } else { tcp_options::read(text, selection)? };
            return Some(Value::Options(hold(options, buffer)));
        }
        Field::Payload => return Some(Value::Payload(hold(element::text::unquote_bytes(text), buffer))),
        Field::Link | Field::Paint | Field::Direction => match text {
            ">" | "L" => 0,
            "<" | "R" | "X" => 1,
            _ => number()?,
        },
        Field::EthType => u64::from_str_radix(text, 16).ok()?,
        Field::IpFragment | Field::IpFragmentOffset => fragment(text, minor)?.into(),
        Field::IpProtocol => match text {
            "T" => protocol::TCP.into(),
            "U" => protocol::UDP.into(),
            "I" => protocol::ICMP.into(),
            _ => number()?,
        },
        Field::IpEcn => match text {
            "no" | "-" => 0,
            "ect1" | "ECT(1)" => 1,
            "ect2" | "ECT(0)" => 2,
            "ce" | "CE" => 3,
            _ => number().filter(|number| *number < 4)?,
        },
        Field::TcpFlags => flags(text)?,
        Field::IcmpType | Field::IcmpTypeName => {
            names::icmp_type_number(text).map(u64::from).or_else(number)?
        }
        Field::IcmpCode | Field::IcmpCodeName => {
            icmp.and_then(|kind| names::icmp_code_number(kind, text)).map(u64::from).or_else(number)?
        }
        _ => number()?,
    };
    let fits = match field.width() {
        Width::Bytes(1) if field == Field::TcpFlags => found < 0x1000,
        Width::Bytes(1) => found <= 0xff || field == Field::IpFragment,
        Width::Bytes(2) => found <= 0xffff,
        Width::Bytes(4) => found <= 0xffff_ffff,
        _ => true,
    };
    fits.then_some(Value::Number(found))
}

/// Removes a field from the start of a binary record. If it is incomplete, returns `None` and empties the record.
pub(super) fn binary<'b>(field: Field, record: &mut &'b [u8]) -> Option<Value<'b>> {
    let size = match field.width() {
        Width::Bytes(size) => Some(size),
        Width::Micros | Width::Nanos => Some(8),
        Width::Options => record.first().map(|length| 1 + usize::from(*length)),
        Width::Never => None,
    };
    let split = size.and_then(|size| record.split_at_checked(size));
    let Some((bytes, rest)) = split else {
        *record = &[];
        return None;
    };
    *record = rest;
    let number = || bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    Some(match (field.width(), field) {
        (Width::Options, _) => Value::Options(bytes.get(1..)?),
        (Width::Micros | Width::Nanos, _) => {
            let unit = if field.width() == Width::Micros { 1_000 } else { 1 };
            let (seconds, fraction) = (number() >> 32, number() & 0xffff_ffff);
            Value::Time(
                Timestamp::from_parts(seconds as i64, 0) + Timestamp::from_nanos((fraction * unit) as i64),
            )
        }
        (Width::Bytes(4), Field::IpSource | Field::IpDestination) => {
            Value::Address(Ipv4Addr::from(*bytes.first_chunk::<4>()?))
        }
        (Width::Bytes(6), _) => Value::Mac(MacAddr(*bytes.first_chunk()?)),
        // Letters, as in text.
        (_, Field::IpFragment) => Value::Number(letter(bytes)?.into()),
        (Width::Bytes(0 | 16), _) => return None,
        _ => Value::Number(number()),
    })
}

fn letter(bytes: &[u8]) -> Option<u16> {
    match bytes {
        b"." => Some(0),
        b"!" => Some(0x4000),
        b"F" => Some(0x2000),
        // A later fragment, at an unknown offset.
        b"f" => Some(100),
        _ => None,
    }
}

/// Parses a fragment's letter, or an offset with `!` for don't-fragment and `+` for more.
fn fragment(text: &str, minor: u32) -> Option<u16> {
    if let Some(field) = letter(text.as_bytes()) {
        return Some(field);
    }
    let mut rest = text.as_bytes();
    let offset = number::take(&mut rest)?;
    // In version 0 the unit is eight bytes.
    let offset = if minor > 0 { offset >> 3 } else { offset };
    rest.iter().try_fold(u16::try_from(offset).ok()?, |field, mark| match mark {
        b'!' => Some(field | 0x4000),
        b'+' => Some(field | 0x2000),
        _ => None,
    })
}

/// Parses TCP flags: letters, `.` for none, or a number. Old dumps use `W` or `Y` for `C` and `X` for `E`.
fn flags(text: &str) -> Option<u64> {
    match text.as_bytes() {
        b"." => Some(0),
        [b'0'..=b'9', ..] => number::whole(text),
        [] => None,
        letters => letters.iter().try_fold(0, |flags, letter| {
            let plain = match letter {
                b'W' | b'Y' => b'C',
                b'X' => b'E',
                other => *other,
            };
            TCP_FLAGS.iter().position(|known| *known == plain).map(|bit| flags | 1 << bit)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_notations() {
        let number = |field, string: &str| match text(field, string, Some(3), 3, &mut Vec::new()) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        };
        for (field, string, value) in [
            (Field::TcpFlags, "SA", Some(0x12)),
            (Field::TcpFlags, "FSRPAUECN", Some(0x1ff)),
            (Field::TcpFlags, "XYW", Some(0xc0)),
            (Field::TcpFlags, "Q", None),
            (Field::IpFragmentOffset, "184+!", Some(0x6017)),
            (Field::IpFragmentOffset, "f", Some(100)),
            (Field::IpProtocol, "T", Some(6)),
            (Field::IpProtocol, "300", None),
            (Field::IcmpType, "unreachable", Some(3)),
            (Field::IcmpCode, "needfrag", Some(4)),
            (Field::IpEcn, "ce", Some(3)),
            (Field::Direction, "<", Some(1)),
            (Field::EthType, "86DD", Some(0x86dd)),
            (Field::SourcePort, "65536", None),
            (Field::SourcePort, "-", None),
        ] {
            assert_eq!(number(field, string), value, "{field:?} {string}");
        }
    }
}
