//! Events: log lines and file output, within limits, and without delaying packets.

use crate::limits::{
    CONSOLE_LINES, EVENT_BACKLOG_HEAP_SHARE, MAX_EVENT_BACKLOG, MAX_LINE, MAX_OUTPUT_CHUNK, OUTPUT_BYTES,
};
use alloc::rc::Rc;
use alloc::vec::Vec;
use boundary::{ChannelError, Event, FrameWriter, Mapped, Outbox};
use packet::{SECOND, Timestamp};

/// A bucket that refills over time, up to the amount for one second.
#[derive(Debug)]
struct TokenBucket {
    rate: u64,
    tokens: u64,
    refilled: Timestamp,
}

impl TokenBucket {
    const fn new(rate: u64) -> TokenBucket {
        TokenBucket { rate, tokens: rate, refilled: Timestamp::ZERO }
    }

    /// Takes `cost` from the bucket, if there is enough.
    fn take(&mut self, cost: u64, now: Timestamp) -> bool {
        let passed = (now - self.refilled).nanos().clamp(0, SECOND).unsigned_abs();
        let refill = passed * self.rate / SECOND.unsigned_abs();
        if refill > 0 {
            self.tokens = (self.tokens + refill).min(self.rate);
            self.refilled = now;
        }
        let enough = self.tokens >= cost;
        if enough {
            self.tokens -= cost;
        }
        enough
    }
}

/// The chunk of a file that is being collected.
#[derive(Debug)]
struct OutputChunk {
    file: Rc<str>,
    position: u64,
    bytes: Vec<u8>,
}

/// Outgoing events of a box.
#[derive(Debug)]
pub(crate) struct Events {
    channel: FrameWriter<Mapped>,
    outbox: Outbox,
    chunk: Option<OutputChunk>,
    number: u32,
    lines: TokenBucket,
    bytes: TokenBucket,
    lost: u64,
    /// Maximum bytes that may wait for room in the channel.
    max_backlog: usize,
}

impl Events {
    /// Events of a box with a heap of `heap` bytes; 0 if the size is unknown.
    pub(crate) fn new(channel: FrameWriter<Mapped>, heap: usize) -> Events {
        Events {
            max_backlog: if heap == 0 {
                MAX_EVENT_BACKLOG
            } else {
                MAX_EVENT_BACKLOG.min(heap / EVENT_BACKLOG_HEAP_SHARE)
            },
            channel,
            outbox: Outbox::default(),
            chunk: None,
            number: 0,
            lines: TokenBucket::new(CONSOLE_LINES),
            bytes: TokenBucket::new(OUTPUT_BYTES),
            lost: 0,
        }
    }

    /// The number of dropped lines and writes.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether all events were sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.outbox.is_empty() && self.chunk.is_none()
    }

    /// Logs the lines of a text in the name of a configuration.
    pub(crate) fn log(&mut self, name: &str, text: &str, now: Timestamp) {
        for line in text.split('\n') {
            let end = line.floor_char_boundary(MAX_LINE);
            if self.lines.take(1, now) && self.outbox.bytes() < self.max_backlog {
                self.queue_chunk();
                let line = line.get(..end).unwrap_or(line).as_bytes();
                self.push(&Event::Console { name: name.as_bytes(), line });
            } else {
                self.lost += 1;
            }
        }
    }

    /// Writes bytes to a file on the host: all of them or, beyond the limits, none, so that no record is truncated.
    pub(crate) fn output(&mut self, file: &Rc<str>, position: u64, bytes: &[u8], now: Timestamp) {
        if !self.bytes.take(bytes.len() as u64, now) || self.outbox.bytes() >= self.max_backlog {
            self.lost += 1;
            return;
        }
        let mut position = position;
        for bytes in bytes.chunks(MAX_OUTPUT_CHUNK) {
            self.add(file, position, bytes);
            position += bytes.len() as u64;
        }
    }

    /// Adds bytes to the current chunk if they are contiguous and fit, or else starts a new chunk.
    fn add(&mut self, file: &Rc<str>, position: u64, bytes: &[u8]) {
        let follows = |chunk: &OutputChunk| {
            Rc::ptr_eq(&chunk.file, file)
                && chunk.position + chunk.bytes.len() as u64 == position
                && chunk.bytes.len() + bytes.len() <= MAX_OUTPUT_CHUNK
        };
        if !self.chunk.as_ref().is_some_and(follows) {
            self.queue_chunk();
        }
        let begin =
            || OutputChunk { file: file.clone(), position, bytes: Vec::with_capacity(MAX_OUTPUT_CHUNK) };
        self.chunk.get_or_insert_with(begin).bytes.extend_from_slice(bytes);
    }

    /// Queues the current chunk.
    pub(crate) fn queue_chunk(&mut self) {
        if let Some(OutputChunk { file, position, bytes }) = self.chunk.take() {
            self.push(&Event::Output { file: file.as_bytes(), position, bytes: &bytes });
        }
    }

    /// Sends an event that is not a log line or file output, and that its sender limits.
    pub(crate) fn send(&mut self, event: &Event) {
        self.queue_chunk();
        self.push(event);
    }

    /// Whether so much waits that nothing should be added.
    pub(crate) fn is_full(&self) -> bool {
        self.outbox.bytes() >= self.max_backlog
    }

    #[inline(never)]
    fn push(&mut self, event: &Event) {
        self.outbox.push(event.encode(self.number));
        self.number = self.number.wrapping_add(1);
    }

    /// Sends as many events as fit. Returns true if the host sleeps and must be woken.
    pub(crate) fn flush(&mut self) -> Result<bool, ChannelError> {
        if self.is_empty() {
            return Ok(false);
        }
        self.queue_chunk();
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
    fn a_token_bucket_is_spent_and_refills() {
        let mut bucket = TokenBucket::new(10);
        let start = Timestamp::from_parts(100, 0);
        assert_eq!((0..20).filter(|_| bucket.take(1, start)).count(), 10);
        let later = start + Timestamp::from_millis(300);
        assert_eq!((0..20).filter(|_| bucket.take(1, later)).count(), 3);
        let much_later = start + Timestamp::from_parts(3_600, 0);
        assert!(!bucket.take(11, much_later) && bucket.take(10, much_later));
    }
}
