//! Requests over TCP must have a token that the daemon knows. It decides for whom the request is carried out. Clients that present wrong ones are throttled.
//!
//! A request with the token always passes, so clients behind one address cannot shut each other out. What keeps the
//! token secret is its length; the throttle bounds the work that guessing causes, and makes it visible.

use super::admission::{Connection, Peer};
use super::respond::ErrorResponse;
use super::tokens::Tokens;
use crate::supervisor::Supervisor;
use api::{ApiError, ErrorCode, ErrorReason};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens that a client may present within [`WINDOW`] before it is throttled.
const MAX_WRONG_TOKENS: u32 = 10;

/// The time in which wrong tokens are counted. It starts with the first one.
const WINDOW: Duration = Duration::from_secs(60);

/// How often the daemon looks whether there are wrong tokens to report.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum clients whose wrong tokens are counted. A client with more addresses is not throttled further, but its
/// attempts cannot fill the memory.
const MAX_CLIENTS: usize = 1024;

/// Requests that were refused for lack of authorisation.
#[derive(Debug, Default)]
pub(super) struct RefusalCounts {
    pub(super) no_token: AtomicU64,
    pub(super) wrong_token: AtomicU64,
    /// Also wrong tokens, of clients that had presented too many.
    pub(super) throttled: AtomicU64,
}

/// The wrong tokens of each client.
#[derive(Debug, Default)]
struct Attempts {
    clients: HashMap<Peer, Attempt>,
    /// When a throttled client was reported last.
    reported: Option<Instant>,
    /// Wrong tokens of throttled clients since then, and the last of these clients.
    unreported: u64,
    last: Option<Peer>,
}

#[derive(Debug)]
struct Attempt {
    since: Instant,
    wrong: u32,
}

/// What a wrong token leads to.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The client may try again.
    Wrong,
    /// The client must wait. `report` is true at most once per [`WINDOW`].
    Throttled { wait: Duration, report: bool },
}

impl Attempts {
    /// Counts a wrong token.
    fn wrong(&mut self, peer: Peer, now: Instant) -> Verdict {
        let age = |since: Instant| now.saturating_duration_since(since);
        if !self.clients.contains_key(&peer) && self.clients.len() >= MAX_CLIENTS {
            self.clients.retain(|_, attempt| age(attempt.since) < WINDOW);
            let oldest = self.clients.iter().min_by_key(|(_, attempt)| attempt.since).map(|(&peer, _)| peer);
            if let Some(oldest) = oldest.filter(|_| self.clients.len() >= MAX_CLIENTS) {
                self.clients.remove(&oldest);
            }
        }
        let attempt = self.clients.entry(peer).or_insert(Attempt { since: now, wrong: 0 });
        if age(attempt.since) >= WINDOW {
            *attempt = Attempt { since: now, wrong: 0 };
        }
        attempt.wrong = attempt.wrong.saturating_add(1);
        if attempt.wrong <= MAX_WRONG_TOKENS {
            return Verdict::Wrong;
        }
        let report = self.reported.is_none_or(|reported| age(reported) >= WINDOW);
        if report {
            self.reported = Some(now);
        } else {
            self.unreported += 1;
            self.last = Some(peer);
        }
        Verdict::Throttled { wait: WINDOW - age(attempt.since), report }
    }

    /// The wrong tokens that were not reported on their own, and the last client that presented one, if they are to be reported
    /// now: once per [`WINDOW`].
    fn take_unreported(&mut self, now: Instant) -> Option<(u64, Peer)> {
        let is_due = self.reported.is_some_and(|reported| now.saturating_duration_since(reported) >= WINDOW);
        let last = self.last.filter(|_| is_due)?;
        (self.reported, self.last) = (Some(now), None);
        Some((std::mem::take(&mut self.unreported), last))
    }
}

/// Checks the token of each request.
#[derive(Clone, Debug)]
pub(super) struct Authorization {
    tokens: Tokens,
    attempts: Arc<Mutex<Attempts>>,
    counts: Arc<RefusalCounts>,
    supervisor: Supervisor,
}

impl Authorization {
    pub(super) fn new(tokens: Tokens, counts: Arc<RefusalCounts>, supervisor: Supervisor) -> Self {
        Self { tokens, attempts: Arc::default(), counts, supervisor }
    }

