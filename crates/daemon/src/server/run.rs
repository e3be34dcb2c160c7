//! Runs the daemon from start to shutdown.

use super::admission::{Admission, MAX_REQUESTS, Peer};
use super::authorization::{Authorization, RefusalCounts, with_token};
use super::connection::{Connections, accept, admit};
use super::error::RunError;
use super::listeners::Listeners;
use super::memory::MemoryPool;
use super::next_request::NextRequest;
use super::routes::{ServerState, routes};
use super::service_manager;
use super::shutdown::{Shutdown, ShutdownSender};
use super::tls::{Tcp, TlsError, acceptor};
use super::tokens::Tokens;
use super::uploads::Uploads;
use super::write_timeout::WriteTimeout;
use crate::caller::Caller;
use crate::settings::Settings;
use crate::supervisor::Supervisor;
use crate::upgrade::{Origin, UpgradeError};
use rustix::net::sockopt;
use std::cell::Cell;
use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How long a TCP connection may be silent before the kernel asks whether the client is still there.
const KEEPALIVE_DELAY: Duration = Duration::from_secs(60);

/// Time between these questions.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Unanswered questions after which the connection is closed.
const KEEPALIVE_PROBES: u32 = 4;

/// How often the file of tokens is examined for changes.
const TOKENS_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two reports that descriptors have run out.
const SHORTAGE_INTERVAL: Duration = Duration::from_secs(60);

/// The addresses of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its Unix socket.
    pub socket: PathBuf,
    /// Its TCP address, with the actual port.
    pub tcp: Option<SocketAddr>,
}

/// Runs a daemon until it is replaced, or until a request, SIGTERM, which ends the daemon only, or SIGINT, which also ends all boxes. When `ready`
/// is called, everything is restored and the API is reachable.
///
/// # Errors
///
/// The daemon could not start. After `ready` there are no errors.
pub fn run(
    settings: &Settings,
    mut listeners: Listeners,
    tcp: Option<&Tcp>,
    ready: impl FnOnce(&Address),
) -> Result<(), RunError> {
    let mut ready = Some(ready);
    let mut failure = None;
    loop {
        let origin = listeners.origin.take();
        let begin = Begin { origin, failure: failure.take(), ready: ready.take() };
        let Shutdown::Replace(program) = run_once(settings, &listeners, tcp, begin)? else { return Ok(()) };
        let started = match &settings.upgrade_helper {
            Some(helper) => helper.start(&program, &listeners.parts()),
            None => Err(UpgradeError::Helper(None)),
        };
        match started {
            Ok(pid) => {
                service_manager::replaced_by(pid);
                listeners.unix.release();
                return Ok(());
            }
            // Clients wait in the queues of the sockets.
            Err(error) => failure = Some(error),
        }
    }
}

/// How a run of the server begins.
struct Begin<R> {
    /// The daemon that is replaced.
    origin: Option<Origin>,
    /// Why the daemon was not replaced by another program, and runs again.
    failure: Option<UpgradeError>,
    /// Called the first time.
    ready: Option<R>,
}

/// Runs the server once. Returns why it has ended.
fn run_once(
    settings: &Settings,
    listeners: &Listeners,
    tcp: Option<&Tcp>,
    begin: Begin<impl FnOnce(&Address)>,
) -> Result<Shutdown, RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // All requests of both listeners may wait at the same time, and streams read beside them.
        .max_blocking_threads(4 * MAX_REQUESTS)
        .thread_name("api")
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let end = async move {
            tokio::select! {
                _ = terminate.recv() => Shutdown::Daemon,
                _ = interrupt.recv() => Shutdown::All,
            }
        };
        serve(settings, listeners, tcp, begin, end).await
    });
    // Operations that still wait for boxes are abandoned.
    runtime.shutdown_background();
    result
}

