//! A capture that is in the program, played again and again.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use element::{IoError, Reader};

/// Bytes of a pcap file's header, and of each record's.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// A pcap file that the program has in itself, instead of one of the host's.
///
/// What elements print meanwhile is of no interest: it would say the same in each round.
#[derive(Clone)]
pub(crate) struct Supplied {
    /// The name that configurations read it by.
    pub(crate) name: &'static str,
    /// Its content, in little-endian byte order.
    pub(crate) bytes: &'static [u8],
    /// For how long it is played again when it is over.
    pub(crate) time: Duration,
    /// How often it has been played.
    pub(crate) rounds: Rc<Cell<u32>>,
}

/// Plays a capture. Each round's packets are later than those of the round before, as if it had gone on.
pub(super) struct Replay {
    supplied: Supplied,
    started: Instant,
    position: usize,
    /// Bytes of this round with the times of its packets.
    round: Vec<u8>,
    read: u64,
}

impl Replay {
    pub(super) fn new(supplied: Supplied) -> Replay {
        supplied.rounds.set(0);
        let round = supplied.bytes.to_vec();
        Replay { supplied, started: Instant::now(), position: 0, round, read: 0 }
    }

    /// Goes to the first packet again, and makes all packets later.
    fn again(&mut self) {
        let span = span(self.supplied.bytes);
        let mut at = FILE_HEADER;
        while let Some(seconds) = number(&self.round, at) {
            let length = number(&self.round, at + 8).unwrap_or(0) as usize;
            if let Some(field) = self.round.get_mut(at..at + 4) {
                field.copy_from_slice(&seconds.wrapping_add(span).to_le_bytes());
            }
            at += RECORD_HEADER + length;
        }
        self.position = FILE_HEADER.min(self.round.len());
    }
}

/// Seconds from one round to the next.
fn span(bytes: &[u8]) -> u32 {
    let (mut at, mut first, mut last) = (FILE_HEADER, None, 0);
    while let Some(seconds) = number(bytes, at) {
        last = seconds;
        first = first.or(Some(seconds));
        at += RECORD_HEADER + number(bytes, at + 8).unwrap_or(0) as usize;
    }
    last.wrapping_sub(first.unwrap_or(last)).wrapping_add(1)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

impl Reader for Replay {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError> {
        if self.position >= self.round.len() {
            self.supplied.rounds.set(self.supplied.rounds.get() + 1);
            if self.started.elapsed() >= self.supplied.time || self.round.len() <= FILE_HEADER {
                return Ok(0);
            }
            self.again();
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

    #[test]
    fn rounds_follow_each_other_in_time() {
        let bytes: &'static [u8] = include_bytes!("../../../../testdata/mix.pcap");
        let rounds = Rc::new(Cell::new(0));
        let time = Duration::from_secs(3600);
        let mut replay = Replay::new(Supplied { name: "x", bytes, time, rounds: rounds.clone() });
        let mut all = vec![0; bytes.len() * 2 - FILE_HEADER];
        let mut filled = 0;
        while filled < all.len() {
            filled += replay.read(&mut all[filled..]).expect("memory can be read");
        }
        assert_eq!(rounds.get(), 1);
        let (first, second) = (number(&all, FILE_HEADER), number(&all, bytes.len()));
        assert_eq!(second, first.map(|first| first + span(bytes)));
        assert_eq!(all[bytes.len() + 4..bytes.len() + 80], bytes[FILE_HEADER + 4..FILE_HEADER + 80]);
    }
}
