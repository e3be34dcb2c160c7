//! A capture in the program's memory, replayed in a loop.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capture::{FILE_HEADER_LENGTH, Parser, PcapEncoder, Record};
use element::{IoError, Reader};

/// A capture in the program's memory, which a configuration reads like a file of the host.
///
/// Output of elements is discarded, because it would repeat in each round.
#[derive(Clone)]
pub(crate) struct MemoryCapture {
    /// The file name that configurations read it by.
    pub(crate) name: &'static str,
    /// Its contents.
    pub(crate) bytes: Rc<[u8]>,
    /// The duration of the replay.
    pub(crate) time: Duration,
    /// The number of completed rounds.
    pub(crate) rounds: Rc<Cell<u32>>,
}

/// Replays a capture. Timestamps continue from round to round.
pub(super) struct Replay {
    capture: MemoryCapture,
    started: Instant,
    /// Nanoseconds between two rounds: whole seconds, so that the fractions are preserved.
    period_ns: i64,
    /// The bytes of this round. Rounds after the first have no file header.
    round: Vec<u8>,
    position: usize,
    read: u64,
}

impl Replay {
    pub(super) fn new(capture: MemoryCapture) -> Replay {
        capture.rounds.set(0);
        let (mut first, mut last) = (None, 0);
        for record in records(&capture.bytes) {
            last = record.time_ns;
            first = first.or(Some(last));
        }
        let seconds = (last - first.unwrap_or(last)) / 1_000_000_000 + 1;
        let mut replay = Replay {
            capture,
            started: Instant::now(),
            period_ns: seconds * 1_000_000_000,
            round: Vec::new(),
            position: 0,
            read: 0,
        };
        replay.encode(0);
        replay
    }

    /// Encodes a round: the first one with the file header, each with later timestamps than the previous one.
    fn encode(&mut self, number: u32) {
        self.round.clear();
        self.position = 0;
        let bytes: &[u8] = &self.capture.bytes;
        let Ok(Some(link)) = Parser::new().link_type(&mut &*bytes) else { return };
        let encoder = PcapEncoder::new(link);
        if number == 0 {
            self.round.extend_from_slice(&encoder.file_header());
        }
        let delay_ns = self.period_ns * i64::from(number);
        for record in records(bytes) {
            encoder.record(record.time_ns + delay_ns, record.original_length, record.bytes, &mut self.round);
        }
    }
}

/// The records of a capture, up to its end or to the first error.
fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let (mut parser, mut unread) = (Parser::new(), bytes);
    std::iter::from_fn(move || parser.record(&mut unread).ok().flatten())
}

impl Reader for Replay {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError> {
        if self.position >= self.round.len() {
            let rounds = self.capture.rounds.get() + 1;
            self.capture.rounds.set(rounds);
            let has_records = rounds > 1 || self.round.len() > FILE_HEADER_LENGTH;
            if self.started.elapsed() >= self.capture.time || !has_records {
                return Ok(0);
            }
            self.encode(rounds);
        }
        let rest = self.round.get(self.position..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..count), rest.get(..count)) {
            into.copy_from_slice(rest);
        }
        self.position += count;
        self.read += count as u64;
        Ok(count)
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn position(&self) -> u64 {
        self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::Decoder;

    #[test]
    fn timestamps_increase_from_round_to_round() {
        let bytes: &'static [u8] = include_bytes!("../../../../testdata/mix.pcap");
        let rounds = Rc::new(Cell::new(0));
        let time = Duration::from_secs(3600);
        let mut replay =
            Replay::new(MemoryCapture { name: "x", bytes: bytes.into(), time, rounds: rounds.clone() });
        let mut decoder = Decoder::new();
        let (mut round, mut last) = (0, 0);
        while round < 3 {
            for expected in records(bytes) {
                let found = loop {
                    if let Some(record) = decoder.record().expect("a sound capture") {
                        break record;
                    }
                    let count = replay.read(decoder.space()).expect("memory can be read");
                    decoder.filled(count);
                };
                assert!(found.time_ns >= last, "round {round}");
                last = found.time_ns;
                assert_eq!(found.time_ns - expected.time_ns, replay.period_ns * round);
                assert_eq!((found.original_length, found.bytes), (expected.original_length, expected.bytes));
            }
            round += 1;
        }
        assert_eq!(rounds.get(), 2);
    }

    #[test]
    fn a_capture_without_packets_ends_at_once() {
        let bytes: &'static [u8] = &include_bytes!("../../../../testdata/mix.pcap")[..FILE_HEADER_LENGTH];
        let time = Duration::from_secs(3600);
        let mut replay =
            Replay::new(MemoryCapture { name: "x", bytes: bytes.into(), time, rounds: Rc::default() });
        let mut into = [0; 100];
        assert_eq!(replay.read(&mut into).ok(), Some(FILE_HEADER_LENGTH));
        assert_eq!(replay.read(&mut into).ok(), Some(0));
    }
}
