//! The header of messages.

use crate::VERSION;
use crate::wire::Writer;

/// Bytes of the header of a message.
pub const HEADER: usize = 8;

/// The header of a message (OpenFlow 1.3.5, 7.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the protocol.
    pub version: u8,
    /// The type of the message (`OFPT_*`).
    pub message_type: u8,
    /// Length with the header.
    pub length: u16,
    /// A number that replies repeat.
    pub xid: u32,
}

impl Header {
    /// Decodes a header; `None` if it is not complete.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER>()?;
        let [version, message_type, high, low, xid @ ..] = *header;
        let (length, xid) = (u16::from_be_bytes([high, low]), u32::from_be_bytes(xid));
        Some(Self { version, message_type, length, xid })
    }
}

/// A writer after a header without length.
pub(crate) fn start(message_type: u8, xid: u32) -> Writer {
    let mut writer = Writer::default();
    writer.u8(VERSION).u8(message_type).u16(0).u32(xid);
    writer
}

/// The message, with its length in the header.
pub(crate) fn finish(mut writer: Writer) -> Vec<u8> {
    writer.set_length(2, 0);
    writer.0
}
