//! Passes captured packets to a reader in another process.

use crate::error::OperationError;
use crate::limits::CAPTURE_QUEUE_LENGTH;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use switch::{CaptureSink, Delivery};

/// A queue to the reader of a capture, which a thread of its own writes to a socket. Packets that find the queue full are
/// dropped for this reader and counted.
#[derive(Debug)]
pub(crate) struct CaptureStream {
    queue: SyncSender<Vec<u8>>,
    /// To notice that the reader has closed its end.
    socket: Arc<OwnedFd>,
    /// Counts the packets dropped by all captures.
    lost: Arc<AtomicU64>,
    _slot: Slot,
}

/// One of the captures that may run at the same time.
#[derive(Debug)]
struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CaptureStream {
    /// A stream, and the reader's end of its socket. `running` counts the streams, of which there may be `most`.
    pub(crate) fn new(
        lost: Arc<AtomicU64>,
        running: Arc<AtomicUsize>,
        most: usize,
    ) -> Result<(Self, OwnedFd), OperationError> {
        let slot = Slot(running);
        if slot.0.fetch_add(1, Ordering::Relaxed) >= most {
            return Err(OperationError::Limit("captures", most));
        }
        let system = |error| OperationError::system("start a capture", error);
        let (own, reader) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| system(error.into()))?;
        let (queue, pieces) = sync_channel::<Vec<u8>>(CAPTURE_QUEUE_LENGTH);
        let socket = Arc::new(own);
        let written = socket.clone();
        let run = move || {
            // The first error means that the reader has gone.
            let _ = pieces.iter().try_for_each(|piece| write_all(&written, &piece));
        };
        std::thread::Builder::new().name("capture".into()).spawn(run).map_err(system)?;
        Ok((Self { queue, socket, lost, _slot: slot }, reader))
    }
}

fn write_all(socket: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl CaptureSink for CaptureStream {
    fn deliver(&mut self, piece: Vec<u8>, packets: u64) -> Delivery {
        match self.queue.try_send(piece) {
            Ok(()) => Delivery::Taken,
            Err(TrySendError::Full(_)) => {
                self.lost.fetch_add(packets, Ordering::Relaxed);
                Delivery::Full
            }
            Err(TrySendError::Disconnected(_)) => Delivery::Closed,
        }
    }

    fn is_closed(&self) -> bool {
        let mut ends = [PollFd::new(&*self.socket, PollFlags::empty())];
        // An error leaves the result empty: the reader then counts as present.
        let _ = poll(&mut ends, Some(&Timespec::default()));
        ends[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    fn stream(most: usize) -> (CaptureStream, UnixStream, Arc<AtomicU64>, Arc<AtomicUsize>) {
        let (lost, running) = (Arc::new(AtomicU64::new(5)), Arc::default());
        let (stream, reader) = CaptureStream::new(lost.clone(), Arc::clone(&running), most).unwrap();
        (stream, UnixStream::from(reader), lost, running)
    }

    #[test]
    fn packets_that_find_the_queue_full_are_counted() {
        let (mut stream, mut reader, lost, running) = stream(1);
        assert!(CaptureStream::new(lost.clone(), running.clone(), 1).is_err(), "there is one already");
        let (mut taken, mut offered) = (0u64, 0u64);
        // The socket's buffer takes some pieces, the queue the others.
        let piece = vec![7; 4096];
        while stream.deliver(piece.clone(), 2) == Delivery::Taken {
            taken += 1;
            assert!(taken < 100_000);
        }
        offered += taken + 1;
        assert_eq!((lost.load(Ordering::Relaxed), stream.is_closed()), (7, false));
        drop(stream);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        assert_eq!((all.len() as u64, offered), (taken * 4096, taken + 1));
        assert_eq!(running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_reader_that_has_gone_is_noticed() {
        let (mut stream, reader, lost, _) = stream(1);
        assert!(!stream.is_closed());
        drop(reader);
        // Another test may be starting a process: the child has a copy of the reader's end until it runs its program.
        let start = Instant::now();
        while !stream.is_closed() {
            assert!(start.elapsed() < Duration::from_secs(10));
            std::thread::yield_now();
        }
        while stream.deliver(vec![1; 4096], 1) != Delivery::Closed {
            assert!(start.elapsed() < Duration::from_secs(10));
            std::thread::yield_now();
        }
        assert!(lost.load(Ordering::Relaxed) >= 5);
    }
}