    /// Reports, now and then, how many wrong tokens were refused. Does not end.
    pub(super) async fn report(self) {
        loop {
            tokio::time::sleep(REPORT_INTERVAL).await;
            let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((count, Peer::Address(last))) = attempts.take_unreported(Instant::now()) {
                drop(attempts);
                self.supervisor.note_more_wrong_tokens(count, last);
            }
        }
    }

    /// The response to a wrong token.
    fn refuse_wrong(&self, peer: Peer) -> Response {
        // A panic leaves the table complete.
        let verdict =
            self.attempts.lock().unwrap_or_else(PoisonError::into_inner).wrong(peer, Instant::now());
        match verdict {
            Verdict::Wrong => {
                self.counts.wrong_token.fetch_add(1, Ordering::Relaxed);
                unauthorized(ErrorReason::WrongToken, "the daemon does not know the token")
            }
            Verdict::Throttled { wait, report } => {
                self.counts.throttled.fetch_add(1, Ordering::Relaxed);
                if report && let Peer::Address(address) = peer {
                    self.supervisor.note_wrong_tokens(address);
                }
                let seconds = wait.as_secs() + 1;
                let message = format!(
                    "the daemon does not know the token; after too many wrong ones, wait {seconds} s"
                );
                let error = ErrorResponse(ApiError {
                    reason: Some(ErrorReason::WrongToken),
                    ..ApiError::new(ErrorCode::Limit, message)
                });
                let headers = [
                    (RETRY_AFTER, HeaderValue::from(seconds)),
                    (CONNECTION, HeaderValue::from_static("close")),
                ];
                (headers, error).into_response()
            }
        }
    }
}

fn unauthorized(reason: ErrorReason, message: &str) -> Response {
    let error =
        ErrorResponse(ApiError { reason: Some(reason), ..ApiError::new(ErrorCode::Forbidden, message) });
    ([(WWW_AUTHENTICATE, "Bearer"), (CONNECTION, "close")], error).into_response()
}

/// Passes requests that have a token, with the caller whose token it is.
pub(super) async fn with_token(
    State(authorization): State<Authorization>,
    mut request: Request,
    next: Next,
) -> Response {
    let presented = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let Some(presented) = presented.and_then(|presented| presented.strip_prefix(b"Bearer ")) else {
        authorization.counts.no_token.fetch_add(1, Ordering::Relaxed);
        let message = "the request needs a token, as in `Authorization: Bearer TOKEN`";
        return unauthorized(ErrorReason::NoToken, message);
    };
    if let Some(caller) = authorization.tokens.caller(presented) {
        request.extensions_mut().insert(caller);
        return next.run(request).await;
    }
    let connection = request.extensions().get::<Arc<Connection>>();
    authorization.refuse_wrong(connection.map_or(Peer::User(None), |connection| connection.peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u32) -> Peer {
        Peer::Address(std::net::Ipv4Addr::from_bits(number).into())
    }

    #[test]
    fn clients_that_present_wrong_tokens_are_throttled() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..MAX_WRONG_TOKENS {
            assert_eq!(attempts.wrong(client(1), start), Verdict::Wrong);
        }
        let later = start + Duration::from_secs(20);
        let wait = Duration::from_secs(40);
        assert_eq!(attempts.wrong(client(1), later), Verdict::Throttled { wait, report: true });
        assert_eq!(attempts.wrong(client(1), later), Verdict::Throttled { wait, report: false });
        assert_eq!(attempts.wrong(client(2), later), Verdict::Wrong);
        assert_eq!(attempts.wrong(client(1), start + WINDOW), Verdict::Wrong);
        // What was not reported on its own is reported with its number.
        assert_eq!(attempts.take_unreported(later + WINDOW / 2), None);
        assert_eq!(attempts.take_unreported(later + WINDOW), Some((1, client(1))));
        assert_eq!(attempts.take_unreported(later + 3 * WINDOW), None);
    }

    #[test]
    fn the_table_of_wrong_tokens_is_bounded() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        for number in 0..3 * MAX_CLIENTS as u32 {
            let now = start + Duration::from_millis(number.into());
            assert_eq!(attempts.wrong(client(number), now), Verdict::Wrong);
            assert!(attempts.clients.len() <= MAX_CLIENTS);
        }
        assert!(!attempts.clients.contains_key(&client(0)));
        attempts.wrong(client(0), start + 2 * WINDOW);
        assert_eq!(attempts.clients.len(), 1);
    }
}
