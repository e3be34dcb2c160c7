//! Writes values as text and in binary records.

use super::field::{Field, Width};
use super::value::Value;
use super::{ip_options, md5, names, tcp_options};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use packet::{Timestamp, protocol, view::icmp4};

/// The letters of the TCP flags, lowest bit first.
pub(super) const TCP_FLAGS: &[u8; 9] = b"FSRPAUECN";

/// Appends a value as text. `icmp` is the ICMP type, which determines the names of codes.
pub(super) fn text(field: Field, value: Value, icmp: u8, out: &mut String) {
    // Writing to a string can't fail.
    let _ = match value {
        Value::Number(number) => number_text(field, number, icmp, out),
        Value::Address(address) => {
            for (index, byte) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    out.push('.');
                }
                push_decimal(byte.into(), 1, out);
            }
            Ok(())
        }
        Value::Mac(mac) => write!(out, "{mac}"),
        Value::Time(time) => write_time(time, out),
        Value::Options(options) => {
            match field {
                Field::IpOptions => ip_options::write(options, out),
                Field::TcpOptions => tcp_options::write(options, tcp_options::OptionSelection::ALL, out),
                Field::TcpPlainOptions => {
                    tcp_options::write(options, tcp_options::OptionSelection::PLAIN, out)
                }
                _ => tcp_options::write(options, tcp_options::OptionSelection::SACK, out),
            }
            Ok(())
        }
        Value::Payload(payload) => match field {
            Field::PayloadMd5 => out.write_str(&md5::letters(&md5::digest(payload))),
            Field::PayloadMd5Hex => {
                md5::digest(payload).iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
            _ => out.write_str(&quoted(payload)),
        },
    };
}

/// Appends a value, or the placeholder for a missing one, to a binary record.
pub(super) fn binary(field: Field, value: Option<Value>, out: &mut Vec<u8>) {
    match (field.width(), value) {
        (Width::Bytes(16), value) => {
            let payload = if let Some(Value::Payload(payload)) = value { payload } else { &[] };
            out.extend(md5::digest(payload));
        }
        (Width::Bytes(size), Some(Value::Number(number))) => {
            out.extend(&number.to_be_bytes()[8 - size.min(8)..])
        }
        (Width::Bytes(4), Some(Value::Address(address))) => out.extend(address.octets()),
        (Width::Bytes(6), Some(Value::Mac(mac))) => out.extend(mac.0),
        (Width::Bytes(size), _) => out.resize(out.len() + size, 0),
        (Width::Micros | Width::Nanos, value) => {
            let time = if let Some(Value::Time(time)) = value { time } else { Timestamp::ZERO };
            let unit = if field.width() == Width::Micros { 1_000 } else { 1 };
            out.extend((time.seconds() as u32).to_be_bytes());
            out.extend((time.subsecond_nanos() / unit).to_be_bytes());
        }
        (Width::Options, value) => {
            let options = if let Some(Value::Options(options)) = value { options } else { &[] };
            let start = out.len();
            out.push(0);
            match field {
                Field::TcpPlainOptions => {
                    tcp_options::pick(options, tcp_options::OptionSelection::PLAIN, out)
                }
                Field::TcpSack => tcp_options::pick(options, tcp_options::OptionSelection::SACK, out),
                _ => out.extend_from_slice(options),
            }
            // Options are at most 40 bytes long.
            out[start] = (out.len() - start - 1).min(255) as u8;
        }
        (Width::Never, _) => {}
    }
}

fn number_text(field: Field, number: u64, icmp: u8, out: &mut String) -> core::fmt::Result {
    let byte = number as u8;
    match field {
        Field::Direction if number == 0 => out.write_char('>'),
        Field::Direction if number == 1 => out.write_char('<'),
        Field::EthType => write!(out, "{number:04X}"),
        Field::IpFragment => out.write_char(byte.into()),
        Field::IpFragmentOffset => {
            let more = if number & 0x2000 != 0 { "+" } else { "" };
            let keep = if number & 0x4000 != 0 { "!" } else { "" };
            write!(out, "{}{more}{keep}", (number & 0x1fff) * 8)
        }
        Field::IpProtocol if byte == protocol::TCP => out.write_char('T'),
        Field::IpProtocol if byte == protocol::UDP => out.write_char('U'),
        Field::IpProtocol if byte == protocol::ICMP => out.write_char('I'),
        Field::IpEcn => out.write_str(["no", "ect1", "ect2", "ce"][usize::from(byte & 3)]),
        Field::TcpFlags if number & 0x1ff == 0 => out.write_str(if number == 0 { "." } else { "" }),
        Field::TcpFlags if number == 0x18 => out.write_str("PA"),
        Field::TcpFlags => TCP_FLAGS.iter().enumerate().try_for_each(|(bit, letter)| {
            if number >> bit & 1 != 0 { out.write_char((*letter).into()) } else { Ok(()) }
        }),
        Field::IcmpTypeName => name_or_number(names::icmp_type(byte), number, out),
        Field::IcmpCodeName => name_or_number(names::icmp_code(icmp, byte), number, out),
        _ => {
            push_decimal(number, 1, out);
            Ok(())
        }
    }
}

/// Appends a number with at least this many digits, at most 20, in less time than the formatter of the library takes.
fn push_decimal(number: u64, least: usize, out: &mut String) {
    let mut digits = [b'0'; 20];
    let (mut left, mut start) = (number, digits.len());
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        if left == 0 {
            break;
        }
        *digit += (left % 10) as u8;
        left /= 10;
        start = at;
    }
    let start = start.min(digits.len().saturating_sub(least));
    out.push_str(core::str::from_utf8(digits.get(start..).unwrap_or_default()).unwrap_or_default());
}

fn name_or_number(name: Option<&str>, number: u64, out: &mut String) -> core::fmt::Result {
    match name {
        Some(name) => out.write_str(name),
        None => write!(out, "{number}"),
    }
}

/// Appends a time in microseconds, or in nanoseconds if these are not zero.
fn write_time(time: Timestamp, out: &mut String) -> core::fmt::Result {
    if let (Ok(seconds), 0) = (u64::try_from(time.seconds()), time.subsecond_nanos() % 1_000) {
        push_decimal(seconds, 1, out);
        out.push('.');
        push_decimal((time.subsecond_nanos() / 1_000).into(), 6, out);
        Ok(())
    } else if time.subsecond_nanos().is_multiple_of(1_000) {
        write!(out, "{time:.6}")
    } else {
        write!(out, "{time}")
    }
}

/// Bytes in double quotes, with non-text bytes escaped.
pub(in super::super) fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = match byte {
            b'\\' | b'"' | b'$' => write!(out, "\\{}", char::from(*byte)),
            b'\t' => out.write_str("\\t"),
            b'\r' => out.write_str("\\r"),
            b'\n' => out.write_str("\\n"),
            32..127 => out.write_char((*byte).into()),
            _ => write!(out, "\\{byte:03o}"),
        };
    }
    out.push('"');
    out
}

/// The ICMP type, which determines the names of codes.
pub(super) fn icmp_type(transport: &[u8]) -> u8 {
    transport.first().copied().unwrap_or(icmp4::kind::ECHO)
}
