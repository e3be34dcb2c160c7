//! PPP over Ethernet (RFC 2516): discovery and session packets share one header.

use core::fmt;

/// Version 1 and type 1, the only defined values.
pub const VERSION_TYPE: u8 = 0x11;

/// Values of the code field.
pub mod code {
    /// A session's data.
    pub const SESSION: u8 = 0x00;
    /// PADO: an access concentrator offers its service.
    pub const OFFER: u8 = 0x07;
    /// PADI: a host looks for an access concentrator.
    pub const INITIATION: u8 = 0x09;
    /// PADR: a host asks for a session.
    pub const REQUEST: u8 = 0x19;
    /// PADS: the session is confirmed.
    pub const CONFIRMATION: u8 = 0x65;
    /// PADT: the session is terminated.
    pub const TERMINATION: u8 = 0xa7;
}

/// Types of discovery tags.
pub mod tag {
    /// End of the list.
    pub const END: u16 = 0x0000;
    /// The requested or offered service.
    pub const SERVICE_NAME: u16 = 0x0101;
    /// The name of the access concentrator.
    pub const CONCENTRATOR_NAME: u16 = 0x0102;
    /// A host's value that the concentrator copies into its reply.
    pub const HOST_UNIQUE: u16 = 0x0103;
    /// A concentrator's value that the host copies into its request.
    pub const COOKIE: u16 = 0x0104;
    /// A value that a relay agent adds.
    pub const RELAY_SESSION: u16 = 0x0110;
    /// The service name was rejected.
    pub const SERVICE_NAME_ERROR: u16 = 0x0201;
    /// The concentrator failed.
    pub const SYSTEM_ERROR: u16 = 0x0202;
    /// Another failure.
    pub const GENERIC_ERROR: u16 = 0x0203;
}

header! {
    /// A PPPoE header and its payload.
    6 bytes;
    /// Version and type together, [`VERSION_TYPE`] in a valid header.
    version_type, set_version_type: u8 = 0;
    /// The type of the packet, see [`code`].
    code, set_code: u8 = 1;
    /// The session ID, zero before a session is established.
    session, set_session: u16 = 2;
    /// The length of the payload, in bytes.
    length, set_length: u16 = 4;
}

impl<'a> View<'a> {
    /// The payload, cut to the length field and to the available bytes.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.rest[..self.rest.len().min(usize::from(self.length()))]
    }

    /// The tags of a discovery packet, up to the end or the first malformed one.
    #[inline]
    pub fn tags(&self) -> Tags<'a> {
        Tags { bytes: self.payload() }
    }
}

impl ViewMut<'_> {
    /// All bytes after the header, regardless of the length field.
    #[inline]
    pub fn rest_mut(&mut self) -> &mut [u8] {
        self.rest
    }
}

/// One discovery tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// Its type, see [`tag`].
    pub kind: u16,
    /// Its value.
    pub value: &'a [u8],
}

/// Iterates over the tags of a discovery packet.
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        let ([a, b, c, d], rest) = self.bytes.split_first_chunk::<4>()?;
        let kind = u16::from_be_bytes([*a, *b]);
        if kind == tag::END {
            return None;
        }
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*c, *d])))?;
        self.bytes = rest;
        Some(Tag { kind, value })
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pppoe code {:02x} session {} length {}", self.code(), self.session(), self.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn reads_and_writes() {
        let mut bytes = *b"\0\0\0\0\0\0\x01\x01\0\0\x01\x03\0\x02hi\x01\x02\0\x09cut";
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_version_type(VERSION_TYPE);
        view.set_code(code::INITIATION);
        view.set_session(77);
        view.set_length(17);
        assert_eq!(view.rest_mut().len(), 17);
        let view = view.view();
        assert_eq!(view.to_string(), "pppoe code 09 session 77 length 17");
        let tags: Vec<_> = view.tags().collect();
        let empty = Tag { kind: tag::SERVICE_NAME, value: b"" };
        assert_eq!(tags, [empty, Tag { kind: tag::HOST_UNIQUE, value: b"hi" }]);
        assert!(View::new(&bytes[..5]).is_none());
    }
}
