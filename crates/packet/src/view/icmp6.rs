//! ICMPv6 messages (RFC 4443, RFC 4861).

use crate::checksum::Sum;
use core::fmt;
use core::net::Ipv6Addr;

/// Message types.
pub mod kind {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo request.
    pub const ECHO: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Router solicitation.
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// Router advertisement.
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    /// Neighbour solicitation.
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    /// Neighbour advertisement.
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
}

header! {
    /// An ICMPv6 message.
    ///
    /// Bytes 4 to 8 mean different things in different messages; each meaning has its accessor.
    8 bytes;
    /// The type, see [`kind`].
    kind, set_kind: u8 = 0;
    /// The code, which refines the type.
    code, set_code: u8 = 1;
    /// The checksum over pseudo header and message.
    checksum, set_checksum: u16 = 2;
    /// Bytes 4 to 8 as one number.
    parameter, set_parameter: u32 = 4;
    /// The identifier of an echo.
    identifier, set_identifier: u16 = 4;
    /// The sequence number of an echo.
    sequence, set_sequence: u16 = 6;
}

impl<'a> View<'a> {
    /// The bytes after the first eight: an echo's data, the packet that an error reports, or a neighbour's address and
    /// options.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether the message reports an error, and so carries the start of another packet.
    #[inline]
    pub fn is_error(&self) -> bool {
        self.kind() < 128
    }

    /// The address that a neighbour solicitation or advertisement is about.
    #[inline]
    pub fn target(&self) -> Option<Ipv6Addr> {
        let neighbour = matches!(self.kind(), kind::NEIGHBOUR_SOLICITATION | kind::NEIGHBOUR_ADVERTISEMENT);
        self.rest.first_chunk::<16>().filter(|_| neighbour).map(|bytes| Ipv6Addr::from(*bytes))
    }

    /// Whether the checksum is correct; `pseudo` is the sum of the pseudo header for all of this view's bytes.
    #[inline]
    pub fn checksum_is_right(&self, pseudo: Sum) -> bool {
        pseudo.bytes(self.fixed).bytes(self.rest).finish() == 0
    }
}

impl ViewMut<'_> {
    /// Computes and stores the checksum; `pseudo` is the sum of the pseudo header for all of this view's bytes.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo: Sum) {
        self.set_checksum(0);
        self.set_checksum(pseudo.bytes(self.fixed).bytes(self.rest).finish());
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            kind::ECHO => write!(f, "icmp6 echo {} seq {}", self.identifier(), self.sequence()),
            kind::ECHO_REPLY => write!(f, "icmp6 echo-reply {} seq {}", self.identifier(), self.sequence()),
            other => write!(f, "icmp6 type {other} code {}", self.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn reads_and_writes() {
        let mut bytes = [1; 24];
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_kind(kind::ECHO);
        view.set_identifier(7);
        view.set_sequence(9);
        let pseudo = Sum::ZERO.word(58).word(24);
        view.fill_checksum(pseudo);
        assert!(view.view().checksum_is_right(pseudo) && !view.view().is_error());
        assert_eq!((view.view().to_string().as_str(), view.view().target()), ("icmp6 echo 7 seq 9", None));
        view.set_kind(kind::NEIGHBOUR_SOLICITATION);
        view.set_code(0);
        assert!(!view.view().checksum_is_right(pseudo));
        assert_eq!(view.view().target(), Some(Ipv6Addr::from([1; 16])));
        assert_eq!(view.view().to_string(), "icmp6 type 135 code 0");
        assert!(View::new(&bytes[..7]).is_none());
    }
}
