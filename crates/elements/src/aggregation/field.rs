//! Fields of packets, by name or by place: `ip src/8`, `tcp[2:2]`, `ip{96-103} & 15`.

use core::fmt;

use element::arguments::{IpProtocol, Problem};
use element::prelude::*;
use packet::protocol;

/// The header that a field lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// That of IP.
    Ip,
    /// That of TCP or UDP.
    TcpOrUdp,
    /// That of any transport protocol.
    Transport,
    /// What follows that of TCP or UDP.
    Payload,
    /// That of one protocol.
    Protocol(u8),
}

/// Some bits of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The header.
    pub(crate) header: Header,
    /// The first bit, from the start of the header.
    pub(crate) offset: u32,
    /// Bits.
    pub(crate) length: u32,
}

/// The largest bit offset and length that are taken.
const FARTHEST: u32 = 1 << 16;

/// Named fields: header, name, first bit, bits.
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

/// The start of `text` up to a bracket, slash or ampersand, and what follows.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(['[', '{', '/', '&']).unwrap_or(text.len()))
}

fn number(text: &str, setup: &Setup) -> Option<u32> {
    u32::from_argument(text.trim(), setup).ok()
}

impl Field {
    /// Reads a header and perhaps the name of a field.
    fn named(text: &str, setup: &Setup) -> Option<(Header, Option<Field>)> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (header, name) = match words.as_slice() {
            ["ip", "proto", number] if number.starts_with(|digit: char| digit.is_ascii_digit()) => {
                (Header::Protocol(u8::from_argument(number, setup).ok()?), None)
            }
            [header] => (Field::header(header, setup)?, None),
            [header, name] => (Field::header(header, setup)?, Some(*name)),
            _ => return None,
        };
        let Some(name) = name else { return Some((header, None)) };
        let &(header, _, offset, length) = NAMED.iter().find(|field| field.0 == header && field.1 == name)?;
        Some((header, Some(Field { header, offset, length })))
    }

    fn header(word: &str, setup: &Setup) -> Option<Header> {
        match word {
            "ip" => Some(Header::Ip),
            "tcpudp" => Some(Header::TcpOrUdp),
            "transp" => Some(Header::Transport),
            "payload" | "data" => Some(Header::Payload),
            _ => {
                IpProtocol::from_argument(word, setup).ok().map(|IpProtocol(number)| Header::Protocol(number))
            }
        }
    }

    /// Reads what stands between brackets, in bytes, or braces, in bits: first bit and bits.
    fn place(text: &str, setup: &Setup) -> Option<((u32, u32), usize)> {
        let (close, unit) = match text.bytes().next()? {
            b'[' => (']', 8),
            b'{' => ('}', 1),
            _ => return None,
        };
        let end = text.find(close)?;
        let inner = text.get(1..end)?;
        let (offset, length) = if let Some((offset, length)) = inner.split_once([':', ',']) {
            (number(offset, setup)?, number(length, setup)?)
        } else if let Some((first, last)) = inner.split_once('-') {
            let first = number(first, setup)?;
            (first, number(last, setup)?.checked_sub(first)?.checked_add(1)?)
        } else {
            (number(inner, setup)?, 1)
        };
        let (offset, length) = (offset.checked_mul(unit)?, length.checked_mul(unit)?);
        (offset <= FARTHEST && (1..=FARTHEST).contains(&length)).then_some(((offset, length), end + 1))
    }

    /// The part of the field under a mask of bits without gaps.
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

    fn from_argument(text: &str, setup: &Setup) -> Result<Field, Problem> {
        let text = element::text::unquote(text);
        let syntax = || Problem::later("expected 'HEADER [NAME] [{OFFSET:LENGTH}] [/PREFIX] [& MASK]'");
        let range = || Problem::later("bad offset or length in TCP/IP field");
        let mask = || Problem::later("bad prefix or mask in TCP/IP field");
        // A port alone is that of TCP or UDP.
        let (name, mut rest) = split(text.trim());
        let (header, named) = match name.trim() {
            port @ ("sport" | "dport") => Field::named(&format!("tcpudp {port}"), setup),
            name => Field::named(name, setup),
        }
        .ok_or_else(syntax)?;
        let mut field = named;
        if rest.starts_with(['[', '{']) {
            let ((offset, length), end) = Field::place(rest, setup).ok_or_else(range)?;
            rest = rest.get(end..).unwrap_or("").trim_start();
            field = Some(match named {
                Some(whole) if offset + length > whole.length => return Err(range()),
                Some(whole) => Field { offset: whole.offset + offset, length, ..whole },
                None => Field { header, offset, length },
            });
        }
        let mut field = field.ok_or_else(syntax)?;
        if let Some(prefix) = rest.strip_prefix('/') {
            let (length, after) = prefix.split_at(prefix.find('&').unwrap_or(prefix.len()));
            let length = number(length, setup).ok_or_else(syntax)?;
            if length == 0 || length > field.length {
                return Err(mask());
            }
            field.length = length;
            rest = after;
        }
        if let Some(bits) = rest.strip_prefix('&') {
            field = field.masked(number(bits, setup).ok_or_else(syntax)?).ok_or_else(mask)?;
            rest = "";
        }
        if !rest.trim().is_empty() {
            return Err(Problem::later("garbage after field specification"));
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

/// By its name where it has one, else by its place.
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
