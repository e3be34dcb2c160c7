//! Fields of packets, by name or position: `ip src/8`, `tcp[2:2]`, `ip{96-103} & 15`.

use core::fmt;

use element::arguments::{ArgumentError, IpProtocol};
use element::prelude::*;
use packet::protocol;

/// The header that contains a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// The IP header.
    Ip,
    /// The TCP or UDP header.
    TcpOrUdp,
    /// Any transport header.
    Transport,
    /// The data after a TCP or UDP header.
    Payload,
    /// The header of one protocol.
    Protocol(u8),
}

/// A bit range of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) header: Header,
    /// Offset of the first bit from the start of the header.
    pub(crate) offset: u32,
    /// Length in bits.
    pub(crate) length: u32,
}

/// Limit of bit offsets: no packet is longer.
const MAX_BIT: u32 = 1 << 19;

/// Maximum characters of a number: 32 binary digits and a prefix.
const MAX_NUMBER_LENGTH: usize = 34;

/// Named fields: header, name, first bit, length in bits.
const NAMED: &[(Header, &str, u32, u32)] = {
    use Header::{Ip, TcpOrUdp};
    const TCP: Header = Header::Protocol(protocol::TCP);
    const UDP: Header = Header::Protocol(protocol::UDP);
    const ICMP: Header = Header::Protocol(protocol::ICMP);
    &[
        (Ip, "vers", 0, 4),
        (Ip, "hl", 4, 4),
        (Ip, "tos", 8, 8),
        (Ip, "dscp", 8, 6),
        (Ip, "ecn", 14, 2),
        (Ip, "len", 16, 16),
        (Ip, "id", 32, 16),
        (Ip, "off", 48, 16),
        (Ip, "rf", 48, 1),
        (Ip, "df", 49, 1),
        (Ip, "mf", 50, 1),
        (Ip, "fragoff", 51, 13),
        (Ip, "ttl", 64, 8),
        (Ip, "proto", 72, 8),
        (Ip, "sum", 80, 16),
        (Ip, "src", 96, 32),
        (Ip, "dst", 128, 32),
        (TcpOrUdp, "sport", 0, 16),
        (TcpOrUdp, "dport", 16, 16),
        (UDP, "sport", 0, 16),
        (UDP, "dport", 16, 16),
        (UDP, "len", 32, 16),
        (UDP, "sum", 48, 16),
        (TCP, "sport", 0, 16),
        (TCP, "dport", 16, 16),
        (TCP, "seq", 32, 32),
        (TCP, "seqno", 32, 32),
        (TCP, "ackno", 64, 32),
        (TCP, "hl", 96, 4),
        (TCP, "flags", 104, 8),
        (TCP, "urg", 106, 1),
        (TCP, "ack", 107, 1),
        (TCP, "psh", 108, 1),
        (TCP, "push", 108, 1),
        (TCP, "rst", 109, 1),
        (TCP, "syn", 110, 1),
        (TCP, "fin", 111, 1),
        (TCP, "win", 112, 16),
        (TCP, "sum", 128, 16),
        (TCP, "urp", 144, 16),
        (ICMP, "type", 0, 8),
        (ICMP, "code", 8, 8),
        (ICMP, "sum", 16, 16),
    ]
};

/// The text after `literal`, with leading spaces skipped.
fn skip_literal<'t>(text: &'t str, literal: &str) -> Option<&'t str> {
    text.trim_start().strip_prefix(literal)
}

/// Parses a number at the start of `text`, after optional spaces. Returns it with the remaining text.
fn number<'t>(text: &'t str, setup: &Setup) -> Option<(u32, &'t str)> {
    let text = text.trim_start();
    let longest = text.bytes().take(MAX_NUMBER_LENGTH).take_while(u8::is_ascii_alphanumeric).count();
    (1..=longest).rev().find_map(|length| {
        let (digits, rest) = text.split_at_checked(length)?;
        Some((u32::from_argument(digits, setup).ok()?, rest))
    })
}

impl Header {
    /// Parses a header name at the start of `text`. Returns it with the remaining text. All headers but IP must end at
    /// a space.
    fn parse<'t>(text: &'t str, setup: &Setup) -> Option<(Header, &'t str)> {
        if let Some(rest) = text.strip_prefix("ip") {
            let is_proto = rest.starts_with(|first: char| first.is_ascii_whitespace());
            let protocol = skip_literal(rest, "proto").filter(|_| is_proto);
            if let Some((protocol, rest)) = protocol.and_then(|rest| number(rest, setup)) {
                return Some((Header::Protocol(u8::try_from(protocol).ok()?), rest));
            }
            if !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_') {
                return Some((Header::Ip, rest));
            }
        }
        let end = text.find(|next: char| next.is_ascii_whitespace()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let header = match word {
            "tcpudp" => Header::TcpOrUdp,
            "transp" => Header::Transport,
            "payload" | "data" => Header::Payload,
            _ => Header::Protocol(IpProtocol::from_argument(word, setup).ok()?.0),
        };
        Some((header, rest))
    }

    /// Parses the name of a field in this header. Returns it with the remaining text.
    fn field(self, text: &str) -> Option<(Field, &str)> {
        let text = text.trim_start();
        let is_end = |next: char| next.is_ascii_whitespace() || "/[{&".contains(next);
        let (name, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
        // The IP header also has the ports, of either protocol.
        let is_one = |header| header == self || (self == Header::Ip && header == Header::TcpOrUdp);
        let &(header, _, offset, length) = NAMED.iter().find(|field| is_one(field.0) && field.1 == name)?;
        Some((Field { header, offset, length }, rest))
    }
}

