//! A dump of any known format, decoded as its bytes come.

use super::error::DumpError;
use super::link::LinkType;
use super::{pcap, pcapng};
use alloc::vec::Vec;
use core::ops::Range;
use packet::Timestamp;

/// The most captured bytes of one record: the largest snapshot length in use (libpcap's MAXIMUM_SNAPLEN).
/// A hostile dump can't make the decoder hold more than one record of this size.
pub const MAX_CAPTURE: u32 = 262_144;

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, since 1970; zero when the dump doesn't say.
    pub timestamp: Timestamp,
    /// The length on the wire, in bytes; never below the captured length.
    pub original_length: u32,
    /// What the captured bytes begin with.
    pub link: LinkType,
    /// The number of the interface it was captured on, in its section; zero in formats that have but one.
    pub interface: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
}

/// Decodes pcap and pcapng.
///
/// Feed bytes, take records until there are none, feed again. The buffer holds what was fed and not yet consumed:
/// at most one unfinished record beside the last feed.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Where the unread bytes begin in the buffer.
    start: usize,
    /// Where the unread bytes begin in the dump.
    position: u64,
    /// Bytes that are still to be passed over.
    skip: u64,
    format: Format,
    record_position: u64,
    bad_records: u64,
}

#[derive(Debug, Default)]
enum Format {
    /// Not enough bytes yet to tell.
    #[default]
    Unknown,
    Pcap(pcap::Format),
    Pcapng(pcapng::Section),
}

/// What a format made of the unread bytes.
pub(super) enum Step {
    /// More bytes are needed.
    More,
    /// Nothing of interest: pass over so many bytes, which need not have come yet.
    Skip(u64),
    /// Something that was no usable record: pass over so many bytes and count it.
    Bad(u64),
    /// A record, at the front of the unread bytes.
    Record(Found),
}

/// Where a record lies in the unread bytes.
pub(super) struct Found {
    pub(super) timestamp: Timestamp,
    pub(super) original_length: u32,
    pub(super) link: LinkType,
    pub(super) interface: u32,
    /// The captured bytes.
    pub(super) bytes: Range<usize>,
    /// The length of the whole record.
    pub(super) length: u64,
}

