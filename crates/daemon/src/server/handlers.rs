//! The operations on handlers of boxes.

use super::record::RecordNote;
use super::request::{JsonBody, PathNames};
use super::respond::{ErrorResponse, JsonResult, answer, done_promptly};
use crate::supervisor::Supervisor;
use api::{BoxName, ErrorCode, HandlerArgument, HandlerInfo, HandlerPath, HandlerValue, HandlerWrite};
use axum::http::StatusCode;
use axum::{Extension, Json};

pub(super) async fn list_handlers(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<Vec<HandlerInfo>> {
    answer(supervisor, move |supervisor| supervisor.handlers(&name)).await
}

type HandlerNames = (BoxName, String);

fn handler((name, handler): HandlerNames) -> Result<HandlerPath, ErrorResponse> {
    HandlerPath::of(name, &handler).map_err(|error| ErrorResponse::new(ErrorCode::Invalid, error.to_string()))
}

pub(super) async fn read_handler(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(names): PathNames<HandlerNames>,
) -> JsonResult<HandlerValue> {
    read(supervisor, handler(names)?, Vec::new()).await
}

pub(super) async fn ask_handler(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(names): PathNames<HandlerNames>,
    JsonBody(request): JsonBody<HandlerArgument>,
) -> JsonResult<HandlerValue> {
    read(supervisor, handler(names)?, request.argument.0).await
}

/// Reads a handler. A thread that waits for the box would take longer to wake than the box to answer.
async fn read(supervisor: Supervisor, path: HandlerPath, argument: Vec<u8>) -> JsonResult<HandlerValue> {
    match supervisor.try_read(&path, &argument).await {
        Ok(Some(value)) => Ok(Json(value)),
        Ok(None) => answer(supervisor, move |supervisor| supervisor.read(&path, &argument)).await,
        Err(error) => Err(supervisor.name_file_system(error).into()),
    }
}

pub(super) async fn write_handler(
    Extension(supervisor): Extension<Supervisor>,
    Extension(note): Extension<RecordNote>,
    PathNames(names): PathNames<HandlerNames>,
    JsonBody(request): JsonBody<HandlerWrite>,
) -> Result<StatusCode, ErrorResponse> {
    note.detail(&request.value.0);
    let path = handler(names)?;
    done_promptly(supervisor, move |supervisor| supervisor.write(&path, &request.value.0)).await
}
