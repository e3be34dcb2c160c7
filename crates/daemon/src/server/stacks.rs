//! The operations on stacks.

use super::files::Files;
use super::memory::RequestMemory;
use super::request::{JsonBody, PathNames, QueryParameters};
use super::respond::{ErrorResponse, JsonResult, answer, done};
use crate::supervisor::Supervisor;
use api::{ApplyQuery, Changes, RemoveQuery, Stack, StackName, StackStatus};
use axum::Extension;
use axum::http::StatusCode;
use std::time::Duration;

pub(super) async fn list_stacks(
    Extension(supervisor): Extension<Supervisor>,
) -> JsonResult<Vec<StackStatus>> {
    answer(supervisor, Supervisor::stacks).await
}

pub(super) async fn diff_stack(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<StackName>,
    files: Files,
    JsonBody(mut request): JsonBody<Stack>,
) -> JsonResult<Changes> {
    files.load_stack(&mut request).await?;
    answer(supervisor, move |supervisor| supervisor.diff_stack(&name, &request)).await
}

pub(super) async fn apply_stack(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<StackName>,
    QueryParameters(query): QueryParameters<ApplyQuery>,
    files: Files,
    JsonBody(mut request): JsonBody<Stack>,
) -> JsonResult<Changes> {
    let used = files.load_stack(&mut request).await?;
    let time = query.confirm_within.map(|seconds| Duration::from_secs(seconds.into()));
    let apply =
        move |supervisor: &Supervisor| supervisor.apply_stack_within(&name, request, time, query.force);
    let changes = answer(supervisor, apply).await?;
    files.remove_used(used);
    Ok(changes)
}

pub(super) async fn confirm_stack(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<StackName>,
) -> Result<StatusCode, ErrorResponse> {
    done(supervisor, move |supervisor| supervisor.confirm_stack(&name)).await
}

pub(super) async fn roll_back_stack(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<StackName>,
) -> JsonResult<Changes> {
    answer(supervisor, move |supervisor| supervisor.roll_back_stack(&name)).await
}

pub(super) async fn export_stack(
    Extension(supervisor): Extension<Supervisor>,
    Extension(memory): Extension<RequestMemory>,
    PathNames(name): PathNames<StackName>,
) -> JsonResult<Stack> {
    // It has all files of the stack.
    memory.take_for_response().await?;
    answer(supervisor, move |supervisor| supervisor.export_stack(&name)).await
}

pub(super) async fn remove_stack(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<StackName>,
    QueryParameters(query): QueryParameters<RemoveQuery>,
) -> JsonResult<Changes> {
    answer(supervisor, move |supervisor| match query.force {
        true => supervisor.remove_stack_by_force(&name),
        false => supervisor.remove_stack(&name),
    })
    .await
}
