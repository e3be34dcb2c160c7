//! A parser with its read buffer.

use crate::RECORD_HEADER_LENGTH;
use crate::error::CaptureError;
use crate::link_type::LinkType;
use crate::parser::Parser;
use crate::record::{Record, RecordPlace};
use alloc::vec::Vec;

/// Bytes of free space that a read is offered: so many that the cost of a system call is small beside that of the copy, and
/// so few that the second-level cache holds them until they are parsed.
const READ_SIZE: usize = 512 << 10;

/// Decodes a capture that arrives piece by piece.
///
/// Fill the buffer, either by reading into [`space`](Self::space) and calling [`filled`](Self::filled), which copies
/// nothing, or by [`feed`](Self::feed). Then take records until there are none, and fill the buffer again. It holds the bytes
/// of the last read and at most one unfinished block.
#[derive(Debug, Default)]
pub struct Decoder {
    parser: Parser,
    /// Initialised memory, of which `start..end` are bytes of the capture that have not been parsed.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Decoder {
    /// A decoder at the start of a capture.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Free memory for the next bytes of the capture, at least 512 KB.
    pub fn space(&mut self) -> &mut [u8] {
        self.reserve(READ_SIZE);
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// Says that the first `count` bytes of [`space`](Self::space) have been filled.
    pub fn filled(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.buffer.len());
    }

