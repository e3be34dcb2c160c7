//! ICMP types and codes.

use packet::iana;

use crate::error::ArgumentError;
use crate::names::NameKind;

use super::numbers::integer;
use super::parser::FromArgument;
use super::setup::Setup;

/// An ICMP type, by number or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpType(pub u8);

/// The named codes of each type (RFC 792, 1122, 1812).
const CODES: &[(u8, &str, u8)] = &[
    (3, "net", 0),
    (3, "host", 1),
    (3, "protocol", 2),
    (3, "port", 3),
    (3, "needfrag", 4),
    (3, "srcroutefail", 5),
    (3, "netunknown", 6),
    (3, "hostunknown", 7),
    (3, "isolated", 8),
    (3, "netprohibited", 9),
    (3, "hostprohibited", 10),
    (3, "tosnet", 11),
    (3, "toshost", 12),
    (3, "filterprohibited", 13),
    (3, "hostprecedence", 14),
    (3, "precedencecutoff", 15),
    (5, "net", 0),
    (5, "host", 1),
    (5, "tosnet", 2),
    (5, "toshost", 3),
    (11, "transit", 0),
    (11, "reassembly", 1),
    (12, "erroratptr", 0),
    (12, "missingopt", 1),
    (12, "length", 2),
];

impl FromArgument for IcmpType {
    const KIND: &'static str = "ICMP type";

    fn from_argument(text: &str, setup: &Setup) -> Result<IcmpType, ArgumentError> {
        if let Some(number) = integer(text) {
            let number = u8::try_from(number);
            return number
                .map(IcmpType)
                .map_err(|_| ArgumentError::semantic("ICMP type must be between 0 and 255"));
        }
        if let Some(&[number]) = setup.names().find(NameKind::IcmpType, setup.scope(), text).as_deref() {
            return Ok(IcmpType(number));
        }
        iana::icmp_type(text).map(IcmpType).ok_or_else(|| ArgumentError::new("invalid number"))
    }
}

impl IcmpType {
    /// The name of the type, if it has one.
    pub fn name(self) -> Option<&'static str> {
        iana::icmp_type_name(self.0)
    }

    /// The name of a code of this type, if it has one.
    pub fn code_name(self, code: u8) -> Option<&'static str> {
        CODES.iter().find(|(kind, _, number)| (*kind, *number) == (self.0, code)).map(|(_, name, _)| *name)
    }

    /// Parses a code of this type, by number or name.
    pub fn code(self, text: &str) -> Option<u8> {
        if let Some(number) = integer(text) {
            return u8::try_from(number).ok();
        }
        CODES.iter().find(|(kind, name, _)| (*kind, *name) == (self.0, text)).map(|(_, _, code)| *code)
    }
}
