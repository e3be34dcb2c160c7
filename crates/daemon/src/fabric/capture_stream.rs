//! Passes captured packets from the fabric to a reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use switch::{CaptureSink, Delivery};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// A queue to the reader of a capture. Packets that find it full are dropped for this reader and counted.
#[derive(Debug)]
pub(crate) struct CaptureStream {
    /// The queue.
    pub(crate) sender: Sender<Vec<u8>>,
    /// Counts the packets dropped by all captures.
    pub(crate) lost: Arc<AtomicU64>,
}

impl CaptureSink for CaptureStream {
    fn deliver(&mut self, piece: Vec<u8>, packets: u64) -> Delivery {
        match self.sender.try_send(piece) {
            Ok(()) => Delivery::Taken,
            Err(TrySendError::Full(_)) => {
                self.lost.fetch_add(packets, Ordering::Relaxed);
                Delivery::Full
            }
            Err(TrySendError::Closed(_)) => Delivery::Closed,
        }
    }

    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::channel;

    #[test]
    fn packets_that_find_the_queue_full_are_counted() {
        let (sender, mut receiver) = channel(1);
        let lost = Arc::new(AtomicU64::new(5));
        let mut stream = CaptureStream { sender, lost: lost.clone() };
        assert_eq!(stream.deliver(vec![1], 2), Delivery::Taken);
        assert_eq!(stream.deliver(vec![2], 3), Delivery::Full);
        assert_eq!(lost.load(Ordering::Relaxed), 8);
        assert_eq!(receiver.blocking_recv(), Some(vec![1]));
        assert!(!stream.is_closed());
        drop(receiver);
        assert!(stream.is_closed());
        assert_eq!((stream.deliver(vec![3], 4), lost.load(Ordering::Relaxed)), (Delivery::Closed, 8));
    }
}
