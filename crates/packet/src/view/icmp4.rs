//! ICMP messages (RFC 792).

use crate::checksum::Sum;
use core::fmt;
use core::net::Ipv4Addr;

/// Message types.
pub mod kind {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Source quench.
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO: u8 = 8;
    /// Router advertisement.
    pub const ROUTER_ADVERTISEMENT: u8 = 9;
    /// Router solicitation.
    pub const ROUTER_SOLICITATION: u8 = 10;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
    /// Timestamp request.
    pub const TIMESTAMP: u8 = 13;
    /// Timestamp reply.
    pub const TIMESTAMP_REPLY: u8 = 14;
    /// Information request.
    pub const INFORMATION: u8 = 15;
    /// Information reply.
    pub const INFORMATION_REPLY: u8 = 16;
    /// Address mask request.
    pub const MASK: u8 = 17;
    /// Address mask reply.
    pub const MASK_REPLY: u8 = 18;

    /// Whether messages of a type report an error, and so carry the start of another packet.
    #[inline]
    pub const fn is_error(kind: u8) -> bool {
        matches!(kind, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
    }
}

header! {
    /// An ICMP message.
    ///
    /// Bytes 4 to 8 mean different things in different messages; each meaning has its accessor.
    8 bytes;
    /// The type, see [`kind`].
    kind, set_kind: u8 = 0;
    /// The code, which refines the type.
    code, set_code: u8 = 1;
    /// The checksum over the whole message.
    checksum, set_checksum: u16 = 2;
    /// Bytes 4 to 8 as one number.
    parameter, set_parameter: u32 = 4;
    /// The identifier of an echo.
    identifier, set_identifier: u16 = 4;
    /// The sequence number of an echo.
    sequence, set_sequence: u16 = 6;
    /// The gateway of a redirect.
    gateway, set_gateway: Ipv4Addr = 4;
    /// The offset of the byte that a parameter problem reports.
    pointer, set_pointer: u8 = 4;
    /// The next hop's MTU in an unreachable message of code 4 (RFC 1191), in bytes.
    next_mtu, set_next_mtu: u16 = 6;
}

impl<'a> View<'a> {
    /// The bytes after the first eight: an echo's data, or the packet that an error reports.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether the message is an echo request or reply.
    #[inline]
    pub fn is_echo(&self) -> bool {
        matches!(self.kind(), kind::ECHO | kind::ECHO_REPLY)
    }

    /// Whether the message reports an error, and so carries the start of another packet.
    #[inline]
    pub fn is_error(&self) -> bool {
        kind::is_error(self.kind())
    }

    /// The start of the packet that an error reports (the "original datagram" of RFC 792), from its IP header on.
    #[inline]
    pub fn original_datagram(&self) -> Option<&'a [u8]> {
        self.is_error().then_some(self.rest)
    }

    /// Whether the checksum is correct over all of this view's bytes.
    #[inline]
    pub fn checksum_is_right(&self) -> bool {
        Sum::ZERO.bytes(self.fixed).bytes(self.rest).finish() == 0
    }
}

impl ViewMut<'_> {
    /// Computes and stores the checksum over all of this view's bytes.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        self.set_checksum(Sum::ZERO.bytes(self.fixed).bytes(self.rest).finish());
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            kind::ECHO => write!(f, "icmp echo {} seq {}", self.identifier(), self.sequence()),
            kind::ECHO_REPLY => write!(f, "icmp echo-reply {} seq {}", self.identifier(), self.sequence()),
            other => write!(f, "icmp type {other} code {}", self.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn reads_and_writes() {
        let mut bytes = *b"\0\0\0\0\0\0\0\0abc";
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_kind(kind::ECHO);
        view.set_identifier(7);
        view.set_sequence(9);
        view.fill_checksum();
        let read = view.view();
        assert!(read.checksum_is_right() && read.is_echo() && !read.is_error());
        assert_eq!((read.parameter(), read.payload()), (0x0007_0009, &b"abc"[..]));
        assert_eq!(read.to_string(), "icmp echo 7 seq 9");
        view.set_kind(kind::UNREACHABLE);
        view.set_code(4);
        view.set_next_mtu(1400);
        assert!(!view.view().checksum_is_right() && view.view().is_error());
        assert_eq!(view.view().to_string(), "icmp type 3 code 4");
        assert!(View::new(&bytes[..7]).is_none());
    }
}
