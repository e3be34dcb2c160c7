//! Names of ICMP types and codes.

use packet::view::icmp4::kind;

/// ICMP types.
const TYPES: &[(&str, u8)] = &[
    ("echo", kind::ECHO),
    ("echo-reply", kind::ECHO_REPLY),
    ("inforeq", kind::INFORMATION),
    ("inforeq-reply", kind::INFORMATION_REPLY),
    ("maskreq", kind::MASK),
    ("maskreq-reply", kind::MASK_REPLY),
    ("parameterproblem", kind::PARAMETER_PROBLEM),
    ("redirect", kind::REDIRECT),
    ("routeradvert", kind::ROUTER_ADVERTISEMENT),
    ("routersolicit", kind::ROUTER_SOLICITATION),
    ("sourcequench", kind::SOURCE_QUENCH),
    ("timeexceeded", kind::TIME_EXCEEDED),
    ("timestamp", kind::TIMESTAMP),
    ("timestamp-reply", kind::TIMESTAMP_REPLY),
    ("unreachable", kind::UNREACHABLE),
];

const UNREACHABLE: &[(&str, u8)] = &[
    ("net", 0),
    ("host", 1),
    ("protocol", 2),
    ("port", 3),
    ("needfrag", 4),
    ("srcroutefail", 5),
    ("netunknown", 6),
    ("hostunknown", 7),
    ("isolated", 8),
    ("netprohibited", 9),
    ("hostprohibited", 10),
    ("tosnet", 11),
    ("toshost", 12),
    ("filterprohibited", 13),
    ("hostprecedence", 14),
    ("precedencecutoff", 15),
];
const REDIRECT: &[(&str, u8)] = &[("net", 0), ("host", 1), ("tosnet", 2), ("toshost", 3)];
const TIME_EXCEEDED: &[(&str, u8)] = &[("transit", 0), ("reassembly", 1)];
const PARAMETER_PROBLEM: &[(&str, u8)] = &[("erroratptr", 0), ("missingopt", 1), ("length", 2)];

/// The name of an ICMP type.
pub(super) fn icmp_type(number: u8) -> Option<&'static str> {
    name(TYPES, number)
}

/// The number of an ICMP type, by name.
pub(super) fn icmp_type_number(name: &str) -> Option<u8> {
    number(TYPES, name)
}

/// The name of a code of an ICMP type.
pub(super) fn icmp_code(kind: u8, number: u8) -> Option<&'static str> {
    name(codes(kind), number)
}

/// The number of a code of an ICMP type, by name.
pub(super) fn icmp_code_number(kind: u8, name: &str) -> Option<u8> {
    number(codes(kind), name)
}

fn codes(kind: u8) -> &'static [(&'static str, u8)] {
    match kind {
        kind::UNREACHABLE => UNREACHABLE,
        kind::REDIRECT => REDIRECT,
        kind::TIME_EXCEEDED => TIME_EXCEEDED,
        kind::PARAMETER_PROBLEM => PARAMETER_PROBLEM,
        _ => &[],
    }
}

fn name(table: &[(&'static str, u8)], number: u8) -> Option<&'static str> {
    table.iter().find(|(_, n)| *n == number).map(|(name, _)| *name)
}

fn number(table: &[(&str, u8)], name: &str) -> Option<u8> {
    table.iter().find(|(n, _)| *n == name).map(|(_, number)| *number)
}
