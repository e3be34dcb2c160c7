//! Streams whose next request is polled for.

use protocol::poll_briefly;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a thread that has sent a response polls for the next request of the connection before it sleeps: a client that makes
/// many often has it by then. Other connections wait as long.
const POLL_TIME: Duration = Duration::from_micros(60);

/// Whether a thread polls. Others sleep: many that poll would take the time of what they wait for.
static IS_POLLED: AtomicBool = AtomicBool::new(false);

/// A stream whose reader polls for a moment after something was written.
#[derive(Debug)]
pub(super) struct NextRequest<S> {
    stream: S,
    /// Something was written, and nothing was read since.
    has_written: bool,
}

impl<S: AsFd> NextRequest<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, has_written: false }
    }

    /// Waits for a moment for something to read. The runtime then finds it without sleeping.
    fn wait_briefly(&self) {
        if IS_POLLED.swap(true, Ordering::SeqCst) {
            return;
        }
        let is_readable = || {
            let mut asked = [PollFd::new(&self.stream, PollFlags::IN)];
            let ready = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
            ready.is_ok_and(|ready| ready > 0).then_some(())
        };
        poll_briefly(POLL_TIME, is_readable);
        IS_POLLED.store(false, Ordering::SeqCst);
    }
}

impl<S: AsyncRead + AsFd + Unpin> AsyncRead for NextRequest<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if std::mem::take(&mut self.has_written) && read.is_pending() {
            self.wait_briefly();
        }
        read
    }
}

impl<S: AsyncWrite + AsFd + Unpin> AsyncWrite for NextRequest<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.has_written = true;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.has_written = true;
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    #[tokio::test]
    async fn a_request_is_read_whether_it_comes_soon_or_late() {
        let (near, mut client) = UnixStream::pair().unwrap();
        let mut stream = NextRequest::new(near);
        let mut byte = [0];
        for round in 0..100u8 {
            stream.write_all(b"response").await.unwrap();
            assert!(stream.has_written);
            let is_soon = round % 2 == 0;
            if is_soon {
                client.write_all(&[round]).await.unwrap();
            }
            // The runtime may not have noticed what is there.
            let read = stream.read(&mut byte).now_or_never();
            assert!(!stream.has_written);
            if read.is_none() {
                if !is_soon {
                    client.write_all(&[round]).await.unwrap();
                }
                assert_eq!(stream.read(&mut byte).await.unwrap(), 1);
            }
            assert_eq!(byte, [round]);
        }
        let mut responses = [0; 100 * b"response".len()];
        client.read_exact(&mut responses).await.unwrap();
        drop(client);
        assert_eq!(stream.read(&mut byte).await.unwrap(), 0);
    }
}
