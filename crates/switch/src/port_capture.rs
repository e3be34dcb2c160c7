//! Captures at ports: copies of the frames that pass, in pcap format, for readers that may be slow.

use crate::batch::{Batch, MAX_FRAME};
use crate::books::LinkBooks;
use crate::driver::part_sent;
use crate::driver::{Driver, DriverError, LinkState, Received, Sent};
use crate::shards::Spread;
use crate::silence::Progress;
use boundary::DirectBatch;
use capture::{LinkType, PcapEncoder};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The result of offering records to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The reader accepted the records.
    Taken,
    /// The reader is behind; it loses these records.
    Full,
    /// The reader has disconnected.
    Closed,
}

/// The reader of a capture. The thread that runs the switch calls it, so it must never block.
pub trait CaptureSink: Send {
    /// Accepts a piece of the pcap file that contains `packets` packets.
    fn deliver(&mut self, piece: Vec<u8>, packets: u64) -> Delivery;

    /// Whether the reader has disconnected.
    fn is_closed(&self) -> bool;
}

/// One capture. The records of a batch form one piece.
pub struct Capture {
    sink: Box<dyn CaptureSink>,
    encoder: PcapEncoder,
    snapshot_length: usize,
    /// Packets still to be captured.
    remaining: u64,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("remaining", &self.remaining).finish_non_exhaustive()
    }
}

impl Capture {
    /// A capture of up to `packets` packets, each truncated to `snapshot_length` bytes. Delivers the file header at
    /// once.
    pub fn new(mut sink: Box<dyn CaptureSink>, snapshot_length: Option<u32>, packets: u64) -> Self {
        let length = snapshot_length.unwrap_or(MAX_FRAME as u32);
        let encoder = PcapEncoder::new(LinkType::ETHERNET).snapshot_length(length);
        // A reader without room for the header notices this itself.
        let _ = sink.deliver(encoder.file_header().to_vec(), 0);
        let snapshot_length = usize::try_from(length).unwrap_or(usize::MAX);
        Self { sink, encoder, snapshot_length, remaining: packets }
    }

    /// Delivers frames. Returns false when the capture is complete or its reader has disconnected.
    fn record<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let (mut records, mut count) = (Vec::new(), 0);
        for frame in frames.take(usize::try_from(self.remaining).unwrap_or(usize::MAX)) {
            let kept = frame.get(..self.snapshot_length).unwrap_or(frame);
            self.encoder.record(time_ns, frame.len() as u32, kept, &mut records);
            count += 1;
        }
        if count == 0 {
            return !self.sink.is_closed();
        }
        match self.sink.deliver(records, count) {
            Delivery::Taken => self.remaining -= count,
            Delivery::Full => {}
            Delivery::Closed => return false,
        }
        self.remaining > 0
    }
}

/// The captures at a port. Clones refer to the same list.
#[derive(Clone, Debug, Default)]
pub struct Captures(Arc<CaptureList>);

#[derive(Debug, Default)]
struct CaptureList {
    /// Whether there are any captures. Without one, the port reads nothing else.
    is_active: AtomicBool,
    captures: Mutex<Vec<Capture>>,
}

impl Captures {
    /// Adds a capture.
    pub fn add(&self, capture: Capture) {
        self.0.captures.lock().unwrap_or_else(PoisonError::into_inner).push(capture);
        self.0.is_active.store(true, Ordering::Release);
    }

    /// Whether there is a capture.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.0.is_active.load(Ordering::Acquire)
    }

    /// Ends all captures, for example when the port is removed.
    pub fn end(&self) {
        self.0.captures.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.0.is_active.store(false, Ordering::Release);
    }

    /// Passes the frames of a batch with these indices to all captures.
    pub fn record(&self, batch: &Batch, frames: impl Iterator<Item = usize> + Clone) {
        let mut captures = self.0.captures.lock().unwrap_or_else(PoisonError::into_inner);
        captures
            .retain_mut(|capture| capture.record(frames.clone().filter_map(|number| batch.frame(number))));
        if captures.is_empty() {
            self.0.is_active.store(false, Ordering::Release);
        }
    }
}

/// A driver whose frames can be captured. While a capture is active, frames are whole.
#[derive(Debug)]
pub struct CapturedDriver<D> {
    /// The driver.
    pub driver: D,
    /// The captures.
    pub captures: Captures,
}

