//! Connections, limited in number and in time.

use super::stream::{ShutdownSignal, wait_for_shutdown};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// Maximum concurrent connections of each kind; further ones wait to be accepted. Clients that cannot even log in over
/// TCP must not lock out the user of the Unix socket.
const MAX_CONNECTIONS: usize = 512;

/// Time limit for a request's header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);

/// How long connections may take to finish when the server shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Pause after a connection could not be accepted, usually because descriptors ran out. A timer is needed: no event
/// reports that a box, or another process, has freed some.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The connection slots of one kind.
#[derive(Debug)]
pub(super) struct ConnectionSlots(Arc<Semaphore>);

impl ConnectionSlots {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CONNECTIONS)))
    }

    /// Waits for a free slot, and then for a connection. Returns `None` after a failure and a pause; the caller may
    /// retry.
    pub(super) async fn accept<T>(
        &self,
        accept: impl Future<Output = io::Result<T>>,
    ) -> Option<(OwnedSemaphorePermit, T)> {
        // The semaphore is never closed.
        let permit = self.0.clone().acquire_owned().await.ok()?;
        match accept.await {
            Ok(connection) => Some((permit, connection)),
            Err(_) => {
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                None
            }
        }
    }
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

    /// Serves a connection until it closes or the server shuts down.
    pub(super) fn serve<F, I>(&mut self, permit: OwnedSemaphorePermit, open: F, router: Router)
    where
        F: Future<Output = Option<I>> + Send + 'static,
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        while self.running.try_join_next().is_some() {}
        let mut ending = self.ending.clone();
        self.running.spawn(async move {
            let _permit = permit;
            let Ok(Some(stream)) = tokio::time::timeout(HEADER_TIMEOUT, open).await else { return };
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            let service = TowerToHyperService::new(router);
            let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
            tokio::select! {
                // The connection ended; an error means that the client is gone.
                _ = connection.as_mut() => {}
                () = wait_for_shutdown(&mut ending) => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
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
