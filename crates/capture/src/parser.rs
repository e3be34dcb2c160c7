//! The parser: slices of a capture in, records that borrow from them out.

use crate::error::CaptureError;
use crate::link_type::LinkType;
use crate::record::{Record, RecordPlace};
use crate::{RECORD_HEADER_LENGTH, pcap, pcapng};

/// Parses pcap and pcapng without copying.
///
/// Pass the unread bytes; the parser advances the slice over whatever it has consumed. When it returns `None`, keep the
/// bytes that are left in the slice (at most one incomplete block), append more of the capture to them, and go on:
///
/// ```
/// # let capture = {
/// #     let encoder = capture::PcapEncoder::new(capture::LinkType::ETHERNET);
/// #     let mut bytes = encoder.file_header().to_vec();
/// #     encoder.record(5, 3, b"abc", &mut bytes);
/// #     bytes
/// # };
/// let mut parser = capture::Parser::new();
/// let mut unread = capture.as_slice();
/// while let Some(record) = parser.record(&mut unread)? {
///     assert_eq!((record.time_ns, record.bytes), (5, &b"abc"[..]));
/// }
/// assert!(unread.is_empty());
/// # Ok::<(), capture::CaptureError>(())
/// ```
#[derive(Debug, Default)]
pub struct Parser {
    format: Format,
    /// Where the unread bytes begin in the capture.
    position: u64,
    /// Bytes that still have to be skipped.
    skip: u64,
    record_position: u64,
    bad_records: u64,
}

#[derive(Debug, Default)]
enum Format {
    /// Too few bytes so far to tell.
    #[default]
    Unknown,
    Pcap(pcap::Reader),
    Pcapng(pcapng::Reader),
}

/// What a format reads at the front of the unread bytes. Lengths may exceed the unread bytes.
pub(crate) enum Step<'a> {
    /// Nothing: more bytes are needed.
    NeedMore,
    /// Something without a packet, of this length.
    Skip(u64),
    /// A record that cannot be used, of this length.
    Bad(u64),
    /// A record, and the length of everything that belongs to it.
    Record(Record<'a>, usize),
}

impl Parser {
    /// A parser at the start of a capture.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// The next record; `None` if `unread` ends before it is complete. Advances `unread` over what was consumed.
    ///
    /// # Errors
    /// The capture is malformed beyond recovery. Every further call returns the same error.
    #[inline]
    pub fn record<'a>(&mut self, unread: &mut &'a [u8]) -> Result<Option<Record<'a>>, CaptureError> {
        loop {
            match self.step(unread)? {
                Step::Record(record, length) => {
                    self.record_position = self.position;
                    self.position += length as u64;
                    *unread = unread.get(length..).unwrap_or(&[]);
                    return Ok(Some(record));
                }
                Step::NeedMore => {
                    self.record_position = self.position();
                    return Ok(None);
                }
                Step::Skip(length) => self.skip = length,
                Step::Bad(length) => self.skip_bad(length),
            }
        }
    }

    /// Passes the places of at most `most` of the next records to `each`, as long as `length` unread bytes hold them; `header` is
    /// asked for the 16 bytes at an offset. Returns the numbers of records and of bytes consumed. If there are fewer records,
    /// [`record`](Self::record) says why. There are none in pcapng, whose records may differ in their link types, and in unusual
    /// forms of pcap.
    #[inline]
    pub fn places(
        &mut self,
        length: usize,
        most: usize,
        mut header: impl FnMut(usize) -> Option<[u8; RECORD_HEADER_LENGTH]>,
        mut each: impl FnMut(RecordPlace),
    ) -> (usize, usize) {
        let Some(reader) = self.usual_reader() else { return (0, 0) };
        // Nothing but the position changes from one record to the next.
        let (mut consumed, mut last, mut count) = (0, 0, 0);
        while count < most
            && let Some(header) = header(consumed)
            && let Some((place, end)) = reader.usual_place(consumed, header)
            && end <= length
        {
            (last, consumed, count) = (consumed, end, count + 1);
            each(place);
        }
        if count > 0 {
            self.record_position = self.position + last as u64;
        }
        self.position += consumed as u64;
        (count, consumed)
    }

    fn usual_reader(&self) -> Option<&pcap::Reader> {
        match &self.format {
            Format::Pcap(reader) if self.skip == 0 && reader.is_usual() => Some(reader),
            _ => None,
        }
    }

    /// The link type of the packets, once the headers have been parsed; in pcapng, that of the section's first interface.
    ///
    /// # Errors
    /// As [`Parser::record`].
    pub fn link_type(&mut self, unread: &mut &[u8]) -> Result<Option<LinkType>, CaptureError> {
        loop {
            let link = match &self.format {
                Format::Unknown => None,
                Format::Pcap(reader) => Some(reader.link_type()),
                Format::Pcapng(reader) => reader.link_type(),
            };
            if link.is_some() {
                return Ok(link);
            }
            match self.step(unread)? {
                Step::Skip(length) => self.skip = length,
                Step::Bad(length) => self.skip_bad(length),
                Step::NeedMore | Step::Record(..) => return Ok(None),
            }
        }
    }

    /// How far the capture has been parsed, in bytes; zero until the format is known.
    pub fn position(&self) -> u64 {
        self.position + self.skip
    }

    /// Where the last record began, in bytes from the start of the capture; after the last record, where that ended.
    pub fn record_position(&self) -> u64 {
        self.record_position
    }

    /// How many records were skipped because they could not be used.
    pub fn bad_records(&self) -> u64 {
        self.bad_records
    }

    /// Skips everything before `position`, where a record must begin. Does nothing if it lies behind already.
    pub fn skip_to(&mut self, position: u64) {
        self.skip = self.skip.max(position.saturating_sub(self.position));
    }

    fn skip_bad(&mut self, length: u64) {
        self.skip = length;
        self.bad_records += 1;
    }

    /// Consumes as many of the bytes to be skipped as there are.
    pub(crate) fn consume_skipped(&mut self, unread: &mut &[u8]) {
        let skipped = self.skip.min(unread.len() as u64);
        *unread = unread.get(skipped as usize..).unwrap_or(&[]);
        self.position += skipped;
        self.skip -= skipped;
    }

    /// Reads what is at the front of the unread bytes, and consumes none of it.
    #[inline]
    fn step<'a>(&mut self, unread: &mut &'a [u8]) -> Result<Step<'a>, CaptureError> {
        if self.skip > 0 {
            self.consume_skipped(unread);
            if self.skip > 0 {
                return Ok(Step::NeedMore);
            }
        }
        match &mut self.format {
            Format::Pcap(reader) => reader.step(unread),
            Format::Pcapng(reader) => reader.step(unread, self.position),
            Format::Unknown => self.detect(unread),
        }
    }

    /// Finds out the format by the first bytes.
    #[cold]
    fn detect<'a>(&mut self, unread: &[u8]) -> Result<Step<'a>, CaptureError> {
        if unread.len() < 4 {
            return Ok(Step::NeedMore);
        }
        if pcapng::is_section_header(unread) {
            self.format = Format::Pcapng(pcapng::Reader::default());
            return Ok(Step::Skip(0));
        }
        Ok(match pcap::Reader::read(unread)? {
            Some(reader) => {
                self.format = Format::Pcap(reader);
                Step::Skip(pcap::FILE_HEADER_LENGTH as u64)
            }
            None => Step::NeedMore,
        })
    }
}
