//! Responses to requests.

use crate::error::OperationError;
use crate::supervisor::Supervisor;
use api::{ApiError, ErrorCode, ErrorReply};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The response of a failed operation.
#[derive(Debug)]
pub(super) struct ErrorResponse(pub(super) ApiError);

/// The response of an operation.
pub(super) type JsonResult<T> = Result<Json<T>, ErrorResponse>;

impl ErrorResponse {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(ApiError::new(code, message))
    }
}

impl From<OperationError> for ErrorResponse {
    fn from(failure: OperationError) -> Self {
        Self(failure.into())
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = self.0.code;
        let mut response = (status, Json(ErrorReply { error: self.0 })).into_response();
        // For the audit log.
        response.extensions_mut().insert(code);
        response
    }
}

/// Runs an operation of the supervisor in this thread, which may block. Another one serves the other connections meanwhile: to
/// pass the operation on, and its result back, would wake a thread each time.
pub(super) async fn wait<T: Send + 'static>(
    supervisor: Supervisor,
    operation: impl FnOnce(&Supervisor) -> Result<T, OperationError> + Send + 'static,
) -> Result<T, ErrorResponse> {
    run(&supervisor, || tokio::task::block_in_place(|| operation(&supervisor)))
}

/// Runs an operation of the supervisor in this thread.
fn run<T>(
    supervisor: &Supervisor,
    operation: impl FnOnce() -> Result<T, OperationError>,
) -> Result<T, ErrorResponse> {
    let operation = || operation().map_err(|error| supervisor.name_file_system(error));
    match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(result) => Ok(result?),
        Err(_) => Err(ErrorResponse::new(
            ErrorCode::Internal,
            "the operation was aborted by an internal error of the daemon",
        )),
    }
}

/// Like [`wait`], with a JSON response.
pub(super) async fn answer<T: Send + 'static>(
    supervisor: Supervisor,
    operation: impl FnOnce(&Supervisor) -> Result<T, OperationError> + Send + 'static,
) -> JsonResult<T> {
    wait(supervisor, operation).await.map(Json)
}

/// Runs an operation that says itself when it blocks, with an empty response. Until then no other thread is woken to serve the other
/// connections.
pub(super) async fn done_promptly(
    supervisor: Supervisor,
    operation: impl FnOnce(&Supervisor) -> Result<(), OperationError>,
) -> Result<StatusCode, ErrorResponse> {
    run(&supervisor, || operation(&supervisor)).map(|()| StatusCode::NO_CONTENT)
}

/// Like [`wait`], with an empty response.
pub(super) async fn done(
    supervisor: Supervisor,
    operation: impl FnOnce(&Supervisor) -> Result<(), OperationError> + Send + 'static,
) -> Result<StatusCode, ErrorResponse> {
    wait(supervisor, operation).await.map(|()| StatusCode::NO_CONTENT)
}
