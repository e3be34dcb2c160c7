//! The vocabulary of rules: header fields, directions, operators, masks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use packet::protocol;

use super::diagnostic::RuleDiagnosticKind;
use crate::names::{TCP_OR_UDP, TRANSPORT};

/// Protocol numbers in rules. Numbers above 255 are pseudo-protocols.
pub(super) const ICMP: u32 = protocol::ICMP as u32;
pub(super) const TCP: u32 = protocol::TCP as u32;
pub(super) const UDP: u32 = protocol::UDP as u32;
pub(super) const DCCP: u32 = protocol::DCCP as u32;

/// A header field: `length` bits, `offset` bits into the header of `protocol` (`None`: IP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) protocol: Option<u32>,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// The quantity that a primitive tests, or the kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Host,
    Net,
    Ether,
    Protocol,
    Port,
    TcpFlag,
    Fragment,
    Unfragmented,
    EcnCapable,
    Congestion,
    Field(Field),
}

const fn ip(offset: u32, length: u32) -> Kind {
    Kind::Field(Field { protocol: None, offset, length })
}

/// `ip tos`.
pub(super) const TOS: Kind = ip(8, 8);
/// `icmp type`.
pub(super) const ICMP_TYPE: Kind = Kind::Field(Field { protocol: Some(ICMP), offset: 0, length: 8 });

/// The words for the quantities that a primitive can test.
const KINDS: &[(&str, Kind, &str)] = &[
    ("ce", Kind::Congestion, "ip ce"),
    ("dscp", ip(8, 6), "ip dscp"),
    ("ect", Kind::EcnCapable, "ip ect"),
    ("frag", Kind::Fragment, "ip frag"),
    ("hl", ip(4, 4), "ip hl"),
    ("host", Kind::Host, "ip host"),
    ("id", ip(32, 16), "ip id"),
    ("len", ip(16, 16), "ip len"),
    ("net", Kind::Net, "ip net"),
    ("opt", Kind::TcpFlag, "tcp opt"),
    ("port", Kind::Port, "port"),
    ("proto", Kind::Protocol, "proto"),
    ("tos", TOS, "ip tos"),
    ("ttl", ip(64, 8), "ip ttl"),
    ("type", ICMP_TYPE, "icmp type"),
    ("unfrag", Kind::Unfragmented, "ip unfrag"),
    ("vers", ip(0, 4), "ip vers"),
    ("win", Kind::Field(Field { protocol: Some(TCP), offset: 112, length: 16 }), "tcp win"),
];

/// The words of conditions besides [`KINDS`].
const OTHER_WORDS: [&str; 14] =
    ["all", "and", "any", "dst", "ether", "icmp", "ip", "not", "or", "src", "tcp", "true", "udp", "false"];

/// The words of conditions.
fn words() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, ..)| *name).chain(OTHER_WORDS)
}

/// The actions of a rule of `IPFilter`.
const ACTIONS: [&str; 3] = ["allow", "deny", "drop"];

impl RuleDiagnosticKind {
    /// The word that has no meaning where it stands, and the words that have one.
    #[must_use]
    pub fn unknown_word(&self) -> Option<(&str, Vec<&'static str>)> {
        match self {
            Self::UnknownAction(word) => Some((word, ACTIONS.to_vec())),
            Self::EmptyTerm(word) | Self::Garbage(word) => Some((word, words().collect())),
            _ => None,
        }
    }
}

/// The kind that `word` names.
pub(super) fn kind_named(word: &str) -> Option<Kind> {
    KINDS.iter().find(|(name, ..)| *name == word).map(|(_, kind, _)| *kind)
}

/// The kind as printed in messages.
pub(super) fn kind_text(kind: Option<Kind>) -> String {
    match kind {
        None => "<none>".to_string(),
        Some(Kind::Ether) => "ether host".to_string(),
        Some(Kind::Integer) => "<unknown type 3>".to_string(),
        Some(kind) => match (KINDS.iter().find(|(_, other, _)| *other == kind), kind) {
            (Some((_, _, text)), _) => (*text).to_string(),
            (None, Kind::Field(Field { protocol: Some(protocol), .. })) => {
                format!("{}[...]", protocol_text(Some(protocol)))
            }
            (None, _) => "ip[...]".to_string(),
        },
    }
}

/// The protocol as printed in messages.
pub(super) fn protocol_text(protocol: Option<u32>) -> String {
    match protocol {
        None => String::new(),
        Some(ICMP) => "icmp".to_string(),
        Some(2) => "igmp".to_string(),
        Some(4) => "ipip".to_string(),
        Some(TCP) => "tcp".to_string(),
        Some(UDP) => "udp".to_string(),
        Some(TCP_OR_UDP) => "tcpudp".to_string(),
        Some(TRANSPORT) => "transp".to_string(),
        Some(other) => format!("ip proto {other}"),
    }
}

/// Whether a primitive tests the source, the destination or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Source,
    Destination,
    Both,
    Either,
}

/// The operator of a primitive. With `negated`, these express all six.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Greater,
    Less,
}

/// The protocol keyword before a primitive, or implied by its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Ip,
    Ether,
}

/// A bit mask written after `&`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    Number(u32),
    Address(u32),
    Ether([u8; 6]),
}

/// The meaning of a word where a qualifier or a value is expected.
pub(super) enum Meaning {
    /// No meaning.
    Unknown,
    /// A meaning that does not fit here, or several.
    Wrong(RuleDiagnosticKind),
    /// The quantity to test.
    Kind(Kind),
    /// A named value and its kind.
    Value(Kind, u32),
}
