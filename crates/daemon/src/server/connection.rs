//! Connections, each from the first byte to the last, limited in time.

use super::admission::{Admission, Connection, Peer, Serving};
use super::respond::ErrorResponse;
use super::stream::{ShutdownSignal, wait_for_shutdown};
use crate::caller::Caller;
use api::ErrorCode;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::RETRY_AFTER;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Time limit for the TLS handshake, and for a request's header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);

/// How long connections may take to finish when the server shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Pause after a connection could not be accepted, usually because descriptors ran out. A timer is needed: no event
/// reports that a box, or another process, has freed some.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The age from which on a connection that has sent nothing is closed when descriptors have run out.
const GRACE: Duration = Duration::from_millis(500);

/// Waits for a connection at a listener. After a failure, makes room in `admission` if a connection waits for a descriptor,
/// tells `exhausted` so, and returns `None` after a pause; the caller may retry.
pub(super) async fn accept<T>(
    accept: impl Future<Output = io::Result<T>>,
    listener: impl AsFd,
    admission: &Admission,
    exhausted: impl FnOnce(),
) -> Option<T> {
    match accept.await {
        Ok(connection) => Some(connection),
        Err(error) => {
            let is_short = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
            // The system reports it also if no connection waits.
            if is_short && is_waited_at(&listener) {
                admission.relieve(GRACE);
                exhausted();
            }
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            None
        }
    }
}

/// Whether a connection waits to be accepted.
fn is_waited_at(listener: &impl AsFd) -> bool {
    let mut asked = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    running: JoinSet<()>,
    ending: ShutdownSignal,
}

impl Connections {
    pub(super) fn new(ending: ShutdownSignal) -> Self {
        Self { running: JoinSet::new(), ending }
    }

    /// Serves a connection until it closes, the server shuts down, or `admission` needs its place.
    pub(super) fn serve<F, I>(&mut self, (admission, peer): (&Admission, Peer), open: F, router: Router)
    where
        F: Future<Output = Option<I>> + Send + 'static,
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        while self.running.try_join_next().is_some() {}
        let mut ending = self.ending.clone();
        let connection = admission.open(peer);
        let registered = connection.clone();
        let served = async move {
            let Ok(Some(stream)) = tokio::time::timeout(HEADER_TIMEOUT, open).await else { return };
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            let router = TowerToHyperService::new(router);
            let service = service_fn(move |mut request: hyper::Request<Incoming>| {
                request.extensions_mut().insert(registered.clone());
                router.call(request)
            });
            let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
            tokio::select! {
                // The connection ended; an error means that the client is gone.
                _ = served.as_mut() => {}
                () = wait_for_shutdown(&mut ending) => {
                    served.as_mut().graceful_shutdown();
                    let _ = served.await;
                }
            }
        };
        self.running.spawn(async move {
            tokio::select! {
                () = served => {}
                () = connection.evicted() => {}
            }
        });
    }

    /// Waits until all connections have closed, but at most [`SHUTDOWN_TIMEOUT`].
    pub(super) async fn finish(mut self) {
        let all = async { while self.running.join_next().await.is_some() {} };
        // The remaining connections are aborted.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await;
    }
}

/// Passes requests, which must be authorised, unless too many are being served.
pub(super) async fn admit(request: Request, next: Next) -> Response {
    let connection = request.extensions().get::<Arc<Connection>>();
    let user = match request.extensions().get::<Caller>() {
        Some(Caller::User(user)) => Some(user.name.clone()),
        Some(Caller::Administrator) | None => None,
    };
    let Some(serving) = connection.and_then(|connection| connection.begin(user)) else {
        let error =
            ErrorResponse::new(ErrorCode::Limit, "too many requests are being served; try again later");
        return ([(RETRY_AFTER, "1")], error).into_response();
    };
    // The operation goes on if its client goes, and counts until it has ended: closing connections must not start more of
    // them than a client may have.
    let served =
        async move { next.run(request).await.map(|body| Body::new(ServedBody { body, _serving: serving })) };
    Lasting(Some(Box::pin(served))).await.unwrap_or_else(|Panicked| {
        let message = "the operation was aborted by an internal error of the daemon";
        ErrorResponse::new(ErrorCode::Internal, message).into_response()
    })
}