/// Serves until `end` completes.
async fn serve(
    settings: &Settings,
    listeners: &Listeners,
    tcp: Option<&Tcp>,
    begin: Begin<impl FnOnce(&Address)>,
    end: impl Future<Output = Shutdown>,
) -> Result<Shutdown, RunError> {
    let unix = UnixListener::from_std(listeners.unix.listener.try_clone()?)?;
    let tls = match tcp.zip(listeners.tcp.as_ref()) {
        Some((tcp, listener)) => {
            let listener = TcpListener::from_std(listener.try_clone()?)?;
            let tokens = Tokens::read(tcp.token.as_deref(), tcp.tokens.as_deref()).map_err(TlsError::from)?;
            Some((listener, acceptor(tcp)?, tokens))
        }
        None => None,
    };
    let own = settings.clone();
    let started = tokio::task::spawn_blocking(move || Supervisor::start(&own)).await;
    let supervisor = started.map_err(io::Error::other)?.map_err(RunError::Start)?;
    supervisor.note_upgrade(begin.origin.as_ref(), begin.failure.as_ref());
    let (tell_end, ending) = watch::channel(false);
    let refused = Arc::<RefusalCounts>::default();
    let (shutdown, mut requested) = ShutdownSender::channel();
    let uploads = Uploads::new(settings.store.as_deref());
    let state = ServerState {
        supervisor: supervisor.clone(),
        ending: ending.clone(),
        refused: refused.clone(),
        shutdown,
        uploads: uploads.clone(),
        memory: MemoryPool::default(),
    };
    let all = routes(state).layer(axum::middleware::from_fn(admit));
    // Only this user can connect to the Unix socket.
    let open = all.clone().layer(axum::Extension(Caller::Administrator));
    let authorization =
        tls.as_ref().map(|(.., tokens)| Authorization::new(tokens.clone(), refused, supervisor.clone()));
    let guarded = authorization
        .clone()
        .map(|authorization| all.layer(axum::middleware::from_fn_with_state(authorization, with_token)));
    let mut reports = std::pin::pin!(async {
        match authorization {
            Some(authorization) => authorization.report().await,
            None => pending().await,
        }
    });
    let address = tls.as_ref().map(|(listener, ..)| listener.local_addr()).transpose()?;
    if let Some(ready) = begin.ready {
        ready(&Address { socket: listeners.path.clone(), tcp: address });
    }
    if let Some(origin) = &begin.origin {
        origin.tell_ready();
    }
    service_manager::ready();
    let mut connections = Connections::new(ending);
    // Clients that cannot even log in over TCP must not lock out the user of the Unix socket.
    let (near, far) = (Admission::default(), Admission::default());
    let last_shortage = Cell::new(None::<Instant>);
    let exhausted = || {
        if last_shortage.get().is_none_or(|last| last.elapsed() >= SHORTAGE_INTERVAL) {
            last_shortage.set(Some(Instant::now()));
            supervisor.note_exhausted_descriptors();
        }
    };
    let mut end = std::pin::pin!(end);
    let what;
    let mut refresh =
        std::pin::pin!(refresh_tokens(tls.as_ref().map(|(.., tokens)| tokens.clone()), supervisor.clone()));
    let mut expiry = std::pin::pin!(uploads.expire());
    let mut watchdog = std::pin::pin!(service_manager::run_watchdog(supervisor.clone()));
    loop {
        let over_tcp = async {
            match &tls {
                Some((listener, acceptor, _)) => {
                    (accept(listener.accept(), listener, &far, exhausted).await, acceptor.clone())
                }
                None => pending().await,
            }
        };
        tokio::select! {
            asked = &mut end => {
                what = asked;
                break;
            }
            // The routes hold the sender.
            Some(asked) = requested.recv() => {
                what = asked;
                break;
            }
            () = &mut watchdog => {}
            () = &mut refresh => {}
            () = &mut expiry => {}
            () = &mut reports => {}
            accepted = accept(unix.accept(), &unix, &near, exhausted) => {
                if let Some((stream, _)) = accepted {
                    let peer = Peer::User(stream.peer_cred().ok().map(|credentials| credentials.uid()));
                    let stream = WriteTimeout::new(NextRequest::new(stream));
                    connections.serve((&near, peer), async { Some(stream) }, open.clone());
                }
            }
            (accepted, acceptor) = over_tcp => {
                if let (Some((stream, from)), Some(guarded)) = (accepted, &guarded) {
                    keep_alive(&stream);
                    let stream = WriteTimeout::new(stream);
                    let open = async move { acceptor.accept(stream).await.ok() };
                    connections.serve((&far, Peer::at(from.ip())), open, guarded.clone());
                }
            }
        }
    }
    if !matches!(what, Shutdown::Replace(_)) {
        service_manager::stopping();
    }
    // An error means that no stream is left.
    let _ = tell_end.send(true);
    let ended = supervisor.clone();
    let is_all = what == Shutdown::All;
    let last = tokio::task::spawn_blocking(move || match is_all {
        false => ended.end(),
        true => ended.end_all(),
    });
    connections.finish().await;
    last.await.map_err(io::Error::other)?;
    tokio::task::spawn_blocking(move || supervisor.close_store()).await.map_err(io::Error::other)?;
    Ok(what)
}

/// Reads the file of tokens again when it changes, and at SIGHUP. Does not end.
async fn refresh_tokens(tokens: Option<Tokens>, supervisor: Supervisor) {
    let Some(tokens) = tokens.filter(Tokens::has_file) else { return pending().await };
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return pending().await };
    loop {
        let is_forced = tokio::select! {
            asked = hangup.recv() => asked.is_some(),
            () = tokio::time::sleep(TOKENS_INTERVAL) => false,
        };
        let (tokens, supervisor) = (tokens.clone(), supervisor.clone());
        let refresh = move || {
            if let Some(message) = tokens.refresh(is_forced) {
                supervisor.note_tokens(message);
            }
        };
        // A panic changes no token.
        let _ = tokio::task::spawn_blocking(refresh).await;
    }
}

/// Makes the kernel close a connection whose client has vanished without a word. A stream without events sends nothing,
/// so no write would ever fail.
fn keep_alive(stream: &TcpStream) {
    // Errors leave the system's longer limits in force.
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, KEEPALIVE_DELAY);
    let _ = sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL);
    let _ = sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn vanished_tcp_clients_are_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        keep_alive(&stream);
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), KEEPALIVE_DELAY);
        assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), KEEPALIVE_PROBES);
    }
}
