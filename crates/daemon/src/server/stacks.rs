//! The operations on stacks.

use super::files::Files;
use super::memory::RequestMemory;
use super::request::{JsonBody, PathNames, QueryParameters};
use super::respond::{ErrorResponse, JsonResult, answer, done};
use crate::supervisor::{Supervisor, check_instance_names};
use api::{ApplyQuery, Changes, ImageSource, RemoveQuery, Stack, StackName, StackStatus};
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
    let mut used = files.load_stack(&mut request).await?;
    // One that is named by its digest need not exist: it differs from those of the boxes.
    let is_upload = |image: &&mut Option<ImageSource>| matches!(image, Some(ImageSource::Upload(_)));
    let instances = request.services.iter_mut().map(|service| &mut service.instance);
    let wanted = request.boxes.iter_mut().chain(instances);
    let uploaded = wanted.map(|wanted| &mut wanted.image).filter(is_upload).collect();
    let images = files.load_images(&supervisor, &mut used, uploaded).await?;
    files.take_stored(supervisor.clone(), &request).await?;
    let diff = move |supervisor: &Supervisor| {
        let changes = check_instance_names(&request.services)
            .map_err(Into::into)
            .and_then(|()| supervisor.diff_stack(&name, &request));
        drop(images);
        changes
    };
    answer(supervisor, diff).await
}

pub(super) async fn apply_stack(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<StackName>,
    QueryParameters(query): QueryParameters<ApplyQuery>,
    files: Files,
    JsonBody(mut request): JsonBody<Stack>,
) -> JsonResult<Changes> {
    let mut used = files.load_stack(&mut request).await?;
    let images = files.load_images_of_stack(&supervisor, &mut used, &mut request).await?;
    files.take_stored(supervisor.clone(), &request).await?;
    let time = query.confirm_within.map(|seconds| Duration::from_secs(seconds.into()));
    let apply = move |supervisor: &Supervisor| {
        let applied = check_instance_names(&request.services)
            .map_err(Into::into)
            .and_then(|()| supervisor.apply_stack_within(&name, request, time, query.force));
        drop(images);
        applied
    };
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

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryPool;
    use super::super::routes::{ServerState, routes};
    use super::super::shutdown::ShutdownSender;
    use super::super::uploads::Uploads;
    use crate::Settings;
    use crate::caller::Caller;
    use crate::supervisor::Supervisor;
    use crate::thread_fabric::ThreadFabric;
    use api::{CreateBox, File, Sandbox, Size, Stack};
    use axum::body::Body;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use std::sync::Arc;
    use tokio::sync::watch;

    /// The files of a stored box count against the memory of the request that is compared with them.
    #[tokio::test(flavor = "multi_thread")]
    async fn stored_files_take_memory_of_the_caller() {
        let start = || {
            let supervisor =
                Supervisor::start(&Settings::new(ThreadFabric::new(image::CLICKBOX, 1), "clickbox")).unwrap();
            let mut wanted = CreateBox::new("fw".parse().unwrap(), "Idle -> Discard;");
            (wanted.sandbox, wanted.memory, wanted.start) = (Sandbox::Process, Size(8 << 20), false);
            wanted.files = vec![File { name: "rules".into(), contents: api::Value(vec![7; 10_000]) }];
            let stack = Stack { boxes: vec![wanted], ..Stack::default() };
            supervisor.apply_stack(&"edge".parse().unwrap(), stack).unwrap();
            supervisor
        };
        let supervisor = tokio::task::spawn_blocking(start).await.unwrap();
        let (_end, ending) = watch::channel(false);
        let (shutdown, _requested) = ShutdownSender::channel();
        let body =
            r#"{"boxes": [{"name": "fw", "configuration": "Idle -> Discard;", "sandbox": "process"}]}"#;
        for (bytes, expected) in [(10_000, 413), (10_500, 200)] {
            let state = ServerState {
                supervisor: supervisor.clone(),
                ending: ending.clone(),
                refused: Arc::default(),
                shutdown: shutdown.clone(),
                uploads: Uploads::new(None),
                memory: MemoryPool::new(bytes, bytes),
            };
            let request = axum::http::Request::post("/v1/stacks/edge/diff").extension(Caller::Administrator);
            let request = request.header("content-type", "application/json").body(Body::from(body)).unwrap();
            let response = TowerToHyperService::new(routes(state)).call(request).await.unwrap();
            assert_eq!(response.status().as_u16(), expected, "{bytes}");
        }
    }
}