    /// Adds a copy of the next bytes of the capture.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if self.start == self.end {
            // With nothing unread, bytes that are to be skipped need not be kept.
            self.parser.consume_skipped(&mut bytes);
        }
        self.reserve(bytes.len());
        if let Some(space) = self.buffer.get_mut(self.end..self.end + bytes.len()) {
            space.copy_from_slice(bytes);
            self.end += bytes.len();
        }
    }

    /// Moves the unread bytes to the front of the buffer, and makes sure that `free` bytes follow them.
    fn reserve(&mut self, free: usize) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < free {
            self.buffer.resize(self.end + free, 0);
        }
    }

    /// The next record; `None` when the buffer must be filled first.
    ///
    /// # Errors
    /// The capture is malformed beyond recovery. Every further call returns the same error.
    #[inline]
    pub fn record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        let mut unread = self.buffer.get(self.start..self.end).unwrap_or_default();
        let record = self.parser.record(&mut unread)?;
        self.start = self.end - unread.len();
        Ok(record)
    }

    /// Passes at most `most` of the next records and their bytes to `each`, as long as the buffer holds them; returns their number.
    /// If there are fewer, [`record`](Self::record) says why. There are none in pcapng, whose records may differ in their link
    /// types, and in unusual forms of pcap.
    #[inline]
    pub fn records(&mut self, most: usize, mut each: impl FnMut(RecordPlace, &[u8])) -> usize {
        let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
        let header = |offset: usize| unread.get(offset..)?.first_chunk().copied();
        let (count, consumed) = self.parser.places(unread.len(), most, header, |place| {
            each(
                place,
                unread.get(place.offset..).and_then(|rest| rest.get(..place.length)).unwrap_or_default(),
            );
        });
        self.start += consumed;
        count
    }

    /// Forgets the unread bytes, which are read again from [`position`](Self::position).
    pub fn forget_unread(&mut self) {
        self.start = self.end;
    }

    /// As [`Parser::places`], in the capture itself from [`position`](Self::position) on. There are none while the buffer has unread
    /// bytes.
    #[inline]
    pub fn places(
        &mut self,
        length: usize,
        most: usize,
        header: impl FnMut(usize) -> Option<[u8; RECORD_HEADER_LENGTH]>,
        each: impl FnMut(RecordPlace),
    ) -> usize {
        if self.unread() > 0 {
            return 0;
        }
        self.parser.places(length, most, header, each).0
    }

    /// The link type of the packets, once the headers are in the buffer; in pcapng, that of the section's first interface.
    ///
    /// # Errors
    /// As [`Decoder::record`].
    pub fn link_type(&mut self) -> Result<Option<LinkType>, CaptureError> {
        let mut unread = self.buffer.get(self.start..self.end).unwrap_or_default();
        let link = self.parser.link_type(&mut unread)?;
        self.start = self.end - unread.len();
        Ok(link)
    }

    /// How far the capture has been decoded, in bytes; zero until the format is known.
    pub fn position(&self) -> u64 {
        self.parser.position()
    }

    /// Where the last record began, in bytes from the start of the capture; after the last record, where that ended.
    pub fn record_position(&self) -> u64 {
        self.parser.record_position()
    }

    /// How many records were skipped because they could not be used.
    pub fn bad_records(&self) -> u64 {
        self.parser.bad_records()
    }

    /// Bytes in the buffer that belong to no complete record; more than zero at the end of a truncated capture.
    pub fn unread(&self) -> usize {
        self.end - self.start
    }

    /// Skips everything before `position`, where a record must begin. Does nothing if it lies behind already.
    pub fn skip_to(&mut self, position: u64) {
        self.parser.skip_to(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FILE_HEADER_LENGTH, LinkType, PcapEncoder};
    use alloc::vec;

    fn capture() -> Vec<u8> {
        let encoder = PcapEncoder::new(LinkType::ETHERNET);
        let mut capture = encoder.file_header().to_vec();
        for length in 0..50u32 {
            encoder.record(length.into(), length + 7, &vec![length as u8; length as usize], &mut capture);
        }
        capture
    }

    #[test]
    fn any_split_gives_the_same_records() {
        let capture = capture();
        for size in [1, 2, 3, 7, 16, 100, capture.len()] {
            let mut decoder = Decoder::new();
            let mut seen = 0;
            for piece in capture.chunks(size) {
                decoder.feed(piece);
                while let Some(record) = decoder.record().unwrap() {
                    assert_eq!(record.time_ns, seen);
                    assert_eq!(record.original_length, seen as u32 + 7);
                    assert_eq!(record.bytes, vec![seen as u8; seen as usize]);
                    seen += 1;
                }
            }
            assert_eq!((seen, decoder.unread(), decoder.bad_records()), (50, 0, 0), "pieces of {size}");
        }
    }

    #[test]
    fn records_are_the_same_one_by_one_and_together() {
        let capture = capture();
        for (size, most) in [(1, 3), (100, 3), (1000, 7), (capture.len(), 1), (capture.len(), 1000)] {
            let (mut single, mut together) = (Decoder::new(), Decoder::new());
            for piece in capture.chunks(size) {
                single.feed(piece);
                together.feed(piece);
                loop {
                    let mut count = 0;
                    let passed = together.records(most, |place, bytes| {
                        let record = single.record().unwrap().unwrap();
                        let RecordPlace { time_ns, original_length, length, .. } = place;
                        assert_eq!((record.time_ns, record.original_length), (time_ns, original_length));
                        assert_eq!((record.bytes, length), (bytes, bytes.len()), "{size}, {most}");
                        count += 1;
                    });
                    assert_eq!((passed, together.position()), (count, single.position()), "{size}, {most}");
                    if count > 0 {
                        assert_eq!(together.record_position(), single.record_position(), "{size}, {most}");
                    }
                    let next = if count < most { together.record() } else { continue };
                    assert_eq!(next, single.record(), "{size}, {most}");
                    if next == Ok(None) {
                        break;
                    }
                }
            }
            assert_eq!((together.unread(), together.record_position()), (0, single.record_position()));
        }
    }

    #[test]
    fn records_are_found_in_place() {
        let capture = capture();
        let (mut single, mut decoder) = (Decoder::new(), Decoder::new());
        single.feed(&capture);
        decoder.feed(&capture[..100]);
        assert_eq!(decoder.record(), single.record());
        assert_eq!(decoder.places(capture.len(), 3, |_| panic!("there are unread bytes"), |_| ()), 0);
        decoder.forget_unread();
        let mut count = 1;
        loop {
            let rest = &capture[decoder.position() as usize..];
            let header = |offset: usize| rest.get(offset..)?.first_chunk().copied();
            let passed = decoder.places(rest.len(), 7, header, |place| {
                let record = single.record().unwrap().unwrap();
                assert_eq!(record.bytes, &rest[place.offset..][..place.length]);
                assert_eq!((record.time_ns, record.original_length), (place.time_ns, place.original_length));
                count += 1;
            });
            assert_eq!(
                (decoder.position(), decoder.record_position()),
                (single.position(), single.record_position())
            );
            if passed == 0 {
                break;
            }
        }
        assert_eq!((count, decoder.position()), (50, capture.len() as u64));
        // A record that is cut off is found when the rest is there.
        decoder = Decoder::new();
        decoder.feed(&capture[..FILE_HEADER_LENGTH + 1]);
        assert_eq!(decoder.record(), Ok(None));
        decoder.forget_unread();
        let header = |offset: usize| capture.get(FILE_HEADER_LENGTH + offset..)?.first_chunk().copied();
        assert_eq!(decoder.places(16 + 16, 7, header, |_| ()), 1);
        assert_eq!(decoder.position(), 24 + 16);
    }

    #[test]
    fn a_truncated_capture_leaves_unread_bytes() {
        let capture = capture();
        let mut decoder = Decoder::new();
        decoder.feed(&capture[..capture.len() - 1]);
        while decoder.record().unwrap().is_some() {}
        assert_eq!(decoder.unread(), 16 + 48);
        assert_eq!(decoder.link_type(), Ok(Some(LinkType::ETHERNET)));
    }

    #[test]
    fn skips_to_a_position() {
        let capture = capture();
        let mut decoder = Decoder::new();
        decoder.feed(&capture[..100]);
        decoder.link_type().unwrap();
        decoder.skip_to(24 + (0..40).map(|length| 16 + length).sum::<u64>());
        decoder.feed(&capture[100..]);
        assert_eq!(decoder.record().unwrap().unwrap().bytes.len(), 40);
    }

    #[test]
    fn no_bytes_make_it_panic_or_hang() {
        let capture = capture();
        for at in 0..200 {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut capture = capture.clone();
                capture[at] = value;
                let mut decoder = Decoder::new();
                decoder.feed(&capture);
                while let Ok(Some(_)) = decoder.record() {}
            }
        }
        let mut decoder = Decoder::new();
        decoder.feed(b"GIF89a, which is no capture");
        assert_eq!(decoder.record(), Err(CaptureError::Magic));
        assert_eq!(decoder.link_type(), Err(CaptureError::Magic));
    }
}