impl Decoder {
    /// A decoder at the start of a dump.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Adds bytes of the dump.
    pub fn feed(&mut self, bytes: &[u8]) {
        let skipped = self.skip.min(bytes.len() as u64);
        if self.start == self.buffer.len() && skipped > 0 {
            // Nothing is waiting: what is to be passed over needn't be kept.
            self.skip -= skipped;
            self.position += skipped;
            return self.feed(&bytes[skipped as usize..]);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next record; `None` when more bytes must be fed first.
    ///
    /// # Errors
    /// When the dump is malformed beyond recovery; the same error comes again if it is asked again.
    pub fn record(&mut self) -> Result<Option<Record<'_>>, DumpError> {
        let found = self.find()?;
        self.record_position = self.position();
        let Some(found) = found else { return Ok(None) };
        let unread = &self.buffer[self.start..];
        let bytes = &unread[found.bytes];
        self.skip = found.length;
        let original_length = found.original_length.max(bytes.len() as u32);
        let Found { timestamp, link, interface, .. } = found;
        Ok(Some(Record { timestamp, original_length, link, interface, bytes }))
    }

    /// What packets begin with: known once the header has been fed; in pcapng, the first interface of the section.
    ///
    /// # Errors
    /// As [`Decoder::record`].
    pub fn link(&mut self) -> Result<Option<LinkType>, DumpError> {
        loop {
            let link = match &self.format {
                Format::Unknown => None,
                Format::Pcap(format) => Some(format.link),
                Format::Pcapng(section) => section.link(),
            };
            if link.is_some() {
                return Ok(link);
            }
            match self.step()? {
                Step::Skip(length) => self.skip = length,
                Step::Bad(length) => self.pass_bad(length),
                Step::More | Step::Record(_) => return Ok(None),
            }
        }
    }

    /// How much of the dump has been made something of, in bytes; zero until its format is recognised.
    pub fn position(&self) -> u64 {
        self.position + self.skip
    }

    /// Where the last record began, in bytes from the start of the dump; after the last one, where it ended.
    pub fn record_position(&self) -> u64 {
        self.record_position
    }

    /// Records that were passed over because they couldn't be understood.
    pub fn bad_records(&self) -> u64 {
        self.bad_records
    }

    /// Bytes that were fed and belong to an unfinished record; more than zero at the end of a dump that was cut.
    pub fn unfinished(&self) -> usize {
        (self.buffer.len() - self.start).saturating_sub(self.skip.min(usize::MAX as u64) as usize)
    }

    /// Passes over everything before a place of the dump, where a record must begin. Places that were passed already
    /// stay passed.
    pub fn pass_to(&mut self, position: u64) {
        self.skip = self.skip.max(position.saturating_sub(self.position));
    }

    /// Finds the next record, passing over whatever comes before it.
    fn find(&mut self) -> Result<Option<Found>, DumpError> {
        loop {
            match self.step()? {
                Step::More => return Ok(None),
                Step::Skip(length) => self.skip = length,
                Step::Bad(length) => self.pass_bad(length),
                Step::Record(found) => return Ok(Some(found)),
            }
        }
    }

    fn pass_bad(&mut self, length: u64) {
        self.skip = length;
        self.bad_records += 1;
    }

    /// Looks at the front of the unread bytes.
    fn step(&mut self) -> Result<Step, DumpError> {
        let skipped = self.skip.min((self.buffer.len() - self.start) as u64);
        self.start += skipped as usize;
        self.position += skipped;
        self.skip -= skipped;
        if self.skip > 0 {
            return Ok(Step::More);
        }
        let unread = &self.buffer[self.start..];
        match &mut self.format {
            Format::Pcap(format) => format.step(unread),
            Format::Pcapng(section) => section.step(unread, self.position),
            Format::Unknown if unread.len() < 4 => Ok(Step::More),
            Format::Unknown if pcapng::recognises(unread) => {
                self.format = Format::Pcapng(pcapng::Section::default());
                Ok(Step::Skip(0))
            }
            Format::Unknown => match pcap::Format::read(unread)? {
                Some(format) => {
                    self.format = Format::Pcap(format);
                    Ok(Step::Skip(pcap::HEADER as u64))
                }
                None => Ok(Step::More),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, LinkType};
    use super::*;
    use alloc::vec;

    fn dump() -> Vec<u8> {
        let encoder = Encoder::new(LinkType::ETHERNET);
        let mut dump = Vec::new();
        encoder.header(&mut dump);
        for length in 0..50u32 {
            encoder.record(
                Timestamp::from_nanos(length.into()),
                length + 7,
                &vec![length as u8; length as usize],
                &mut dump,
            );
        }
        dump
    }

    #[test]
    fn any_split_gives_the_same_records() {
        let dump = dump();
        for size in [1, 2, 3, 7, 16, 100, dump.len()] {
            let mut decoder = Decoder::new();
            let mut seen = 0;
            for piece in dump.chunks(size) {
                decoder.feed(piece);
                while let Some(record) = decoder.record().unwrap() {
                    assert_eq!(record.timestamp.nanos(), seen);
                    assert_eq!(record.original_length, seen as u32 + 7);
                    assert_eq!(record.bytes, vec![seen as u8; seen as usize]);
                    seen += 1;
                }
            }
            assert_eq!((seen, decoder.unfinished(), decoder.bad_records()), (50, 0, 0), "pieces of {size}");
        }
    }

    #[test]
    fn a_cut_dump_leaves_something_unfinished() {
        let dump = dump();
        let mut decoder = Decoder::new();
        decoder.feed(&dump[..dump.len() - 1]);
        while decoder.record().unwrap().is_some() {}
        assert_eq!(decoder.unfinished(), 16 + 48);
        assert_eq!(decoder.link(), Ok(Some(LinkType::ETHERNET)));
    }

    #[test]
    fn goes_on_at_a_place() {
        let dump = dump();
        let mut decoder = Decoder::new();
        decoder.feed(&dump[..100]);
        decoder.link().unwrap();
        decoder.pass_to(24 + (0..40).map(|length| 16 + length).sum::<u64>());
        decoder.feed(&dump[100..]);
        assert_eq!(decoder.record().unwrap().unwrap().bytes.len(), 40);
    }

    #[test]
    fn no_bytes_make_it_panic_or_hang() {
        let dump = dump();
        for at in 0..200 {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut dump = dump.clone();
                dump[at] = value;
                let mut decoder = Decoder::new();
                decoder.feed(&dump);
                while let Ok(Some(_)) = decoder.record() {}
            }
        }
        let mut decoder = Decoder::new();
        decoder.feed(b"GIF89a, which is no dump");
        assert_eq!(decoder.record(), Err(DumpError::Magic));
        assert_eq!(decoder.link(), Err(DumpError::Magic));
    }
}