/// A future that goes on as a separate task if it is dropped before it is ready. If it were one from the start, it would be passed
/// on to another thread, and its result back.
struct Lasting<F>(Option<Pin<Box<F>>>)
where
    F: Future + Send + 'static,
    F::Output: Send;

/// The future has panicked.
struct Panicked;

impl<F> Future for Lasting<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Ready(Err(Panicked)) };
        let polled = match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        };
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<F> Drop for Lasting<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        // Without a runtime, the daemon has ended.
        if let Some(future) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(future);
        }
    }
}

/// The body of a response. The request is being served until the body ends.
struct ServedBody {
    body: Body,
    _serving: Serving,
}

impl HttpBody for ServedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::super::admission::MAX_REQUESTS;
    use super::super::write_timeout::{WRITE_TIMEOUT, WriteTimeout};
    use super::*;
    use axum::routing::get;
    use futures_util::stream::repeat_with;
    use std::convert::Infallible;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::{Instant, timeout};

    /// A connection to a server whose responses do not end.
    async fn connect(connections: &mut Connections, admission: &Admission) -> DuplexStream {
        let endless = async || Body::from_stream(repeat_with(|| Ok::<_, Infallible>(vec![b'x'; 1 << 10])));
        let router = Router::new().route("/", get(endless)).layer(axum::middleware::from_fn(admit));
        let (client, server) = duplex(1 << 12);
        let open = async { Some(WriteTimeout::new(server)) };
        connections.serve((admission, Peer::User(None)), open, router);
        client
    }

    /// The time in which all connections end.
    async fn time_to_end(mut connections: Connections) -> Duration {
        let start = Instant::now();
        let all = async { while connections.running.join_next().await.is_some() {} };
        timeout(10 * WRITE_TIMEOUT, all).await.expect("a connection never ends");
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn connections_end_whose_clients_do_not_read() {
        let (_end, ending) = tokio::sync::watch::channel(false);
        let (mut connections, admission) = (Connections::new(ending), Admission::default());
        let mut client = connect(&mut connections, &admission).await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        // A slow reader is served on.
        let mut bytes = vec![0; 1 << 12];
        for _ in 0..10 {
            client.read_exact(&mut bytes).await.unwrap();
            tokio::time::sleep(WRITE_TIMEOUT / 2).await;
        }
        let time = time_to_end(connections).await;
        assert!(time <= WRITE_TIMEOUT + Duration::from_secs(1), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn operations_count_after_their_clients_have_gone() {
        const TIME: Duration = Duration::from_secs(5);
        let (_end, ending) = tokio::sync::watch::channel(false);
        let (mut connections, admission) = (Connections::new(ending), Admission::default());
        let slow = async || tokio::time::sleep(TIME).await;
        let router = Router::new().route("/", get(slow)).layer(axum::middleware::from_fn(admit));
        let mut answers = 0;
        for _ in 0..MAX_REQUESTS {
            let (mut client, server) = duplex(1 << 12);
            let open = async { Some(server) };
            connections.serve((&admission, Peer::User(None)), open, router.clone());
            client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut bytes = [0; 12];
            let answered = timeout(Duration::from_millis(1), client.read_exact(&mut bytes)).await;
            answers += usize::from(answered.is_ok_and(|read| read.is_ok() && bytes.ends_with(b"429")));
        }
        assert!(answers > 0, "more operations than a client may have");
        tokio::time::sleep(TIME).await;
        assert_eq!(admission.requests(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_end_whose_clients_do_not_send_or_finish_the_handshake() {
        let (_end, ending) = tokio::sync::watch::channel(false);
        let (mut connections, admission) = (Connections::new(ending), Admission::default());
        let _silent = connect(&mut connections, &admission).await;
        let mut begun = connect(&mut connections, &admission).await;
        begun.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
        let handshake = std::future::pending::<Option<DuplexStream>>();
        connections.serve((&admission, Peer::User(None)), handshake, Router::new());
        let time = time_to_end(connections).await;
        assert!(time <= HEADER_TIMEOUT + Duration::from_secs(1), "{time:?}");
    }
}
