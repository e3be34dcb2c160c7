//! Captures: copies of what passes a port, for readers who may be slow.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use switch::{Batch, MAX_FRAME};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// The number that a capture with nanoseconds begins with.
const MAGIC: u32 = 0xa1b2_3c4d;

/// The link type of Ethernet.
const ETHERNET: u32 = 1;

/// What a capture in libpcap's format begins with.
pub(crate) fn header(snap: Option<u32>) -> Vec<u8> {
    let words = [MAGIC, 2 | 4 << 16, 0, 0, snap.unwrap_or(MAX_FRAME as u32), ETHERNET];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// One capture: records of a batch are one message.
#[derive(Debug)]
pub(crate) struct Capture {
    /// Where they go. What finds no room is left out.
    pub(crate) sender: Sender<Vec<u8>>,
    /// Bytes of each frame that are kept.
    pub(crate) snap: usize,
    /// Frames that are still wanted.
    pub(crate) left: u64,
    /// Frames that were left out.
    pub(crate) lost: Arc<AtomicU64>,
}

impl Capture {
    /// Passes frames on. False: no more are wanted.
    fn see<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut records, mut count) = (Vec::new(), 0);
        for frame in frames.take(usize::try_from(self.left).unwrap_or(usize::MAX)) {
            let kept = frame.get(..self.snap).unwrap_or(frame);
            for word in [now.as_secs() as u32, now.subsec_nanos(), kept.len() as u32, frame.len() as u32] {
                records.extend_from_slice(&word.to_le_bytes());
            }
            records.extend_from_slice(kept);
            count += 1;
        }
        if count == 0 {
            return !self.sender.is_closed();
        }
        match self.sender.try_send(records) {
            Ok(()) => self.left -= count,
            Err(TrySendError::Full(_)) => {
                self.lost.fetch_add(count, Ordering::Relaxed);
            }
            Err(TrySendError::Closed(_)) => return false,
        }
        self.left > 0
    }
}

/// The captures of a port. All clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captures(Arc<CaptureList>);

#[derive(Debug, Default)]
struct CaptureList {
    /// Whether there are any: all that a port without captures looks at.
    active: AtomicBool,
    captures: Mutex<Vec<Capture>>,
}

impl Captures {
    /// Adds a capture.
    pub(crate) fn add(&self, capture: Capture) {
        self.0.captures.lock().unwrap_or_else(PoisonError::into_inner).push(capture);
        self.0.active.store(true, Ordering::Release);
    }

    /// Whether anybody captures.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.0.active.load(Ordering::Acquire)
    }

    /// Ends all captures, as when the port goes.
    pub(crate) fn end(&self) {
        self.0.captures.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.0.active.store(false, Ordering::Release);
    }

    /// Shows frames of a batch, by number, to all captures.
    pub(crate) fn see(&self, batch: &Batch, frames: impl Iterator<Item = usize> + Clone) {
        let mut captures = self.0.captures.lock().unwrap_or_else(PoisonError::into_inner);
        captures.retain_mut(|capture| capture.see(frames.clone().filter_map(|number| batch.frame(number))));
        if captures.is_empty() {
            self.0.active.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::channel;

    #[test]
    fn frames_are_copied_until_enough_and_never_wait() {
        let captures = Captures::default();
        let (sender, mut receiver) = channel(2);
        let lost = Arc::new(AtomicU64::new(0));
        captures.add(Capture { sender, snap: 4, left: 6, lost: lost.clone() });
        let mut batch = Batch::new(8);
        for length in [60, 3] {
            batch.push(&vec![length; length.into()]);
        }
        // Two messages fit; the third is left out.
        for _ in 0..3 {
            assert!(captures.is_active());
            captures.see(&batch, 0..2);
        }
        assert_eq!(lost.load(Ordering::Relaxed), 2);
        let message = receiver.blocking_recv().unwrap();
        assert_eq!(message.len(), 16 + 4 + 16 + 3);
        assert_eq!(message[8..16], [4, 0, 0, 0, 60, 0, 0, 0]);
        // Two more frames were wanted.
        captures.see(&batch, 0..2);
        assert!(!captures.is_active());
        receiver.blocking_recv().unwrap();
        assert_eq!(receiver.blocking_recv().unwrap().len(), 16 + 4 + 16 + 3);
    }

    #[test]
    fn a_reader_who_hung_up_is_forgotten() {
        let captures = Captures::default();
        let (sender, receiver) = channel(2);
        captures.add(Capture { sender, snap: 4, left: 5, lost: Arc::default() });
        drop(receiver);
        captures.see(&Batch::new(1), 0..0);
        assert!(!captures.is_active());
    }
}