impl<D: Driver> Driver for CapturedDriver<D> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let before = batch.len();
        let received = self.driver.receive(batch)?;
        if self.captures.is_active() {
            self.captures.record(batch, before..batch.len());
        }
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let sent = self.driver.send(batch, frames)?;
        if self.captures.is_active() {
            let (passed, _) = part_sent(&self.driver, frames, sent.frames);
            self.captures.record(batch, passed.iter().map(|number| *number as usize));
        }
        Ok(sent)
    }

    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.driver.send_split(batch, frames)
    }

    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let before = batch.len();
        let received = self.driver.receive_split(batch)?;
        if self.captures.is_active() {
            let frames: Vec<u32> = (before as u32..batch.len() as u32).collect();
            batch.complete(&frames);
            self.captures.record(batch, before..batch.len());
        }
        Ok(received)
    }

    fn is_ready(&mut self) -> bool {
        self.driver.is_ready()
    }

    fn release(&mut self, batch: &Batch) {
        self.driver.release(batch);
    }

    // A packet that moves with its buffer is not read.
    fn list_direct(&mut self, batch: &mut DirectBatch) {
        match self.captures.is_active() {
            true => batch.clear(),
            false => self.driver.list_direct(batch),
        }
    }

    fn send_direct(&mut self, batch: &mut DirectBatch) -> bool {
        !self.captures.is_active() && self.driver.send_direct(batch)
    }

    fn release_direct(&mut self, batch: &DirectBatch) {
        self.driver.release_direct(batch);
    }

    fn accepts_split(&self) -> bool {
        !self.captures.is_active() && self.driver.accepts_split()
    }

    fn skipped(&self) -> Vec<u32> {
        self.driver.skipped()
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.driver.prepare_sleep()
    }

    fn end_sleep(&mut self) {
        self.driver.end_sleep();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.driver.descriptor()
    }

    fn device(&self) -> Option<BorrowedFd<'_>> {
        self.driver.device()
    }

    fn queues(&self) -> u32 {
        self.driver.queues()
    }

    fn due_in(&self) -> Option<Duration> {
        self.driver.due_in()
    }

    fn progress(&mut self) -> Option<Progress> {
        self.driver.progress()
    }

    fn is_crowded(&mut self) -> bool {
        self.driver.is_crowded()
    }

    fn link_state(&self) -> Option<LinkState> {
        self.driver.link_state()
    }

    fn set_thread(&mut self, spread: Spread, thread: usize) {
        self.driver.set_thread(spread, thread);
    }

    fn waiting(&self) -> u64 {
        self.driver.waiting()
    }

    fn take_missed(&mut self) -> u64 {
        self.driver.take_missed()
    }

    fn take_lost(&mut self) -> u64 {
        self.driver.take_lost()
    }

    fn link_books(&mut self) -> Option<LinkBooks> {
        self.driver.link_books()
    }

    fn abandon(&mut self) -> u64 {
        self.driver.abandon()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::even::Even;
    use capture::Decoder;
    use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

    /// A reader with a queue of two pieces, and the number of packets that did not fit.
    struct Queue {
        sender: SyncSender<Vec<u8>>,
        lost: Arc<Mutex<u64>>,
        is_closed: Arc<AtomicBool>,
    }

    impl CaptureSink for Queue {
        fn deliver(&mut self, piece: Vec<u8>, packets: u64) -> Delivery {
            match self.sender.try_send(piece) {
                Ok(()) => Delivery::Taken,
                Err(TrySendError::Full(_)) => {
                    *self.lost.lock().unwrap() += packets;
                    Delivery::Full
                }
                Err(TrySendError::Disconnected(_)) => Delivery::Closed,
            }
        }

        fn is_closed(&self) -> bool {
            self.is_closed.load(Ordering::Relaxed)
        }
    }

    /// A queue of two pieces, its receiver, the count of lost packets, and the flag that closes it.
    type QueueParts = (Box<Queue>, Receiver<Vec<u8>>, Arc<Mutex<u64>>, Arc<AtomicBool>);

    fn queue() -> QueueParts {
        let (sender, receiver) = sync_channel(2);
        let (lost, is_closed) = <(Arc<Mutex<u64>>, Arc<AtomicBool>)>::default();
        (
            Box::new(Queue { sender, lost: lost.clone(), is_closed: is_closed.clone() }),
            receiver,
            lost,
            is_closed,
        )
    }

    #[test]
    fn frames_that_were_skipped_are_not_captured() {
        let mut port = CapturedDriver { driver: Even::default(), captures: Captures::default() };
        let (sink, receiver, _, _) = queue();
        port.captures.add(Capture::new(sink, None, 100));
        let mut decoder = Decoder::new();
        decoder.feed(&receiver.recv().unwrap());
        let mut batch = Batch::new(8);
        for length in [61, 62, 63, 64] {
            batch.push(&vec![0; length]);
        }
        let sent = port.send(&batch, &[0, 1, 2, 3]).unwrap();
        assert_eq!((sent.frames, sent.bytes), (2, 126));
        decoder.feed(&receiver.recv().unwrap());
        for length in [62, 64] {
            assert_eq!(decoder.record().unwrap().unwrap().bytes.len(), length);
        }
        assert_eq!(decoder.record(), Ok(None));
    }

    #[test]
    fn captures_never_delay_frames_and_end_at_their_count() {
        let captures = Captures::default();
        let (sink, receiver, lost, _) = queue();
        captures.add(Capture::new(sink, Some(4), 6));
        let mut decoder = Decoder::new();
        decoder.feed(&receiver.recv().unwrap());
        let mut batch = Batch::new(8);
        for length in [60, 3] {
            batch.push(&vec![length; length.into()]);
        }
        // Two pieces fit; the third is lost.
        for _ in 0..3 {
            assert!(captures.is_active());
            captures.record(&batch, 0..2);
        }
        assert_eq!(*lost.lock().unwrap(), 2);
        decoder.feed(&receiver.recv().unwrap());
        for (length, captured) in [(60u32, 4), (3, 3)] {
            let record = decoder.record().unwrap().unwrap();
            assert_eq!((record.original_length, record.bytes), (length, &vec![length as u8; captured][..]));
        }
        assert_eq!(decoder.record(), Ok(None));
        // Two more frames remain to be captured.
        captures.record(&batch, 0..2);
        assert!(!captures.is_active());
        assert_eq!(receiver.iter().map(|piece| piece.len()).collect::<Vec<_>>(), [16 + 4 + 16 + 3; 2]);
    }

    #[test]
    fn a_capture_ends_when_its_reader_is_gone() {
        let captures = Captures::default();
        let (sink, _receiver, _, is_closed) = queue();
        captures.add(Capture::new(sink, None, 5));
        captures.record(&Batch::new(1), 0..0);
        assert!(captures.is_active());
        is_closed.store(true, Ordering::Relaxed);
        captures.record(&Batch::new(1), 0..0);
        assert!(!captures.is_active());
    }
}
