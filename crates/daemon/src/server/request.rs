//! Extracts names in the path, the query and the body from a request, each within limits.

use super::memory::RequestMemory;
use super::plain_words::plain;
use super::respond::ErrorResponse;
use crate::limits::{BODY_TIMEOUT, MAX_BODY};
use api::ErrorCode;
use axum::body::Body;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use std::error::Error as _;

/// Maximum bytes of a body that take nothing from the memory that requests share. A buffer takes from it as it grows, so a
/// client that announces a large body and sends nothing takes nothing from others.
const SMALL_BODY: usize = 1 << 20;

/// The names in the path.
pub(super) struct PathNames<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathNames<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Self(names)),
            Err(rejection) => Err(ErrorResponse::new(ErrorCode::Invalid, of_path(rejection))),
        }
    }
}

/// What is wrong with a path.
fn of_path(rejection: PathRejection) -> String {
    let PathRejection::FailedToDeserializePathParams(error) = rejection else { return rejection.body_text() };
    match error.into_kind() {
        ErrorKind::DeserializeError { key, value, message } => {
            format!("{value:?} in the path can't be a {key}: {}", plain(&message))
        }
        ErrorKind::ParseErrorAtKey { key, value, expected_type } => {
            format!(
                "{value:?} in the path can't be a {key}: {}",
                plain(&format!("wrong, expected {expected_type}"))
            )
        }
        ErrorKind::ParseErrorAtIndex { value, expected_type, .. }
        | ErrorKind::ParseError { value, expected_type } => {
            format!("{value:?} in the path is {}", plain(&format!("wrong, expected {expected_type}")))
        }
        ErrorKind::Message(message) => plain(&message),
        other => other.to_string(),
    }
}

/// The query parameters.
pub(super) struct QueryParameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(rejection) => {
                // Its own message says what failed in Rust.
                let text = rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string);
                let message = format!("the query can't be read: {}", plain(&text));
                Err(ErrorResponse::new(ErrorCode::Invalid, message))
            }
        }
    }
}

/// The JSON body.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, _: &S) -> Result<Self, ErrorResponse> {
        let buffer = read_body(request).await?;
        // An empty body counts as an empty object.
        let text: &[u8] = if buffer.bytes.is_empty() { b"{}" } else { &buffer.bytes };
        serde_json::from_slice(text).map(Self).map_err(|error| not_readable(&error))
    }
}

/// The body, whatever it has to become: apart from [`JsonBody`], it is compiled once.
async fn read_body(request: Request) -> Result<BodyBuffer, ErrorResponse> {
    let announced = request.headers().get(CONTENT_LENGTH);
    match announced.and_then(|value| value.to_str().ok()?.parse().ok()) {
        Some(length) if length > MAX_BODY => return Err(too_large(length)),
        _ => {}
    }
    let Some(memory) = request.extensions().get::<RequestMemory>().cloned() else {
        return Err(ErrorResponse::new(ErrorCode::Internal, "the request has no memory"));
    };
    let mut buffer = BodyBuffer::new(memory);
    match tokio::time::timeout(BODY_TIMEOUT, buffer.read(request.into_body())).await {
        Ok(Ok(())) => Ok(buffer),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(ErrorResponse::new(ErrorCode::Timeout, "the request body timed out")),
    }
}

fn not_readable(error: &serde_json::Error) -> ErrorResponse {
    ErrorResponse::new(
        ErrorCode::Invalid,
        format!("the request can't be read: {}", plain(&error.to_string())),
    )
}

/// Why a body cannot be read.
#[derive(Debug)]
enum BodyError {
    /// It has more than [`MAX_BODY`] bytes.
    TooLarge,
    /// The client closed the connection, or its encoding is malformed.
    Broken(axum::Error),
    /// The request would take too much memory.
    Memory(ErrorResponse),
}

impl From<BodyError> for ErrorResponse {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => too_large(MAX_BODY + 1),
            BodyError::Broken(error) => {
                Self::new(ErrorCode::Invalid, format!("the request body can't be read: {error}"))
            }
            BodyError::Memory(response) => response,
        }
    }
}

/// The bytes of a body that have arrived.
#[derive(Debug)]
struct BodyBuffer {
    bytes: Vec<u8>,
    /// Bounds the bytes beyond [`SMALL_BODY`] of all buffers together.
    memory: RequestMemory,
}

impl BodyBuffer {
    fn new(memory: RequestMemory) -> Self {
        Self { bytes: Vec::new(), memory }
    }

    /// Reads the body to its end. While other bodies occupy the memory it waits, so the caller sets a time limit.
    async fn read(&mut self, body: Body) -> Result<(), BodyError> {
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(BodyError::Broken)?;
            let length = self.bytes.len() + chunk.len();
            if length > MAX_BODY {
                return Err(BodyError::TooLarge);
            }
            if length > self.bytes.capacity() {
                self.grow(length).await?;
            }
            self.bytes.extend_from_slice(&chunk);
        }
        Ok(())
    }

    /// Gives the buffer room for `length` bytes, at most [`MAX_BODY`].
    async fn grow(&mut self, length: usize) -> Result<(), BodyError> {
        let before = self.bytes.capacity();
        let capacity = length.max(before.saturating_mul(2)).min(MAX_BODY);
        let more = capacity.saturating_sub(before.max(SMALL_BODY));
        if more > 0 {
            self.memory.take(more).await.map_err(BodyError::Memory)?;
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        Ok(())
    }
}

fn too_large(bytes: usize) -> ErrorResponse {
    ErrorResponse::new(
        ErrorCode::TooLarge,
        format!("the request has at least {bytes} bytes; the limit is {MAX_BODY}"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryPool;
    use super::*;
    use crate::caller::Caller;
    use axum::body::Bytes;
    use futures_util::stream::{iter, pending};
    use std::convert::Infallible;
    use std::time::Duration;

    /// A body of `count` chunks of a mebibyte, which then ends or is silent.
    fn chunks(count: usize, ends: bool) -> Body {
        let chunks = iter((0..count).map(|_| Ok::<_, Infallible>(Bytes::from(vec![b' '; 1 << 20]))));
        if ends { Body::from_stream(chunks) } else { Body::from_stream(chunks.chain(pending())) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_takes_memory_for_the_bytes_that_arrived() {
        let pool = MemoryPool::new(8 << 20, 8 << 20);
        let buffer = || BodyBuffer::new(pool.for_request(&Caller::Administrator));
        let mut silent = buffer();
        let limit = Duration::from_secs(1);
        assert!(tokio::time::timeout(limit, silent.read(chunks(1, false))).await.is_err());
        assert_eq!(pool.left(), 8 << 20);
        let mut large = buffer();
        assert!(tokio::time::timeout(limit, large.read(chunks(4, false))).await.is_err());
        assert_eq!((large.bytes.len(), pool.left()), (4 << 20, 5 << 20));
        // What others hold is waited for within the caller's time limit.
        let mut other = buffer();
        assert!(tokio::time::timeout(limit, other.read(chunks(7, true))).await.is_err());
        drop(large);
        let mut next = buffer();
        drop(other);
        next.read(chunks(7, true)).await.unwrap();
        assert_eq!(next.bytes.len(), 7 << 20);
        drop(next);
        assert_eq!(pool.left(), 8 << 20);
    }

    #[tokio::test]
    async fn a_body_beyond_the_limit_is_refused() {
        let mut body = BodyBuffer::new(MemoryPool::default().for_request(&Caller::Administrator));
        let result = body.read(chunks((MAX_BODY >> 20) + 1, true)).await;
        assert!(matches!(result, Err(BodyError::TooLarge)), "{result:?}");
    }
}
