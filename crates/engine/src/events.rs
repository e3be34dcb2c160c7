//! Events: log lines and file output, within limits, and without delaying packets.

use crate::limits::{CONSOLE_LINES, MAX_LINE, MAX_WAITING, OUTPUT_BYTES, PIECE, WAITING_SHARE};
use alloc::rc::Rc;
use alloc::vec::Vec;
use boundary::{ChannelError, Event, FrameWriter, Mapped, Outbox};
use packet::{SECOND, Timestamp};

/// A budget that refills over time, up to the amount for one second.
#[derive(Debug)]
struct Budget {
    rate: u64,
    left: u64,
    since: Timestamp,
}

impl Budget {
    const fn new(rate: u64) -> Budget {
        Budget { rate, left: rate, since: Timestamp::ZERO }
    }

    /// Takes `cost` from the budget, if there is enough.
    fn take(&mut self, cost: u64, now: Timestamp) -> bool {
        let passed = (now - self.since).nanos().clamp(0, SECOND).unsigned_abs();
        let refill = passed * self.rate / SECOND.unsigned_abs();
        if refill > 0 {
            self.left = (self.left + refill).min(self.rate);
            self.since = now;
        }
        let enough = self.left >= cost;
        if enough {
            self.left -= cost;
        }
        enough
    }
}

/// The piece of a file that is being collected.
#[derive(Debug)]
struct Piece {
    file: Rc<str>,
    position: u64,
    bytes: Vec<u8>,
}

/// Outgoing events of a box.
#[derive(Debug)]
pub(crate) struct Events {
    channel: FrameWriter<Mapped>,
    outbox: Outbox,
    piece: Option<Piece>,
    number: u32,
    lines: Budget,
    bytes: Budget,
    lost: u64,
    /// Maximum bytes that may wait for room in the channel.
    most: usize,
}

impl Events {
    /// Events of a box with a heap of `heap` bytes; 0 if the size is unknown.
    pub(crate) fn new(channel: FrameWriter<Mapped>, heap: usize) -> Events {
        Events {
            most: if heap == 0 { MAX_WAITING } else { MAX_WAITING.min(heap / WAITING_SHARE) },
            channel,
            outbox: Outbox::default(),
            piece: None,
            number: 0,
            lines: Budget::new(CONSOLE_LINES),
            bytes: Budget::new(OUTPUT_BYTES),
            lost: 0,
        }
    }

    /// The number of dropped lines and pieces.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether all events were sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.outbox.is_empty() && self.piece.is_none()
    }

    /// Logs the lines of a text in the name of a configuration.
    pub(crate) fn say(&mut self, name: &str, text: &str, now: Timestamp) {
        for line in text.split('\n') {
            let end = line.floor_char_boundary(MAX_LINE);
            if self.lines.take(1, now) && self.outbox.bytes() < self.most {
                self.gather();
                let line = line.get(..end).unwrap_or(line).as_bytes();
                self.push(&Event::Console { name: name.as_bytes(), line });
            } else {
                self.lost += 1;
            }
        }
    }

    /// Writes bytes to a file on the host: all of them or, beyond the limits, none, so that no record is truncated.
    pub(crate) fn output(&mut self, file: &Rc<str>, position: u64, bytes: &[u8], now: Timestamp) {
        if !self.bytes.take(bytes.len() as u64, now) || self.outbox.bytes() >= self.most {
            self.lost += 1;
            return;
        }
        let mut position = position;
        for bytes in bytes.chunks(PIECE) {
            self.add(file, position, bytes);
            position += bytes.len() as u64;
        }
    }

    /// Adds bytes to the current piece if they are contiguous and fit, or else starts a new piece.
    fn add(&mut self, file: &Rc<str>, position: u64, bytes: &[u8]) {
        let follows = |piece: &Piece| {
            Rc::ptr_eq(&piece.file, file)
                && piece.position + piece.bytes.len() as u64 == position
                && piece.bytes.len() + bytes.len() <= PIECE
        };
        if !self.piece.as_ref().is_some_and(follows) {
            self.gather();
        }
        let begin = || Piece { file: file.clone(), position, bytes: Vec::with_capacity(PIECE) };
        self.piece.get_or_insert_with(begin).bytes.extend_from_slice(bytes);
    }

    /// Queues the current piece.
    pub(crate) fn gather(&mut self) {
        if let Some(Piece { file, position, bytes }) = self.piece.take() {
            self.push(&Event::Output { file: file.as_bytes(), position, bytes: &bytes });
        }
    }

    fn push(&mut self, event: &Event) {
        self.outbox.push(event.encode(self.number));
        self.number = self.number.wrapping_add(1);
    }

    /// Sends as many events as fit. Returns true if the host sleeps and must be woken.
    pub(crate) fn flush(&mut self) -> Result<bool, ChannelError> {
        if self.is_empty() {
            return Ok(false);
        }
        self.gather();
        self.outbox.flush(&mut self.channel)
    }

    /// Prepares for sleep until there is room. Returns false if there is room already; the box must then not sleep.
    pub(crate) fn prepare_sleep(&mut self) -> Result<bool, ChannelError> {
        if self.outbox.is_empty() { Ok(true) } else { self.channel.prepare_sleep() }
    }

    /// Undoes [`prepare_sleep`](Self::prepare_sleep).
    pub(crate) fn end_sleep(&self) {
        self.channel.end_sleep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_and_refills() {
        let mut budget = Budget::new(10);
        let start = Timestamp::from_parts(100, 0);
        assert_eq!((0..20).filter(|_| budget.take(1, start)).count(), 10);
        let later = start + Timestamp::from_millis(300);
        assert_eq!((0..20).filter(|_| budget.take(1, later)).count(), 3);
        let much_later = start + Timestamp::from_parts(3_600, 0);
        assert!(!budget.take(11, much_later) && budget.take(10, much_later));
    }
}
