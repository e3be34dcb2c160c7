//! Extracts names in the path, the query and the body from a request, each within limits.

use super::respond::ErrorResponse;
use api::ErrorCode;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum bytes of a body: a configuration and its files, as JSON. Keeps a request from filling the daemon's memory.
const MAX_BODY: usize = 160 << 20;

/// Maximum bytes of a body that may be read without a limit on concurrency.
const SMALL_BODY: usize = 1 << 20;

/// Limits the larger bodies that are read concurrently; the others wait.
static LARGE_BODIES: Semaphore = Semaphore::const_new(2);

/// Time limit for a body: a client that sends nothing must not occupy a connection.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The names in the path.
pub(super) struct PathNames<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathNames<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Self(names)),
            Err(rejection) => Err(ErrorResponse::new(ErrorCode::Invalid, rejection.body_text())),
        }
    }
}

/// The query parameters.
pub(super) struct QueryParameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(rejection) => Err(ErrorResponse::new(ErrorCode::Invalid, rejection.body_text())),
        }
    }
}

/// The JSON body.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, _: &S) -> Result<Self, ErrorResponse> {
        let announced =
            request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let most = match announced {
            Some(length) if length > MAX_BODY => return Err(too_large(length)),
            Some(length) if length <= SMALL_BODY => SMALL_BODY,
            _ => MAX_BODY,
        };
        // The semaphore is never closed.
        let _place = if most > SMALL_BODY { LARGE_BODIES.acquire().await.ok() } else { None };
        let read = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(request.into_body(), most));
        let bytes: Bytes = match read.await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => return Err(too_large(most + 1)),
            Err(_) => return Err(ErrorResponse::new(ErrorCode::Timeout, "the request body timed out")),
        };
        // An empty body counts as an empty object.
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        match serde_json::from_slice(text) {
            Ok(body) => Ok(Self(body)),
            Err(error) => {
                Err(ErrorResponse::new(ErrorCode::Invalid, format!("the request can't be read: {error}")))
            }
        }
    }
}

fn too_large(bytes: usize) -> ErrorResponse {
    ErrorResponse::new(
        ErrorCode::TooLarge,
        format!("the request has at least {bytes} bytes; the limit is {MAX_BODY}"),
    )
}