impl Field {
    /// Parses the contents of brackets (bytes) or braces (bits). Returns the first bit, the length in bits and the
    /// remaining text.
    fn parse_range<'t>(text: &'t str, setup: &Setup) -> Option<(i64, i64, &'t str)> {
        let (rest, close, unit) = match (skip_literal(text, "["), skip_literal(text, "{")) {
            (Some(rest), _) => (rest, "]", 8),
            (_, Some(rest)) => (rest, "}", 1),
            _ => return None,
        };
        let (first, rest) = number(rest, setup)?;
        let first = i64::from(first);
        let (length, rest) = if let Some(rest) = skip_literal(rest, ":") {
            let (length, rest) = number(rest, setup)?;
            (i64::from(length), rest)
        } else if let Some(rest) = skip_literal(rest, "-") {
            let (last, rest) = number(rest, setup)?;
            (i64::from(last) - first + 1, rest)
        } else {
            (1, rest)
        };
        Some((first * unit, length * unit, skip_literal(rest, close)?))
    }

    /// The part of the field under a contiguous mask.
    fn masked(self, mask: u32) -> Option<Field> {
        let low = mask.trailing_zeros();
        let length = mask.count_ones();
        let is_whole = mask != 0 && mask >> low == u32::MAX >> (32 - length);
        (is_whole && low + length <= self.length).then(|| Field {
            offset: self.offset + self.length - low - length,
            length,
            ..self
        })
    }
}

impl FromArgument for Field {
    const KIND: &'static str = "field of a packet";

    fn from_argument(text: &str, setup: &Setup) -> Result<Field, ArgumentError> {
        let syntax =
            || ArgumentError::semantic("expected 'HEADER [NAME] [{OFFSET:LENGTH}] [/PREFIX] [& MASK]'");
        let range = || ArgumentError::semantic("bad offset or length in TCP/IP field");
        let mask = || ArgumentError::semantic("bad prefix or mask in TCP/IP field");
        let (header, rest) = Header::parse(text, setup).ok_or_else(syntax)?;
        let (named, rest) = header.field(rest).map_or((None, rest), |(field, rest)| (Some(field), rest));
        let (mut field, mut rest) = match (named, Field::parse_range(rest, setup)) {
            (None, None) => return Err(syntax()),
            (Some(field), None) => (field, rest),
            (named, Some((offset, length, rest))) => {
                let whole = named.map_or(MAX_BIT, |field| field.length);
                let end = offset.checked_add(length).filter(|end| length > 0 && *end <= i64::from(whole));
                let (Some(_), Ok(offset), Ok(length)) = (end, u32::try_from(offset), u32::try_from(length))
                else {
                    return Err(range());
                };
                let whole = named.unwrap_or(Field { header, offset: 0, length });
                (Field { offset: whole.offset + offset, length, ..whole }, rest)
            }
        };
        if let Some((length, after)) = skip_literal(rest, "/").and_then(|prefix| number(prefix, setup)) {
            match length {
                0 => {
                    return Err(ArgumentError::semantic(
                        "field specification does not fit within a single word",
                    ));
                }
                _ if length > field.length => return Err(mask()),
                _ => (field.length, rest) = (length, after),
            }
        }
        if let Some((bits, after)) = skip_literal(rest, "&").and_then(|bits| number(bits, setup)) {
            (field, rest) = (field.masked(bits).ok_or_else(mask)?, after);
        }
        if !rest.is_empty() {
            return Err(ArgumentError::semantic("garbage after field specification"));
        }
        Ok(field)
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Header::Ip => f.write_str("ip"),
            Header::TcpOrUdp => f.write_str("tcpudp"),
            Header::Transport => f.write_str("transp"),
            Header::Payload => f.write_str("payload"),
            Header::Protocol(protocol::TCP) => f.write_str("tcp"),
            Header::Protocol(protocol::UDP) => f.write_str("udp"),
            Header::Protocol(protocol::ICMP) => f.write_str("icmp"),
            Header::Protocol(number) => write!(f, "ip proto {number}"),
        }
    }
}

/// The field's name if it has one, otherwise its position.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Field { header, offset, length } = *self;
        write!(f, "{header}")?;
        let whole =
            |first, bits| NAMED.iter().find(|field| field.0 == header && field.2 == first && field.3 == bits);
        if let Some((_, name, ..)) = whole(offset, length) {
            return write!(f, " {name}");
        }
        let mut offset = offset;
        for container in [8, 16, 32] {
            if offset / container == (offset + length - 1) / container
                && let Some((_, name, ..)) = whole(offset - offset % container, container)
            {
                write!(f, " {name}")?;
                offset %= container;
                if offset == 0 {
                    return write!(f, "/{length}");
                }
                break;
            }
        }
        match (offset % 8, length % 8, length) {
            (0, 0, 8) => write!(f, "[{}]", offset / 8),
            (0, 0, _) => write!(f, "[{}:{}]", offset / 8, length / 8),
            (_, _, 1) => write!(f, "{{{offset}}}"),
            _ => write!(f, "{{{offset}:{length}}}"),
        }
    }
}
