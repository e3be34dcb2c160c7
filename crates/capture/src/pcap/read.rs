//! Reads pcap.

use super::{FILE_HEADER_LENGTH, MAGIC, MAGIC_MODIFIED, MAGIC_NANOSECONDS, MAJOR, RECORD_HEADER_LENGTH};
use crate::MAX_CAPTURED;
use crate::byte_order::ByteOrder;
use crate::error::CaptureError;
use crate::link_type::LinkType;
use crate::parser::Step;
use crate::record::{Options, Record, RecordPlace};

/// The bits of the link type field that hold the type; the others are flags and the length of a frame check sequence.
const LINK_TYPE_BITS: u32 = 0x03ff_ffff;

/// What the file header says about the records.
#[derive(Debug)]
pub(crate) struct Reader {
    order: ByteOrder,
    /// Nanoseconds in one unit of a timestamp's fraction.
    unit_ns: i64,
    minor: u16,
    /// Bytes of a record's header.
    record_header: usize,
    link: LinkType,
}

impl Reader {
    /// Reads the file header; `None` if it is incomplete.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Reader>, CaptureError> {
        let magic = |order: ByteOrder| {
            let magic = order.u32(bytes, 0);
            magic
                .filter(|magic| matches!(*magic, MAGIC | MAGIC_NANOSECONDS | MAGIC_MODIFIED))
                .map(|m| (order, m))
        };
        let (order, magic) =
            magic(ByteOrder::Little).or_else(|| magic(ByteOrder::Big)).ok_or(CaptureError::Magic)?;
        let (Some(major), Some(minor), Some(link)) =
            (order.u16(bytes, 4), order.u16(bytes, 6), order.u32(bytes, FILE_HEADER_LENGTH - 4))
        else {
            return Ok(None);
        };
        if major != MAJOR {
            return Err(CaptureError::Version(major));
        }
        let record_header =
            if magic == MAGIC_MODIFIED { RECORD_HEADER_LENGTH + 8 } else { RECORD_HEADER_LENGTH };
        let unit_ns = if magic == MAGIC_NANOSECONDS { 1 } else { 1_000 };
        let link = LinkType(link & LINK_TYPE_BITS).canonical();
        Ok(Some(Reader { order, unit_ns, minor, record_header, link }))
    }

    pub(crate) fn link_type(&self) -> LinkType {
        self.link
    }

    /// The captured and the original length in a record of an old version: before version 2.3 they stood the other way round,
    /// and in 2.3 either way.
    #[cold]
    fn old_lengths(&self, first: u32, second: u32) -> (u32, u32) {
        if self.minor < 3 || first > second { (second, first) } else { (first, second) }
    }

    /// Whether records have the usual form, which [`usual_place`](Self::usual_place) reads.
    pub(crate) fn is_usual(&self) -> bool {
        self.order == ByteOrder::Little && self.minor >= 4 && self.record_header == RECORD_HEADER_LENGTH
    }

    /// Where the packet lies of a record with this header at `offset`, and where the record ends. `None` if its length is not
    /// valid.
    #[inline(always)]
    pub(crate) fn usual_place(
        &self,
        offset: usize,
        header: [u8; RECORD_HEADER_LENGTH],
    ) -> Option<(RecordPlace, usize)> {
        let [seconds, fraction, captured, original_length] = ByteOrder::Little.words(&header);
        let offset = offset + RECORD_HEADER_LENGTH;
        let place = RecordPlace {
            time_ns: self.time_ns(seconds, fraction),
            original_length,
            offset,
            // tcptrace once wrote captured lengths beyond the original length: the surplus is no part of the packet.
            length: captured.min(original_length) as usize,
        };
        (captured <= MAX_CAPTURED).then_some((place, offset + captured as usize))
    }

    /// A time in seconds and their fraction. The seconds are unsigned, so that time continues after 2038.
    #[inline(always)]
    fn time_ns(&self, seconds: u32, fraction: u32) -> i64 {
        i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.unit_ns
    }

    /// Reads the record at the front of the unread bytes.
    #[inline]
    pub(crate) fn step<'a>(&self, unread: &'a [u8]) -> Result<Step<'a>, CaptureError> {
        let (Some(header), Some(rest)) = (unread.first_chunk(), unread.get(self.record_header..)) else {
            return Ok(Step::NeedMore);
        };
        let [seconds, fraction, captured, original] = self.order.words(header);
        let (captured, original) =
            if self.minor < 4 { self.old_lengths(captured, original) } else { (captured, original) };
        if captured > MAX_CAPTURED {
            return Err(CaptureError::RecordLength);
        }
        let Some(bytes) = rest.get(..captured as usize) else { return Ok(Step::NeedMore) };
        let record = self.record([seconds, fraction, original], bytes);
        Ok(Step::Record(record, self.record_header + captured as usize))
    }

    /// The record with these captured bytes: its time in seconds and their fraction, and the length of the packet.
    #[inline(always)]
    fn record<'a>(&self, [seconds, fraction, original]: [u32; 3], bytes: &'a [u8]) -> Record<'a> {
        Record {
            time_ns: self.time_ns(seconds, fraction),
            original_length: original,
            link: self.link,
            interface: 0,
            // As in `usual_place`.
            bytes: bytes.get(..original as usize).unwrap_or(bytes),
            options: Options::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;
    use alloc::vec::Vec;

    /// A capture of one packet in any variant.
    fn dump(order: ByteOrder, magic: u32, minor: u16, lengths: (u32, u32), packet: &[u8]) -> Vec<u8> {
        let number = |n: u32| if order == ByteOrder::Little { n.to_le_bytes() } else { n.to_be_bytes() };
        let half = |n: u16| if order == ByteOrder::Little { n.to_le_bytes() } else { n.to_be_bytes() };
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

    fn check(order: ByteOrder, magic: u32, minor: u16, lengths: (u32, u32), expected: (i64, u32, &[u8])) {
        let dump = dump(order, magic, minor, lengths, b"abcd");
        let mut decoder = Decoder::new();
        decoder.feed(&dump);
        assert_eq!(decoder.link_type(), Ok(Some(LinkType::RAW)));
        let record = decoder.record().unwrap().unwrap();
        assert_eq!((record.time_ns, record.original_length, record.bytes), expected);
        assert_eq!(decoder.record(), Ok(None));
        assert_eq!(decoder.unread(), 0);
    }

    #[test]
    fn all_variants() {
        let (micro, nano) = (1_000_000_999_000, 1_000_000_000_999);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            check(order, MAGIC, 4, (4, 60), (micro, 60, b"abcd"));
            check(order, MAGIC_NANOSECONDS, 4, (4, 60), (nano, 60, b"abcd"));
            check(order, MAGIC_MODIFIED, 4, (4, 60), (micro, 60, b"abcd"));
            check(order, MAGIC, 2, (60, 4), (micro, 60, b"abcd"));
            check(order, MAGIC, 3, (60, 4), (micro, 60, b"abcd"));
            check(order, MAGIC, 3, (4, 60), (micro, 60, b"abcd"));
            check(order, MAGIC, 4, (4, 3), (micro, 3, b"abc"));
        }
    }

    #[test]
    fn impossible_headers_are_errors() {
        let error = |dump: &[u8]| {
            let mut decoder = Decoder::new();
            decoder.feed(dump);
            decoder.record().map(|_| ())
        };
        let long = dump(ByteOrder::Little, MAGIC, 4, (u32::MAX, 60), b"");
        assert_eq!(error(&long), Err(CaptureError::RecordLength));
        let mut version = dump(ByteOrder::Little, MAGIC, 4, (0, 0), b"");
        version[4] = 3;
        assert_eq!(error(&version), Err(CaptureError::Version(3)));
        assert_eq!(error(&long[..23]), Ok(()));
    }
}
