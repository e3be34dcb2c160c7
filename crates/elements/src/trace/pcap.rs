//! The pcap format: tcpdump's, in both byte orders, with its variants.
//!
//! The file header is 24 bytes: magic, version (major, minor), time zone, accuracy, snapshot length, link type.
//! Each record has 16 bytes before its packet: seconds, fraction of a second, captured length, original length.

use super::decoder::{Found, MAX_CAPTURE, Step};
use super::error::DumpError;
use super::link::LinkType;
use super::order::Order;
use packet::Timestamp;

/// The length of the file header.
pub(super) const HEADER: usize = 24;
/// The length of a record's header.
const RECORD: usize = 16;
/// Timestamps are in microseconds.
pub(super) const MAGIC: u32 = 0xa1b2_c3d4;
/// Timestamps are in nanoseconds.
pub(super) const MAGIC_NANO: u32 = 0xa1b2_3c4d;
/// Records carry eight more bytes (interface, protocol, packet type), as a patched libpcap once wrote them.
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;
/// The bits of the link type field that name the type; above them stand flags and the length of a check sequence.
const LINK_BITS: u32 = 0x03ff_ffff;
/// The major version there is.
pub(super) const MAJOR: u16 = 2;
/// The minor version that is written.
pub(super) const MINOR: u16 = 4;

/// What a pcap header says about the records.
#[derive(Debug)]
pub(super) struct Format {
    order: Order,
    nano: bool,
    minor: u16,
    /// The length of a record's header.
    record: usize,
    pub(super) link: LinkType,
}

impl Format {
    /// Reads the file header; `None` if it is not all there.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Format>, DumpError> {
        let magic = |order: Order| {
            order
                .u32(bytes, 0)
                .filter(|m| matches!(*m, MAGIC | MAGIC_NANO | MAGIC_MODIFIED))
                .map(|m| (order, m))
        };
        let (order, magic) = magic(Order::Little).or_else(|| magic(Order::Big)).ok_or(DumpError::Magic)?;
        let (Some(major), Some(minor), Some(link)) =
            (order.u16(bytes, 4), order.u16(bytes, 6), order.u32(bytes, 20))
        else {
            return Ok(None);
        };
        if major != MAJOR {
            return Err(DumpError::Version(major));
        }
        let record = if magic == MAGIC_MODIFIED { RECORD + 8 } else { RECORD };
        let link = LinkType(link & LINK_BITS).canonical();
        Ok(Some(Format { order, nano: magic == MAGIC_NANO, minor, record, link }))
    }

    /// Looks for a record at the front of the unread bytes.
    pub(super) fn step(&self, unread: &[u8]) -> Result<Step, DumpError> {
        if unread.len() < self.record {
            return Ok(Step::More);
        }
        let field = |at| self.order.u32(unread, at).unwrap_or(0);
        let (seconds, fraction, mut captured, mut original) = (field(0), field(4), field(8), field(12));
        // Before version 2.3 the two lengths stood the other way round, and in 2.3 either way.
        if self.minor < 3 || self.minor == 3 && captured > original {
            (captured, original) = (original, captured);
        }
        if captured > MAX_CAPTURE {
            return Err(DumpError::RecordLength);
        }
        let start = self.record;
        let end = start + captured as usize;
        if unread.len() < end {
            return Ok(Step::More);
        }
        let nanos = if self.nano { i64::from(fraction) } else { i64::from(fraction) * 1_000 };
        // The seconds are unsigned, so that time goes on after 2038.
        let timestamp = Timestamp::from_parts(seconds.into(), 0) + Timestamp::from_nanos(nanos);
        // tcptrace once wrote captured lengths beyond the original: the surplus is no part of the packet.
        let bytes = start..start + captured.min(original) as usize;
        let link = self.link;
        Ok(Step::Record(Found {
            timestamp,
            original_length: original,
            link,
            interface: 0,
            bytes,
            length: end as u64,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;
    use alloc::vec::Vec;

    /// A dump of one packet in any variant.
    fn dump(order: Order, magic: u32, minor: u16, lengths: (u32, u32), packet: &[u8]) -> Vec<u8> {
        let number = |n: u32| if order == Order::Little { n.to_le_bytes() } else { n.to_be_bytes() };
        let half = |n: u16| if order == Order::Little { n.to_le_bytes() } else { n.to_be_bytes() };
        let mut dump = Vec::new();
        dump.extend(number(magic));
        dump.extend(half(2));
        dump.extend(half(minor));
        for field in [0, 0, 65535, 12, 1000, 999, lengths.0, lengths.1] {
            dump.extend(number(field));
        }
        if magic == MAGIC_MODIFIED {
            dump.extend([0; 8]);
        }
        dump.extend(packet);
        dump
    }

    fn check(order: Order, magic: u32, minor: u16, lengths: (u32, u32), expected: (i64, u32, &[u8])) {
        let dump = dump(order, magic, minor, lengths, b"abcd");
        let mut decoder = Decoder::new();
        decoder.feed(&dump);
        assert_eq!(decoder.link(), Ok(Some(LinkType::RAW)));
        let record = decoder.record().unwrap().unwrap();
        assert_eq!((record.timestamp.nanos(), record.original_length, record.bytes), expected);
        assert_eq!(decoder.record(), Ok(None));
        assert_eq!(decoder.unfinished(), 0);
    }

    #[test]
    fn all_variants() {
        let (micro, nano) = (1_000_000_999_000, 1_000_000_000_999);
        for order in [Order::Little, Order::Big] {
            check(order, MAGIC, 4, (4, 60), (micro, 60, b"abcd"));
            check(order, MAGIC_NANO, 4, (4, 60), (nano, 60, b"abcd"));
            check(order, MAGIC_MODIFIED, 4, (4, 60), (micro, 60, b"abcd"));
            check(order, MAGIC, 2, (60, 4), (micro, 60, b"abcd"));
            check(order, MAGIC, 3, (60, 4), (micro, 60, b"abcd"));
            check(order, MAGIC, 3, (4, 60), (micro, 60, b"abcd"));
            check(order, MAGIC, 4, (4, 3), (micro, 3, b"abc"));
        }
    }

    #[test]
    fn lies_are_errors() {
        let error = |dump: &[u8]| {
            let mut decoder = Decoder::new();
            decoder.feed(dump);
            decoder.record().map(|_| ())
        };
        let long = dump(Order::Little, MAGIC, 4, (u32::MAX, 60), b"");
        assert_eq!(error(&long), Err(DumpError::RecordLength));
        let mut version = dump(Order::Little, MAGIC, 4, (0, 0), b"");
        version[4] = 3;
        assert_eq!(error(&version), Err(DumpError::Version(3)));
        assert_eq!(error(&long[..23]), Ok(()));
    }
}
